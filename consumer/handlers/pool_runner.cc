#include "consumer/handlers/pool_runner.h"

#include <algorithm>
#include <utility>

namespace fencepost::consumer {

PoolRunner::PoolRunner(Make make, int threads, ConsumerObserver* observer, Answered answered)
    : make_(std::move(make)),
      count_(std::max(threads, 1)),
      observer_(observer),
      answered_(std::move(answered)) {}

PoolRunner::~PoolRunner() { PoolRunner::Stop(); }

tl::expected<void, Error> PoolRunner::Start() {
  running_.resize(static_cast<std::size_t>(count_));
  for (auto& running : running_) threads_.emplace_back([this, &running] { Work(running); });
  std::unique_lock lock(mutex_);
  timeouts_.wait(lock, [this] { return ready_ == count_; });
  if (error_) {
    lock.unlock();
    Stop();
    return tl::unexpected(*error_);
  }
  watch_ = std::thread([this] { WatchTimeouts(); });
  return {};
}

void PoolRunner::Call(HandlerCall call) {
  {
    const std::lock_guard guard(mutex_);
    if (stopping_) return;
    waiting_.push_back(std::move(call));
  }
  work_.notify_one();
}

void PoolRunner::Cancel(std::uint64_t id) {
  std::optional<std::stop_source> stop;
  {
    const std::lock_guard guard(mutex_);
    const auto at = std::find_if(running_.begin(), running_.end(), [id](const auto& running) {
      return running && running->id == id;
    });
    if (at != running_.end()) {
      (*at)->end = End::kCancelled;
      stop = (*at)->stop;
    } else if (!Forget(id)) {
      return;
    }
  }
  // Not under the lock: what hangs on the token may call us.
  if (stop) {
    stop->request_stop();
  } else {
    timeouts_.notify_one();
  }
}

void PoolRunner::Withdraw(std::uint64_t id) {
  {
    const std::lock_guard guard(mutex_);
    if (!Forget(id)) return;
  }
  timeouts_.notify_one();
}

bool PoolRunner::Forget(std::uint64_t id) {
  if (std::erase_if(waiting_, [id](const HandlerCall& call) { return call.id == id; }) == 0) {
    return false;
  }
  cancelled_.push_back(id);
  return true;
}

void PoolRunner::Stop() {
  std::vector<std::stop_source> stops;
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
    waiting_.clear();
    for (const auto& running : running_) {
      if (running) stops.push_back(running->stop);
    }
  }
  for (std::stop_source& stop : stops) stop.request_stop();
  work_.notify_all();
  timeouts_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  if (watch_.joinable()) watch_.join();
}

void PoolRunner::Work(std::optional<Running>& running) {
  BlockSignals();
  auto handler = make_();
  std::unique_lock lock(mutex_);
  ++ready_;
  if (!handler && !error_) error_ = handler.error();
  timeouts_.notify_all();
  while (handler) {
    work_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    const HandlerCall call = std::move(waiting_.front());
    waiting_.pop_front();
    running.emplace(Running{.id = call.id, .deadline = Clock::now() + call.timeout});
    const bool sooner = running->deadline < watched_;
    lock.unlock();
    if (sooner) timeouts_.notify_one();
    Answer(**handler, call, running);
    lock.lock();
  }
}

void PoolRunner::Answer(Handler& handler, const HandlerCall& call,
                        std::optional<Running>& running) {
  const HandlerRequest request = RequestOf(call, call.record);
  const Clock::time_point since = Clock::now();
  HandlerResult result = LeaseHasEnded(call.valid_until)
                             ? Cancelled()
                             : handler.Handle(request, running->stop.get_token());
  const Nanos took = Clock::now() - since;
  End end = End::kByItself;
  {
    const std::lock_guard guard(mutex_);
    end = running->end;
    running.reset();
    if (stopping_) return;
  }
  if (end == End::kTimeout) result = TimedOut(call.timeout);
  if (end == End::kCancelled) result = Cancelled();
  observer_->OnHandled(took, call.trace.sampled ? call.trace : TraceContext());
  answered_({.id = call.id, .result = std::move(result), .took = took});
}

// Also answers the calls that were cancelled before a thread had them: Cancel only enqueues.
void PoolRunner::WatchTimeouts() {
  BlockSignals();
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const std::vector<std::uint64_t> cancelled = std::exchange(cancelled_, {});
    std::vector<std::stop_source> overdue = TakeOverdue(Clock::now());
    if (!cancelled.empty() || !overdue.empty()) {
      lock.unlock();
      for (std::stop_source& stop : overdue) stop.request_stop();
      for (const std::uint64_t id : cancelled) answered_({.id = id, .result = Cancelled()});
      lock.lock();
      continue;
    }
    watched_ = Clock::time_point::max();
    for (const auto& running : running_) {
      if (!running || running->end != End::kByItself) continue;
      watched_ = std::min(watched_, running->deadline);
    }
    if (watched_ == Clock::time_point::max()) {
      timeouts_.wait(lock);
    } else {
      timeouts_.wait_until(lock, watched_);
    }
  }
}

std::vector<std::stop_source> PoolRunner::TakeOverdue(Clock::time_point now) {
  std::vector<std::stop_source> overdue;
  for (auto& running : running_) {
    if (!running || running->end != End::kByItself || running->deadline > now) continue;
    running->end = End::kTimeout;
    overdue.push_back(running->stop);
  }
  return overdue;
}

}  // namespace fencepost::consumer
