#include "consumer/record/dead_letter.h"

#include <charconv>

#include "consumer/record/text.h"
#include "locking/base/time_text.h"

namespace fencepost::consumer {

namespace header = dead_letter_header;

std::vector<OwnedHeader> AddedHeaders(const DeadLetter& letter, std::string_view pipeline,
                                      const LetterForm& form) {
  const auto own = [](std::string_view name, std::string value) {
    return OwnedHeader(name, std::move(value));
  };
  std::vector<OwnedHeader> added{
      own(header::kError, OneLine(letter.error, form.max_error)),
      own(header::kErrorClass, letter.error_class),
      own(header::kPipeline, std::string(pipeline)),
      own(header::kTopic, letter.where.topic),
      own(header::kPartition,
          std::to_string(letter.origin ? letter.origin->partition : letter.where.partition)),
      own(header::kOffset,
          std::to_string(letter.origin ? letter.origin->offset : letter.record.offset)),
  };
  auto timestamp = letter.origin ? letter.origin->timestamp : std::nullopt;
  if (!timestamp && !form.timed) timestamp = letter.record.timestamp;
  if (timestamp) added.push_back(own(header::kTimestamp, std::to_string(timestamp->count())));
  if (!letter.record_id.empty()) added.push_back(own(header::kRecordId, letter.record_id));
  added.push_back(own(header::kAttempts, std::to_string(letter.attempts)));
  added.push_back(own(header::kFailedAt, Rfc3339(letter.failed_at)));
  return added;
}

bool IsDeadLetterHeader(std::string_view name) {
  for (const std::string_view one :
       {header::kError, header::kErrorClass, header::kPipeline, header::kTopic, header::kPartition,
        header::kOffset, header::kRecordId, header::kAttempts, header::kFailedAt,
        header::kTimestamp}) {
    if (name == one) return true;
  }
  return false;
}

std::optional<std::string_view> FindHeader(const Record& record, std::string_view name) {
  for (auto one = record.headers.rbegin(); one != record.headers.rend(); ++one) {
    if (one->name == name) return one->value;
  }
  return std::nullopt;
}

std::optional<ReplayOrigin> OriginOf(const Record& record, std::string_view topic) {
  if (FindHeader(record, header::kTopic) != topic) return std::nullopt;
  const auto number = [&]<typename Int>(std::string_view name, Int& value) {
    const std::string_view text = FindHeader(record, name).value_or("");
    const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
    return error == std::errc() && end == text.end() && value >= 0;
  };
  ReplayOrigin origin;
  if (!number(header::kPartition, origin.partition) || !number(header::kOffset, origin.offset)) {
    return std::nullopt;
  }
  std::int64_t millis = 0;
  origin.timestamp = record.timestamp;
  if (number(header::kTimestamp, millis)) origin.timestamp = std::chrono::milliseconds(millis);
  return origin;
}

}  // namespace fencepost::consumer
