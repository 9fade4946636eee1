#include "consumer/handlers/http/http_runner.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "consumer/handlers/http/curl_holders.h"
#include "consumer/handlers/http/http_batch.h"
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
//
// Between two requests curl does not want to know of their connection. Epoll keeps it, and tells of
// nothing but its end: two system calls a request are less. That needs to know which sockets are
// closed, whose numbers come again.
class CurlLoop {
 public:
  CurlLoop();
  CurlLoop(const CurlLoop&) = delete;
  CurlLoop& operator=(const CurlLoop&) = delete;

  [[nodiscard]] CURLM* multi() const { return multi_.get(); }
  // The sockets of this handle's connections are opened and closed here.
  void Own(CURL* easy);
  // Waits until something is ready, a timer of curl's is due or Wake was called, and lets curl act
  // on it, `until` at the latest. Then curl_multi_info_read tells which requests have ended.
  void Turn(Instant until);
  void Wake() const { wake_up_.Wake(); }  // any thread

 private:
  using Clock = std::chrono::steady_clock;

  struct Connection {
    std::uint32_t watched = 0;  // by epoll; 0: it does not know it
    std::uint32_t wanted = 0;   // by curl
  };

  static curl_socket_t OnOpen(void* self, curlsocktype purpose, curl_sockaddr* address);
  static int OnClose(void* self, curl_socket_t socket);
  static int OnSocket(CURL* easy, curl_socket_t socket, int what, void* self, void* known);
  static int OnTimer(CURLM* multi, long ms, void* self);
  void Watch(curl_socket_t socket, std::uint32_t events);
  void Tell(curl_socket_t socket, std::uint32_t events) const;
  void OnEvent(const epoll_event& event);
  [[nodiscard]] int WaitMillis(Instant until) const;
  void Act(curl_socket_t socket, int what) const;

  Fd epoll_;
  WakeUp wake_up_;
  std::optional<Clock::time_point> due_;  // curl's timer
  std::unordered_map<curl_socket_t, Connection> connections_;
  curl::Multi multi_;  // last: its end calls OnSocket and OnClose
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

void CurlLoop::Own(CURL* easy) {
  curl::Set(easy, CURLOPT_OPENSOCKETFUNCTION, &CurlLoop::OnOpen);
  curl::Set(easy, CURLOPT_OPENSOCKETDATA, static_cast<void*>(this));
  curl::Set(easy, CURLOPT_CLOSESOCKETFUNCTION, &CurlLoop::OnClose);
  curl::Set(easy, CURLOPT_CLOSESOCKETDATA, static_cast<void*>(this));
}

curl_socket_t CurlLoop::OnOpen(void* self, curlsocktype, curl_sockaddr* address) {
  const int opened = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  if (opened < 0) return CURL_SOCKET_BAD;
  static_cast<CurlLoop*>(self)->connections_[opened] = {};
  return opened;
}

int CurlLoop::OnClose(void* self, curl_socket_t socket) {
  static_cast<CurlLoop*>(self)->connections_.erase(socket);
  return close(socket);  // which epoll sees
}

int CurlLoop::OnSocket(CURL*, curl_socket_t socket, int what, void* self, void*) {
  std::uint32_t events = 0;
  if (what != CURL_POLL_REMOVE && (what & CURL_POLL_IN) != 0) events |= EPOLLIN;
  if (what != CURL_POLL_REMOVE && (what & CURL_POLL_OUT) != 0) events |= EPOLLOUT;
  static_cast<CurlLoop*>(self)->Watch(socket, events);
  return 0;
}

int CurlLoop::OnTimer(CURLM*, long ms, void* self) {
  auto& due = static_cast<CurlLoop*>(self)->due_;
  due.reset();
  if (ms >= 0) due = Clock::now() + milliseconds(ms);
  return 0;
}

// One that is only being connected is not kept, nor known any longer: where that fails, curl closes
// it without a word.
void CurlLoop::Watch(curl_socket_t socket, std::uint32_t events) {
  const auto known = connections_.find(socket);
  if (known == connections_.end()) return Tell(socket, events);
  Connection& connection = known->second;
  connection.wanted = events;
  const bool rests = events == 0 && connection.watched == EPOLLIN;
  if (rests || (events != 0 && events == connection.watched)) return;
  Tell(socket, events);
  connection.watched = events;
  if (events == 0) connections_.erase(known);
}

// A number that was closed and opened again is not known to epoll any more, whatever curl thinks.
void CurlLoop::Tell(curl_socket_t socket, std::uint32_t events) const {
  if (events == 0) {
    const bool gone = epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket, nullptr) == 0;
    Expect(gone || errno == ENOENT || errno == EBADF, "epoll_ctl");
    return;
  }
  epoll_event event{.events = events, .data = {.fd = socket}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket, &event) == 0) return;
  Expect(errno == ENOENT, "epoll_ctl");
  Expect(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket, &event) == 0, "epoll_ctl");
}

int CurlLoop::WaitMillis(Instant until) const {
  Nanos left = Nanos::max();
  if (until != Instant::max()) left = until - locking::ReadClocks().boot;
  if (due_) left = std::min<Nanos>(left, *due_ - Clock::now());
  if (left == Nanos::max()) return -1;
  const auto millis = std::chrono::ceil<milliseconds>(left).count();
  return static_cast<int>(std::clamp<std::int64_t>(millis, 0, INT_MAX));
}

void CurlLoop::Act(curl_socket_t socket, int what) const {
  int running = 0;
  Checked(curl_multi_socket_action(multi(), socket, what, &running));
}

void CurlLoop::OnEvent(const epoll_event& event) {
  const auto known = connections_.find(event.data.fd);
  if (known != connections_.end() && known->second.wanted == 0) {  // it has ended, at rest
    Tell(event.data.fd, 0);
    known->second.watched = 0;
    return;
  }
  const bool broken = (event.events & (EPOLLERR | EPOLLHUP)) != 0;
  int what = 0;  // curl looks itself: an answer may have come before the end
  if (!broken && (event.events & EPOLLIN) != 0) what |= CURL_CSELECT_IN;
  if (!broken && (event.events & EPOLLOUT) != 0) what |= CURL_CSELECT_OUT;
  Act(event.data.fd, what);
}

void CurlLoop::Turn(Instant until) {
  std::array<epoll_event, kMostEvents> events;
  const int ready = epoll_wait(epoll_.get(), events.data(), kMostEvents, WaitMillis(until));
  Expect(ready >= 0 || errno == EINTR, "epoll_wait");
  for (int i = 0; i < ready; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.fd == wake_up_.fd()) {
      wake_up_.Taken();
    } else {
      OnEvent(event);
    }
  }
  if (!due_ || *due_ > Clock::now()) return;
  due_.reset();  // curl sets it again
  Act(CURL_SOCKET_TIMEOUT, 0);
}

// --- the runner ----------------------------------------------------------------------------------

HttpRunner::HttpRunner(HttpHandlerOptions options, std::string pipeline, int concurrency,
                       ConsumerObserver* observer, Answered answered)
    : PollingRunner(BatchQueue(options.batch, options.rate_limit), concurrency, observer,
                    std::move(answered)),
      options_(std::move(options)),
      pipeline_(std::move(pipeline)) {}

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
  waiting_.ShareBy([this](const HandlerCall& call) { return target_.SharedOf(call, evaluator_); });
  loop_ = std::make_unique<CurlLoop>();
  if (!options_.auth.oauth.token_url.empty()) {
    auto oauth = OauthClient::Make(options_, target_.user_agent, loop_->multi());
    if (!oauth) return tl::unexpected(oauth.error());
    oauth_ = std::move(*oauth);
  }
  // Otherwise connections are closed while requests rest between two batches.
  const auto connections = static_cast<long>(concurrency_ + (oauth_ ? 1 : 0));
  Checked(curl_multi_setopt(loop_->multi(), CURLMOPT_MAXCONNECTS, connections));
  thread_ = std::thread([this] { Run(); });
  return {};
}

void HttpRunner::Wake() { loop_->Wake(); }

void HttpRunner::Run() {
  BlockSignals();  // a peer that went away is an answer, not a SIGPIPE
  while (!stopping()) {
    TakeCommands();
    StartWaiting();
    loop_->Turn(running_.size() < concurrency_ ? waiting_.Next(Now()) : Instant::max());
    FinishEnded();
  }
  while (!running_.empty()) observer_->OnHandled(Clock::now() - Release(running_.begin()).since);
  idle_.clear();
  waiting_.Clear();
}

tl::expected<RequestParts, HandlerFailure> HttpRunner::PartsOf(const HandlerCall& call) {
  if (auto refusal = result_.Refusal(call)) return tl::unexpected(std::move(*refusal));
  auto body = body_.Of(call);
  if (!body) return tl::unexpected(std::move(body.error()));
  return target_.PartsOf(call, std::move(*body), evaluator_);
}

// Calls that are bad records are answered, and leave the batch; the others are one request.
tl::expected<RequestParts, HandlerFailure> HttpRunner::PartsOfBatch(CallBatch& calls) {
  HttpBatchText text(options_.batch_form);
  RequestParts parts;
  std::erase_if(calls, [&](const HandlerCall& call) {
    auto refusal = result_.Refusal(call);
    auto around = target_.PartsOf(call, std::nullopt, evaluator_);
    if (!refusal && !around) refusal = std::move(around.error());
    if (!refusal) {
      auto body = body_.Of(call);
      refusal = body ? text.Add(call, *body) : std::move(body.error());
    }
    if (!refusal) parts = std::move(*around);
    if (refusal) answered_({.id = call.id, .result = tl::unexpected(std::move(*refusal))});
    return refusal.has_value();
  });
  parts.body = text.Take();
  return parts;
}

void HttpRunner::StartWaiting() {
  while (running_.size() < concurrency_ && waiting_.Due(Now())) Send(TakeDue());
}

void HttpRunner::Send(CallBatch calls) {
  if (calls.empty()) return;
  auto parts = target_.batches() ? PartsOfBatch(calls) : PartsOf(calls.front());
  if (calls.empty()) return;
  if (!parts) {
    return answered_({.id = calls.front().id, .result = tl::unexpected(std::move(parts.error()))});
  }
  auto secret = SecretOf(target_.options.auth);
  if (!secret) return FailUnasked(calls, secret.error());
  parts->secret = *std::move(secret);
  waiting_.OnSent(Now());
  std::unique_ptr<HttpRequest> request;
  if (idle_.empty()) {
    request = std::make_unique<HttpRequest>(&target_);
    loop_->Own(request->handle());
  } else {
    request = std::move(idle_.back());
    idle_.pop_back();
  }
  const Instant valid_until =
      std::ranges::min_element(calls, {}, &HandlerCall::valid_until)->valid_until;
  request->Begin(calls.front(), std::move(*parts), valid_until);
  const HttpRequest* const key = request.get();
  Running running{std::move(request), {std::move(calls), Clock::now()}};
  SendOut(running_.emplace(key, std::move(running)).first->second);
}

// They are tried again, however often: the service was not asked.
void HttpRunner::FailUnasked(const CallBatch& calls, const std::string& why) {
  for (const HandlerCall& call : calls) {
    answered_({.id = call.id,
               .result = tl::unexpected(HandlerFailure{
                   .error_class = "connection", .text = why, .shown = why, .reached = false})});
  }
}

void HttpRunner::SendOut(Running& call) {
  if (oauth_) {
    const std::string* const token = oauth_->Token(call.out.calls.front().timeout);
    if (token == nullptr) return;
    call.request->Authorize(*token);
    call.token = oauth_->number();
  }
  call.sent = true;
  call.out.since = Clock::now();
  Checked(curl_multi_add_handle(loop_->multi(), call.request->handle()));
}

// The token may have been withdrawn.
bool HttpRunner::SendAgain(Running& call, CURLcode code) {
  if (!oauth_ || !call.request->IsUnauthorized(code) || std::exchange(call.again, true)) {
    return false;
  }
  Checked(curl_multi_remove_handle(loop_->multi(), call.request->handle()));
  call.request->Reset();
  call.sent = false;
  oauth_->OnRefused(call.token);
  SendOut(call);
  return true;
}

void HttpRunner::OnTokenAnswer(CURLcode code) {
  const std::optional<HandlerFailure> failure = oauth_->OnEnded(code);
  for (auto next = running_.begin(); next != running_.end();) {
    const auto at = next++;
    if (at->second.sent) continue;
    if (!failure) {
      SendOut(at->second);
      continue;
    }
    for (const HandlerCall& call : TakeBack(Release(at))) {
      answered_({.id = call.id, .result = tl::unexpected(*failure)});
    }
  }
}

bool HttpRunner::CancelRunning(std::uint64_t id) {
  const auto at = std::ranges::find_if(
      running_, [id](const auto& running) { return running.second.out.Has(id); });
  if (at == running_.end()) return false;
  at->second.out.cancelled.push_back(id);
  if (at->second.out.Abandoned()) AnswerEach(Release(at), {});
  return true;
}

void HttpRunner::FinishEnded() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(loop_->multi(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    if (oauth_ && oauth_->Owns(message->easy_handle)) {
      OnTokenAnswer(code);
      continue;
    }
    HttpRequest* request = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &request);
    const auto at = running_.find(request);
    if (SendAgain(at->second, code)) continue;
    AnswerBody body = request->Result(code);
    Finish(Release(at), std::move(body));
  }
}

void HttpRunner::Finish(Out out, AnswerBody body) {
  if (IsTooMuch(body, out.calls)) {
    observer_->OnHandled(Clock::now() - out.since);
    return waiting_.Halve(TakeBack(std::move(out)), Now());
  }
  auto results = ResultsOf(options_, std::move(body), out.calls, result_);
  AnswerEach(std::move(out), std::move(results));
}

// A request that is still out is broken off, and its connection closed (HTTP/2: its stream).
PollingRunner::Out HttpRunner::Release(RunningRequests::iterator at) {
  Running ended = std::move(at->second);
  running_.erase(at);
  Checked(curl_multi_remove_handle(loop_->multi(), ended.request->handle()));
  ended.request->End();
  idle_.push_back(std::move(ended.request));
  return std::move(ended.out);
}

}  // namespace fencepost::consumer
