#include "metrics/status/history.h"

#include <algorithm>
#include <chrono>

namespace fencepost::metrics {
namespace {

constexpr locking::Millis kLeast{900};
constexpr std::size_t kRateSeconds = 10;

}  // namespace

void History::Take(std::uint64_t total, locking::Instant now) {
  const std::lock_guard guard(mutex_);
  if (!samples_.empty() && now - samples_.back().at < kLeast) return;
  samples_.push_back({now, total});
  if (samples_.size() > kSeconds + 1) samples_.pop_front();
}

double History::Between(const Sample& from, const Sample& to) {
  const double seconds = std::chrono::duration<double>(to.at - from.at).count();
  return seconds <= 0 ? 0 : static_cast<double>(to.total - from.total) / seconds;
}

std::vector<double> History::PerSecond() const {
  const std::lock_guard guard(mutex_);
  std::vector<double> rates;
  for (std::size_t i = 1; i < samples_.size(); ++i) {
    rates.push_back(Between(samples_[i - 1], samples_[i]));
  }
  return rates;
}

double History::Rate() const {
  const std::lock_guard guard(mutex_);
  if (samples_.size() < 2) return 0;
  const std::size_t back = std::min(kRateSeconds, samples_.size() - 1);
  return Between(samples_[samples_.size() - 1 - back], samples_.back());
}

std::uint64_t History::Gained() const {
  const std::lock_guard guard(mutex_);
  return samples_.empty() ? 0 : samples_.back().total - samples_.front().total;
}

}  // namespace fencepost::metrics
