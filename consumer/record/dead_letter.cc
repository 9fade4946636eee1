#include "consumer/record/dead_letter.h"

#include "consumer/record/text.h"
#include "locking/base/time_text.h"

namespace fencepost::consumer {

namespace header = dead_letter_header;

std::vector<OwnedHeader> AddedHeaders(const DeadLetter& letter, std::string_view pipeline,
                                      std::size_t max_error) {
  const auto own = [](std::string_view name, std::string value) {
    return OwnedHeader(name, std::move(value));
  };
  std::vector<OwnedHeader> added{
      own(header::kError, OneLine(letter.error, max_error)),
      own(header::kErrorClass, letter.error_class),
      own(header::kPipeline, std::string(pipeline)),
      own(header::kTopic, letter.where.topic),
      own(header::kPartition, std::to_string(letter.where.partition)),
      own(header::kOffset, std::to_string(letter.record.offset)),
  };
  if (!letter.record_id.empty()) added.push_back(own(header::kRecordId, letter.record_id));
  added.push_back(own(header::kAttempts, std::to_string(letter.attempts)));
  added.push_back(own(header::kFailedAt, Rfc3339(letter.failed_at)));
  return added;
}

bool IsDeadLetterHeader(std::string_view name) {
  for (const std::string_view one :
       {header::kError, header::kErrorClass, header::kPipeline, header::kTopic, header::kPartition,
        header::kOffset, header::kRecordId, header::kAttempts, header::kFailedAt}) {
    if (name == one) return true;
  }
  return false;
}

}  // namespace fencepost::consumer
