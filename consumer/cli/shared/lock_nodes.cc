#include "consumer/cli/shared/lock_nodes.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include <CLI/CLI.hpp>

#include "consumer/cli/command.h"
#include "consumer/cli/shared/pipelines.h"

namespace fencepost::cli {
namespace {

std::vector<std::string> SplitCommas(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    if (comma > at) parts.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

bool ReadPassword(const LockNodeArguments& arguments, std::string& password) {
  if (arguments.password_file.empty()) {
    const char* value = std::getenv("FENCEPOST_REDIS_PASSWORD");
    password = value == nullptr ? "" : value;
    return true;
  }
  std::ifstream file(arguments.password_file);
  return static_cast<bool>(std::getline(file, password));
}

}  // namespace

void AddLockNodeOptions(CLI::App& command, LockNodeArguments& arguments) {
  command.add_option("--redis", arguments.redis, "the lock nodes: HOST:PORT,HOST:PORT,…");
  command.add_option("FILE", arguments.file, "a pipeline file that names the lock nodes");
  command.add_option("--username", arguments.username, "ACL user of the lock nodes");
  command.add_option("--password-file", arguments.password_file,
                     "file with the password (else FENCEPOST_REDIS_PASSWORD)");
}

std::optional<LockNodes> ResolveLockNodes(const LockNodeArguments& arguments) {
  if (arguments.redis.empty() == arguments.file.empty()) {
    PrintError("name the lock nodes, either by --redis HOST:PORT,… or by a pipeline file");
    return std::nullopt;
  }
  if (!arguments.file.empty()) {
    const auto pipelines = LoadPipelines({arguments.file});
    if (!pipelines) return std::nullopt;
    return LockNodes{pipelines->front().lock.redis, pipelines->front().lock.lock};
  }
  LockNodes nodes;
  nodes.redis.nodes = SplitCommas(arguments.redis);
  nodes.redis.username = arguments.username;
  if (!ReadPassword(arguments, nodes.redis.password)) {
    PrintError(arguments.password_file + ": cannot be read, or is empty");
    return std::nullopt;
  }
  const std::size_t count = nodes.redis.nodes.size();
  if (count % 2 == 0 || count > locking::kMaxNodes) {
    PrintError("--redis: " + std::to_string(count) + " nodes; a quorum lock takes 1, 3, 5 or 7");
    return std::nullopt;
  }
  std::vector<std::string> sorted = nodes.redis.nodes;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    PrintError("--redis: " + *twice + " is named twice");
    return std::nullopt;
  }
  return nodes;
}

}  // namespace fencepost::cli
