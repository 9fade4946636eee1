// Drives a multi handle of libcurl by what is ready (curl_multi_socket_action, epoll): a turn costs
// what its events cost, however many requests are out, where curl_multi_perform looks at each of
// them. Linux. One thread, Wake apart.
#pragma once

#include <chrono>
#include <optional>

#include "consumer/handlers/http/curl_holders.h"
#include "locking/base/fd.h"
#include "locking/base/wake_up.h"

namespace fencepost::consumer {

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

}  // namespace fencepost::consumer
