// fencepost locks inspect: the state of names on each node, and what follows for the whole.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "consumer/cli/locks/locks.h"
#include "consumer/cli/shared/bytes_text.h"
#include "consumer/cli/shared/command.h"
#include "consumer/cli/shared/pipelines.h"
#include "consumer/record/identity.h"
#include "consumer/record/position_id.h"
#include "locking/core/store/sentinel.h"
#include "locking/core/unit_value.h"

namespace fencepost::cli {
namespace {

using locking::Millis;
using locking::NodeSight;
using locking::UnitValue;
using State = UnitValue::State;

constexpr Millis kAnswer{2'000};

struct Seen {
  std::string why;  // the node did not tell
  bool quarantined = false;
  std::optional<UnitValue> value;
  bool foreign = false;
  Millis rest{0};  // held: until its deadline; else until it is forgotten
};

Seen Read(const NodeSight& sight, std::size_t at) {
  Seen seen;
  const auto sentinel = locking::Sentinel::Decode(sight.sentinel);
  seen.quarantined = sentinel && sight.time < sentinel->quarantine_until;
  const NodeSight::Value& value = sight.values[at];
  seen.value = UnitValue::Decode(value.raw);
  seen.foreign = !seen.value && !value.raw.empty();
  const bool held = seen.value && seen.value->state == State::kHeld;
  seen.rest = held ? std::max(Millis(0), seen.value->deadline - sight.time) : value.left;
  return seen;
}

nlohmann::json Json(const Seen& seen) {
  nlohmann::json one{{"quarantined", seen.quarantined}};
  if (!seen.why.empty()) {
    one["state"] = "unknown";
    one["problem"] = seen.why;
  } else if (seen.foreign) {
    one["state"] = "foreign";
  } else if (!seen.value) {
    one["state"] = "absent";
  } else if (seen.value->state == State::kFree) {
    one["state"] = "free";
    one["floor"] = seen.value->floor.value();
  } else {
    const bool held = seen.value->state == State::kHeld;
    one["state"] = !held ? "done" : seen.rest > Millis(0) ? "held" : "expired";
    one["token"] = seen.value->token.value();
    if (!held) one["crc"] = fmt::format("{:016x}", seen.value->crc);
    one["rest_ms"] = seen.rest.count();
  }
  return one;
}

std::string Text(const nlohmann::json& one) {
  const auto state = one["state"].get<std::string>();
  std::string text = state == "held" || state == "free" || state == "done"
                         ? state == "held"   ? "HELD"
                           : state == "free" ? "FREE"
                                             : "DONE"
                         : state;
  if (one.contains("problem")) text += ": " + one["problem"].get<std::string>();
  if (one.contains("floor")) text += fmt::format(" floor {}", one["floor"].get<std::uint64_t>());
  if (one.contains("token")) text += fmt::format(" token {}", one["token"].get<std::uint64_t>());
  if (one.contains("crc")) text += fmt::format(" crc {}", one["crc"].get<std::string>());
  if (one.contains("rest_ms")) text += fmt::format(" for {} ms", one["rest_ms"].get<long>());
  if (one["quarantined"].get<bool>()) text += " (in quarantine)";
  return text;
}

struct Verdict {
  const char* word;
  std::string text;
};

// DONE of any node is believed; of the others only what is out of quarantine counts.
Verdict Judge(const std::vector<Seen>& nodes) {
  const int quorum = locking::Quorum(static_cast<int>(nodes.size()));
  std::map<locking::Nonce, std::vector<const Seen*>> holders;
  int free = 0;
  int done = 0;
  for (const Seen& seen : nodes) {
    if (!seen.why.empty() || seen.foreign) continue;
    if (seen.value && seen.value->state == State::kDone) {
      ++done;
    } else if (seen.value && seen.value->state == State::kHeld && seen.rest > Millis(0)) {
      if (!seen.quarantined) holders[seen.value->nonce].push_back(&seen);
    } else if (!seen.quarantined) {
      ++free;
    }
  }
  if (done > 0) {
    return {"done", fmt::format("done, on {} of {} nodes", done, nodes.size())};
  }
  for (auto& [nonce, held] : holders) {
    if (static_cast<int>(held.size()) < quorum) continue;
    // It lasts while a quorum keeps it: the quorum-th longest rest.
    std::sort(held.begin(), held.end(),
              [](const Seen* a, const Seen* b) { return a->rest > b->rest; });
    return {"held",
            fmt::format("held by token {} for about {} ms", held.front()->value->token.value(),
                        held[static_cast<std::size_t>(quorum - 1)]->rest.count())};
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
  if (arguments.nodes.redis.empty() && !arguments.words.empty()) {
    arguments.nodes.file = arguments.words.front();
    arguments.words.erase(arguments.words.begin());
    const auto pipelines = LoadPipelines({arguments.nodes.file});
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
  RawNodes raw(*nodes);
  std::vector<std::vector<Seen>> seen(keys.size());
  int told = 0;
  for (std::size_t node = 0; node < raw.nodes.size(); ++node) {
    std::optional<NodeSight> sight;
    if (raw.why[node].empty()) {
      auto look = raw.nodes[node]->Look(keys, kAnswer);
      if (look) {
        sight = std::move(*look);
        ++told;
      } else {
        raw.why[node] = look.error().Line();
      }
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
      seen[i].push_back(sight ? Read(*sight, i) : Seen{raw.why[node], false, {}, false, {}});
    }
  }
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
    for (std::size_t node = 0; node < seen[i].size(); ++node) {
      auto entry = Json(seen[i][node]);
      const char letter = locking::NodeLetter(static_cast<int>(node));
      entry["node"] = std::string(1, letter);
      entry["address"] = raw.nodes[node]->address();
      if (!arguments.json) {
        fmt::print("  {}  {:<24} {}\n", letter, raw.nodes[node]->address(), Text(entry));
      }
      one["nodes"].push_back(std::move(entry));
    }
    all.push_back(std::move(one));
  }
  if (arguments.json) fmt::print("{}\n", all.dump());
  std::fflush(stdout);
  if (told > 0) return kOk;
  return ExitFailed("no lock node could be asked: " +
                    *std::ranges::find_if(raw.why, [](const auto& why) { return !why.empty(); }));
}

}  // namespace fencepost::cli
