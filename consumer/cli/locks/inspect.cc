// fencepost locks inspect: the state of names on each node, and what follows for the whole.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "consumer/cli/locks/locks.h"
#include "consumer/cli/shared/bytes_text.h"
#include "consumer/cli/shared/command.h"
#include "consumer/cli/shared/pipelines.h"
#include "consumer/cli/shared/store_view.h"
#include "consumer/record/identity.h"
#include "consumer/record/position_id.h"

namespace fencepost::cli {
namespace {

using locking::Millis;

constexpr Millis kAnswersWithin{2'000};

nlohmann::json JsonOf(const NodeFacts& node) {
  static constexpr std::string_view kStates[] = {"unknown", "held", "done", "free", "absent"};
  const bool held = node.state == NodeState::kHeld;
  const bool expired = held && node.rest <= Millis(0);
  nlohmann::json one{
      {"node", std::string(1, node.letter)},
      {"address", node.address},
      {"quarantined", node.quarantined},
      {"state", expired ? "expired" : kStates[static_cast<std::size_t>(node.state)]}};
  if (!node.problem.empty()) one["problem"] = node.problem;
  if (node.state == NodeState::kFree) one["floor"] = node.token.value();
  if (node.state == NodeState::kDone) one["crc"] = fmt::format("{:016x}", node.crc);
  if (held || node.state == NodeState::kDone) {
    one["token"] = node.token.value();
    one["rest_ms"] = node.rest.count();
  }
  return one;
}

struct Verdict {
  const char* word;
  std::string text;
};

// DONE of any node is believed; of the others only what is out of quarantine counts.
Verdict Judge(const std::vector<NodeFacts>& nodes) {
  const int quorum = locking::Quorum(static_cast<int>(nodes.size()));
  std::map<locking::Token, std::vector<Millis>> holders;  // and for how long on each node
  int free = 0;
  int done = 0;
  for (const NodeFacts& node : nodes) {
    if (node.state == NodeState::kDone) {
      ++done;
    } else if (node.state == NodeState::kUnreachable || node.quarantined) {
      continue;
    } else if (node.state == NodeState::kHeld && node.rest > Millis(0)) {
      holders[node.token].push_back(node.rest);
    } else {
      ++free;
    }
  }
  if (done > 0) {
    return {"done", fmt::format("done, on {} of {} nodes", done, nodes.size())};
  }
  for (auto& [token, rests] : holders) {
    if (static_cast<int>(rests.size()) < quorum) continue;
    // It lasts while a quorum keeps it: the quorum-th longest rest.
    std::ranges::sort(rests, std::greater());
    return {"held", fmt::format("held by token {} for about {} ms", token.value(),
                                rests[static_cast<std::size_t>(quorum - 1)].count())};
  }
  if (free >= quorum) return {"free", "free"};
  if (!holders.empty()) {
    return {"split",
            fmt::format("split: held on some nodes by {}, by nobody on a quorum", holders.size())};
  }
  return {"unknown", "unknown: too few nodes count"};
}

}  // namespace

int LocksInspect(const LocksArguments& given) {
  LocksArguments arguments = given;
  std::string name_space = arguments.name_space.empty() ? "default" : arguments.name_space;
  bool record_ids = false;
  std::int64_t block = 1;
  if (arguments.nodes.list.empty() && !arguments.words.empty()) {
    arguments.nodes.pipeline.files = {arguments.words.front()};
    arguments.words.erase(arguments.words.begin());
    const auto pipelines = LoadPipelines(arguments.nodes.pipeline);
    if (!pipelines) return kUsage;
    record_ids = arguments.name_space.empty();
    if (record_ids) {
      name_space = pipelines->front().name;
      block = LockBlock(pipelines->front());
    }
  }
  const auto nodes = ResolveLockNodes(arguments.nodes);
  if (!nodes) return kUsage;
  if (arguments.words.empty() || arguments.words.size() > locking::kMaxBatch) {
    return ExitUsage("locks inspect: name 1 to 512 locks: --redis A,B,C NAME…, or FILE ID…");
  }
  std::vector<std::string> keys;
  for (const std::string& name : arguments.words) {
    const std::string locked = consumer::LockedId(consumer::StoredId(name), block);
    keys.push_back(record_ids ? consumer::LockName(name_space, locked)
                              : fmt::format("fencepost:{{{}}}:{}", name_space, name));
  }
  StoreView view(*nodes, locking::StoreCreation::kNever);
  view.Connect(kAnswersWithin);
  const auto seen = view.Look(keys, kAnswersWithin);
  nlohmann::json all = nlohmann::json::array();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Verdict verdict = Judge(seen[i]);
    const std::string name = Printable(arguments.words[i], 600);
    nlohmann::json one{{"name", name},
                       {"key", Printable(keys[i], 700)},
                       {"verdict", verdict.word},
                       {"text", verdict.text},
                       {"nodes", nlohmann::json::array()}};
    if (!arguments.json) fmt::print("{}: {}\n", name, verdict.text);
    for (const NodeFacts& node : seen[i]) {
      one["nodes"].push_back(JsonOf(node));
      if (arguments.json) continue;
      fmt::print("  {}  {:<24} {}\n", node.letter, node.address, NodeText(node));
    }
    all.push_back(std::move(one));
  }
  if (arguments.json) fmt::print("{}\n", all.dump());
  std::fflush(stdout);
  const auto& first = seen.front();
  if (!std::ranges::all_of(first, [](const auto& node) { return !node.problem.empty(); })) {
    return kOk;
  }
  return ExitFailed("no lock node could be asked: " + first.front().problem);
}

}  // namespace fencepost::cli
