#include "tests/bench/peers.h"

#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/bench/lock_floor.h"
#include "tests/bench/measure.h"
#include "tests/bench/store.h"
#include "tests/support/paths.h"

namespace fencepost::bench {
namespace {

constexpr int kNodes = 5;

struct Side {
  std::string name;
  std::vector<std::string> command;  // empty: the floor, in this process
  std::vector<double> cycles_per_s, p50_ms, ratios;
};

CycleFigures RunProgram(const Side& side, const std::string& nodes, int in_flight, double seconds) {
  std::vector<std::string> argv = side.command;
  for (const std::string& word :
       {std::string("--redis"), nodes, std::string("--in-flight"), std::to_string(in_flight),
        std::string("--seconds"), fmt::format("{}", seconds)}) {
    argv.push_back(word);
  }
  const auto ended = testing::RunToEnd({.argv = argv});
  const auto json = nlohmann::json::parse(ended.output, nullptr, false);
  if (ended.exit_code != 0 || !json.is_object()) {
    throw std::runtime_error(side.name + ": " + ended.output);
  }
  if (json.at("errors").get<int>() > 0) {
    fmt::print(stderr, "{}: {} cycles without a lock\n", side.name, json.at("errors").dump());
  }
  return {json.at("cycles_per_s"), json.at("p50_ms"), json.at("p99_ms")};
}

}  // namespace

void RunPeersBench(const PeersBench& bench) {
  testing::RedisServers servers(kNodes);
  fmt::print(stderr, "peers: acquire + release over {} nodes; medians of {} rounds of {} s\n",
             kNodes, bench.rounds, bench.seconds);
  for (const int in_flight : bench.in_flight) {
    std::vector<Side> sides = {{"ours", {testing::FencepostBinary(), "bench", "locks", "--json"}},
                               {"floor", {}}};
    for (const std::string& program : bench.programs) {
      sides.push_back({std::filesystem::path(program).filename(), {program}});
    }
    for (int round = 0; round < bench.rounds; ++round) {
      for (Side& side : sides) {
        ResetStore(servers);  // each side finds no more than the sentinel
        const CycleFigures figures =
            side.command.empty() ? RunLockFloor(servers.addresses(), in_flight, bench.seconds)
                                 : RunProgram(side, servers.list(), in_flight, bench.seconds);
        side.cycles_per_s.push_back(figures.cycles_per_s);
        side.p50_ms.push_back(figures.p50_ms);
        side.ratios.push_back(sides[0].cycles_per_s.back() / figures.cycles_per_s);
      }
    }
    std::string json = fmt::format(R"({{"bench":"peers","in_flight":{})", in_flight);
    fmt::print(stderr, "{:>9} in flight\n", in_flight);
    for (const Side& side : sides) {
      fmt::print(stderr, "{:>20} {:>9.0f} cycles/s  p50 {:>8.3f} ms  ours / it {:.2f}\n", side.name,
                 Median(side.cycles_per_s), Median(side.p50_ms), Median(side.ratios));
      json += fmt::format(R"(,"{}":{{"cycles_per_s":{:.0f},"p50_ms":{:.3f},"ratio":{:.3f}}})",
                          side.name, Median(side.cycles_per_s), Median(side.p50_ms),
                          Median(side.ratios));
    }
    fmt::print("{},\"load\":{:.1f}}}\n", json, LoadAverage());
    std::fflush(stdout);
  }
}

}  // namespace fencepost::bench
