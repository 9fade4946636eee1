// The service that a test's `http:` stubs stand for: it answers a request with one record, or with
// a batch of them, in the forms of handler.http. One thread.
#pragma once

#include <string>
#include <vector>

#include "consumer/handlers/batch_queue.h"
#include "consumer/handlers/http/http_answer.h"
#include "consumer/pipeline/pipeline_test.h"

namespace fencepost::consumer {

class StubService {
 public:
  StubService(std::vector<HttpStub> stubs, Millis timeout)
      : stubs_(std::move(stubs)), timeout_(timeout) {}

  struct Reply {
    AnswerBody body;
    Millis took{1};  // of virtual time
  };
  // `now` is virtual unix time, for what a stub says in dates.
  Reply Answer(const HttpHandlerOptions& options, const CallBatch& calls, Millis now);
  // Records for which there was no stub.
  [[nodiscard]] const std::vector<std::string>& unanswered() const { return unanswered_; }

 private:
  // A stub for this record first, then those for any, in order; the last of either lasts for ever
  // unless it says how many times. nullptr: there is none.
  HttpStub* Find(const std::string& record_id);
  void Use(HttpStub& stub);

  std::vector<HttpStub> stubs_;
  const Millis timeout_;
  std::vector<std::string> unanswered_;
};

}  // namespace fencepost::consumer
