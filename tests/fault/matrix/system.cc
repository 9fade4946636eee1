#include "tests/fault/matrix/system.h"

#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

#include "tests/support/worker_process.h"

namespace fencepost::matrix {

using testing::TcpProxy;

namespace {

constexpr std::size_t kNodes = 5;

std::string Milliseconds(std::chrono::milliseconds time) {
  return fmt::format("{}ms", time.count());
}

}  // namespace

// Takes the requests of each connection apart: four bytes of size, two of the kind, the rest.
struct System::Requests {
  struct Frame {
    std::string head;
    std::size_t left = 0;
  };
  std::mutex mutex;
  int wanted = -1;
  std::function<bool(int)> seen;
  std::map<int, Frame> frames;  // by connection; of the proxy's thread

  // Whether a request of the wanted kind begins in these bytes.
  bool Find(Frame& frame, std::string_view bytes, int kind) {
    bool found = false;
    while (!bytes.empty()) {
      const std::size_t skipped = std::min(frame.left, bytes.size());
      frame.left -= skipped;
      bytes.remove_prefix(skipped);
      while (!bytes.empty() && frame.head.size() < 6) {
        frame.head += bytes.front();
        bytes.remove_prefix(1);
      }
      if (frame.head.size() < 6) break;
      std::size_t size = 0;
      for (int i = 0; i < 4; ++i) {
        size = size << 8 | static_cast<unsigned char>(frame.head[static_cast<std::size_t>(i)]);
      }
      const int api_key = static_cast<unsigned char>(frame.head[4]) << 8 |
                          static_cast<unsigned char>(frame.head[5]);
      found = found || api_key == kind;
      frame.left = size - 2;
      frame.head.clear();
    }
    return found;
  }
  bool operator()(const TcpProxy::Passing& passing) {
    if (passing.way != TcpProxy::Way::kToServer) return false;
    const std::lock_guard guard(mutex);
    return Find(frames[passing.connection], passing.bytes, wanted) && seen &&
           seen(passing.client_port);
  }
};

System::System() : requests_(std::make_shared<Requests>()), nodes_(kNodes, {.own_clock = true}) {
  const int behind = testing::FreePort();
  kafka_proxy_ = std::make_unique<TcpProxy>(behind);
  kafka_proxy_->Watch([requests = requests_](const auto& passing) { return (*requests)(passing); });
  kafka_ = std::make_unique<testing::KafkaBroker>(
      testing::KafkaBrokerOptions{.proxied_port = behind, .proxy_port = kafka_proxy_->port()});
  for (std::size_t i = 0; i < kNodes; ++i) {
    node_proxies_.push_back(std::make_unique<TcpProxy>(nodes_[i].port()));
  }
}

System::~System() = default;

std::string System::node_list() const {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < used_; ++i) all.push_back(node_proxies_[i]->address());
  return fmt::format("{}", fmt::join(all, ","));
}

Database& System::database(DatabaseKind kind) {
  auto& database = databases_.at(static_cast<std::size_t>(kind));
  constexpr std::array kMakers = {MakePostgres, MakeMariadb, MakeSqlite};
  if (!database) database = kMakers.at(static_cast<std::size_t>(kind))();
  return *database;
}

void System::WatchRequests(int api_key, std::function<bool(int client_port)> seen) {
  const std::lock_guard guard(requests_->mutex);
  requests_->wanted = api_key;
  requests_->seen = std::move(seen);
}

void System::Reset(std::size_t nodes) {
  used_ = nodes;
  WatchRequests(-1, nullptr);
  kafka_proxy_->Restore();
  kafka_->Resume();
  kafka_->Start();
  for (const auto& database : databases_) {
    if (database) database->Reset();
  }
  for (std::size_t i = 0; i < kNodes; ++i) {
    node_proxies_[i]->Restore();
    node_proxies_[i]->Watch(nullptr);
    nodes_[i].ShiftClock(std::chrono::milliseconds(0));
    nodes_[i].Configure({});
    nodes_[i].Restart(testing::RedisServer::Data::kWipe);
  }
  const testing::Finished done = testing::RunFencepost(
      {"locks", "init", "--redis", node_list(), "--max-ttl", Milliseconds(kTtl)});
  if (done.exit_code == 0) return;
  throw std::runtime_error("locks init: " + done.output + done.error_output);
}

pid_t System::OwnerOf(int client_port, int server_port, const std::vector<pid_t>& candidates) {
  const std::string wanted =
      fmt::format("0100007F:{:04X} 0100007F:{:04X} ", client_port, server_port);
  std::istringstream table(testing::ReadFile("/proc/net/tcp"));
  std::string inode;
  for (std::string line; std::getline(table, line);) {
    if (line.find(wanted) == std::string::npos) continue;
    std::istringstream cells(line);
    for (int cell = 0; cell < 10; ++cell) cells >> inode;
  }
  if (inode.empty()) return -1;
  const std::string socket = fmt::format("socket:[{}]", inode);
  for (const pid_t pid : candidates) {
    std::error_code ignored;
    const std::filesystem::path folder = fmt::format("/proc/{}/fd", pid);
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      if (std::filesystem::read_symlink(entry.path(), ignored) == socket) return pid;
    }
  }
  return -1;
}

}  // namespace fencepost::matrix
