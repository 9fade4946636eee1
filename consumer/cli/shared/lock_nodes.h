// How commands that work on the lock store alone name its nodes: --redis A,B,C, or a pipeline
// file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "consumer/cli/shared/pipelines.h"
#include "locking/core/options.h"
#include "locking/redis/options.h"

namespace CLI {
class App;
}

namespace fencepost::cli {

struct LockNodeArguments {
  std::vector<std::string> list;  // A,B,C
  PipelineFiles pipeline;         // or a pipeline file
  bool takes_file = false;        // AddLockNodeOptions
  std::string password_file;
  locking::RedisOptions redis;  // user, TLS
};
// --redis and how to log in, without a file.
void AddLockServerOptions(CLI::App& command, LockNodeArguments& arguments);
void AddLockNodeOptions(CLI::App& command, LockNodeArguments& arguments);

struct LockNodes {
  locking::RedisOptions redis;
  locking::LockOptions lock;
};
// Nothing when the arguments or the file are wrong: that was printed (exit 2).
std::optional<LockNodes> ResolveLockNodes(const LockNodeArguments& arguments);

}  // namespace fencepost::cli
