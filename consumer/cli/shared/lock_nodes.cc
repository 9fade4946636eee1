#include "consumer/cli/shared/lock_nodes.h"

#include <CLI/CLI.hpp>

#include "config/text/variables.h"
#include "consumer/cli/shared/command.h"
#include "locking/redis/engine/access.h"

namespace fencepost::cli {
namespace {

std::nullopt_t Refuse(const std::string& line) {
  PrintError(line);
  return std::nullopt;
}

// As a pipeline file would take it.
std::optional<std::string> ReadPassword(const LockNodeArguments& arguments) {
  const std::string& file = arguments.password_file;
  const auto password =
      config::Expand(file.empty() ? "${FENCEPOST_REDIS_PASSWORD:-}" : "${file:" + file + "}",
                     config::Environment::Process(), config::Lines::kOne);
  if (!password) {
    Refuse(password.error().text);
    return std::nullopt;
  }
  if (!password->empty() || file.empty()) return *password;
  Refuse(file + ": is empty");
  return std::nullopt;
}

// With --username it is another user than the workers' who logs in.
std::optional<LockNodes> NodesOfFile(const LockNodeArguments& arguments) {
  if (arguments.redis.username.empty() && !arguments.password_file.empty()) {
    return Refuse(
        "--password-file: goes with --username, or with --redis; a pipeline file has "
        "lock.redis.password");
  }
  const auto pipelines = LoadPipelines(arguments.pipeline);
  if (!pipelines) return std::nullopt;
  LockNodes nodes{pipelines->front().lock.redis, pipelines->front().lock.lock};
  nodes.lock.quarantine = true;  // whatever the file's ledger decides, others may need the lock
  if (arguments.redis.username.empty()) return nodes;
  nodes.redis.username = arguments.redis.username;
  const auto password = ReadPassword(arguments);
  if (!password) return std::nullopt;
  nodes.redis.password = *password;
  return nodes;
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
  arguments.takes_file = true;
  AddPipelineFile(command, arguments.pipeline, "a pipeline file that names the lock nodes")
      ->required(false);
}

std::optional<LockNodes> ResolveLockNodes(const LockNodeArguments& arguments) {
  const locking::RedisOptions& given = arguments.redis;
  const auto& [files, beside] = arguments.pipeline;
  if (!files.empty() &&
      !(given.tls_ca + given.tls_certificate + given.tls_key + given.tls_server_name).empty()) {
    return Refuse("--tls-…: go with --redis; a pipeline file has lock.redis.tls");
  }
  if (arguments.list.empty() == files.empty()) {
    return Refuse(arguments.takes_file
                      ? "name the lock nodes, either by --redis HOST:PORT,… or by a pipeline file"
                      : "name the lock nodes by --redis HOST:PORT,…");
  }
  if (!files.empty()) return NodesOfFile(arguments);
  if (!beside.with.empty() || !beside.set.empty()) {
    return Refuse("--with, --set: go with a pipeline file, not with --redis");
  }
  LockNodes nodes{given, {}};
  nodes.redis.nodes = arguments.list;
  const auto password = ReadPassword(arguments);
  if (!password) return std::nullopt;
  nodes.redis.password = *password;
  if (const auto problem = locking::ProblemOf(nodes.redis)) {
    return Refuse("--redis: " + problem->Line());
  }
  if (const auto problem = locking::TlsProblemOf(nodes.redis)) return Refuse(problem->Line());
  return nodes;
}

}  // namespace fencepost::cli
