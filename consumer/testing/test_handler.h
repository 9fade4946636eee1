// Answers handler calls in a test: HTTP by the test's stubs, exec and jq (also of `body` and
// `result`) by the real program, which runs in real time while virtual time is stalled. One thread
// calls; the real runner has its own.
// A program that cannot be stopped (a jq program that loops for ever) leaves the handler stuck:
// then it must not be destroyed, since that would wait for the program.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/handlers/http/http_batch.h"
#include "consumer/handlers/http/http_request.h"
#include "consumer/handlers/http/http_rules.h"
#include "consumer/handlers/runner.h"
#include "consumer/pipeline/pipeline_test.h"
#include "consumer/testing/stub_service.h"

namespace fencepost::consumer {

class TestHandler {
 public:
  TestHandler(const PipelineOptions& options, std::vector<HttpStub> stubs,
              ConsumerObserver* observer);
  ~TestHandler();

  // Error: the program does not compile, the command is not there, no request can be made.
  tl::expected<void, Error> Start();
  struct Answer {
    HandlerResult result;
    Millis took{1};  // of virtual time
  };
  // Blocks while a real handler works, at most the call's timeout, kGrace and the time until its
  // process is started again; then it is stuck.
  // `now` is virtual unix time, for what a stub says in dates.
  static constexpr std::chrono::seconds kGrace{5};
  // An answer each; none: the batch is too much for the service, which takes its halves.
  std::vector<Answer> Handle(CallBatch calls, Millis now);
  // What a batch has in common (HttpTarget::SharedOf).
  std::string SharedOf(const HandlerCall& call);
  // What hangs, in one line; calls that follow fail at once.
  [[nodiscard]] const std::optional<std::string>& stuck() const { return stuck_; }
  // Ends the real program, so that all that it says has been said. Not where it is stuck.
  void Stop();
  // Calls for which there was no stub.
  [[nodiscard]] const std::vector<std::string>& unanswered() const { return service_.unanswered(); }

 private:
  std::vector<Answer> FromProgram(CallBatch calls);
  std::vector<Answer> FromService(const CallBatch& calls, Millis now);
  // … with programs, on a thread.
  std::vector<Answer> FromServiceInTime(const CallBatch& calls, Millis now);
  std::optional<HandlerFailure> Refusal(const HandlerCall& call);    // before the service is called
  std::vector<Answer> Hang(const CallBatch& calls, Millis timeout);  // from now on

  const HandlerOptions options_;
  const int attempts_;
  StubService service_;
  HttpBodyRule body_;
  HttpResultRule result_;
  std::unique_ptr<HandlerRunner> runner_;  // exec, jq
  HttpTarget target_;                      // http
  Evaluator evaluator_;
  std::optional<std::string> stuck_;
  // Of records for which the program has timed out, ended or answered what cannot be read in so
  // many calls: it is not run for them any more, since that takes real time.
  std::map<std::string, Answer> ends_so_;

  std::mutex mutex_;
  std::condition_variable answered_;
  std::map<std::uint64_t, HandlerResult> answers_;   // guarded by mutex_
  std::optional<std::vector<Answer>> from_service_;  // guarded by mutex_
};

}  // namespace fencepost::consumer
