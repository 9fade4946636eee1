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
};

int LocksInit(const LocksArguments& arguments);
int LocksStatus(const LocksArguments& arguments);
int LocksInspect(const LocksArguments& arguments);

// "a  127.0.0.1:7001  ok, store …": how a node is, without its problem.
std::string StateLine(locking::NodeIndex node, const std::string& address,
                      const locking::NodeStatus& status);

// Every node, connected as far as it can be; `why` tells of the others,
// one line a node.
struct RawNodes {
  asio::io_context io{1};
  std::vector<std::unique_ptr<locking::RawNode>> nodes;
  std::vector<std::string> why;
  explicit RawNodes(const LockNodes& from);
};

}  // namespace fencepost::cli
