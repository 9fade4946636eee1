// A record that could not be processed, on its way to the dead letter topic: untouched, with
// headers that say what happened (dead_letter_header). Values; any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "consumer/record/record.h"

namespace fencepost::consumer {

enum class DeadLetterReason : std::uint8_t { kBadRecord, kIdConflict, kHandler, kOutput, kTimeout };

namespace dead_letter_header {
inline constexpr std::string_view kError = "fencepost-error";
inline constexpr std::string_view kErrorClass = "fencepost-error-class";
inline constexpr std::string_view kPipeline = "fencepost-pipeline";
inline constexpr std::string_view kTopic = "fencepost-topic";
inline constexpr std::string_view kPartition = "fencepost-partition";
inline constexpr std::string_view kOffset = "fencepost-offset";
inline constexpr std::string_view kRecordId = "fencepost-record-id";
inline constexpr std::string_view kAttempts = "fencepost-attempts";
inline constexpr std::string_view kFailedAt = "fencepost-failed-at";
// The original's time in milliseconds: of a replay, and where a topic refused it (LetterForm).
inline constexpr std::string_view kTimestamp = "fencepost-timestamp";
}  // namespace dead_letter_header

struct DeadLetter {
  std::uint64_t id = 0;  // the flow's
  Record record;         // its `owner` keeps the views good
  TopicPartition where;
  std::optional<ReplayOrigin> origin{};  // of a replay: its letter has the original's position
  std::string record_id;                 // as stored; empty: it has none
  DeadLetterReason reason = DeadLetterReason::kBadRecord;
  std::string error;  // one line; it may hold parts of the record
  // The same without anything of the record, for the log. Not published.
  std::string shown{};
  std::string error_class;                 // "bad_record", "id_conflict", "timeout", "404", …
  int attempts = 0;                        // handler calls
  std::uint64_t token = 0;                 // under which it is published; 0: none
  std::chrono::milliseconds failed_at{0};  // unix time
  std::string traceparent{};  // header of the letter in place of the record's; empty: none
};

// dead_letter.max_consecutive where a file does not say: so many records in a row may be called bad
// while none takes effect. One bad record does not stop a quiet topic, and no topic is emptied into
// its dead letters by what all its records share.
inline constexpr std::size_t kMostInARow = 10;

// What ends the trouble of a record that is bad where on_bad_record is stop.
inline constexpr const char* kBadRecordHint =
    "fix the producer, the columns or the table, give dead_letter, or move the group's offset past "
    "it";

// The header fencepost-error is one line of UTF-8, and no longer than this.
inline constexpr std::size_t kMaxErrorHeader = 1000;

// What of a letter its topic takes.
struct LetterForm {
  std::size_t max_error = kMaxErrorHeader;  // bytes of the error's text; 0 leaves it empty
  bool timed = true;  // false: it has the time of its publication, and its own in a header
};

using OwnedHeader = std::pair<std::string, std::string>;
// The headers that are added. Those of an earlier dead letter (the same names) are dropped from the
// record's own before these are added.
std::vector<OwnedHeader> AddedHeaders(const DeadLetter& letter, std::string_view pipeline,
                                      const LetterForm& form = {});
bool IsDeadLetterHeader(std::string_view name);
// The last header of this name, which is the one that counts; nullopt: none, or it has no value.
std::optional<std::string_view> FindHeader(const Record& record, std::string_view name);
// What the headers of a dead letter or of its replay say of the original: nullopt unless they name
// a position in this topic.
std::optional<ReplayOrigin> OriginOf(const Record& record, std::string_view topic);

}  // namespace fencepost::consumer
