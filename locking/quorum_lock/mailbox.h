// How other threads talk to the one that drives the locks: commands in, answers back. Private to
// quorum_lock/ and recipes/. Any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace fencepost::locking {

class LockLoop;

class Mailbox {
 public:
  using Command = std::function<void(LockLoop&)>;

  // `wake` is called when the first command of a batch arrives, until Close.
  void Open(std::function<void()> wake) {
    const std::lock_guard guard(mutex_);
    wake_ = std::move(wake);
    closed_ = false;
  }
  void SetLoopThread(std::thread::id id) {
    const std::lock_guard guard(mutex_);
    loop_thread_ = id;
  }
  [[nodiscard]] bool OnLoopThread() const {
    const std::lock_guard guard(mutex_);
    return loop_thread_ == std::this_thread::get_id();
  }
  // False when it is closed: the command was not taken and will not run.
  [[nodiscard]] bool Post(Command command) {
    const std::lock_guard guard(mutex_);
    if (closed_) return false;
    commands_.push_back(std::move(command));
    if (commands_.size() == 1) wake_();
    return true;
  }
  std::vector<Command> Take() {
    const std::lock_guard guard(mutex_);
    return std::exchange(commands_, {});
  }
  // Returns what was posted before. The loop's thread only.
  std::vector<Command> Close() {
    const std::lock_guard guard(mutex_);
    closed_ = true;
    wake_ = nullptr;
    loop_thread_ = {};
    return std::exchange(commands_, {});
  }

 private:
  mutable std::mutex mutex_;
  bool closed_ = true;
  std::function<void()> wake_;
  std::vector<Command> commands_;
  std::thread::id loop_thread_;
};

// One answer, for one thread that waits.
template <typename T>
class Waiter {
 public:
  void Set(T value) {
    {
      const std::lock_guard guard(mutex_);
      if (value_) return;
      value_.emplace(std::move(value));
    }
    set_.notify_one();
  }
  T Wait() {
    std::unique_lock guard(mutex_);
    set_.wait(guard, [this] { return value_.has_value(); });
    return std::move(*value_);
  }
  std::optional<T> WaitFor(std::chrono::nanoseconds limit) {
    std::unique_lock guard(mutex_);
    set_.wait_for(guard, limit, [this] { return value_.has_value(); });
    return std::exchange(value_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::condition_variable set_;
  std::optional<T> value_;
};

}  // namespace fencepost::locking
