// fencepost locks init|status|inspect|heal: the lock store, created, looked at and mended.
#include <cstdio>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "consumer/cli/command.h"
#include "consumer/cli/locks/locks.h"
#include "consumer/cli/shared/durations.h"
#include "consumer/cli/shared/lock_nodes.h"
#include "consumer/cli/shared/store_view.h"

namespace fencepost::cli {
namespace {

using locking::Millis;
using locking::NodeStatus;
using locking::StoreCreation;

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

int Init(const LocksArguments& arguments) {
  auto nodes = ResolveLockNodes(arguments.nodes);
  if (!nodes) return kUsage;
  if (arguments.max_ttl > Millis(0)) nodes->lock.max_ttl = arguments.max_ttl;
  if (arguments.force) {
    std::fprintf(stderr,
                 "fencepost: --force writes a new store over what stands there: leases that "
                 "are held now may be granted again before they end\n");
  }
  StoreView view(*nodes, arguments.force ? StoreCreation::kForced : StoreCreation::kBlessed);
  const bool settled = view.WatchUntil(
      [&view] {
        const auto problem = view.store().Problem();
        // What is missing may still come: a node that connects a moment later, a store half formed.
        const bool final = problem && problem->code != "no_store" &&
                           problem->code != "store_incomplete" && problem->code != "store_forming";
        return view.store().Created() || final;
      },
      std::chrono::seconds(arguments.timeout_s));
  Print(view);
  if (const auto problem = view.store().Problem()) {
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

}  // namespace

void AddLocks(CLI::App& app, Run& run) {
  CLI::App* locks = app.add_subcommand("locks", "the lock store: init, status, inspect, heal");
  locks->require_subcommand(1);
  const auto arguments = std::make_shared<LocksArguments>();

  CLI::App* init = locks->add_subcommand("init", "create the lock store; it counts at once");
  AddLockNodeOptions(*init, arguments->nodes);
  init->add_flag("--force", arguments->force, "write over a store that stands there");
  AddDuration(*init, "--max-ttl", arguments->max_ttl, "longest ttl of a lock, e.g. 30s");
  init->add_option("--timeout", arguments->timeout_s, "seconds to wait for all nodes");
  init->callback([&run, arguments] { run = [arguments] { return Init(*arguments); }; });

  CLI::App* status = locks->add_subcommand("status", "the nodes, the quorum, the clocks, memory");
  AddLockNodeOptions(*status, arguments->nodes);
  status->add_flag("--json", arguments->json, "one JSON object");
  status->callback([&run, arguments] { run = [arguments] { return LocksStatus(*arguments); }; });

  CLI::App* inspect = locks->add_subcommand("inspect", "how names stand on each node");
  AddLockServerOptions(*inspect, arguments->nodes);
  inspect->add_option("NAME", arguments->words,
                      "names; without --redis a pipeline file, then ids of its records");
  inspect->add_option("--namespace", arguments->name_space,
                      "where the names stand (default; with a file: its pipeline's name)");
  inspect->add_flag("--json", arguments->json, "one JSON array");
  inspect->callback([&run, arguments] { run = [arguments] { return LocksInspect(*arguments); }; });

  CLI::App* heal = locks->add_subcommand(
      "heal", "give a node that lost its memory what the others have, and end its quarantine");
  AddLockNodeOptions(*heal, arguments->nodes);
  heal->add_option("--node", arguments->node, "only this one: a to g, or its address");
  AddDuration(*heal, "--max-skew", arguments->max_skew,
              "the largest max_skew of any client (the file's, or 5s)");
  heal->callback([&run, arguments] { run = [arguments] { return LocksHeal(*arguments); }; });
}

}  // namespace fencepost::cli
