#include "consumer/cli/shared/lock_nodes.h"

#include <algorithm>
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

// With --username it is another user than the workers' who logs in.
std::optional<LockNodes> NodesOfFile(const LockNodeArguments& arguments) {
  if (arguments.username.empty() && !arguments.password_file.empty()) {
    return Refuse(
        "--password-file: goes with --username, or with --redis; a pipeline file has "
        "lock.redis.password");
  }
  const auto pipelines = LoadPipelines({arguments.file});
  if (!pipelines) return std::nullopt;
  LockNodes nodes{pipelines->front().lock.groups, pipelines->front().lock.lock};
  if (arguments.username.empty()) return nodes;
  std::string password;
  const bool read = ReadPassword(arguments, password);
  for (locking::RedisOptions& group : nodes.groups) {
    group.username = arguments.username;
    group.password = password;
  }
  if (read) return nodes;
  return Refuse(arguments.password_file + ": cannot be read, or is empty");
}

}  // namespace

void AddLockServerOptions(CLI::App& command, LockNodeArguments& arguments) {
  command
      .add_option("--redis", arguments.redis,
                  "the lock nodes: HOST:PORT, unix:/PATH or redis[s]://[USER@]HOST[:PORT], with "
                  "commas between; once for each group of nodes")
      ->allow_extra_args(false);
  command.add_option("--user,--username", arguments.username, "ACL user of the lock nodes");
  command.add_option("--password-file", arguments.password_file,
                     "file with the password (else FENCEPOST_REDIS_PASSWORD)");
  command.add_option("--tls-ca", arguments.tls.ca,
                     "TLS, with the nodes' certificates signed by a CA of this file");
  command.add_option("--tls-cert", arguments.tls.certificate,
                     "TLS, with this certificate of our own; with --tls-key");
  command.add_option("--tls-key", arguments.tls.key, "file with the key of --tls-cert");
  command.add_option("--tls-server-name", arguments.tls.server_name,
                     "TLS, with this name in the nodes' certificates instead of their hosts");
}

void AddLockNodeOptions(CLI::App& command, LockNodeArguments& arguments) {
  AddLockServerOptions(command, arguments);
  command.add_option("FILE", arguments.file, "a pipeline file that names the lock nodes");
}

std::optional<LockNodes> ResolveLockNodes(const LockNodeArguments& arguments) {
  const LockNodeArguments::Tls& tls = arguments.tls;
  if (!arguments.file.empty() && !(tls.ca + tls.certificate + tls.key + tls.server_name).empty()) {
    return Refuse("--tls-…: go with --redis; a pipeline file has lock.redis.tls");
  }
  if (arguments.redis.empty() == arguments.file.empty()) {
    return Refuse("name the lock nodes, either by --redis HOST:PORT,… or by a pipeline file");
  }
  if (!arguments.file.empty()) return NodesOfFile(arguments);
  locking::RedisOptions common;
  common.username = arguments.username;
  if (!ReadPassword(arguments, common.password)) {
    return Refuse(arguments.password_file + ": cannot be read, or is empty");
  }
  common.tls_ca = tls.ca;
  common.tls_certificate = tls.certificate;
  common.tls_key = tls.key;
  common.tls_server_name = tls.server_name;
  LockNodes nodes;
  for (const std::string& list : arguments.redis) {
    nodes.groups.push_back(common);
    nodes.groups.back().nodes = SplitCommas(list);
  }
  if (const auto problem = locking::ProblemOf(nodes.groups)) {
    return Refuse("--redis: " + problem->Line());
  }
  if (const auto problem = locking::TlsProblemOf(nodes.groups)) return Refuse(problem->Line());
  return nodes;
}

locking::GroupSpot LockNodes::SpotOf(int group) const {
  locking::GroupSpot spot{.place = {group, static_cast<int>(groups.size())}};
  for (int before = 0; before < group; ++before) {
    spot.first_node += static_cast<int>(groups[static_cast<std::size_t>(before)].nodes.size());
  }
  return spot;
}

int LockNodes::GroupOfNode(int node) const {
  int group = 0;
  while (group + 1 < static_cast<int>(groups.size()) && SpotOf(group + 1).first_node <= node) {
    ++group;
  }
  return group;
}

const std::string& LockNodes::Address(int node) const {
  const int group = GroupOfNode(node);
  return groups[static_cast<std::size_t>(group)]
      .nodes[static_cast<std::size_t>(node - SpotOf(group).first_node)];
}

std::string LockNodes::GroupText(int group, std::string_view before) const {
  if (groups.size() == 1) return "";
  return std::string(before) + locking::PlaceText(SpotOf(group).place);
}

}  // namespace fencepost::cli
