#include "consumer/worker/worker.h"

#include "consumer/worker/worker_impl.h"

namespace fencepost::consumer {
namespace {

constexpr Millis kGroupLagInterval{10'000};

}  // namespace

Worker::Worker(PipelineOptions options, std::string name, locking::LockObserver* lock_observer,
               ConsumerObserver* observer)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(name), lock_observer, observer)) {}

tl::expected<void, Error> Worker::Start() {
  Impl& impl = *impl_;
  impl.last_tick.store(BootClock::now().time_since_epoch().count());
  if (impl.handler != nullptr) {
    if (auto started = impl.handler->Start(); !started) return started;
  }
  if (impl.dead_letters != nullptr) {
    if (auto started = impl.dead_letters->Start(); !started) return started;
  }
  if (auto started = impl.source.Start(); !started) return started;
  impl.group_lag.emplace(impl.options.kafka, kGroupLagInterval,
                         [&impl](std::int64_t records) { impl.observer->OnGroupLag(records); });
  impl.engine_thread = std::thread([&impl] {
    impl.engine.Start();
    impl.Arm();
    impl.io.run();
  });
  impl.writer.Start();
  return {};
}

void Worker::Tune(Tuning tuning) {
  if (impl_->handler != nullptr) impl_->handler->SetConcurrency(tuning.concurrency);
  impl_->Tell([impl = impl_.get(), tuning = std::move(tuning)](locking::Now now) {
    impl->core.Tune(tuning, now);
  });
}

void Worker::SetPaused(bool paused) {
  impl_->Tell([impl = impl_.get(), paused](locking::Now now) {
    impl->core.SetPaused(paused, now);
    impl->UpdateStatus();
  });
}

void Worker::OnFailure(std::function<void()> callback) { impl_->on_failure = std::move(callback); }

}  // namespace fencepost::consumer
