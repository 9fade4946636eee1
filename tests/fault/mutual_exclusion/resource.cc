#include "tests/fault/mutual_exclusion/resource.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

namespace fencepost::torture {
namespace {

constexpr int kTickMs = 20;

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) throw std::runtime_error("too long: " + path);
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

}  // namespace

Resource::Resource(int names)
    : fenced_(static_cast<std::size_t>(names)), unfenced_(static_cast<std::size_t>(names)) {
  listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const sockaddr_un address = AddressOf(path());
  if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(listener_, SOMAXCONN) != 0) {
    throw std::runtime_error("cannot listen on " + path());
  }
  thread_ = std::thread([this] { Serve(); });
}

Resource::~Resource() {
  stop_ = true;
  thread_.join();
  for (const auto& [fd, peer] : peers_) close(fd);
  close(listener_);
}

void Resource::Serve() {
  while (!stop_) {
    std::vector<pollfd> waiting{{listener_, POLLIN, 0}};
    for (const auto& [fd, peer] : peers_) waiting.push_back({fd, POLLIN, 0});
    if (poll(waiting.data(), waiting.size(), kTickMs) <= 0) continue;
    for (const pollfd& ready : waiting) {
      if (ready.revents == 0) continue;
      const std::lock_guard guard(mutex_);
      if (ready.fd == listener_) {
        const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        ucred who{};
        socklen_t size = sizeof(who);
        if (fd < 0) continue;
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size);
        peers_[fd] = {who.pid, false};
        continue;
      }
      Request request;
      if (recv(ready.fd, &request, sizeof(request), MSG_DONTWAIT) != sizeof(request)) {
        close(ready.fd);
        peers_.erase(ready.fd);
        continue;
      }
      if (request.fenced == 0) peers_[ready.fd].thinking = request.kind == Request::Kind::kRead;
      const Answer answer = Handle(request);
      // Nobody reads the answer when the sender is dead.
      (void)send(ready.fd, &answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
  }
}

Answer Resource::Handle(const Request& request) {
  auto& counters = request.fenced != 0 ? fenced_ : unfenced_;
  return Apply(counters.at(request.name), request, request.fenced != 0);
}

Answer Resource::Apply(Counter& counter, const Request& request, bool fenced) {
  const bool below = request.token < counter.highest;
  if (fenced && below) {
    ++counter.refused;
    return {0, counter.value};
  }
  if (!below) counter.highest = request.token;
  if (request.kind == Request::Kind::kRead) return {1, counter.value};
  if (request.value != counter.value + 1) ++counter.lost;
  if (!counter.order.empty() && request.token < counter.order.back()) ++counter.disordered;
  if (counter.order.empty() || counter.order.back() != request.token) {
    counter.order.push_back(request.token);
  }
  counter.value = request.value;
  ++counter.accepted;
  return {1, counter.value};
}

Counter Resource::Fenced(int name) const {
  const std::lock_guard guard(mutex_);
  return fenced_.at(static_cast<std::size_t>(name));
}

std::vector<pid_t> Resource::Thinking() const {
  const std::lock_guard guard(mutex_);
  std::vector<pid_t> found;
  for (const auto& [fd, peer] : peers_) {
    if (peer.thinking) found.push_back(peer.pid);
  }
  return found;
}

std::int64_t Resource::UnfencedLost() const {
  const std::lock_guard guard(mutex_);
  std::int64_t lost = 0;
  for (const Counter& counter : unfenced_) lost += counter.lost;
  return lost;
}

ResourceClient::ResourceClient(const std::string& path)
    : fd_(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
  const sockaddr_un address = AddressOf(path);
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    close(fd_);
    throw std::runtime_error("cannot connect to " + path);
  }
}

ResourceClient::~ResourceClient() { close(fd_); }

Answer ResourceClient::Ask(const Request& request) const {
  Answer answer;
  if (send(fd_, &request, sizeof(request), MSG_NOSIGNAL) != sizeof(request) ||
      recv(fd_, &answer, sizeof(answer), 0) != sizeof(answer)) {
    throw std::runtime_error("the resource is gone");
  }
  return answer;
}

}  // namespace fencepost::torture
