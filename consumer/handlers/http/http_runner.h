// Calls an HTTP service, a request a record or batch, on one thread of its own with libcurl's multi
// interface. At most `concurrency` requests are out; the rest wait in order. Connections stay open
// and are used again; over TLS, HTTP/2 where the server has it. A call's timeout counts from when
// its request starts. Requests that need an OAuth token wait for it (OauthClient); one that the
// service refuses with 401 is sent once more, with a new token. README.md says what a request
// carries and how answers are judged.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "consumer/handlers/http/http_request.h"
#include "consumer/handlers/http/http_rules.h"
#include "consumer/handlers/http/oauth_client.h"
#include "consumer/handlers/polling_runner.h"

namespace fencepost::consumer {

class CurlLoop;

class HttpRunner final : public PollingRunner {
 public:
  HttpRunner(HttpHandlerOptions options, std::string pipeline, int concurrency,
             ConsumerObserver* observer, Answered answered);
  ~HttpRunner() override;

  tl::expected<void, Error> Start() override;

 private:
  struct Running {
    std::unique_ptr<HttpRequest> request;
    Out out;
    bool sent = false;        // else it waits for a token
    bool again = false;       // it was sent once more
    std::uint64_t token = 0;  // the number of the one that it carries
  };
  using RunningRequests = std::unordered_map<const HttpRequest*, Running>;

  void Wake() override;
  // The thread's own:
  bool CancelRunning(std::uint64_t id) override;
  void Run();
  tl::expected<RequestParts, HandlerFailure> PartsOf(const HandlerCall& call);
  tl::expected<RequestParts, HandlerFailure> PartsOfBatch(CallBatch& calls);
  void StartWaiting();
  void Send(CallBatch calls);
  void FailUnasked(const CallBatch& calls, const std::string& why);
  void SendOut(Running& call);
  bool SendAgain(Running& call, CURLcode code);
  void OnTokenAnswer(CURLcode code);
  void FinishEnded();
  void Finish(Out out, AnswerBody body);
  Out Release(RunningRequests::iterator at);

  const HttpHandlerOptions options_;
  const std::string pipeline_;

  HttpTarget target_;
  std::unique_ptr<CurlLoop> loop_;
  std::unique_ptr<OauthClient> oauth_;  // null: it needs none
  // The thread's own:
  Evaluator evaluator_;
  HttpBodyRule body_;
  HttpResultRule result_;
  RunningRequests running_;
  std::vector<std::unique_ptr<HttpRequest>> idle_;
};

}  // namespace fencepost::consumer
