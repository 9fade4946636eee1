// Calls an HTTP service, a request a record, on one thread of its own with libcurl's multi
// interface. At most `concurrency` requests are out; the rest wait in order. Connections stay open
// and are used again; over TLS, HTTP/2 where the server has it. A call's timeout counts from when
// its request starts. README.md says what a request carries and how answers are judged.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "consumer/handlers/http/curl_holders.h"
#include "consumer/handlers/http/http_request.h"
#include "consumer/handlers/inbox.h"
#include "consumer/handlers/runner.h"

namespace fencepost::consumer {

class HttpRunner : public HandlerRunner {
 public:
  HttpRunner(HttpHandlerOptions options, std::string pipeline, int concurrency,
             ConsumerObserver* observer, Answered answered);
  ~HttpRunner() override;
  HttpRunner(const HttpRunner&) = delete;
  HttpRunner& operator=(const HttpRunner&) = delete;

  tl::expected<void, Error> Start() override;
  void Call(HandlerCall call) override;
  void Cancel(std::uint64_t id) override;
  void Stop() override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Running {
    std::unique_ptr<HttpRequest> request;
    Clock::time_point since;
  };

  void Wake();
  // The thread's own:
  void Run();
  void StartWaiting();
  void CancelCall(std::uint64_t id);
  void FinishEnded();
  Nanos Release(std::unordered_map<std::uint64_t, Running>::iterator at);

  const HttpHandlerOptions options_;
  const std::string pipeline_;
  const std::size_t concurrency_;
  ConsumerObserver* const observer_;
  const Answered answered_;

  HttpTarget target_;
  curl::Multi multi_;
  Inbox inbox_;
  // The thread's own:
  std::deque<HandlerCall> waiting_;
  std::unordered_map<std::uint64_t, Running> running_;
  std::vector<std::unique_ptr<HttpRequest>> idle_;

  std::thread thread_;
};

}  // namespace fencepost::consumer
