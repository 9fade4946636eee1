#include "consumer/worker/worker.h"

#include "consumer/worker/worker_impl.h"

namespace fencepost::consumer {

Worker::Worker(PipelineOptions options, std::string name, locking::LockObserver* lock_observer,
               ConsumerObserver* observer)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(name), lock_observer, observer)) {}

Worker::~Worker() {
  if (impl_->engine_thread.joinable()) {
    RequestStop();
    RequestStop();
    Join();
  }
}

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
  impl.engine_thread = std::thread([&impl] {
    impl.engine.Start();
    impl.Arm();
    impl.io.run();
  });
  impl.writer.Start();
  return {};
}

void Worker::OnFailure(std::function<void()> callback) { impl_->on_failure = std::move(callback); }

void Worker::RequestStop() {
  Impl& impl = *impl_;
  const int before = impl.stop_requests.fetch_add(1);
  if (before == 0) {
    impl.shutdown_thread = std::thread([&impl] { impl.Shutdown(); });
    return;
  }
  impl.Tell([&impl](locking::Now now) { impl.core.RequestStop(now); });
  impl.writer.Interrupt();
}

std::optional<Error> Worker::Join() {
  Impl& impl = *impl_;
  if (impl.engine_thread.joinable()) impl.engine_thread.join();
  if (impl.shutdown_thread.joinable()) impl.shutdown_thread.join();
  const std::lock_guard lock(impl.mutex);
  return impl.failure;
}

}  // namespace fencepost::consumer
