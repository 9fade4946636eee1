#include "tests/bench/floors/http_server.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

namespace fencepost::bench {
namespace {

constexpr std::string_view kEndOfHeaders = "\r\n\r\n";
constexpr std::string_view kLength = "Content-Length: ";

void Require(bool done, const char* what) {
  if (!done) throw std::runtime_error(std::string("http server: ") + what);
}

// The first request in `text`: its size and its body. Nothing while it is not all there.
bool Request(std::string_view text, std::size_t& size, std::string_view& body) {
  const std::size_t end = text.find(kEndOfHeaders);
  if (end == std::string_view::npos) return false;
  const std::size_t at = text.substr(0, end).find(kLength);
  const std::size_t length =
      at == std::string_view::npos
          ? 0
          : std::strtoul(text.substr(at + kLength.size()).data(), nullptr, 10);
  size = end + kEndOfHeaders.size() + length;
  if (text.size() < size) return false;
  body = text.substr(end + kEndOfHeaders.size(), length);
  return true;
}

class Server {
 public:
  Server() : listener_(socket(AF_INET, SOCK_STREAM, 0)), epoll_(epoll_create1(0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    Require(bind(listener_, any, size) == 0, "bind");
    Require(listen(listener_, SOMAXCONN) == 0, "listen");
    Require(getsockname(listener_, any, &size) == 0, "getsockname");
    Watch(listener_);
    std::printf("listening on %d\n", ntohs(address.sin_port));
    std::fflush(stdout);
  }

  void Turn() {
    std::array<epoll_event, 64> events{};
    const int count = epoll_wait(epoll_, events.data(), events.size(), -1);
    for (int i = 0; i < count; ++i) {
      const int fd = events.at(static_cast<std::size_t>(i)).data.fd;
      fd == listener_ ? Watch(accept(listener_, nullptr, nullptr)) : Serve(fd);
    }
  }

 private:
  void Watch(int fd) {
    if (fd < 0) return;
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  }

  // Answers are small beside a socket's buffer, so they are sent in one blocking call.
  void Serve(int fd) {
    std::array<char, 65536> buffer;
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got <= 0) {
      close(fd);
      pending_.erase(fd);
      return;
    }
    std::string& pending = pending_[fd];
    pending.append(buffer.data(), static_cast<std::size_t>(got));
    std::size_t size = 0;
    std::string_view body;
    while (Request(pending, size, body)) {
      answer_.clear();
      fmt::format_to(std::back_inserter(answer_),
                     "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                     "Content-Length: {}\r\n\r\n{}",
                     body.size(), body);
      if (send(fd, answer_.data(), answer_.size(), MSG_NOSIGNAL) < 0) return;
      pending.erase(0, size);
    }
  }

  const int listener_, epoll_;
  std::map<int, std::string> pending_;
  fmt::memory_buffer answer_;
};

}  // namespace

void ServeHttp() {
  Server server;
  while (true) server.Turn();
}

HttpServerProcess::HttpServerProcess() : process_({.argv = {"/proc/self/exe", "serve"}}) {
  constexpr std::string_view kSaid = "listening on ";
  testing::RequireWithin(std::chrono::seconds(10), "the http server",
                         [this] { return process_.Output().find('\n') != std::string::npos; });
  url_ = fmt::format("http://127.0.0.1:{}/", std::stoi(process_.Output().substr(kSaid.size())));
}

}  // namespace fencepost::bench
