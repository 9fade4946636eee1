#include "metrics/http/event_stream.h"

#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <civetweb.h>
#include <fmt/format.h>

namespace fencepost::metrics {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// One mg_write. Where poll(2) says that a socket is writable, a third of its buffer is free: more
// than this even in the smallest, so mg_write does not wait.
constexpr std::size_t kChunk = 4UL * 1024;
// What the buffer of a new connection takes whole.
constexpr std::size_t kAtOnce = 16UL * 1024;
constexpr std::string_view kEventsHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
    "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n";

struct Name {
  std::string host;
  int port = -1;
};

using NameCall = int (*)(int, sockaddr*, socklen_t*);

Name NameOf(int fd, NameCall call) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (call(fd, any, &size) != 0) return {};
  Name name;
  if (address.ss_family == AF_INET) {
    name.port = ntohs(reinterpret_cast<const sockaddr_in*>(any)->sin_port);
  } else if (address.ss_family == AF_INET6) {
    name.port = ntohs(reinterpret_cast<const sockaddr_in6*>(any)->sin6_port);
  } else {
    return {};
  }
  char host[NI_MAXHOST] = "";
  if (getnameinfo(any, size, host, sizeof host, nullptr, 0, NI_NUMERICHOST) == 0) name.host = host;
  return name;
}

// The socket of a connection, which the library keeps to itself: the one of this process with these
// two ends. It stays open until the handler returns. -1: not found, or not for certain.
int SocketOf(const mg_request_info& info) {
  namespace fs = std::filesystem;
  int found = -1;
  std::error_code error;
  for (fs::directory_iterator it("/proc/self/fd", error), end; !error && it != end;
       it.increment(error)) {
    const int fd = std::atoi(it->path().filename().c_str());
    if (NameOf(fd, getsockname).port != info.server_port) continue;
    const Name peer = NameOf(fd, getpeername);
    if (peer.port != info.remote_port || peer.host != info.remote_addr) continue;
    if (found >= 0) return -1;
    found = fd;
  }
  return found;
}

// Bytes that were written and have not reached the peer.
int NotTaken(int fd) {
  int bytes = 0;
  return fd >= 0 && ioctl(fd, SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

// False: the peer has gone, or it is to stop.
bool Wait(int fd, milliseconds time, const StopSwitch& stop) {
  pollfd watched[] = {{stop.fd(), POLLIN, 0}, {fd, POLLRDHUP, 0}};
  const int ready = poll(watched, 2, static_cast<int>(time.count()));
  return ready == 0 && !stop.stopped();
}

// False: there was none before `until`, or it is to stop. A peer that has gone is for the write to
// find. Without the socket's number there is nothing to watch but the clock.
bool RoomBefore(Clock::time_point until, int fd, const StopSwitch& stop) {
  const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
  if (left.count() <= 0) return false;
  if (fd < 0) return !stop.stopped();
  pollfd watched[] = {{stop.fd(), POLLIN, 0}, {fd, POLLOUT, 0}};
  return poll(watched, 2, static_cast<int>(left.count())) > 0 && !stop.stopped();
}

bool WriteTo(mg_connection* connection, int fd, std::string_view text, milliseconds limit,
             const StopSwitch& stop) {
  const auto until = Clock::now() + limit;
  while (!text.empty()) {
    if (!RoomBefore(until, fd, stop)) return false;
    const std::string_view chunk = text.substr(0, kChunk);
    // A short count is a failure too: the library's own timeout came amid the chunk.
    if (mg_write(connection, chunk.data(), chunk.size()) != static_cast<int>(chunk.size())) {
      return false;
    }
    text.remove_prefix(chunk.size());
  }
  return true;
}

// What is still to be sent is thrown away when the library closes the socket.
void DropRest(int fd) {
  const linger none{1, 0};
  if (fd >= 0) (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
}

}  // namespace

bool WriteWithin(mg_connection* connection, std::string_view text, milliseconds limit,
                 const StopSwitch& stop) {
  const int fd = text.size() > kAtOnce ? SocketOf(*mg_get_request_info(connection)) : -1;
  return WriteTo(connection, fd, text, limit, stop);
}

void SendEvents(mg_connection* connection, const std::function<std::string()>& event,
                const StreamOptions& options, const StopSwitch& stop) {
  const int fd = SocketOf(*mg_get_request_info(connection));
  const std::string first =
      fmt::format("{}retry: {}\n\n{}", kEventsHead, options.retry.count(), event());
  if (!WriteTo(connection, fd, first, options.io_timeout, stop)) {
    DropRest(fd);
    return;
  }
  const auto end = Clock::now() + options.life;
  auto moved_at = Clock::now();
  int before = 0;
  while (Clock::now() < end && Wait(fd, options.between, stop)) {
    const int left = NotTaken(fd);
    const auto now = Clock::now();
    if (now >= end) return;
    if (left == 0 || left < before) moved_at = now;
    before = left;
    if (left > 0 && now - moved_at > options.io_timeout) {
      DropRest(fd);
      return;
    }
    if (left > 0) continue;
    if (!WriteTo(connection, fd, event(), options.io_timeout, stop)) {
      DropRest(fd);
      return;
    }
  }
}

void SendEventsHead(mg_connection* connection, milliseconds io_timeout, const StopSwitch& stop) {
  (void)WriteWithin(connection, kEventsHead, io_timeout, stop);
}

}  // namespace fencepost::metrics
