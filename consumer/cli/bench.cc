// fencepost bench locks: measured on the user's own servers.
#include <cstdio>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "consumer/cli/bench_locks.h"
#include "consumer/cli/shared/command.h"

namespace fencepost::cli {
namespace {

struct BenchArguments {
  LockNodeArguments nodes;
  int in_flight = 256;
  double seconds = 5;
  bool done = false;
  bool json = false;
};

int Locks(const BenchArguments& arguments) {
  const auto nodes = ResolveLockNodes(arguments.nodes);
  if (!nodes) return kUsage;
  const LockBenchResult result =
      BenchLocks(*nodes, arguments.in_flight, arguments.seconds, arguments.done);
  if (result.cycles_per_s == 0) {
    return ExitFailed("no quorum of lock nodes with a lock store; see `fencepost locks status`");
  }
  const auto print = [&result](auto format) {
    fmt::print(fmt::runtime(format), result.cycles_per_s, result.p50_ms, result.p99_ms,
               result.errors);
  };
  print(arguments.json ? R"({{"cycles_per_s":{:.0f},"p50_ms":{:.3f},"p99_ms":{:.3f},"errors":{}}})"
                         "\n"
                       : "{:.0f} cycles/s, p50 {:.3f} ms, p99 {:.3f} ms, {} errors\n");
  return result.errors == 0 ? kOk : kFailed;
}

}  // namespace

void AddBench(CLI::App& app, Run& run) {
  const auto arguments = std::make_shared<BenchArguments>();
  CLI::App* bench = app.add_subcommand("bench", "measure: locks");
  bench->require_subcommand(1);
  CLI::App* locks =
      bench->add_subcommand("locks", "acquire + release (or done) of a fresh name each");
  AddLockNodeOptions(*locks, arguments->nodes);
  locks->add_option("--in-flight", arguments->in_flight, "locks at a time")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  locks->add_option("--seconds", arguments->seconds, "how long")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  locks->add_flag("--done", arguments->done, "mark each name done instead of releasing it");
  locks->add_flag("--json", arguments->json, "one JSON object");
  locks->callback([&run, arguments] { run = [arguments] { return Locks(*arguments); }; });
}

}  // namespace fencepost::cli
