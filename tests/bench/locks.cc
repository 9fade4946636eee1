#include "tests/bench/locks.h"

#include <cstdio>
#include <functional>
#include <stdexcept>

#include <fmt/format.h>

#include "consumer/cli/bench_locks.h"
#include "tests/bench/lock_floor.h"
#include "tests/bench/measure.h"
#include "tests/bench/store.h"

namespace fencepost::bench {
namespace {

constexpr int kNodes = 5;

// One side's rounds at one number in flight.
struct Side {
  std::vector<double> cycles_per_s, p50_ms, p99_ms, client_us, redis_us;

  void Measure(const std::vector<pid_t>& redis, double seconds,
               const std::function<CycleFigures()>& run) {
    const double client = OwnCpuSeconds();
    const double nodes = CpuSeconds(redis);
    const CycleFigures figures = run();
    const double cycles = figures.cycles_per_s * seconds;
    cycles_per_s.push_back(figures.cycles_per_s);
    p50_ms.push_back(figures.p50_ms);
    p99_ms.push_back(figures.p99_ms);
    client_us.push_back((OwnCpuSeconds() - client) * 1e6 / cycles);
    redis_us.push_back((CpuSeconds(redis) - nodes) * 1e6 / cycles);
  }

  [[nodiscard]] std::string Json() const {
    return fmt::format(R"({{"cycles_per_s":{:.0f},"p50_ms":{:.3f},"p99_ms":{:.3f},)"
                       R"("client_us":{:.1f},"redis_us":{:.1f}}})",
                       Median(cycles_per_s), Median(p50_ms), Median(p99_ms), Median(client_us),
                       Median(redis_us));
  }
  void PrintRow(const char* name) const {
    fmt::print(stderr, "{:>9} {:>10} {:>9.0f} {:>9.3f} {:>9.3f} {:>12.1f} {:>12.1f}", "", name,
               Median(cycles_per_s), Median(p50_ms), Median(p99_ms), Median(client_us),
               Median(redis_us));
  }
};

CycleFigures RunOurs(const std::vector<std::string>& addresses, int in_flight, double seconds,
                     bool done) {
  cli::LockNodes nodes;
  nodes.redis.nodes = addresses;
  const cli::LockBenchResult result = cli::BenchLocks(nodes, in_flight, seconds, done);
  if (result.cycles_per_s == 0) throw std::runtime_error("no cycle was completed in time");
  if (result.errors > 0) {
    throw std::runtime_error(fmt::format("{} cycles ended without a lease", result.errors));
  }
  return {result.cycles_per_s, result.p50_ms, result.p99_ms};
}

}  // namespace

void RunLocksBench(const LocksBench& bench) {
  testing::RedisServers servers(kNodes);
  const auto addresses = servers.addresses();
  const auto redis = Pids(servers);
  fmt::print(stderr,
             "locks: acquire + {} over {} nodes, floor = SET NX PX + compare-and-delete; medians "
             "of {} rounds of {} s; load {:.1f}\n{:>9} {:>10} {:>9} {:>9} {:>9} {:>12} {:>12}\n",
             bench.done ? "done" : "release", kNodes, bench.rounds, bench.seconds, LoadAverage(),
             "in flight", "", "cycles/s", "p50 ms", "p99 ms", "client us", "redis us");
  for (const int in_flight : bench.in_flight) {
    Side floor, ours;
    std::vector<double> ratios;
    for (int round = 0; round < bench.rounds; ++round) {
      ResetStore(servers);  // each side finds no more than the sentinel
      floor.Measure(redis, bench.seconds,
                    [&] { return RunLockFloor(addresses, in_flight, bench.seconds); });
      if (bench.floor_only) continue;
      ResetStore(servers);
      ours.Measure(redis, bench.seconds,
                   [&] { return RunOurs(addresses, in_flight, bench.seconds, bench.done); });
      ratios.push_back(ours.cycles_per_s.back() / floor.cycles_per_s.back());
    }
    fmt::print(stderr, "{:>9}\n", in_flight);
    floor.PrintRow("floor");
    fmt::print(stderr, "\n");
    if (!bench.floor_only) {
      ours.PrintRow("ours");
      fmt::print(stderr, "  ratio {:.3f}\n", Median(ratios));
    }
    fmt::print(R"({{"bench":"locks","in_flight":{},"floor":{})", in_flight, floor.Json());
    if (!bench.floor_only) {
      fmt::print(R"(,"ours":{},"ratio":{:.3f})", ours.Json(), Median(ratios));
    }
    fmt::print(R"(,"load":{:.1f}}})"
               "\n",
               LoadAverage());
    std::fflush(stdout);
  }
}

}  // namespace fencepost::bench
