// What the counters said in the last minute, so that people see a rate without a Prometheus.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "locking/base/types.h"

namespace fencepost::metrics {

// Thread-safe.
class History {
 public:
  static constexpr std::size_t kSeconds = 60;

  // About once a second; more often changes nothing.
  void Take(std::uint64_t total, locking::Instant now);
  // Per second, second by second, oldest first; at most kSeconds.
  [[nodiscard]] std::vector<double> PerSecond() const;
  // Over the last ten seconds, or as many as there are; 0 before the second sample.
  [[nodiscard]] double Rate() const;
  // How much more than a minute ago, or than at the first sample.
  [[nodiscard]] std::uint64_t Gained() const;

 private:
  struct Sample {
    locking::Instant at;
    std::uint64_t total;
  };
  static double Between(const Sample& from, const Sample& to);

  mutable std::mutex mutex_;
  std::deque<Sample> samples_;  // guarded by mutex_
};

}  // namespace fencepost::metrics
