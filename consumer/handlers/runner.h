// Runs handler calls beside the engine thread: many at a time, each answered once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <tl/expected.hpp>

#include "consumer/handlers/handler.h"
#include "consumer/observer.h"
#include "consumer/options.h"
#include "locking/error.h"

namespace fencepost::consumer {

// By value: the call outlives the record's place in the flow.
struct HandlerCall {
  std::uint64_t id = 0;  // the flow's
  Record record;         // its `owner` keeps the views good
  TopicPartition where;
  std::string record_id;
  std::uint64_t token = 0;
  int attempt = 1;
  Millis timeout{};
};

struct HandlerAnswer {
  std::uint64_t id = 0;
  HandlerResult result;
  Nanos took{0};
};

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
  // Ends threads and processes; calls without an answer get none.
  virtual void Stop() = 0;
};

// `concurrency`: calls at a time, at most (http; exec and jq have their own numbers below it).
// nullptr where there is no handler.
std::unique_ptr<HandlerRunner> MakeHandlerRunner(const HandlerOptions& options,
                                                 const std::string& pipeline, int concurrency,
                                                 ConsumerObserver* observer,
                                                 HandlerRunner::Answered answered);

// What can be told of a handler without starting it: a jq program that does not compile, a url that
// is none, a command that is not there. One line. Any thread.
tl::expected<void, Error> CheckHandler(const HandlerOptions& options);

// Whether `patterns` name this class, and how: exactly, by a hundred ("4xx"), or not.
enum class ClassMatch : std::uint8_t { kNone, kHundred, kExact };
ClassMatch MatchClass(const std::vector<ErrorClass>& patterns, std::string_view error_class);
// Whether a failure may be tried again at all. A class that `retry_on` names exactly beats a
// hundred in `never`; otherwise `never` wins.
bool MayRetry(const HandlerOptions& handler, const RetryOptions& retry,
              const HandlerFailure& failure);

}  // namespace fencepost::consumer
