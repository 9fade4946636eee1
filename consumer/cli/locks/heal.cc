// fencepost locks heal: a node in quarantine gets back what it has forgotten, and counts again.
#include <unistd.h>

#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "consumer/cli/locks/locks.h"
#include "consumer/cli/shared/command.h"
#include "consumer/cli/shared/store_view.h"
#include "locking/core/store/heal.h"

namespace fencepost::cli {
namespace {

using locking::BootClock;
using locking::Healing;
using locking::Millis;
using locking::NodeIndex;
using locking::NodeLetter;
using locking::Sentinel;
using Kind = Healing::Step::Kind;

constexpr Millis kAnswer{5'000};
constexpr Millis kAdmission{15'000};  // clients are given 5 s to take an empty node back
constexpr Millis kTellEvery{1'000};

// How it goes, on stderr: once a second a line, on a terminal the same line again.
class Teller {
 public:
  void Tell(const Healing::Counts& counts, bool last) {
    const auto now = BootClock::now();
    if (!last && now - told_ < kTellEvery) return;
    told_ = now;
    const double seconds = std::chrono::duration<double>(now - begun_).count();
    fmt::print(stderr, "{}{} names read, {} written, {:.0f} names/s{}", terminal_ ? "\r" : "",
               counts.seen, counts.written,
               seconds > 0 ? static_cast<double>(counts.seen) / seconds : 0.0,
               terminal_ && !last ? "\033[K" : "\n");
    std::fflush(stderr);
  }
  void Begin() { begun_ = told_ = BootClock::now(); }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) == 1;
  locking::Instant begun_ = BootClock::now();
  locking::Instant told_ = begun_;
};

struct Standing {
  std::vector<std::string> run_ids;
  std::vector<std::optional<Sentinel>> sentinels;
  std::vector<bool> quarantined;
};

// Of every node; the error is the first that cannot be asked, or refuses to be a lock node.
tl::expected<Standing, Error> Stand(RawNodes& raw) {
  Standing all;
  for (std::size_t i = 0; i < raw.nodes.size(); ++i) {
    if (!raw.why[i].empty()) return tl::unexpected(Error{"away", raw.why[i], "", ""});
    const auto info = raw.nodes[i]->ReadInfo(kAnswer);
    if (!info) return tl::unexpected(info.error());
    const auto field = [&](const char* name) {
      const auto found = info->find(name);
      return found == info->end() ? std::string() : found->second;
    };
    if (field("role") != "master" || field("maxmemory_policy") != "noeviction") {
      return tl::unexpected(Error{"refused", "it is no primary with maxmemory-policy noeviction",
                                  raw.nodes[i]->address(), "see `fencepost locks status`"});
    }
    all.run_ids.push_back(field("run_id"));
    const auto time = raw.nodes[i]->ReadTime(kAnswer);
    const auto text = raw.nodes[i]->ReadSentinel(kAnswer);
    if (!time) return tl::unexpected(time.error());
    if (!text) return tl::unexpected(text.error());
    all.sentinels.push_back(*text ? Sentinel::Decode(**text) : std::nullopt);
    const auto& sentinel = all.sentinels.back();
    all.quarantined.push_back(sentinel && *time < sentinel->quarantine_until);
  }
  return all;
}

bool Known(const Standing& standing, std::size_t node) {
  const auto& sentinel = standing.sentinels[node];
  return sentinel && sentinel->complete && sentinel->run_id == standing.run_ids[node];
}

// A group, and the nodes of it by number within it.
struct Group {
  const LockNodes& nodes;
  int number;
  [[nodiscard]] NodeIndex First() const { return nodes.SpotOf(number).first_node; }
  [[nodiscard]] char Letter(NodeIndex node) const { return NodeLetter(First() + node); }
  [[nodiscard]] const locking::RedisOptions& redis() const {
    return nodes.groups[static_cast<std::size_t>(number)];
  }
  [[nodiscard]] bool Is(NodeIndex node, const std::string& wanted) const {
    return wanted == std::string(1, Letter(node)) ||
           wanted == redis().nodes[static_cast<std::size_t>(node)];
  }
};

// Which node needs it; -1: none. More than one of a group cannot be healed.
tl::expected<NodeIndex, Error> Patient(const Standing& standing, const Group& group,
                                       const std::string& wanted) {
  NodeIndex patient = -1;
  for (std::size_t i = 0; i < standing.sentinels.size(); ++i) {
    if (Known(standing, i) && !standing.quarantined[i]) continue;
    const auto node = static_cast<NodeIndex>(i);
    if (patient >= 0) {
      return tl::unexpected(
          Error{"too_many",
                fmt::format("lock nodes {} and {} have both lost their memory, or may have",
                            group.Letter(patient), group.Letter(node)),
                "", "healing copies from all other nodes; wait for the quarantine of one"});
    }
    patient = node;
  }
  if (patient < 0 || wanted.empty()) return patient;
  if (group.Is(patient, wanted)) return patient;
  return tl::unexpected(Error{"other_node",
                              fmt::format("it is lock node {} that is in quarantine, not {}",
                                          group.Letter(patient), wanted),
                              "", "leave --node out"});
}

// A node that no client has seen since it was wiped gets its place, and its quarantine, from us.
void Admit(const Group& group, NodeIndex patient) {
  StoreView view(group.nodes, locking::StoreCreation::kQuarantined);
  view.WatchUntil([&] { return view.Status(group.First() + patient).quarantined; }, kAdmission);
}

// Steps that ask nodes; the error is why one did not answer.
tl::expected<void, Error> Act(RawNodes& raw, Healing& healing) {
  const Healing::Step& step = healing.Next();
  auto& node = *raw.nodes[static_cast<std::size_t>(step.node)];
  if (step.kind == Kind::kLook) {
    const auto at = [&](NodeIndex index) {
      return raw.nodes[static_cast<std::size_t>(index)].get();
    };
    for (const NodeIndex one : step.nodes) at(one)->AskLook(step.names, kAnswer);
    std::vector<locking::NodeSight> sights;
    for (const NodeIndex one : step.nodes) {
      auto sight = at(one)->AwaitLook(step.names.size());
      if (!sight) return tl::unexpected(sight.error());
      sights.push_back(std::move(*sight));
    }
    healing.OnLook(std::move(sights));
  } else if (step.kind == Kind::kScan) {
    auto page = node.Scan(step.cursor, kAnswer);
    if (!page) return tl::unexpected(page.error());
    healing.OnScan(std::move(*page));
  } else if (step.kind == Kind::kWrite) {
    auto written = node.Heal(step.sentinel, step.writes, kAnswer);
    if (!written) return tl::unexpected(written.error());
    healing.OnWritten(*written);
  } else {
    auto current = node.Write(step.lift, kAnswer);
    if (!current) return tl::unexpected(current.error());
    healing.OnLifted(*current);
  }
  return {};
}

tl::expected<Healing::Counts, Error> Carry(RawNodes& raw, const Standing& standing,
                                           NodeIndex patient, const Group& group) {
  Healing healing(patient, standing.run_ids, group.nodes.lock.max_skew, group.First());
  Teller teller;
  for (;;) {
    const Healing::Step& step = healing.Next();
    if (step.kind == Kind::kFailed) return tl::unexpected(step.error);
    if (step.kind == Kind::kFinished) {
      teller.Tell(healing.counts(), true);
      return healing.counts();
    }
    if (step.kind == Kind::kWait) {
      fmt::print(stderr,
                 "waiting {:.1f} s: what was under way when node {} forgot must have ended\n",
                 static_cast<double>(step.wait.count()) / 1000, group.Letter(patient));
      std::this_thread::sleep_for(step.wait);
      healing.OnWaited();
      teller.Begin();
      continue;
    }
    if (auto acted = Act(raw, healing); !acted) {
      Error why = acted.error();
      why.hint = why.hint.empty() ? "nothing was lifted; run it again when all nodes answer"
                                  : why.hint + "; nothing was lifted";
      healing.OnFailed(std::move(why));
    }
    teller.Tell(healing.counts(), false);
  }
}

int Heal(const Group& group, const std::string& wanted) {
  RawNodes raw(group.redis());
  auto standing = Stand(raw);
  if (!standing) return ExitFailed(standing.error());
  const auto patient = Patient(*standing, group, wanted);
  if (!patient) return ExitFailed(patient.error());
  if (*patient < 0) {
    fmt::print("no lock node{} is in quarantine: nothing to heal\n",
               group.nodes.GroupText(group.number, " of "));
    return kOk;
  }
  if (!Known(*standing, static_cast<std::size_t>(*patient))) {
    Admit(group, *patient);
    standing = Stand(raw);
    if (!standing) return ExitFailed(standing.error());
  }
  const auto counts = Carry(raw, *standing, *patient, group);
  if (!counts && counts.error().code == "over") {  // a big store: time was as fast
    fmt::print("{}\n", counts.error().Line());
    return kOk;
  }
  if (!counts) return ExitFailed(counts.error());
  fmt::print(
      "lock node {} is healed and counts again: {} marks, {} leases ({} kept for their "
      "holders), {} floors written\n",
      group.Letter(*patient), counts->done, counts->held, counts->kept_for_anyone, counts->floors);
  return kOk;
}

}  // namespace

// Group by group: each has the others of its own to copy from.
int LocksHeal(const LocksArguments& arguments) {
  auto nodes = ResolveLockNodes(arguments.nodes);
  if (!nodes) return kUsage;
  if (arguments.max_skew >= Millis(0)) nodes->lock.max_skew = arguments.max_skew;
  int code = kOk;
  bool any = false;
  for (int number = 0; number < static_cast<int>(nodes->groups.size()); ++number) {
    const Group group{*nodes, number};
    const auto count = static_cast<NodeIndex>(group.redis().nodes.size());
    bool listed = nodes->groups.size() == 1 || arguments.node.empty();
    for (NodeIndex node = 0; node < count; ++node) {
      listed = listed || group.Is(node, arguments.node);
    }
    if (!listed) continue;
    any = true;
    const int healed =
        count > 1 ? Heal(group, arguments.node)
                  : ExitFailed(Error{"one_node", "a store of one node has no other to copy from",
                                     nodes->GroupText(number, ""), "wait for its quarantine"});
    code = std::max(code, healed);
  }
  if (!any) return ExitFailed(arguments.node + ": no lock node of this list; leave --node out");
  return code;
}

}  // namespace fencepost::cli
