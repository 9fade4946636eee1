// The end of a worker: asked for by RequestStop, in the order in which its parts end. How long the
// drain may take: WorkerCore::DrainLimit; signals, and what hangs: cli/run.cc.
#include <algorithm>

#include "consumer/worker/worker_impl.h"

namespace fencepost::consumer {
namespace {

// How long the last DONE and release calls may take.
constexpr Millis kLastMarksLimit{1000};
constexpr Millis kLastMarksHurried{200};

}  // namespace

Worker::~Worker() {
  if (impl_->engine_thread.joinable()) {
    RequestStop();
    RequestStop();
    Join();
  }
}

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

// The last revoke drains and commits; then the output, the dead letters, the lock nodes and the
// handler end, each once nothing can come to it any more.
void Worker::Impl::Shutdown() {
  Tell([this](locking::Now now) {
    core.RequestStop(now);
    UpdateStatus();
  });
  ending = "its last records and their commit";
  source.Stop();
  source.Join();
  ending = "its output";
  writer.Stop();
  ending = "its dead letters";
  if (dead_letters != nullptr) dead_letters->Stop();
  ending = "its lock nodes";
  AwaitLastMarks();
  ending = "its handler";
  if (handler != nullptr) handler->Stop();
  ending = "its question for the group's lag";
  group_lag.reset();
  ending = "";
  work.reset();
  io.stop();
}

void Worker::Impl::AwaitLastMarks() {
  Tell([this](locking::Now now) {
    core.OnOutputEnded(now);
    core.OnStopped();
  });
  const auto since = BootClock::now();
  const auto limit = [this] {
    return stop_requests.load() < 2 ? kLastMarksLimit : kLastMarksHurried;
  };
  while (!QuietNow() && BootClock::now() - since < limit()) {
    std::unique_lock lock(mutex);
    stop_changed.wait_for(lock, Millis(10));
  }
}

bool Worker::Impl::QuietNow() {
  std::promise<bool> quiet;
  auto answer = quiet.get_future();
  Post([this, &quiet] { quiet.set_value(engine.Quiet()); });
  return answer.get();
}

std::string Worker::Ending() const {
  const std::lock_guard lock(impl_->mutex);
  const std::string part = impl_->ending.load();
  if (part.empty() || impl_->drained_last.empty()) return part;
  return part + " (the oldest record was " + impl_->drained_last + ")";
}

}  // namespace fencepost::consumer
