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
#include <thread>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/handlers/http/http_body.h"
#include "consumer/handlers/http/http_request.h"
#include "consumer/handlers/http/http_result.h"
#include "consumer/handlers/runner.h"
#include "consumer/pipeline/pipeline_test.h"

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
  Answer Handle(HandlerCall call, Millis now);
  // What hangs, in one line; calls that follow fail at once.
  [[nodiscard]] const std::optional<std::string>& stuck() const { return stuck_; }
  // Ends the real program, so that all that it says has been said. Not where it is stuck.
  void Stop();
  // Calls for which there was no stub.
  [[nodiscard]] const std::vector<std::string>& unanswered() const { return unanswered_; }

 private:
  Answer FromService(const HandlerCall& call, Millis now);
  Answer FromServiceInTime(const HandlerCall& call, Millis now);  // with programs, on a thread
  Answer FromStub(const HandlerCall& call, Millis now);
  Answer Hangs(const std::string& record_id, Millis timeout);  // from now on

  const HandlerOptions options_;
  const Millis timeout_;
  const int attempts_;
  std::vector<HttpStub> stubs_;
  HttpBodyRule body_;
  HttpResultRule result_;
  std::unique_ptr<HandlerRunner> runner_;  // exec, jq
  HttpTarget target_;                      // http
  Evaluator evaluator_;
  std::vector<std::string> unanswered_;
  std::optional<std::string> stuck_;
  // Of records for which the program has timed out, ended or answered what cannot be read in so
  // many calls: it is not run for them any more, since that takes real time.
  std::map<std::string, Answer> ends_so_;

  std::mutex mutex_;
  std::condition_variable answered_;
  std::optional<HandlerAnswer> answer_;  // guarded by mutex_
  std::optional<Answer> from_service_;   // guarded by mutex_
};

}  // namespace fencepost::consumer
