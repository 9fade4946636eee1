// What `./dev bench` runs. Every figure is measured beside the least that the same work costs (the
// floor), in turns on the same servers; only the ratios mean something.
#include <cstdio>
#include <exception>

#include <CLI/CLI.hpp>

#include "tests/bench/locks.h"
#include "tests/bench/peers.h"
#include "tests/bench/pipeline.h"
#include "tests/bench/scrape.h"

int main(int argc, char** argv) {
  CLI::App app("measures fencepost against the floor; a table on stderr, JSON lines on stdout");
  std::string what;
  int rounds = 0;
  fencepost::bench::LocksBench locks;
  fencepost::bench::PipelineBench pipeline;
  fencepost::bench::PeersBench peers;
  app.add_option("WHAT", what,
                 "locks, pipeline, floor (both, the floors alone), peers, or scrape; default: the "
                 "first two")
      ->check(CLI::IsMember({"locks", "pipeline", "floor", "peers", "scrape"}));
  app.add_option("--rounds", rounds, "of each measurement; default 5 (locks), 3 (pipeline)")
      ->check(CLI::Range(1, 1000));
  app.add_option("--in-flight", locks.in_flight, "locks at a time: 1,16,256,4096")
      ->delimiter(',')
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--seconds", locks.seconds, "of one side in one round of locks")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  app.add_option("--records", pipeline.records, "in the topic")
      ->check(CLI::Range(1, 100'000'000))
      ->capture_default_str();
  app.add_option("--workers", pipeline.workers, "numbers of worker processes: 1,3")
      ->delimiter(',')
      ->check(CLI::IsMember({1, 2, 3, 4, 6, 12}));
  app.add_option("--peer", peers.programs,
                 "of peers: a program that takes the options of bench locks")
      ->check(CLI::ExistingFile);
  app.add_flag("--done", locks.done, "of locks: mark each name done instead of releasing it");
  app.add_flag("!--no-fsync", pipeline.fsync, "PostgreSQL without fsync");
  app.add_flag("--to-topic", pipeline.to_topic, "Kafka to Kafka in transactions, without a floor");
  CLI11_PARSE(app, argc, argv);
  if (rounds > 0) locks.rounds = pipeline.rounds = rounds;
  locks.floor_only = pipeline.floor_only = what == "floor";
  if (rounds > 0) peers.rounds = rounds;
  if (app.count("--in-flight") > 0) peers.in_flight = locks.in_flight;
  if (app.count("--seconds") > 0) peers.seconds = locks.seconds;
  try {
    if (what == "scrape") {
      fencepost::bench::RunScrapeBench({});
      return 0;
    }
    if (what == "peers") {
      fencepost::bench::RunPeersBench(peers);
      return 0;
    }
    if (what != "pipeline") fencepost::bench::RunLocksBench(locks);
    if (what != "locks") fencepost::bench::RunPipelineBench(pipeline);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
