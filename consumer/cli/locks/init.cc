// fencepost locks init: the lock store, created once.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <tl/expected.hpp>

#include "consumer/cli/locks/locks.h"
#include "consumer/cli/shared/command.h"
#include "consumer/cli/shared/store_view.h"

namespace fencepost::cli {
namespace {

using locking::Millis;
using locking::NodeStatus;
using locking::StoreCreation;

constexpr Millis kLook{2'000};  // for a store that exists already

void Print(const StoreView& view) {
  for (int node = 0; node < view.size(); ++node) {
    const NodeStatus status = view.Status(node);
    const bool well = status.connected && status.problem.empty();
    fmt::print("{}{}{}\n", StateLine(node, view.Address(node), status), well ? "" : ": ",
               well ? "" : view.WhyNoAnswer(node));
  }
}

// Whether a store of these nodes exists: a majority of them knows it, and nothing speaks against
// it.
bool Exists(const StoreView& view) {
  return !view.store().Problem() && view.store().IsEstablished();
}

int SayThatItExists(const StoreView& view, Millis wanted_ttl) {
  Print(view);
  const locking::Store& store = view.store();
  fmt::print("lock store {} exists already and was left as it is{}\n", store.store_id(),
             store.Available() ? "" : "; it counts when its quarantine is over");
  if (wanted_ttl <= Millis(0) || store.max_ttl() == wanted_ttl) return kOk;
  return ExitFailed(fmt::format(
      "the store's max_ttl is {} ms, not {} ms: with all workers stopped, `fencepost locks init "
      "--force --max-ttl` creates it again",
      store.max_ttl().count(), wanted_ttl.count()));
}

bool AnySentinel(const StoreView& view) {
  return !view.All([](const NodeStatus& node) { return !node.sentinel; });
}

// Looks, and changes nothing.
std::optional<int> AlreadyExists(const LockNodes& nodes, Millis wanted_ttl) {
  StoreView view(nodes, StoreCreation::kNever);
  view.WatchUntil([&view] { return Exists(view) || view.AllConnected(); }, kLook);
  if (!Exists(view)) return std::nullopt;
  return SayThatItExists(view, wanted_ttl);
}

// What another began, or is about to end: as a worker would, so that it waits its quarantine out.
int FinishWhatExists(const LockNodes& nodes, Millis wanted_ttl, std::chrono::seconds limit) {
  StoreView view(nodes, StoreCreation::kQuarantined);
  if (view.WatchUntil([&view] { return Exists(view); }, limit)) {
    return SayThatItExists(view, wanted_ttl);
  }
  Print(view);
  const auto problem = view.store().Problem();
  return ExitFailed(problem ? problem->Line()
                            : "the lock store that was begun here is not to be ended");
}

bool IsFinal(const Error& problem) {
  // What is missing may still come: a node that connects a moment later, a store half formed.
  return problem.code != "no_store" && problem.code != "store_incomplete" &&
         problem.code != "store_forming";
}

// Why these nodes, none of which has a sentinel, may be those of a store that was emptied
// (FLUSHALL, the sentinel deleted): then a worker that was stalled meanwhile may rely on a lease
// that they have forgotten. Empty: nothing was ever written to any of them since it started, so
// they forgot none. Every lease, mark and sentinel is written by SET, which the node counts for as
// long as it runs.
std::string MayHaveForgotten(const LockNodes& nodes) {
  RawNodes raw(nodes);
  for (std::size_t i = 0; i < raw.nodes.size(); ++i) {
    const std::string name = fmt::format("node {} ({})", locking::NodeLetter(static_cast<int>(i)),
                                         locking::RedactedAddress(nodes.redis.nodes[i]));
    if (!raw.why[i].empty()) return name + " cannot be asked what was written to it";
    const auto counts = raw.nodes[i]->ReadInfo("commandstats", kLook);
    if (!counts) return name + " does not tell what was written to it";
    const auto set = counts->find("cmdstat_set");
    if (set != counts->end() && !set->second.starts_with("calls=0,")) {
      return name + " was written to since it started, and is empty of its lock store now";
    }
  }
  return "";
}

// How a new store is made on these nodes, by a look that changes nothing. Error: the exit code.
struct Plan {
  StoreCreation creation = StoreCreation::kImmediate;
  std::string doubt;  // why it is quarantined
};
tl::expected<Plan, int> PlanFor(const LockNodes& nodes, std::chrono::seconds limit) {
  StoreView view(nodes, StoreCreation::kNever);
  if (!view.WatchUntil([&view] { return view.AllConnected() || AnySentinel(view); }, limit)) {
    Print(view);
    const auto problem = view.store().Problem();
    PrintError(problem ? problem->Line()
                       : "not all lock nodes answered; nothing is created before all do");
    return tl::unexpected(kFailed);
  }
  if (AnySentinel(view)) return Plan{};  // the creation says what is there
  std::string doubt = MayHaveForgotten(nodes);
  if (doubt.empty()) return Plan{};
  return Plan{StoreCreation::kQuarantined, std::move(doubt)};
}

bool Made(const StoreView& view, StoreCreation creation) {
  if (creation != StoreCreation::kQuarantined) return view.store().Created();
  return view.All([](const NodeStatus& node) { return node.sentinel && node.sentinel->complete; });
}

void SayWhenItCounts(const StoreView& view, const Plan& plan) {
  if (plan.creation != StoreCreation::kQuarantined) {
    fmt::print("it counts at once\n");
    return;
  }
  Millis left{0};
  for (int node = 0; node < view.size(); ++node) {
    left = std::max(left, view.Status(node).quarantine_left);
  }
  fmt::print(
      "it counts in {:.0f} s: {}, so a worker that is stalled may rely on a lease that was "
      "forgotten. Wait, or, with all workers stopped, `fencepost locks init --force` makes one "
      "that counts at once\n",
      std::ceil(static_cast<double>(left.count()) / 1000), plan.doubt);
}

}  // namespace

int LocksInit(const LocksArguments& arguments) {
  auto nodes = ResolveLockNodes(arguments.nodes);
  if (!nodes) return kUsage;
  if (arguments.max_ttl > Millis(0)) nodes->lock.max_ttl = arguments.max_ttl;
  if (arguments.if_missing) {
    if (const auto code = AlreadyExists(*nodes, arguments.max_ttl)) return *code;
  }
  if (arguments.force) {
    std::fprintf(stderr,
                 "fencepost: --force writes a new store over what is there: leases that "
                 "are held now may be granted again before they end\n");
  }
  const std::chrono::seconds limit(arguments.timeout_s);
  tl::expected<Plan, int> plan = Plan{StoreCreation::kForced, ""};
  if (!arguments.force) plan = PlanFor(*nodes, limit);
  if (!plan) return plan.error();
  StoreView view(*nodes, plan->creation);
  const bool settled = view.WatchUntil(
      [&] {
        const auto problem = view.store().Problem();
        return Made(view, plan->creation) || (problem && IsFinal(*problem));
      },
      limit);
  const auto problem = view.store().Problem();
  if (arguments.if_missing && problem && problem->code == "store_exists") {
    return FinishWhatExists(*nodes, arguments.max_ttl, limit);
  }
  if (problem && problem->code == "store_exists") {
    return ExitFailed(
        "a lock store of these nodes exists already and was left as it is; with --if-missing that "
        "is no failure, and --force, with all workers stopped, makes a new one");
  }
  Print(view);
  if (problem) return ExitFailed(*problem);
  if (!settled) return ExitFailed("not all lock nodes answered; nothing is created before all do");
  fmt::print("lock store {} created over {} nodes; ", view.store().store_id(), view.size());
  SayWhenItCounts(view, *plan);
  return kOk;
}

}  // namespace fencepost::cli
