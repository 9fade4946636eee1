// A dead letter as it is in its topic: read back from a record's headers (those of
// consumer/record/dead_letter.h), chosen by filters, printed. Values and pure functions; any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>
#include <tl/expected.hpp>

#include "consumer/cli/shared/pipelines.h"
#include "consumer/cli/shared/position.h"
#include "consumer/kafka/client/topic_reader.h"
#include "consumer/record/record.h"
#include "locking/base/types.h"

namespace fencepost::cli {

inline constexpr std::string_view kIdConflict = "id_conflict";  // an error class

struct StoredLetter {
  consumer::TopicRecord stored;               // its `owner` keeps the views good
  Position origin;                            // where the record that died is, or was
  std::optional<consumer::Millis> timestamp;  // of that record
  std::string pipeline;
  std::string record_id;    // as stored; empty: it had none
  std::string error_class;  // "bad_record", "id_conflict", "timeout", "404", …
  std::string error;
  std::string attempts;                          // handler calls, in digits
  std::string failed_at;                         // as its header says
  std::optional<locking::WallTime> failed_when;  // nullopt: its header is not a time

  [[nodiscard]] Position at() const { return {stored.where, stored.record.offset}; }
};

// Error: why this record is not a dead letter of fencepost, one line.
tl::expected<StoredLetter, std::string> ReadLetter(const consumer::TopicRecord& stored);
// Of which other program it is a dead letter; empty: not known.
std::string_view ProgramOfLetter(const consumer::Record& record);

// All that are given must hold. Times bound fencepost-failed-at: since <= it < until.
struct LetterFilter {
  std::string pipeline;  // always given
  std::string error_class;
  std::string id;  // as stored
  std::string topic;
  std::optional<std::int32_t> partition;
  std::optional<consumer::Offset> offset;
  std::optional<locking::WallTime> since;
  std::optional<locking::WallTime> until;
};
// What a command is asked for.
struct LetterRequest {
  PipelineFiles pipeline;
  LetterFilter filter;
  std::size_t limit = 0;    // letters; 0: all
  bool as_new_id = false;   // replay
  bool over_newer = false;  // likewise
  bool all = false;         // purge: also what has not taken effect
  bool execute = false;
  bool json = false;
};
bool Matches(const LetterFilter& filter, const StoredLetter& letter);

// The record's own headers, as they were before it died (in their order).
std::vector<consumer::HeaderView> OwnHeaders(const consumer::Record& record);

// Whether something was written for its id, as the ledger says, or of the id that a replay as a new
// record has.
enum class LetterEffect : std::uint8_t {
  kNone,
  kTaken,
  kUnknown,
  kOfAnother,  // its id is another record's: the topic was made again
};

// One line: position, failed at, class, attempts, id, where it came from, error, effect.
std::string LetterLine(const StoredLetter& letter, LetterEffect effect);
// Many lines: everything.
std::string LetterText(const StoredLetter& letter, LetterEffect effect);
// `all`: with key, value, headers and timestamp too.
nlohmann::json LetterJson(const StoredLetter& letter, LetterEffect effect, bool all);

}  // namespace fencepost::cli
