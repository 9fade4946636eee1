// fencepost locks init|status|inspect: the lock store, created and looked at.
#include <memory>

#include <CLI/CLI.hpp>

#include "consumer/cli/locks/locks.h"
#include "consumer/cli/shared/command.h"
#include "consumer/cli/shared/lock_nodes.h"
#include "consumer/cli/shared/moments.h"

namespace fencepost::cli {
void AddLocks(CLI::App& app, Run& run) {
  CLI::App* locks = app.add_subcommand("locks", "the lock store: init, status, inspect");
  locks->require_subcommand(1);
  const auto arguments = std::make_shared<LocksArguments>();

  CLI::App* init = locks->add_subcommand("init", "create the lock store; it counts at once");
  AddLockNodeOptions(*init, arguments->nodes);
  init->add_flag("--force", arguments->force, "write over a store that is there");
  init->add_flag("--if-missing", arguments->if_missing,
                 "also succeeds where a store of these nodes exists: it is left as it is")
      ->excludes("--force");
  AddDuration(*init, "--max-ttl", arguments->max_ttl, "longest ttl of a lock, e.g. 30s");
  init->add_option("--timeout", arguments->timeout_s, "seconds to wait for all nodes");
  init->callback([&run, arguments] { run = [arguments] { return LocksInit(*arguments); }; });

  CLI::App* status = locks->add_subcommand("status", "the nodes, the quorum, the clocks, memory");
  AddLockNodeOptions(*status, arguments->nodes);
  status->add_flag("--json", arguments->json, "one JSON object");
  status->callback([&run, arguments] { run = [arguments] { return LocksStatus(*arguments); }; });

  CLI::App* inspect = locks->add_subcommand("inspect", "the state of names on each node");
  AddLockServerOptions(*inspect, arguments->nodes);
  AddBeside(*inspect, arguments->nodes.pipeline.beside);
  inspect->add_option("NAME", arguments->words,
                      "names; without --redis a pipeline file, then ids of its records");
  inspect->add_option("--namespace", arguments->name_space,
                      "where the names are (default; with a file: its pipeline's name)");
  inspect->add_flag("--json", arguments->json, "one JSON array");
  inspect->callback([&run, arguments] { run = [arguments] { return LocksInspect(*arguments); }; });
}

}  // namespace fencepost::cli
