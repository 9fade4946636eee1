#include "consumer/handlers/http/curl_loop.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <system_error>

#include "locking/base/check.h"

namespace fencepost::consumer {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMostEvents = 64;  // of a turn; the rest are the next one's

void Checked(CURLMcode code) { FENCEPOST_CHECK(code == CURLM_OK, curl_multi_strerror(code)); }

void Expect(bool done, const char* what) {
  FENCEPOST_CHECK(done, std::string(what) + ": " + std::generic_category().message(errno));
}

}  // namespace

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

}  // namespace fencepost::consumer
