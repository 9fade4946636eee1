#include "tests/support/tcp_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <list>
#include <random>
#include <stdexcept>

#include <fmt/format.h>

namespace fencepost::testing {
namespace {

using Clock = std::chrono::steady_clock;

// Beyond this much held, no more is read: the sender feels the back-pressure of a real network.
constexpr std::size_t kHeldLimit = 4 << 20;

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int Listen(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const sockaddr_in address = Loopback(port);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
      listen(fd, 128) == 0) {
    return fd;
  }
  close(fd);
  throw std::runtime_error(fmt::format("proxy cannot listen on port {}", port));
}

void Reset(int fd) {
  const linger now{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  close(fd);
}

struct Chunk {
  Clock::time_point due;
  std::string bytes;
};

// One direction of one connection.
struct Flow {
  int from = -1;
  int to = -1;
  std::deque<Chunk> held;
  std::size_t held_bytes = 0;
  bool ended = false;   // the sender has sent its last
  bool closed = false;  // and the receiver was told
};

struct Connection {
  int number = 0;
  int client = -1;
  int client_port = 0;
  int server = -1;
  bool forgotten = false;
  std::array<Flow, 2> flows;  // to the server, to the client
  bool broken = false;
};

}  // namespace

struct TcpProxy::Loop {
  ~Loop() { close(wake); }

  struct Weather {
    std::array<std::chrono::milliseconds, 2> delay{};
    std::array<bool, 2> black{};
    std::array<bool, 2> held{};
    std::chrono::milliseconds jitter{0};
    bool refuse = false;
    bool silent = false;  // forgotten connections do not even end

    [[nodiscard]] bool Black(std::size_t way) const { return black[way] || held[way]; }
  };
  using WatchFunction = std::function<bool(const Passing&)>;

  int port = 0;
  int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);  // other threads write to it until the join
  std::atomic<int>* open = nullptr;

  std::mutex mutex;  // guards the next ones
  std::condition_variable applied;
  Weather weather;
  int target_wanted = 0;
  std::shared_ptr<WatchFunction> watch_wanted;
  bool stop = false;
  std::uint64_t cuts_wanted = 0;
  std::uint64_t forgets_wanted = 0;
  std::uint64_t asked = 0;  // counts changes; a setter returns when `seen` has caught up
  std::uint64_t seen = 0;

  // Of the thread alone.
  int target = 0;
  int listener = -1;
  std::uint64_t cuts_done = 0;
  std::uint64_t forgets_done = 0;
  std::shared_ptr<WatchFunction> watch;
  int accepted = 0;
  std::minstd_rand random;
  std::list<Connection> connections;

  void Run();
  bool Apply(Weather& now);
  void Accept();
  void Read(Connection& connection, std::size_t way, Weather& now);
  void Show(const Connection& connection, std::size_t way, std::string_view bytes, Weather& now);
  static void Write(Flow& flow, bool& broken);
  void CloseAll();
  void Reap();
  int Timeout(const Weather& now) const;
};

// Takes over what was asked for. False: the end.
bool TcpProxy::Loop::Apply(Weather& now) {
  const std::lock_guard lock(mutex);
  if (stop) return false;
  now = weather;
  target = target_wanted;
  if (cuts_done != cuts_wanted) {
    CloseAll();
    cuts_done = cuts_wanted;
  }
  if (forgets_done != forgets_wanted) {
    for (Connection& connection : connections) connection.forgotten = true;
    forgets_done = forgets_wanted;
  }
  watch = watch_wanted;
  if (now.refuse && listener >= 0) {
    close(listener);
    listener = -1;
  }
  if (!now.refuse && listener < 0) listener = Listen(port);
  seen = asked;
  applied.notify_all();
  return true;
}

void TcpProxy::Loop::CloseAll() {
  for (Connection& connection : connections) {
    Reset(connection.client);
    Reset(connection.server);
  }
  connections.clear();
  *open = 0;
}

void TcpProxy::Loop::Accept() {
  sockaddr_in peer{};
  socklen_t peer_size = sizeof(peer);
  const int client = accept4(listener, reinterpret_cast<sockaddr*>(&peer), &peer_size,
                             SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (client < 0) return;
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(target);
  if (connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    Reset(client);
    close(server);
    return;
  }
  fcntl(server, F_SETFL, fcntl(server, F_GETFL) | O_NONBLOCK);
  const int on = 1;
  setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  Connection& connection = connections.emplace_back();
  connection.number = ++accepted;
  connection.client = client;
  connection.client_port = ntohs(peer.sin_port);
  connection.server = server;
  connection.flows[0].from = connection.flows[1].to = client;
  connection.flows[0].to = connection.flows[1].from = server;
  *open = static_cast<int>(connections.size());
}

void TcpProxy::Loop::Read(Connection& connection, std::size_t way, Weather& now) {
  Flow& flow = connection.flows[way];
  std::array<char, 65536> buffer;
  const ssize_t size = recv(flow.from, buffer.data(), buffer.size(), 0);
  if (size > 0) {
    const auto count = static_cast<std::size_t>(size);
    Show(connection, way, {buffer.data(), count}, now);
    auto delay = now.delay[way];
    if (now.jitter.count() > 0) {
      const auto most = static_cast<unsigned>(now.jitter.count()) + 1U;
      delay += std::chrono::milliseconds(random() % most);
    }
    flow.held.push_back({Clock::now() + delay, std::string(buffer.data(), count)});
    flow.held_bytes += count;
  } else if (size == 0) {
    flow.ended = true;
  } else if (errno != EAGAIN && errno != EINTR) {
    connection.broken = true;
  }
}

void TcpProxy::Loop::Show(const Connection& connection, std::size_t way, std::string_view bytes,
                          Weather& now) {
  if (!watch) return;
  const Passing passing{.way = way == 0 ? Way::kToServer : Way::kToClient,
                        .connection = connection.number,
                        .client_port = connection.client_port,
                        .bytes = bytes};
  if (!(*watch)(passing)) return;
  const std::lock_guard lock(mutex);
  now.held[way] = weather.held[way] = true;
}

void TcpProxy::Loop::Write(Flow& flow, bool& broken) {
  while (!flow.held.empty() && flow.held.front().due <= Clock::now()) {
    std::string& bytes = flow.held.front().bytes;
    const ssize_t size = send(flow.to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (size < 0) {
      if (errno != EAGAIN && errno != EINTR) broken = true;
      return;
    }
    flow.held_bytes -= static_cast<std::size_t>(size);
    bytes.erase(0, static_cast<std::size_t>(size));
    if (bytes.empty()) flow.held.pop_front();
  }
  if (flow.ended && flow.held.empty() && !flow.closed) {
    shutdown(flow.to, SHUT_WR);
    flow.closed = true;
  }
}

void TcpProxy::Loop::Reap() {
  for (auto it = connections.begin(); it != connections.end();) {
    const bool over = it->flows[0].closed && it->flows[1].closed;
    if (!it->broken && !over) {
      ++it;
      continue;
    }
    if (it->broken) {
      Reset(it->client);
      Reset(it->server);
    } else {
      close(it->client);
      close(it->server);
    }
    it = connections.erase(it);
  }
  *open = static_cast<int>(connections.size());
}

// Until the next held chunk is due.
int TcpProxy::Loop::Timeout(const Weather& now) const {
  auto wait = std::chrono::milliseconds(1000);
  for (const Connection& connection : connections) {
    for (std::size_t way = 0; way < 2; ++way) {
      const Flow& flow = connection.flows[way];
      if (flow.held.empty() || now.Black(way) || connection.forgotten) continue;
      const auto rest = flow.held.front().due - Clock::now();
      if (rest > Clock::duration::zero()) {
        wait = std::min(wait, std::chrono::ceil<std::chrono::milliseconds>(rest));
      }
    }
  }
  return static_cast<int>(wait.count());
}

void TcpProxy::Loop::Run() {
  Weather now;
  std::vector<pollfd> fds;
  while (Apply(now)) {
    fds.assign({{wake, POLLIN, 0}, {listener, POLLIN, 0}});  // poll passes over an fd of -1
    for (const Connection& connection : connections) {
      std::array<short, 2> events{};  // of the client, of the server
      for (std::size_t way = 0; way < 2; ++way) {
        const Flow& flow = connection.flows[way];
        const bool due = !flow.held.empty() && flow.held.front().due <= Clock::now();
        if (!flow.ended && flow.held_bytes < kHeldLimit) events[way] |= POLLIN;
        if (due && !now.Black(way)) events[1 - way] |= POLLOUT;
      }
      if (connection.forgotten) {
        events = {};
        if (!now.silent) events[0] = POLLRDHUP;
      }
      fds.push_back({events[0] != 0 ? connection.client : -1, events[0], 0});
      fds.push_back({events[1] != 0 ? connection.server : -1, events[1], 0});
    }
    poll(fds.data(), fds.size(), Timeout(now));
    std::uint64_t count = 0;
    if ((fds[0].revents & POLLIN) != 0) (void)!read(wake, &count, sizeof(count));
    std::size_t at = 2;
    for (Connection& connection : connections) {
      for (std::size_t way = 0; way < 2; ++way, ++at) {
        Flow& flow = connection.flows[way];
        if (connection.forgotten) {
          connection.broken = connection.broken || fds[at].revents != 0;
          continue;
        }
        const bool readable = (fds[at].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
        if (readable && !flow.ended) Read(connection, way, now);
      }
    }
    for (Connection& connection : connections) {
      if (connection.forgotten) continue;
      for (std::size_t way = 0; way < 2; ++way) {
        if (!now.Black(way)) Write(connection.flows[way], connection.broken);
      }
    }
    Reap();
    if (listener >= 0 && (fds[1].revents & POLLIN) != 0) Accept();
  }
  CloseAll();
  if (listener >= 0) close(listener);
}

TcpProxy::TcpProxy(int target_port) : port_(FreePort()), loop_(std::make_unique<Loop>()) {
  loop_->target_wanted = target_port;
  loop_->port = port_;
  loop_->open = &connections_;
  loop_->listener = Listen(port_);
  thread_ = std::thread([this] { loop_->Run(); });
}

TcpProxy::~TcpProxy() {
  {
    const std::lock_guard lock(loop_->mutex);
    loop_->stop = true;
  }
  Kick();
  thread_.join();
}

std::string TcpProxy::address() const { return fmt::format("127.0.0.1:{}", port_); }

void TcpProxy::Kick() {
  const std::uint64_t one = 1;
  (void)!write(loop_->wake, &one, sizeof(one));
}

// Changes what the thread goes by, and returns when it does.
template <typename F>
void TcpProxy::Change(F change) {
  std::unique_lock lock(loop_->mutex);
  change(*loop_);
  const std::uint64_t mine = ++loop_->asked;
  Kick();
  loop_->applied.wait(lock, [&] { return loop_->seen >= mine; });
}

void TcpProxy::Forward(int target_port) {
  Change([&](Loop& loop) { loop.target_wanted = target_port; });
}

void TcpProxy::Delay(std::chrono::milliseconds delay, Way way) {
  Change([&](Loop& loop) {
    if (way != Way::kToClient) loop.weather.delay[0] = delay;
    if (way != Way::kToServer) loop.weather.delay[1] = delay;
  });
}

void TcpProxy::Watch(std::function<bool(const Passing&)> watch) {
  Change([&](Loop& loop) {
    loop.watch_wanted = watch ? std::make_shared<Loop::WatchFunction>(std::move(watch)) : nullptr;
  });
}

void TcpProxy::Release() {
  Change([](Loop& loop) { loop.weather.held = {}; });
}

void TcpProxy::Jitter(std::chrono::milliseconds most) {
  Change([&](Loop& loop) { loop.weather.jitter = most; });
}

void TcpProxy::Forget() {
  Change([](Loop& loop) {
    loop.weather.silent = true;
    ++loop.forgets_wanted;
  });
}

void TcpProxy::BlackHole(Way way) {
  Change([&](Loop& loop) {
    if (way != Way::kToClient) loop.weather.black[0] = true;
    if (way != Way::kToServer) loop.weather.black[1] = true;
  });
}

void TcpProxy::Cut() {
  Change([](Loop& loop) { ++loop.cuts_wanted; });
}

void TcpProxy::Refuse() {
  Change([](Loop& loop) {
    loop.weather.refuse = true;
    ++loop.cuts_wanted;
  });
}

void TcpProxy::Restore() {
  Change([](Loop& loop) { loop.weather = {}; });
}

}  // namespace fencepost::testing
