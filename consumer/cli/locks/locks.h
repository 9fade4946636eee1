// What the files of `fencepost locks` share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <asio/io_context.hpp>

#include "consumer/cli/shared/lock_nodes.h"
#include "locking/redis/tools/raw_node.h"

namespace CLI {
class App;
}

namespace fencepost::cli {

struct LocksArguments {
  LockNodeArguments nodes;
  bool force = false;
  bool if_missing = false;  // init
  locking::Millis max_ttl{0};
  int timeout_s = 10;  // init
  bool json = false;
  std::string name_space;          // inspect; empty: the pipeline's name, or default
  std::vector<std::string> words;  // inspect: [FILE] NAME…
  std::string node;                // heal: its letter, or an address; empty: the one in quarantine
  locking::Millis max_skew{-1};    // heal; < 0: the file's, or 5 s
};

int LocksInit(const LocksArguments& arguments);
int LocksStatus(const LocksArguments& arguments);
int LocksInspect(const LocksArguments& arguments);
int LocksHeal(const LocksArguments& arguments);

// "a  127.0.0.1:7001  ok, store …": how a node is, without its problem.
std::string StateLine(locking::NodeIndex node, const std::string& address,
                      const locking::NodeStatus& status);

// Every node of all groups, or of one, connected as far as it can be; `why` tells of the others,
// one line a node.
struct RawNodes {
  asio::io_context io{1};
  std::vector<std::unique_ptr<locking::RawNode>> nodes;
  std::vector<std::string> why;
  explicit RawNodes(const LockNodes& from);
  explicit RawNodes(const locking::RedisOptions& group);

 private:
  void Connect(const locking::RedisOptions& group);
};

}  // namespace fencepost::cli
