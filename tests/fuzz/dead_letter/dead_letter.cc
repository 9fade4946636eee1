// A record of a dead letter topic, which anybody can write to: what is printed of it cannot steer a
// terminal, and a letter that was written is read as what it was. Lines "NAME: VALUE" are headers,
// up to an empty one; then a line is the key, and the rest the value.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "consumer/cli/dlq/content_difference.h"
#include "consumer/cli/dlq/dlq_letter.h"
#include "consumer/record/dead_letter.h"
#include "tests/fuzz/target.h"

namespace fencepost::fuzz {
namespace {

using namespace consumer;
using namespace cli;

TopicRecord RecordOf(Parts& parts) {
  TopicRecord stored;
  stored.where = {"orders.dead", 2};
  stored.record.offset = 5;
  while (!parts.empty()) {
    const std::string_view line = parts.Line();
    if (line.empty()) break;
    const std::size_t colon = line.find(": ");
    HeaderView header{line.substr(0, colon), std::nullopt};
    if (colon != std::string_view::npos) header.value = line.substr(colon + 2);
    stored.record.headers.push_back(header);
  }
  stored.record.key = parts.Line();
  if (!parts.empty()) stored.record.value = parts.rest();
  return stored;
}

void CheckPrinted(const StoredLetter& letter) {
  const std::string line = LetterLine(letter, LetterEffect::kTaken);
  FENCEPOST_CHECK(IsOneLine(line), Shown(line));
  std::string text = LetterText(letter, LetterEffect::kNone);
  std::erase(text, '\n');
  std::erase(text, '\t');  // of a value that is text
  FENCEPOST_CHECK(IsOneLine(text), Shown(text));
  const std::string json = LetterJson(letter, LetterEffect::kUnknown, true).dump();
  FENCEPOST_CHECK(nlohmann::json::accept(json), Shown(json));
}

// As the pipeline would write it, were this record to die.
void CheckWritten(const TopicRecord& stored) {
  DeadLetter letter;
  letter.where = stored.where;
  letter.record.offset = stored.record.offset;
  letter.record_id = "id";
  letter.error = stored.record.value.value_or("");
  letter.error_class = "bad_record";
  letter.attempts = 3;
  letter.failed_at = std::chrono::milliseconds(1'700'000'000'123);
  const auto added = AddedHeaders(letter, "orders");
  TopicRecord again = stored;
  again.record.headers = OwnHeaders(stored.record);
  const std::size_t own = again.record.headers.size();
  for (const auto& [name, value] : added) {
    FENCEPOST_CHECK(IsDeadLetterHeader(name) && value.size() <= kMaxErrorHeader && IsOneLine(value),
                    Shown(value));
    again.record.headers.push_back({name, value});
  }
  const auto read = ReadLetter(again);
  FENCEPOST_CHECK(read && read->origin.where == letter.where, "position");
  FENCEPOST_CHECK(read->origin.offset == letter.record.offset && read->record_id == "id", "id");
  FENCEPOST_CHECK(read->failed_when == locking::WallTime(letter.failed_at), read->failed_at);
  FENCEPOST_CHECK(OwnHeaders(again.record).size() == own, "own headers");
}

void CheckDifference(const Record& there, const Record& here) {
  const auto lines = ContentDifference(there, here);
  FENCEPOST_CHECK(lines.size() <= 21, "lines");
  for (const std::string& line : lines) {
    FENCEPOST_CHECK(IsOneLine(line), Shown(line));
    const bool names_nothing =
        line.starts_with("value /") && line.ends_with(": nothing there, nothing here");
    FENCEPOST_CHECK(!names_nothing, Shown(line));
  }
  FENCEPOST_CHECK(ContentDifference(there, there).empty(), "no difference from itself");
}

}  // namespace

void OneInput(std::string_view input) {
  Parts parts(input);
  const TopicRecord stored = RecordOf(parts);
  const auto letter = ReadLetter(stored);
  if (letter) {
    CheckPrinted(*letter);
  } else {
    FENCEPOST_CHECK(IsOneLine(letter.error()), Shown(letter.error()));
  }
  CheckWritten(stored);
  Record there = stored.record;
  there.value = there.key;  // one line of JSON, to compare with the rest
  there.headers.clear();
  CheckDifference(there, stored.record);
}

}  // namespace fencepost::fuzz
