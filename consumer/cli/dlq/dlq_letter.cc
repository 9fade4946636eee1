#include "consumer/cli/dlq/dlq_letter.h"

#include <charconv>

#include <fmt/format.h>

#include "consumer/cli/shared/bytes_text.h"
#include "consumer/cli/shared/moments.h"
#include "consumer/json/json_text.h"
#include "consumer/record/dead_letter.h"

namespace fencepost::cli {

using consumer::HeaderView;
using consumer::Record;
using consumer::TopicRecord;

namespace header = consumer::dead_letter_header;

namespace {

// Digits and nothing else, as far as they fit.
template <typename Int>
bool ReadNumber(std::string_view text, Int& value) {
  const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  return error == std::errc() && end == text.end() && value >= 0;
}

std::string Text(const Record& record, std::string_view name) {
  return std::string(consumer::FindHeader(record, name).value_or(""));
}

// A value of any length: a line for text without line ends, the lines indented for other text.
std::string ValueText(const std::optional<std::string_view>& value) {
  if (!value) return "null (a tombstone)";
  if (!IsText(*value))
    return fmt::format("{} bytes, base64: {}", value->size(), consumer::ToBase64(*value));
  std::string text;
  for (const char c : *value) {
    text += c;
    if (c == '\n') text += "              ";
  }
  return text;
}

}  // namespace

std::string_view ProgramOfLetter(const Record& record) {
  for (const HeaderView& one : record.headers) {
    if (one.name.starts_with("kafka_dlt-") || one.name.starts_with("kafka_original-")) {
      return "spring-kafka";
    }
    if (one.name.starts_with("__connect.errors.")) return "Kafka Connect";
  }
  return "";
}

tl::expected<StoredLetter, std::string> ReadLetter(const TopicRecord& stored) {
  const Record& record = stored.record;
  if (!consumer::FindHeader(record, header::kTopic) ||
      !consumer::FindHeader(record, header::kPipeline)) {
    return tl::unexpected(std::string("it has no fencepost-topic and fencepost-pipeline headers"));
  }
  StoredLetter letter;
  letter.stored = stored;
  letter.origin.where.topic = Text(record, header::kTopic);
  const auto origin = consumer::OriginOf(record, letter.origin.where.topic);
  if (!origin) {
    return tl::unexpected(fmt::format(
        "its headers name the position {}/{}/{}", Printable(letter.origin.where.topic),
        Printable(Text(record, header::kPartition)), Printable(Text(record, header::kOffset))));
  }
  letter.origin.where.partition = origin->partition;
  letter.origin.offset = origin->offset;
  letter.timestamp = origin->timestamp;
  letter.pipeline = Text(record, header::kPipeline);
  letter.record_id = Text(record, header::kRecordId);
  letter.error_class = Text(record, header::kErrorClass);
  letter.error = Text(record, header::kError);
  letter.attempts = Text(record, header::kAttempts);
  letter.failed_at = Text(record, header::kFailedAt);
  letter.failed_when = ParseRfc3339(letter.failed_at);
  return letter;
}

bool Matches(const LetterFilter& filter, const StoredLetter& letter) {
  if (letter.pipeline != filter.pipeline) return false;
  if (!filter.error_class.empty() && letter.error_class != filter.error_class) return false;
  if (!filter.id.empty() && letter.record_id != filter.id) return false;
  if (!filter.topic.empty() && letter.origin.where.topic != filter.topic) return false;
  if (filter.partition && letter.origin.where.partition != *filter.partition) return false;
  if (filter.offset && letter.origin.offset != *filter.offset) return false;
  if (filter.since && (!letter.failed_when || *letter.failed_when < *filter.since)) return false;
  if (filter.until && (!letter.failed_when || *letter.failed_when >= *filter.until)) return false;
  return true;
}

std::vector<HeaderView> OwnHeaders(const Record& record) {
  std::vector<HeaderView> own;
  for (const HeaderView& one : record.headers) {
    if (!consumer::IsDeadLetterHeader(one.name)) own.push_back(one);
  }
  return own;
}

std::string LetterLine(const StoredLetter& letter, LetterEffect effect) {
  return fmt::format("{}  {}  {}  attempts {}  id {}  from {}  {}{}", letter.at().Text(),
                     Printable(letter.failed_at), Printable(letter.error_class),
                     Printable(letter.attempts),
                     letter.record_id.empty() ? "(none)" : Printable(letter.record_id, 600),
                     Printable(letter.origin.Text()), Printable(letter.error),
                     effect == LetterEffect::kTaken       ? "  [has taken effect since]"
                     : effect == LetterEffect::kOfAnother ? "  [its topic was made again]"
                                                          : "");
}

std::string LetterText(const StoredLetter& letter, LetterEffect effect) {
  const Record& record = letter.stored.record;
  std::string text = fmt::format(
      "{}\n  from        {}\n  failed at   {}\n  class       {}\n  error       {}\n"
      "  attempts    {}\n  record id   {}\n  pipeline    {}\n  timestamp   {}\n  key         {}\n",
      letter.at().Text(), Printable(letter.origin.Text()), Printable(letter.failed_at),
      Printable(letter.error_class), Printable(letter.error, 10'000), Printable(letter.attempts),
      letter.record_id.empty() ? "(none)" : Printable(letter.record_id, 600),
      Printable(letter.pipeline),
      letter.timestamp ? MomentText(locking::WallTime(*letter.timestamp)) : "none",
      Quoted(record.key, 10'000));
  for (const HeaderView& own : OwnHeaders(record)) {
    text += fmt::format("  header      {}: {}\n", Printable(own.name), Quoted(own.value, 10'000));
  }
  text += fmt::format("  value       {}\n", ValueText(record.value));
  if (effect == LetterEffect::kTaken) text += "  effect      taken since\n";
  if (effect == LetterEffect::kOfAnother) text += "  effect      its topic was made again\n";
  return text;
}

nlohmann::json LetterJson(const StoredLetter& letter, LetterEffect effect, bool all) {
  const Record& record = letter.stored.record;
  int attempts = 0;
  ReadNumber(letter.attempts, attempts);
  nlohmann::json json = {{"topic", letter.stored.where.topic},
                         {"partition", letter.stored.where.partition},
                         {"offset", record.offset},
                         {"failed_at", JsonOf(letter.failed_at)},
                         {"class", JsonOf(letter.error_class)},
                         {"attempts", attempts},
                         {"record_id", nullptr},
                         {"source",
                          {{"topic", JsonOf(letter.origin.where.topic)},
                           {"partition", letter.origin.where.partition},
                           {"offset", letter.origin.offset}}},
                         {"error", JsonOf(letter.error)},
                         {"took_effect", nullptr}};
  const bool known = effect == LetterEffect::kNone || effect == LetterEffect::kTaken;
  if (known) json["took_effect"] = effect == LetterEffect::kTaken;
  if (!letter.record_id.empty()) json["record_id"] = JsonOf(letter.record_id);
  if (!all) return json;
  json["pipeline"] = JsonOf(letter.pipeline);
  json["timestamp"] = nullptr;
  if (letter.timestamp) json["timestamp"] = letter.timestamp->count();
  json["key"] = JsonOf(record.key);
  json["value"] = JsonOf(record.value);
  json["headers"] = nlohmann::json::array();
  for (const HeaderView& own : OwnHeaders(record)) {
    json["headers"].push_back({{"name", JsonOf(own.name)}, {"value", JsonOf(own.value)}});
  }
  return json;
}

}  // namespace fencepost::cli
