// The servers of the matrix, kept over all its cells, each behind a proxy: Kafka, databases and
// five lock nodes, of which a trial may use three.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tests/fault/matrix/database.h"
#include "tests/support/kafka_broker.h"
#include "tests/support/redis_server.h"
#include "tests/support/tcp_proxy.h"

namespace fencepost::matrix {

// What a lease lives and how far clocks may differ: short, so that a quarantine lasts for 2.5 s.
inline constexpr std::chrono::milliseconds kTtl{1500};
inline constexpr std::chrono::milliseconds kMaxSkew{500};
inline constexpr std::chrono::milliseconds kSession{3000};

class System {
 public:
  System();
  ~System();
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  [[nodiscard]] testing::KafkaBroker& kafka() { return *kafka_; }
  // Started when it is first asked for.
  [[nodiscard]] Database& database(DatabaseKind kind);
  [[nodiscard]] testing::RedisServer& node(std::size_t at) { return nodes_[at]; }
  // The nodes that the trial uses.
  [[nodiscard]] std::size_t nodes() const { return used_; }

  [[nodiscard]] testing::TcpProxy& kafka_proxy() { return *kafka_proxy_; }
  [[nodiscard]] testing::TcpProxy& node_proxy(std::size_t at) { return *node_proxies_.at(at); }
  // What workers are told.
  [[nodiscard]] std::string node_list() const;

  // From now on the requests of that kind (api key) to Kafka are shown; true: held until the proxy
  // is released. -1: none.
  void WatchRequests(int api_key, std::function<bool(int client_port)> seen);

  // All run, nothing is in the way, and a lock store is made on the first `nodes`. No worker may
  // run.
  void Reset(std::size_t nodes);

  // The process that has a connection from that port to that one on this machine; -1: none of them.
  static pid_t OwnerOf(int client_port, int server_port, const std::vector<pid_t>& candidates);

 private:
  struct Requests;

  std::unique_ptr<testing::TcpProxy> kafka_proxy_;
  std::shared_ptr<Requests> requests_;
  std::unique_ptr<testing::KafkaBroker> kafka_;
  std::array<std::unique_ptr<Database>, kDatabaseNames.size()> databases_;
  testing::RedisServers nodes_;
  std::vector<std::unique_ptr<testing::TcpProxy>> node_proxies_;
  std::size_t used_ = 5;
};

}  // namespace fencepost::matrix
