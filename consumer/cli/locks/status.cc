// fencepost locks status: the state of the nodes, from INFO, TIME and GET alone.
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "consumer/cli/locks/locks.h"
#include "consumer/cli/shared/command.h"
#include "consumer/cli/shared/store_view.h"

namespace fencepost::cli {

using locking::Millis;
using locking::NodeStatus;

namespace {

constexpr Millis kAnswer{2'000};

std::string Field(const locking::InfoFields& info, const char* name) {
  const auto found = info.find(name);
  return found == info.end() ? "" : found->second;
}

nlohmann::json NodeJson(char letter, const std::string& address, const NodeStatus& status,
                        const locking::InfoFields& info, const std::string& away) {
  nlohmann::json node{{"node", std::string(1, letter)},
                      {"address", address},
                      {"state", StateOf(status)},
                      {"run_id", status.run_id}};
  node["quarantine_left_ms"] = status.quarantine_left.count();
  node["clock_offset_seconds"] =
      status.clock_offset ? nlohmann::json(static_cast<double>(status.clock_offset->count()) / 1e9)
                          : nlohmann::json();
  if (status.sentinel) {
    node["store"] = {
        {"id", status.sentinel->store_id},       {"index", status.sentinel->index},
        {"nodes", status.sentinel->nodes},       {"epoch", status.sentinel->epoch},
        {"complete", status.sentinel->complete}, {"max_ttl_ms", status.sentinel->max_ttl.count()}};
  }
  node["problem"] = status.connected ? status.problem : away;
  if (info.empty()) return node;
  node["role"] = Field(info, "role");
  node["version"] = Field(info, "redis_version");
  node["memory_used_bytes"] = std::stoll("0" + Field(info, "used_memory"));
  node["memory_max_bytes"] = std::stoll("0" + Field(info, "maxmemory"));
  node["memory_policy"] = Field(info, "maxmemory_policy");
  node["append_only_file"] = Field(info, "aof_enabled") == "1";
  node["keys"] = Field(info, "db0");
  return node;
}

// What a client knows of it is in `line` already.
std::string Text(std::string line, const nlohmann::json& node) {
  if (node.contains("role")) {
    const long long max = node["memory_max_bytes"].get<long long>();
    line +=
        fmt::format("\n   Redis {}, {}, run {}, memory {:.1f} of {} MB ({}), append-only file {}",
                    node["version"].get<std::string>(), node["role"].get<std::string>(),
                    node["run_id"].get<std::string>().substr(0, 8),
                    static_cast<double>(node["memory_used_bytes"].get<long long>()) / 1e6,
                    max == 0 ? "unlimited" : fmt::format("{:.1f}", static_cast<double>(max) / 1e6),
                    node["memory_policy"].get<std::string>(),
                    node["append_only_file"].get<bool>() ? "on" : "off");
    const auto keys = node["keys"].get<std::string>();
    if (!keys.empty()) line += fmt::format(", {}", keys.substr(0, keys.find(",avg")));
  }
  const auto problem = node["problem"].get<std::string>();
  if (!problem.empty()) line += fmt::format("\n   {}", problem);
  return line;
}

}  // namespace

std::string StateLine(locking::NodeIndex node, const std::string& address,
                      const NodeStatus& status) {
  std::string line =
      fmt::format("{}  {:<24} {}", locking::NodeLetter(node), address, StateOf(status));
  if (status.quarantine_left > Millis(0)) {
    line +=
        fmt::format(" for {:.1f} s", static_cast<double>(status.quarantine_left.count()) / 1000);
  }
  if (status.sentinel) {
    line += fmt::format(
        ", store {} node {} of {} epoch {} max_ttl {} ms{}", status.sentinel->store_id.substr(0, 8),
        status.sentinel->index, status.sentinel->nodes, status.sentinel->epoch,
        status.sentinel->max_ttl.count(), status.sentinel->complete ? "" : ", forming");
  }
  if (status.clock_offset) {
    line +=
        fmt::format(", clock {:+.3f} s", static_cast<double>(status.clock_offset->count()) / 1e9);
  }
  return line;
}

RawNodes::RawNodes(const LockNodes& from) {
  for (std::size_t i = 0; i < from.redis.nodes.size(); ++i) {
    nodes.push_back(std::make_unique<locking::RawNode>(io, from.redis, i));
    const auto connected = nodes.back()->Connect(kAnswer);
    why.push_back(connected ? "" : connected.error().Line());
  }
}

int LocksStatus(const LocksArguments& arguments) {
  const auto nodes = ResolveLockNodes(arguments.nodes);
  if (!nodes) return kUsage;
  StoreView view(*nodes, locking::StoreCreation::kNever);
  view.WatchUntil([&view] { return view.AllConnected(); }, kAnswer);
  RawNodes raw(*nodes);
  nlohmann::json all = nlohmann::json::array();
  std::vector<std::string> lines;
  for (int node = 0; node < view.size(); ++node) {
    const auto at = static_cast<std::size_t>(node);
    locking::InfoFields info;
    if (raw.why[at].empty()) {
      if (auto read = raw.nodes[at]->ReadInfo(kAnswer)) info = std::move(*read);
    }
    const NodeStatus status = view.Status(node);
    all.push_back(
        NodeJson(locking::NodeLetter(node), view.Address(node), status, info, raw.why[at]));
    lines.push_back(Text(StateLine(node, view.Address(node), status), all.back()));
  }
  const locking::Store& store = view.store();
  const bool available = store.Available();
  const auto problem = store.Problem();
  if (arguments.json) {
    const nlohmann::json status{{"available", available},
                                {"quorum", locking::Quorum(store.size())},
                                {"store", store.store_id()},
                                {"problem", problem ? problem->Line() : ""},
                                {"nodes", all}};
    fmt::print("{}\n", status.dump());
    return available ? kOk : kFailed;
  }
  for (const std::string& line : lines) fmt::print("{}\n", line);
  std::fflush(stdout);
  if (problem) PrintError(problem->Line());
  fmt::print("quorum: {} ({} of {} needed)\n", available ? "available" : "not available",
             locking::Quorum(store.size()), store.size());
  return available ? kOk : kFailed;
}

}  // namespace fencepost::cli
