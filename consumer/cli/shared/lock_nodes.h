// How commands that work on the lock store alone name its nodes: --redis A,B,C, once for each group
// of nodes, or a pipeline file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "locking/core/group_place.h"
#include "locking/core/options.h"
#include "locking/redis/options.h"

namespace CLI {
class App;
}

namespace fencepost::cli {

struct LockNodeArguments {
  std::vector<std::string> redis;  // A,B,C, by group
  std::string file;                // or a pipeline file
  std::string username;
  std::string password_file;
  struct Tls {
    std::string ca;
    std::string certificate;
    std::string key;
    std::string server_name;
  } tls;
};
// --redis and how to log in, without a file.
void AddLockServerOptions(CLI::App& command, LockNodeArguments& arguments);
void AddLockNodeOptions(CLI::App& command, LockNodeArguments& arguments);

struct LockNodes {
  std::vector<locking::RedisOptions> groups;  // at least one
  locking::LockOptions lock;

  // Nodes are counted through all groups.
  [[nodiscard]] int size() const { return locking::NodesInAll(groups); }
  [[nodiscard]] locking::GroupSpot SpotOf(int group) const;
  [[nodiscard]] int GroupOfNode(int node) const;
  [[nodiscard]] const std::string& Address(int node) const;  // as given, with its login
  [[nodiscard]] int GroupOfKey(std::string_view key) const {
    return locking::GroupOf(key, static_cast<int>(groups.size()));
  }
  // ", group 2 of 4" where there are several.
  [[nodiscard]] std::string GroupText(int group, std::string_view before = ", ") const;
};
// Nothing when the arguments or the file are wrong: that was printed (exit 2).
std::optional<LockNodes> ResolveLockNodes(const LockNodeArguments& arguments);

}  // namespace fencepost::cli
