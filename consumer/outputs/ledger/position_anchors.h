// Samples of a few of the records of a partition that are done, kept beside its done offsets: they
// tell whether its log is still the one that those were counted in. Values; no I/O.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "consumer/kafka/log_identity/log_sample.h"

namespace fencepost::consumer {

// The newest one and some before it, at distances that grow as powers of 16, so that some are left
// where compaction takes the newer ones; at most kMost.
class PositionAnchors {
 public:
  static constexpr std::size_t kMost = 8;

  void Add(const LogSample& record);
  // Of a batch, whose newest one may be of another log by then than its oldest.
  void Add(const std::optional<LogSample>& oldest, const std::optional<LogSample>& newest);
  [[nodiscard]] const std::vector<LogSample>& all() const { return all_; }  // the newest first
  [[nodiscard]] bool Has(const LogSample& record) const;
  // "OFFSET:TIMESTAMP:CONTENT …", the newest first.
  [[nodiscard]] std::string Text() const;
  // What it cannot read it leaves out.
  static PositionAnchors Parse(std::string_view text);
  bool operator==(const PositionAnchors&) const = default;

 private:
  std::vector<LogSample> all_;
};

}  // namespace fencepost::consumer
