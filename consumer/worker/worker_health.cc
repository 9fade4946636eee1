// The health checks: /live (the engine thread runs) and /ready (consumer/pipeline/readiness.h).
#include "consumer/worker/worker_impl.h"

namespace fencepost::consumer {
namespace {

constexpr Millis kLiveLimit{10'000};

}  // namespace

std::pair<bool, std::string> Worker::Live() const {
  const locking::Instant tick{locking::Nanos(impl_->last_tick.load(std::memory_order_relaxed))};
  if (BootClock::now() - tick >= kLiveLimit)
    return {false, "the engine thread has not run for 10 s"};
  return {true, ""};
}

std::pair<bool, std::vector<Reason>> Worker::Ready() const {
  const std::lock_guard lock(impl_->mutex);
  return {impl_->latest.ready, impl_->latest.reasons};
}

}  // namespace fencepost::consumer
