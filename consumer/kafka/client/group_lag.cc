#include "consumer/kafka/client/group_lag.h"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "consumer/kafka/client/admin.h"

namespace fencepost::consumer {
namespace {

constexpr Millis kLagLimit{2000};

// Nothing: a broker did not answer, or a topic is not there.
std::optional<std::int64_t> Ask(KafkaAdmin& admin, const ReadTopics& read) {
  const auto topics = admin.Topics(read, kLagLimit);
  if (!topics) return std::nullopt;
  if (topics->empty()) return 0;  // all that a pattern matched are gone
  const auto committed = admin.CommittedOffsets(*topics, kLagLimit);
  if (!committed) return std::nullopt;
  const auto ends = admin.EndOffsets(*topics, kLagLimit);  // after them, so that none is ahead
  if (!ends) return std::nullopt;
  return LagOf(*ends, *committed);
}

}  // namespace

std::int64_t LagOf(std::span<const Offset> ends, std::span<const Offset> committed) {
  std::int64_t lag = 0;
  for (std::size_t i = 0; i < std::min(ends.size(), committed.size()); ++i) {
    if (committed[i] >= 0) lag += std::max<Offset>(0, ends[i] - committed[i]);
  }
  return lag;
}

GroupLag::GroupLag(KafkaOptions options, std::chrono::milliseconds interval, Told told)
    : options_(std::move(options)),
      interval_(interval),
      told_(std::move(told)),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

void GroupLag::Run(const std::stop_token& stop) {
  std::unique_ptr<KafkaAdmin> admin;
  const ReadTopics read(options_.topics);
  std::mutex mutex;
  std::condition_variable_any stopped;
  for (;;) {
    std::unique_lock lock(mutex);
    stopped.wait_for(lock, stop, interval_, [] { return false; });
    if (stop.stop_requested()) return;
    if (admin == nullptr) {
      auto made = KafkaAdmin::Make(options_);
      if (!made) continue;
      admin = std::move(*made);
    }
    if (const auto lag = Ask(*admin, read)) told_(*lag);
  }
}

}  // namespace fencepost::consumer
