#include "consumer/cli/shared/lock_nodes.h"

#include <cstdlib>
#include <fstream>

#include <CLI/CLI.hpp>

#include "consumer/cli/shared/command.h"
#include "consumer/cli/shared/pipelines.h"
#include "locking/redis/engine/access.h"

namespace fencepost::cli {
namespace {

std::nullopt_t Refuse(const std::string& line) {
  PrintError(line);
  return std::nullopt;
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

// With --username it is another user than the workers' who logs in.
std::optional<LockNodes> NodesOfFile(const LockNodeArguments& arguments) {
  if (arguments.redis.username.empty() && !arguments.password_file.empty()) {
    return Refuse(
        "--password-file: goes with --username, or with --redis; a pipeline file has "
        "lock.redis.password");
  }
  const auto pipelines = LoadPipelines({arguments.file});
  if (!pipelines) return std::nullopt;
  LockNodes nodes{pipelines->front().lock.redis, pipelines->front().lock.lock};
  if (arguments.redis.username.empty()) return nodes;
  nodes.redis.username = arguments.redis.username;
  if (ReadPassword(arguments, nodes.redis.password)) return nodes;
  return Refuse(arguments.password_file + ": cannot be read, or is empty");
}

}  // namespace

void AddLockServerOptions(CLI::App& command, LockNodeArguments& arguments) {
  command
      .add_option("--redis", arguments.list,
                  "the lock nodes: HOST:PORT, unix:/PATH or redis[s]://[USER@]HOST[:PORT], with "
                  "commas between")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--user,--username", arguments.redis.username, "ACL user of the lock nodes");
  command.add_option("--password-file", arguments.password_file,
                     "file with the password (else FENCEPOST_REDIS_PASSWORD)");
  command.add_option("--tls-ca", arguments.redis.tls_ca,
                     "TLS, with the nodes' certificates signed by a CA of this file");
  command.add_option("--tls-cert", arguments.redis.tls_certificate,
                     "TLS, with this certificate of our own; with --tls-key");
  command.add_option("--tls-key", arguments.redis.tls_key, "file with the key of --tls-cert");
  command.add_option("--tls-server-name", arguments.redis.tls_server_name,
                     "TLS, with this name in the nodes' certificates instead of their hosts");
}

void AddLockNodeOptions(CLI::App& command, LockNodeArguments& arguments) {
  AddLockServerOptions(command, arguments);
  command.add_option("FILE", arguments.file, "a pipeline file that names the lock nodes");
}

std::optional<LockNodes> ResolveLockNodes(const LockNodeArguments& arguments) {
  const locking::RedisOptions& given = arguments.redis;
  if (!arguments.file.empty() &&
      !(given.tls_ca + given.tls_certificate + given.tls_key + given.tls_server_name).empty()) {
    return Refuse("--tls-…: go with --redis; a pipeline file has lock.redis.tls");
  }
  if (arguments.list.empty() == arguments.file.empty()) {
    return Refuse("name the lock nodes, either by --redis HOST:PORT,… or by a pipeline file");
  }
  if (!arguments.file.empty()) return NodesOfFile(arguments);
  LockNodes nodes{given, {}};
  nodes.redis.nodes = arguments.list;
  if (!ReadPassword(arguments, nodes.redis.password)) {
    return Refuse(arguments.password_file + ": cannot be read, or is empty");
  }
  if (const auto problem = locking::ProblemOf(nodes.redis)) {
    return Refuse("--redis: " + problem->Line());
  }
  if (const auto problem = locking::TlsProblemOf(nodes.redis)) return Refuse(problem->Line());
  return nodes;
}

}  // namespace fencepost::cli
