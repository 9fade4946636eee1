// Runs handler calls beside the engine thread: many at a time, each answered once. And what the
// runners share: failures that each can answer with, and signals.
#pragma once

#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <tl/expected.hpp>

#include "consumer/flow/ports/ports.h"
#include "consumer/pipeline/observer.h"
#include "consumer/pipeline/options.h"
#include "locking/base/error.h"

namespace fencepost::consumer {

class HandlerRunner {
 public:
  // Called on a thread of the runner's; must return at once.
  using Answered = std::function<void(HandlerAnswer)>;

  virtual ~HandlerRunner() = default;  // stops
  // Before the first call. Error: the program does not compile, the command is not there; one line.
  virtual tl::expected<void, Error> Start() = 0;
  // Any thread; only enqueues. Every call is answered exactly once, also when cancelled, until
  // Stop.
  virtual void Call(HandlerCall call) = 0;
  // Any thread. The call is answered soon, with the class "cancelled" unless it had ended.
  virtual void Cancel(std::uint64_t id) = 0;
  // Any thread. As Cancel, but only where the call has not gone out yet.
  virtual void Withdraw(std::uint64_t id) = 0;
  // Any thread. Requests at a time and a second from now on; a runner with numbers of its own may
  // ignore it.
  virtual void Tune(int /*concurrency*/, double /*requests_a_second*/) {}
  // Ends threads and processes; calls without an answer get none.
  virtual void Stop() = 0;
};

inline constexpr std::size_t kMaxAnswerBytes = 16u << 20;

// A call must not go out any more (HandlerCall::valid_until).
bool LeaseHasEnded(Instant valid_until);

inline HandlerResult Cancelled() {
  return tl::unexpected(HandlerFailure{.error_class = "cancelled",
                                       .text = "the call was cancelled",
                                       .shown = "the call was cancelled",
                                       .made = false});
}

inline HandlerResult TimedOut(Millis limit) {
  const std::string text = fmt::format("no answer within {} ms", limit.count());
  return tl::unexpected(HandlerFailure{.error_class = "timeout", .text = text, .shown = text});
}

// Of a record that is bad whatever the receiver would answer; `text` holds nothing of it.
inline HandlerFailure RefusedRecord(const std::string& text) {
  return {.error_class = "bad_record", .text = text, .shown = text, .retry = false, .asked = false};
}

// A record's value that should be JSON, and is not (json_text.h); `hint` may be empty.
inline HandlerFailure NotJson(std::string_view why, std::string_view hint) {
  return RefusedRecord(fmt::format("the value is not valid JSON: {}{}{}{}", why,
                                   hint.empty() ? "" : " (", hint, hint.empty() ? "" : ")"));
}

inline HandlerResult TooLarge(std::string_view what) {
  const std::string text = fmt::format("{} is larger than {} MiB", what, kMaxAnswerBytes >> 20);
  return tl::unexpected(
      HandlerFailure{.error_class = "too_large", .text = text, .shown = text, .retry = false});
}

// The calling thread takes no signals: SIGTERM is for main, and writing to a peer that has gone
// must be an error of that write.
inline void BlockSignals() {
  sigset_t all;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP})
    sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

}  // namespace fencepost::consumer
