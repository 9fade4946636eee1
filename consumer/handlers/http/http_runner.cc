#include "consumer/handlers/http/http_runner.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "consumer/handlers/common_failures.h"
#include "consumer/handlers/thread_signals.h"
#include "locking/base/check.h"

namespace fencepost::consumer {
namespace {

void Checked(CURLMcode code) { FENCEPOST_CHECK(code == CURLM_OK, curl_multi_strerror(code)); }

}  // namespace

HttpRunner::HttpRunner(HttpHandlerOptions options, std::string pipeline, int concurrency,
                       ConsumerObserver* observer, Answered answered)
    : PollingRunner(observer, std::move(answered)),
      options_(std::move(options)),
      pipeline_(std::move(pipeline)),
      concurrency_(static_cast<std::size_t>(std::max(concurrency, 1))) {}

HttpRunner::~HttpRunner() { HttpRunner::Stop(); }

tl::expected<void, Error> HttpRunner::Start() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  auto target = HttpTarget::Make(options_, pipeline_);
  if (!target) return tl::unexpected(target.error());
  target_ = std::move(*target);
  loop_ = std::make_unique<CurlLoop>();
  // Otherwise connections are closed while requests rest between two batches.
  Checked(curl_multi_setopt(loop_->multi(), CURLMOPT_MAXCONNECTS, static_cast<long>(concurrency_)));
  thread_ = std::thread([this] { Run(); });
  return {};
}

void HttpRunner::SetConcurrency(int calls) {
  concurrency_ = static_cast<std::size_t>(std::max(calls, 1));
}

void HttpRunner::Wake() { loop_->Wake(); }

void HttpRunner::Run() {
  BlockSignals();  // a peer that went away is an answer, not a SIGPIPE
  while (!stopping()) {
    TakeCommands();
    StartWaiting();
    loop_->Turn(waiting_.empty() || running_.size() >= concurrency_);
    FinishEnded();
  }
  while (!running_.empty()) Release(running_.begin());
  idle_.clear();
  waiting_.clear();
}

void HttpRunner::StartWaiting() {
  while (!waiting_.empty() && running_.size() < concurrency_) {
    std::unique_ptr<HttpRequest> request;
    if (idle_.empty()) {
      request = std::make_unique<HttpRequest>(&target_);
    } else {
      request = std::move(idle_.back());
      idle_.pop_back();
    }
    request->Begin(std::move(waiting_.front()));
    waiting_.pop_front();
    Checked(curl_multi_add_handle(loop_->multi(), request->handle()));
    const std::uint64_t id = request->call().id;
    const bool fresh = running_.try_emplace(id, Running{std::move(request), Clock::now()}).second;
    FENCEPOST_CHECK(fresh, "a call is out twice under one id");
  }
}

bool HttpRunner::CancelRunning(std::uint64_t id) {
  const auto at = running_.find(id);
  if (at == running_.end()) return false;
  const Nanos took = Release(at);
  answered_({.id = id, .result = Cancelled(), .took = took});
  return true;
}

void HttpRunner::FinishEnded() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(loop_->multi(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    HttpRequest* request = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &request);
    HandlerAnswer answer{.id = request->call().id, .result = request->Result(code)};
    answer.took = Release(running_.find(answer.id));
    answered_(std::move(answer));
  }
}

// A request that is still out is broken off, and its connection closed (HTTP/2: its stream).
Nanos HttpRunner::Release(std::unordered_map<std::uint64_t, Running>::iterator at) {
  const Nanos took = Clock::now() - at->second.since;
  std::unique_ptr<HttpRequest> request = std::move(at->second.request);
  running_.erase(at);
  Checked(curl_multi_remove_handle(loop_->multi(), request->handle()));
  request->End();
  idle_.push_back(std::move(request));
  observer_->OnHandled(took);
  return took;
}

}  // namespace fencepost::consumer
