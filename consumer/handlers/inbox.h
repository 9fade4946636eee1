// What other threads ask of a runner's thread, in the order in which they asked: a cancel that was
// meant for one call never meets a later one of the same id.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>
#include <variant>
#include <vector>

#include "consumer/handlers/runner.h"

namespace fencepost::consumer {

class Inbox {
 public:
  struct Cancel {
    std::uint64_t id = 0;
  };
  using Command = std::variant<HandlerCall, Cancel>;

  // Any thread. True: the runner's thread must be woken. After Close nothing is taken any more.
  [[nodiscard]] bool Put(Command command) {
    const std::lock_guard guard(mutex_);
    if (closed_) return false;
    commands_.push_back(std::move(command));
    return commands_.size() == 1;
  }
  void Close() {
    const std::lock_guard guard(mutex_);
    closed_ = true;
    commands_.clear();
  }
  [[nodiscard]] bool closed() const {
    const std::lock_guard guard(mutex_);
    return closed_;
  }
  std::vector<Command> Take() {
    const std::lock_guard guard(mutex_);
    return std::exchange(commands_, {});
  }

 private:
  mutable std::mutex mutex_;
  bool closed_ = false;
  std::vector<Command> commands_;
};

}  // namespace fencepost::consumer
