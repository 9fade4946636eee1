#include "tests/bench/benches.h"

#include <filesystem>
#include <functional>
#include <stdexcept>

#include <fmt/format.h>

#include "consumer/cli/bench.h"
#include "tests/bench/floors/floors.h"
#include "tests/bench/shared/servers.h"
#include "tests/bench/shared/turns.h"
#include "tests/support/paths.h"

namespace fencepost::bench {
namespace {

constexpr int kNodes = 5;
constexpr double kSeconds = 1.5;  // of one side in one round

Figures RunOurs(const std::vector<std::string>& addresses, const std::string& contact,
                int in_flight, double seconds, bool done) {
  cli::LockNodes nodes;
  nodes.redis.nodes = addresses;
  nodes.lock.contact = contact == "all" ? locking::Contact::kAll : locking::Contact::kQuorum;
  const cli::LockBenchResult result = cli::BenchLocks(nodes, in_flight, seconds, done);
  if (result.cycles_per_s == 0) throw std::runtime_error("no cycle was completed in time");
  if (result.errors > 0) {
    throw std::runtime_error(fmt::format("{} cycles ended without a lease", result.errors));
  }
  return {
      {"cycles_per_s", result.cycles_per_s}, {"p50_ms", result.p50_ms}, {"p99_ms", result.p99_ms}};
}

Figures RunProgram(std::vector<std::string> argv, const std::string& nodes, int in_flight,
                   double seconds) {
  for (const std::string& word :
       {std::string("--redis"), nodes, std::string("--in-flight"), std::to_string(in_flight),
        std::string("--seconds"), fmt::format("{}", seconds)}) {
    argv.push_back(word);
  }
  const auto ended = testing::RunToEnd({.argv = argv});
  const auto json = Json::parse(ended.output, nullptr, false);
  if (ended.exit_code != 0 || !json.is_object()) {
    throw std::runtime_error(argv.front() + ": " + ended.output);
  }
  if (json.at("errors").get<int>() > 0) {
    fmt::print(stderr, "{}: {} cycles without a lock\n", argv.front(), json.at("errors").dump());
  }
  Figures figures;
  for (const char* name : {"cycles_per_s", "p50_ms", "p99_ms"}) {
    figures.emplace_back(name, json.at(name).get<double>());
  }
  return figures;
}

std::vector<int> InFlight(const Options& options, std::vector<int> otherwise) {
  return options.in_flight.empty() ? std::move(otherwise) : options.in_flight;
}

}  // namespace

void RunLocksBench(const Options& options) {
  testing::RedisServers servers(kNodes);
  const auto addresses = servers.addresses();
  const auto redis = Pids(servers);
  const double seconds = options.seconds.value_or(kSeconds);
  // Each turn finds no more than the sentinel.
  const auto turn = [&](const std::function<Figures()>& run) {
    ResetStore(servers, kNodes);
    CpuMeter meter;
    meter.Add("client_us", &OwnCpuSeconds);
    meter.Add("redis_us", [&redis] { return CpuSeconds(redis); });
    meter.Start();
    const Figures cycles = run();
    return cycles + meter.PerRecord(cycles.front().second * seconds);
  };
  for (const int in_flight : InFlight(options, {1, 16, 256, 4096})) {
    std::vector<Side> sides{{.name = "floor", .reference = true, .turn = [&, in_flight] {
                               return turn(
                                   [&] { return RunLockFloor(addresses, in_flight, seconds); });
                             }}};
    for (const std::string& contact : options.contact) {
      sides.push_back({.name = "ours, " + contact, .turn = [&, in_flight, contact] {
                         return turn([&] {
                           return RunOurs(addresses, contact, in_flight, seconds, options.done);
                         });
                       }});
    }
    TakeTurns({.bench = "locks",
               .of = {{"in_flight", in_flight}, {"then", options.done ? "done" : "release"}},
               .words = "floor: SET NX PX, then compare-and-delete, on five nodes",
               .rounds = options.rounds.value_or(5),
               .references_only = options.floor_only},
              std::move(sides));
  }
}

void RunPeersBench(const Options& options) {
  testing::RedisServers servers(kNodes);
  const double seconds = options.seconds.value_or(kSeconds);
  for (const int in_flight : InFlight(options, {1, 256})) {
    const auto program = [&, in_flight](std::vector<std::string> argv) {
      return [&, in_flight, argv] {
        ResetStore(servers, kNodes);
        return RunProgram(argv, servers.list(), in_flight, seconds);
      };
    };
    std::vector<Side> sides{{.name = "floor", .reference = true, .turn = [&, in_flight] {
                               ResetStore(servers, kNodes);
                               return RunLockFloor(servers.addresses(), in_flight, seconds);
                             }}};
    for (const std::string& peer : options.peers) {
      sides.push_back({.name = std::filesystem::path(peer).filename(),
                       .reference = true,
                       .turn = program({peer})});
    }
    sides.push_back({.name = "ours",
                     .turn = program({testing::FencepostBinary(), "bench", "locks", "--json"})});
    TakeTurns({.bench = "peers",
               .of = {{"in_flight", in_flight}},
               .words = "acquire + release of a fresh name on five nodes, by a process each",
               .rounds = options.rounds.value_or(5)},
              std::move(sides));
  }
}

}  // namespace fencepost::bench
