// Runs handler calls beside the engine thread: many at a time, each answered once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

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
  // Any thread. Calls at a time from now on; a runner with a number of its own may ignore it.
  virtual void SetConcurrency(int /*calls*/) {}
  // Ends threads and processes; calls without an answer get none.
  virtual void Stop() = 0;
};

}  // namespace fencepost::consumer
