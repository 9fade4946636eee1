// A few of the records of a partition that are done, kept beside its done offsets, which tell
// whether the partition's log is still the one that they were counted in: a topic that was deleted
// and made again, or truncated, has other records at the same offsets. Values; no I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "consumer/outputs/output.h"
#include "consumer/record/record.h"

namespace fencepost::consumer {

// The newest one and some before it, at distances that grow as powers of 16, so that some are left
// where compaction takes the newer ones; at most kMost.
class PositionAnchors {
 public:
  static constexpr std::size_t kMost = 8;

  void Add(const LogRecord& record);
  // Of a batch, whose newest one may be of another log by then than its oldest.
  void Add(const std::optional<LogRecord>& oldest, const std::optional<LogRecord>& newest);
  [[nodiscard]] const std::vector<LogRecord>& all() const { return all_; }  // the newest first
  [[nodiscard]] bool Has(const LogRecord& record) const;
  // "OFFSET:TIMESTAMP:CONTENT …", the newest first.
  [[nodiscard]] std::string Text() const;
  // What it cannot read it leaves out.
  static PositionAnchors Parse(std::string_view text);
  bool operator==(const PositionAnchors&) const = default;

 private:
  std::vector<LogRecord> all_;
};

// What speaks against it that `log` is the log of these records, in a few words; or nothing. One
// that is not there says nothing: it is below the log's first offset, or compacted away.
std::optional<std::string> AnotherLog(const std::vector<LogRecord>& known, const LogState& log);

}  // namespace fencepost::consumer
