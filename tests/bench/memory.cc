#include "tests/bench/benches.h"

#include <stdexcept>

#include <fmt/format.h>

#include "consumer/cli/bench.h"
#include "tests/bench/shared/run.h"
#include "tests/bench/shared/turns.h"

namespace fencepost::bench {
namespace {

constexpr int kNodes = 5;
// After the last effect, before a worker counts as idle: leases that were left behind end within
// lock.ttl (10 s) and are forgotten then, which belongs to the load.
constexpr double kSettle_s = 15;

void PassSeconds(double seconds) {
  const auto start = Clock::now();
  testing::RequireWithin(std::chrono::hours(1), "an idle time",
                         [&] { return SecondsSince(start) >= seconds; });
}

Figures Worker(Servers& servers, const std::string& by, const Options& options) {
  servers.Reset();
  const double idle_s = options.seconds.value_or(10);
  Figures figures;
  const auto look = [&](Workers& workers) {
    const pid_t pid = workers.Pids().front();
    const double peak = PeakResidentMib(pid);
    PassSeconds(kSettle_s);
    const double before = CpuSeconds(pid);
    const double nodes_before = CpuSeconds(Pids(servers.redis));
    const auto start = Clock::now();
    PassSeconds(idle_s);
    const double took = SecondsSince(start);
    figures = {
        {"peak_mib", peak},
        {"idle_mib", ResidentMib(pid)},
        {"idle_cpu_percent", (CpuSeconds(pid) - before) / took * 100},
        {"idle_nodes_cpu_percent", (CpuSeconds(Pids(servers.redis)) - nodes_before) / took * 100}};
  };
  const RunResult result =
      RunWorkers(servers, {.by = by,
                           .stream = {.records = options.records.value_or(300'000)},
                           .set = options.set,
                           .at_end = look});
  figures.emplace_back("records_per_s", result.per_s);
  return figures;
}

// Of all nodes together: memory that Redis accounts for, and names.
struct Held {
  double bytes = 0, names = 0;
};

Held HeldBy(testing::RedisServers& servers) {
  Held held;
  for (std::size_t node = 0; node < servers.size(); ++node) {
    constexpr std::string_view kUsed = "used_memory:";
    const std::string info = servers[node].Command({"INFO", "memory"});
    const std::size_t at = info.find(kUsed);
    if (at == std::string::npos) throw std::runtime_error("a node does not tell its memory");
    held.bytes += std::stod(info.substr(at + kUsed.size()));
    held.names += std::stod(servers[node].Command({"DBSIZE"}));
  }
  return held;
}

Figures Node(testing::RedisServers& servers, const std::string& contact, double seconds) {
  ResetStore(servers, kNodes);
  const Held before = HeldBy(servers);
  cli::LockNodes nodes;
  nodes.redis.nodes = servers.addresses();
  nodes.lock.contact = contact == "all" ? locking::Contact::kAll : locking::Contact::kQuorum;
  cli::BenchLocks(nodes, 256, seconds, true);
  const Held after = HeldBy(servers);
  const double names = after.names - before.names;
  if (names < 1) throw std::runtime_error("no name is remembered");
  return {{"bytes_per_name", (after.bytes - before.bytes) / names},
          {"names_per_node", names / kNodes}};
}

// What no value can go below: names as long with a value of one byte and an expiry, at one node,
// as many as fill its hash table about as well.
Figures NodeFloor(testing::RedisServers& servers) {
  constexpr int kNames = 30'000;
  ResetStore(servers, kNodes);
  const Held before = HeldBy(servers);
  for (int i = 0; i < kNames; ++i) {
    servers[0].Command({"SET", fmt::format("fencepost:{{bench}}:{:021}", i), "x", "PX", "600000"});
  }
  const Held after = HeldBy(servers);
  return {{"bytes_per_name", (after.bytes - before.bytes) / (after.names - before.names)},
          {"names_per_node", kNames}};
}

}  // namespace

void RunMemoryBench(const Options& options) {
  Servers servers(options.fsync);
  std::vector<Side> sides;
  for (const std::string& by : options.by) {
    sides.push_back({.name = "by " + by, .turn = [&, by] { return Worker(servers, by, options); }});
  }
  TakeTurns({.bench = "memory",
             .of = Of(options, {{"records", options.records.value_or(300'000)}}),
             .words = "one worker, 12 partitions",
             .rounds = options.rounds.value_or(1)},
            std::move(sides));
}

void RunNodeMemoryBench(const Options& options) {
  testing::RedisServers servers(kNodes);
  std::vector<Side> sides{
      {.name = "floor", .reference = true, .turn = [&] { return NodeFloor(servers); }}};
  for (const std::string& contact : options.contact) {
    sides.push_back({.name = "contact " + contact, .turn = [&, contact] {
                       return Node(servers, contact, options.seconds.value_or(3));
                     }});
  }
  TakeTurns({.bench = "node-memory",
             .of = {{"nodes", kNodes}},
             .words = "acquire + done of fresh names of 39 bytes, then used_memory; floor: as "
                      "long a name with a value of one byte and an expiry",
             .rounds = options.rounds.value_or(3)},
            std::move(sides));
}

}  // namespace fencepost::bench
