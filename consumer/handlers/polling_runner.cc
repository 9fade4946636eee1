#include "consumer/handlers/polling_runner.h"

#include <algorithm>

namespace fencepost::consumer {

PollingRunner::PollingRunner(BatchQueue waiting, int concurrency, ConsumerObserver* observer,
                             Answered answered)
    : observer_(observer),
      answered_(std::move(answered)),
      waiting_(std::move(waiting)),
      concurrency_(static_cast<std::size_t>(std::max(concurrency, 1))) {}

bool PollingRunner::Out::Has(std::uint64_t id) const {
  return std::ranges::find(calls, id, &HandlerCall::id) != calls.end();
}

bool PollingRunner::Out::Cancelled(std::uint64_t id) const {
  return std::ranges::find(cancelled, id) != cancelled.end();
}

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
      waiting_.Add(std::move(*call), Now());
      continue;
    }
    if (const auto* tuned = std::get_if<Tuned>(&command)) {
      concurrency_ = static_cast<std::size_t>(std::max(tuned->concurrency, 1));
      waiting_.SetRate(tuned->requests_a_second);
      continue;
    }
    const auto [id, only_unsent] = std::get<CancelCall>(command);
    if (!only_unsent && CancelRunning(id)) continue;
    if (waiting_.Remove(id)) answered_({.id = id, .result = Cancelled()});
  }
}

CallBatch PollingRunner::TakeDue() {
  BatchQueue::Taken taken = waiting_.Take(Now());
  for (const HandlerCall& call : taken.late) answered_({.id = call.id, .result = Cancelled()});
  return std::move(taken.calls);
}

void PollingRunner::AnswerEach(Out out, std::vector<HandlerResult> results) {
  const Nanos took = Clock::now() - out.since;
  const auto sampled =
      std::ranges::find_if(out.calls, [](const HandlerCall& call) { return call.trace.sampled; });
  observer_->OnHandled(took, sampled == out.calls.end() ? TraceContext() : sampled->trace);
  for (std::size_t i = 0; i < out.calls.size(); ++i) {
    const std::uint64_t id = out.calls[i].id;
    answered_({.id = id,
               .result = out.Cancelled(id) ? Cancelled() : std::move(results[i]),
               .took = took});
  }
}

void PollingRunner::FailAll(Out out, HandlerFailure failure) {
  const std::size_t count = out.calls.size();
  failure.shared = failure.shared || count > 1;
  AnswerEach(std::move(out), std::vector<HandlerResult>(count, tl::unexpected(std::move(failure))));
}

CallBatch PollingRunner::TakeBack(Out out) {
  for (const std::uint64_t id : out.cancelled) answered_({.id = id, .result = Cancelled()});
  std::erase_if(out.calls, [&](const HandlerCall& call) { return out.Cancelled(call.id); });
  return std::move(out.calls);
}

}  // namespace fencepost::consumer
