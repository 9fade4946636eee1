#include "tests/support/stub_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <stdexcept>

#include <fmt/format.h>

namespace fencepost::testing {
namespace {

bool More(int fd, std::string& pending) {
  std::array<char, 65536> chunk{};
  const ssize_t size = recv(fd, chunk.data(), chunk.size(), 0);
  if (size > 0) pending.append(chunk.data(), static_cast<std::size_t>(size));
  return size > 0;
}

// False: the client has closed.
bool SendAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (size <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(size));
  }
  return true;
}

// So slowly that it is the time that ends it, not the size.
void Trickle(int fd, std::string_view text) {
  pollfd gone{fd, POLLIN, 0};
  constexpr int kPauseMs = 50;
  while (poll(&gone, 1, kPauseMs) == 0 && SendAll(fd, text)) continue;
}

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string ToText(const StubServer::Answer& answer) {
  std::string text = fmt::format("HTTP/1.1 {} Because\r\n", answer.status);
  for (const std::string& header : answer.headers) text += header + "\r\n";
  if (answer.status != 204) text += fmt::format("Content-Length: {}\r\n", answer.body.size());
  return text + "\r\n" + answer.body;
}

}  // namespace

StubServer::StubServer(Handle handle) : handle_(std::move(handle)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener_, generic, size) != 0 || listen(listener_, 128) != 0 ||
      getsockname(listener_, generic, &size) != 0) {
    throw std::runtime_error("cannot listen");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

StubServer::~StubServer() {
  Release();
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  {
    const std::lock_guard guard(mutex_);
    for (const int fd : fds_) shutdown(fd, SHUT_RDWR);
  }
  for (std::thread& thread : threads_) thread.join();
  close(listener_);
}

std::string StubServer::Url(const std::string& path) const {
  return fmt::format("http://127.0.0.1:{}{}", port_, path);
}

void StubServer::Hold() {
  std::unique_lock lock(mutex_);
  released_.wait(lock, [this] { return release_; });
}

void StubServer::Release() {
  const std::lock_guard guard(mutex_);
  release_ = true;
  released_.notify_all();
}

std::vector<StubServer::Request> StubServer::requests() const {
  const std::lock_guard guard(mutex_);
  return requests_;
}
int StubServer::connections() const {
  const std::lock_guard guard(mutex_);
  return connections_;
}
int StubServer::open() const {
  const std::lock_guard guard(mutex_);
  return static_cast<int>(fds_.size());
}
int StubServer::most_at_once() const {
  const std::lock_guard guard(mutex_);
  return most_at_once_;
}

void StubServer::Accept() {
  while (true) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const std::lock_guard guard(mutex_);
    ++connections_;
    fds_.insert(fd);
    threads_.emplace_back([this, fd] { Serve(fd); });
  }
}

void StubServer::Serve(int fd) {
  std::string pending;
  Request request;
  while (ReadRequest(fd, pending, request)) {
    {
      const std::lock_guard guard(mutex_);
      requests_.push_back(request);
      most_at_once_ = std::max(most_at_once_, ++at_once_);
    }
    const Answer answer = handle_(request);
    {
      const std::lock_guard guard(mutex_);
      --at_once_;
    }
    if (answer.status == 0) break;
    (void)SendAll(fd, answer.raw.empty() ? ToText(answer) : answer.raw);
    if (!answer.over_and_over.empty()) Trickle(fd, answer.over_and_over);
    if (!answer.raw.empty()) break;
  }
  const std::lock_guard guard(mutex_);
  fds_.erase(fd);
  close(fd);
}

bool StubServer::ReadRequest(int fd, std::string& pending, Request& request) {
  std::size_t end = std::string::npos;
  while ((end = pending.find("\r\n\r\n")) == std::string::npos) {
    if (!More(fd, pending)) return false;
  }
  request = {};
  std::string head = pending.substr(0, end + 2);
  pending.erase(0, end + 4);
  while (!head.empty()) {
    const std::string line = head.substr(0, head.find("\r\n"));
    head.erase(0, line.size() + 2);
    if (request.line.empty()) {
      request.line = line;
      continue;
    }
    const std::size_t colon = line.find(':');
    const std::size_t value = std::min(line.find_first_not_of(' ', colon + 1), line.size());
    std::string& all =
        request.headers[Lower(line.substr(0, colon))];  // one that comes twice: a list
    all += (all.empty() ? "" : ", ") + line.substr(value);
  }
  std::size_t length = 0;
  if (request.headers.contains("content-length")) {
    length = std::stoul(request.headers["content-length"]);
  }
  while (pending.size() < length) {
    if (!More(fd, pending)) return false;
  }
  request.body = pending.substr(0, length);
  pending.erase(0, length);
  return true;
}

}  // namespace fencepost::testing
