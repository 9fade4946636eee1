#include "consumer/handlers/polling_runner.h"

#include <algorithm>

namespace fencepost::consumer {

PollingRunner::PollingRunner(ConsumerObserver* observer, Answered answered)
    : observer_(observer), answered_(std::move(answered)) {}

void PollingRunner::Put(Command command) {
  {
    const std::lock_guard guard(mutex_);
    if (stopping_) return;
    commands_.push_back(std::move(command));
    if (commands_.size() > 1) return;  // it is awake
  }
  Wake();
}

void PollingRunner::Stop() {
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
    commands_.clear();
  }
  if (!thread_.joinable()) return;
  Wake();
  thread_.join();
}

bool PollingRunner::stopping() const {
  const std::lock_guard guard(mutex_);
  return stopping_;
}

void PollingRunner::TakeCommands() {
  std::vector<Command> commands;
  {
    const std::lock_guard guard(mutex_);
    commands.swap(commands_);
  }
  for (Command& command : commands) {
    if (auto* call = std::get_if<HandlerCall>(&command)) {
      waiting_.push_back(std::move(*call));
      continue;
    }
    const std::uint64_t id = std::get<CancelCall>(command).id;
    if (CancelRunning(id)) continue;
    const auto at = std::ranges::find(waiting_, id, &HandlerCall::id);
    if (at == waiting_.end()) continue;
    waiting_.erase(at);
    answered_({.id = id, .result = Cancelled()});
  }
}

}  // namespace fencepost::consumer
