#include "consumer/handlers/http/http_runner.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "consumer/handlers/http/curl_holders.h"
#include "locking/base/check.h"
#include "locking/base/fd.h"
#include "locking/base/wake_up.h"

namespace fencepost::consumer {
namespace {

using curl::Checked;
using std::chrono::milliseconds;

constexpr std::size_t kMostEvents = 64;  // of a turn; the rest are the next one's

void Expect(bool done, const char* what) {
  FENCEPOST_CHECK(done, std::string(what) + ": " + std::generic_category().message(errno));
}

}  // namespace

// Drives a multi handle of libcurl by what is ready (curl_multi_socket_action, epoll): a turn costs
// what its events cost, however many requests are out, where curl_multi_perform looks at each of
// them. Linux. One thread, Wake apart.
class CurlLoop {
 public:
  CurlLoop();
  CurlLoop(const CurlLoop&) = delete;
  CurlLoop& operator=(const CurlLoop&) = delete;

  [[nodiscard]] CURLM* multi() const { return multi_.get(); }
  // Waits until something is ready, a timer of curl's is due or Wake was called, and lets curl act
  // on it. Then curl_multi_info_read tells which requests have ended. `wait` false: only looks.
  void Turn(bool wait);
  void Wake() const { wake_up_.Wake(); }  // any thread

 private:
  using Clock = std::chrono::steady_clock;

  static int OnSocket(CURL* easy, curl_socket_t socket, int what, void* self, void* known);
  static int OnTimer(CURLM* multi, long ms, void* self);
  void Watch(curl_socket_t socket, int what) const;
  [[nodiscard]] int WaitMillis(bool wait) const;
  void Act(curl_socket_t socket, int what) const;

  Fd epoll_;
  WakeUp wake_up_;
  std::optional<Clock::time_point> due_;  // curl's timer
  curl::Multi multi_;                     // last: its end calls OnSocket
};

CurlLoop::CurlLoop() : epoll_(epoll_create1(EPOLL_CLOEXEC)), multi_(curl_multi_init()) {
  Expect(epoll_.open(), "epoll_create1");
  errno = wake_up_.error();
  Expect(errno == 0, "eventfd");
  FENCEPOST_CHECK(multi_ != nullptr, "curl_multi_init");
  epoll_event event{.events = EPOLLIN, .data = {.fd = wake_up_.fd()}};
  Expect(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_up_.fd(), &event) == 0, "epoll_ctl");
  Checked(curl_multi_setopt(multi(), CURLMOPT_SOCKETFUNCTION, &CurlLoop::OnSocket));
  Checked(curl_multi_setopt(multi(), CURLMOPT_SOCKETDATA, this));
  Checked(curl_multi_setopt(multi(), CURLMOPT_TIMERFUNCTION, &CurlLoop::OnTimer));
  Checked(curl_multi_setopt(multi(), CURLMOPT_TIMERDATA, this));
}

int CurlLoop::OnSocket(CURL*, curl_socket_t socket, int what, void* self, void*) {
  static_cast<const CurlLoop*>(self)->Watch(socket, what);
  return 0;
}

int CurlLoop::OnTimer(CURLM*, long ms, void* self) {
  auto& due = static_cast<CurlLoop*>(self)->due_;
  due.reset();
  if (ms >= 0) due = Clock::now() + milliseconds(ms);
  return 0;
}

// A number that was closed and opened again is not known to epoll any more, whatever curl thinks.
void CurlLoop::Watch(curl_socket_t socket, int what) const {
  if (what == CURL_POLL_REMOVE) {
    const bool gone = epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket, nullptr) == 0;
    Expect(gone || errno == ENOENT || errno == EBADF, "epoll_ctl");
    return;
  }
  epoll_event event{.events = 0, .data = {.fd = socket}};
  if ((what & CURL_POLL_IN) != 0) event.events |= EPOLLIN;
  if ((what & CURL_POLL_OUT) != 0) event.events |= EPOLLOUT;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket, &event) == 0) return;
  Expect(errno == ENOENT, "epoll_ctl");
  Expect(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket, &event) == 0, "epoll_ctl");
}

int CurlLoop::WaitMillis(bool wait) const {
  if (!wait) return 0;
  if (!due_) return -1;
  const auto left = std::chrono::ceil<milliseconds>(*due_ - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, INT_MAX));
}

void CurlLoop::Act(curl_socket_t socket, int what) const {
  int running = 0;
  Checked(curl_multi_socket_action(multi(), socket, what, &running));
}

void CurlLoop::Turn(bool wait) {
  std::array<epoll_event, kMostEvents> events;
  const int ready = epoll_wait(epoll_.get(), events.data(), kMostEvents, WaitMillis(wait));
  Expect(ready >= 0 || errno == EINTR, "epoll_wait");
  for (int i = 0; i < ready; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.fd == wake_up_.fd()) {
      wake_up_.Taken();
      continue;
    }
    const bool broken = (event.events & (EPOLLERR | EPOLLHUP)) != 0;
    int what = 0;  // curl looks itself: an answer may have come before the end
    if (!broken && (event.events & EPOLLIN) != 0) what |= CURL_CSELECT_IN;
    if (!broken && (event.events & EPOLLOUT) != 0) what |= CURL_CSELECT_OUT;
    Act(event.data.fd, what);
  }
  if (!due_ || *due_ > Clock::now()) return;
  due_.reset();  // curl sets it again
  Act(CURL_SOCKET_TIMEOUT, 0);
}

// --- the runner ----------------------------------------------------------------------------------

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
  auto body = HttpBodyRule::Make(options_);
  if (!body) return tl::unexpected(body.error());
  body_ = std::move(*body);
  auto result = HttpResultRule::Make(options_);
  if (!result) return tl::unexpected(result.error());
  result_ = std::move(*result);
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

tl::expected<RequestParts, HandlerFailure> HttpRunner::PartsOf(const HandlerCall& call) {
  if (auto refusal = result_.Refusal(call)) return tl::unexpected(std::move(*refusal));
  auto body = body_.Of(call);
  if (!body) return tl::unexpected(std::move(body.error()));
  return target_.PartsOf(call, std::move(*body), evaluator_);
}

void HttpRunner::StartWaiting() {
  while (!waiting_.empty() && running_.size() < concurrency_) {
    auto parts = PartsOf(waiting_.front());
    if (!parts) {
      answered_({.id = waiting_.front().id, .result = tl::unexpected(std::move(parts.error()))});
      waiting_.pop_front();
      continue;
    }
    std::unique_ptr<HttpRequest> request;
    if (idle_.empty()) {
      request = std::make_unique<HttpRequest>(&target_);
    } else {
      request = std::move(idle_.back());
      idle_.pop_back();
    }
    request->Begin(std::move(waiting_.front()), std::move(*parts));
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
    AnswerBody body = request->Result(code);
    HandlerAnswer answer{.id = request->call().id,
                         .result = body ? result_.Apply(request->call(), std::move(*body))
                                        : tl::unexpected(std::move(body.error()))};
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
