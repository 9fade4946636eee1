// fencepost locks init: the lock store, created once.
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "consumer/cli/command.h"
#include "consumer/cli/locks/locks.h"
#include "consumer/cli/shared/store_view.h"

namespace fencepost::cli {
namespace {

using locking::Millis;
using locking::NodeStatus;
using locking::StoreCreation;

constexpr Millis kLook{2'000};  // for a store that stands already

std::string Describe(const NodeStatus& status) {
  std::string text = !status.connected        ? "down"
                     : status.quarantined     ? "quarantined"
                     : status.open            ? "ok"
                     : status.problem.empty() ? "no lock store"
                                              : "refused";
  if (status.quarantined) {
    text +=
        fmt::format(" for {:.1f} s", static_cast<double>(status.quarantine_left.count()) / 1000);
  }
  if (status.sentinel) {
    text += fmt::format(
        ", store {} node {} of {} epoch {} max_ttl {} ms{}", status.sentinel->store_id.substr(0, 8),
        status.sentinel->index, status.sentinel->nodes, status.sentinel->epoch,
        status.sentinel->max_ttl.count(), status.sentinel->complete ? "" : ", forming");
  }
  if (status.clock_offset) {
    text +=
        fmt::format(", clock {:+.3f} s", static_cast<double>(status.clock_offset->count()) / 1e9);
  }
  if (!status.problem.empty()) text += ": " + status.problem;
  return text;
}

void Print(const StoreView& view) {
  for (int node = 0; node < view.size(); ++node) {
    std::printf("%c  %-24s %s\n", 'a' + node, view.Address(node).c_str(),
                Describe(view.Status(node)).c_str());
  }
}

// Whether a store of these nodes is there: a majority of them knows it, and nothing stands against
// it.
bool Stands(const StoreView& view) {
  if (view.store().store_id().empty() || view.store().Problem()) return false;
  int members = 0;
  for (int node = 0; node < view.size(); ++node) {
    const auto sentinel = view.Status(node).sentinel;
    const bool member = sentinel && sentinel->complete && sentinel->nodes == view.size() &&
                        sentinel->store_id == view.store().store_id();
    members += member ? 1 : 0;
  }
  return members >= locking::Quorum(view.size());
}

int SayThatItStands(const StoreView& view, Millis wanted_ttl) {
  Print(view);
  std::printf("lock store %s stands already and was left as it is%s\n",
              view.store().store_id().c_str(),
              view.store().Available() ? "" : "; it counts when its quarantine is over");
  const Millis ttl = view.store().max_ttl();
  if (wanted_ttl <= Millis(0) || ttl == wanted_ttl) return kOk;
  PrintError(fmt::format(
      "the store's max_ttl is {} ms, not {} ms: with all workers stopped, `fencepost locks init "
      "--force --max-ttl` makes it anew",
      ttl.count(), wanted_ttl.count()));
  return kFailed;
}

// Looks, and changes nothing.
std::optional<int> AlreadyStands(const LockNodes& nodes, Millis wanted_ttl) {
  StoreView view(nodes, StoreCreation::kNever);
  const auto all_answered = [&view] {
    for (int node = 0; node < view.size(); ++node) {
      if (!view.Status(node).connected) return false;
    }
    return true;
  };
  view.WatchUntil([&] { return Stands(view) || all_answered(); }, kLook);
  if (!Stands(view)) return std::nullopt;
  return SayThatItStands(view, wanted_ttl);
}

// What another began, or is about to end: as a worker would, so that it waits its quarantine out.
int FinishWhatStands(const LockNodes& nodes, Millis wanted_ttl, std::chrono::seconds limit) {
  StoreView view(nodes, StoreCreation::kQuarantined);
  if (view.WatchUntil([&view] { return Stands(view); }, limit)) {
    return SayThatItStands(view, wanted_ttl);
  }
  Print(view);
  const auto problem = view.store().Problem();
  PrintError(problem ? problem->Line() : "the lock store that was begun here is not to be ended");
  return kFailed;
}

bool IsFinal(const Error& problem) {
  // What is missing may still come: a node that connects a moment later, a store half formed.
  return problem.code != "no_store" && problem.code != "store_incomplete" &&
         problem.code != "store_forming";
}

}  // namespace

int LocksInit(const LocksArguments& arguments) {
  auto nodes = ResolveLockNodes(arguments.nodes);
  if (!nodes) return kUsage;
  if (arguments.max_ttl > Millis(0)) nodes->lock.max_ttl = arguments.max_ttl;
  if (arguments.if_missing) {
    if (const auto code = AlreadyStands(*nodes, arguments.max_ttl)) return *code;
  }
  if (arguments.force) {
    std::fprintf(stderr,
                 "fencepost: --force writes a new store over what stands there: leases that "
                 "are held now may be granted again before they end\n");
  }
  const std::chrono::seconds limit(arguments.timeout_s);
  StoreView view(*nodes, arguments.force ? StoreCreation::kForced : StoreCreation::kBlessed);
  const bool settled = view.WatchUntil(
      [&view] {
        const auto problem = view.store().Problem();
        return view.store().Created() || (problem && IsFinal(*problem));
      },
      limit);
  const auto problem = view.store().Problem();
  if (arguments.if_missing && problem && problem->code == "store_exists") {
    return FinishWhatStands(*nodes, arguments.max_ttl, limit);
  }
  Print(view);
  if (problem) {
    PrintError(problem->Line());
    return kFailed;
  }
  if (!settled) {
    PrintError("not all lock nodes answered; nothing is created before all do");
    return kFailed;
  }
  std::printf("lock store %s created over %d nodes; it counts at once\n",
              view.store().store_id().c_str(), view.size());
  return kOk;
}

}  // namespace fencepost::cli
