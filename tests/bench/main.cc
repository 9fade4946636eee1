// What `./dev bench` runs. Every figure is measured beside the least that the same work costs (the
// floor), in turns on the same servers; only the ratios mean something.
#include <cstdio>
#include <exception>
#include <map>

#include <CLI/CLI.hpp>

#include "tests/bench/benches.h"
#include "tests/bench/floors/http_server.h"

namespace fencepost::bench {
namespace {

const std::map<std::string, void (*)(const Options&)>& Measurements() {
  static const std::map<std::string, void (*)(const Options&)> all{
      {"locks", &RunLocksBench},
      {"peers", &RunPeersBench},
      {"pipeline", &RunPipelineBench},
      {"tables", &RunTablesBench},
      {"kafka", &RunKafkaBench},
      {"handler", &RunHandlerBench},
      {"latency", &RunLatencyBench},
      {"memory", &RunMemoryBench},
      {"node-memory", &RunNodeMemoryBench},
      {"growth", &RunGrowthBench},
      {"scrape", &RunScrapeBench},
      {"dirty", &RunDirtyBench}};
  return all;
}

void AddOptions(CLI::App& app, Options& options) {
  app.add_option("CURVE", options.curves, "of growth; of dirty a pipeline, 0 to 5; none: all");
  app.add_option("--rounds", options.rounds, "of each side")->check(CLI::Range(1, 1000));
  app.add_option("--seconds", options.seconds, "of one side in one round, where time bounds it")
      ->check(CLI::Range(0.1, 3600.0));
  app.add_option("--records", options.records, "of a run")->check(CLI::Range(1, 100'000'000));
  app.add_option("--in-flight", options.in_flight, "of locks, peers and handler: 1,256")
      ->delimiter(',')
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--workers", options.workers, "of pipeline and kafka: processes, 1,3")
      ->delimiter(',')
      ->check(CLI::IsMember({1, 2, 3, 4, 6, 12}));
  app.add_option_function<std::string>(
         "--by",
         [&options](const std::string& by) {
           if (by != "all") options.by = {by};
         },
         "position, block (position with lock.block 1024), id, or all")
      ->check(CLI::IsMember({"position", "block", "id", "all"}));
  app.add_option("--contact", options.contact,
                 "of locks and node-memory: quorum, all (default: both)")
      ->delimiter(',')
      ->check(CLI::IsMember({"quorum", "all"}));
  app.add_option("--set", options.set, "PATH=VALUE into the pipeline file: lock.block=64");
  app.add_option("--ledger-rows", options.ledger_rows, "of growth ledger: 0,1000000,100000000")
      ->delimiter(',')
      ->check(CLI::Range(0, 100'000'000));
  app.add_option("--peer", options.peers, "of peers: a program that takes bench locks' options")
      ->check(CLI::ExistingFile);
  app.add_option("--streams", options.streams, "of kafka: the folder with Kafka Streams' jars")
      ->check(CLI::ExistingDirectory);
  app.add_flag("--done", options.done, "of locks: mark each name done instead of releasing it");
  app.add_flag("!--no-fsync", options.fsync, "PostgreSQL without fsync");
  app.add_flag("--floor-only", options.floor_only, "the floors and peers alone");
}

}  // namespace
}  // namespace fencepost::bench

int main(int argc, char** argv) {
  using namespace fencepost::bench;
  CLI::App app("measures fencepost beside the floor; JSON lines on stdout");
  std::string what;
  Options options;
  std::string names;
  for (const auto& [name, run] : Measurements()) names += (names.empty() ? "" : ", ") + name;
  app.add_option("WHAT", what, names)->required();
  AddOptions(app, options);
  CLI11_PARSE(app, argc, argv);
  try {
    const auto found = Measurements().find(what);
    if (what == "serve") ServeHttp();
    if (found == Measurements().end()) {
      std::fprintf(stderr, "bench: no %s; there are %s\n", what.c_str(), names.c_str());
      return 2;
    }
    found->second(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
