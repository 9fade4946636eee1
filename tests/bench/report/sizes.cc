#include "tests/bench/report/sizes.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "tests/bench/report/chart.h"

namespace fencepost::bench {
namespace {

constexpr double kLoad = 0.5;
constexpr int kNodes = 5;             // of a group
constexpr double kAskedNodes = 3;     // of an acquire
constexpr double kLeaseBytes = 190;   // a name on a node (tests/component/quorum_lock)
constexpr double kLeaseSeconds = 20;  // lock.ttl and 2 × max_skew
constexpr double kMicros = 1e6;
constexpr double kMiB = 1024.0 * 1024.0;
constexpr const char* kBegin = "<!-- sizes -->\n";
constexpr const char* kEnd = "<!-- end of sizes -->";

std::int64_t AtLeastOne(double count) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(count)));
}

}  // namespace

std::optional<Costs> CostsOf(const std::string& by, const std::vector<Json>& measurements) {
  std::optional<Costs> costs;
  for (const Json& measured : measurements) {
    if (measured.at("bench") != "pipeline" || measured.at("of").contains("set")) continue;
    for (const Json& side : measured.at("sides")) {
      if (side.at("name") != "by " + by + ", 1 worker") continue;
      const Json& figures = side.at("figures");
      costs = {.client_us = figures.at("client_us"),
               .redis_us = figures.at("redis_us"),
               .postgres_us = figures.at("postgres_us"),
               .kafka_us = figures.at("kafka_us"),
               .records_per_s = figures.at("records_per_s")};
    }
  }
  return costs;
}

Fleet FleetFor(double records_per_s, const Costs& costs, bool by_position) {
  const auto cores = [&](double us) { return records_per_s * us / kMicros / kLoad; };
  Fleet fleet{};
  const double workers = records_per_s / costs.records_per_s / kLoad;
  fleet.workers = std::max<std::int64_t>(2, AtLeastOne(workers));
  fleet.worker_cores = cores(costs.client_us);
  // A node works on one core, and each group takes its share of the names.
  fleet.groups = AtLeastOne(cores(costs.redis_us) / kNodes);
  const auto groups = static_cast<double>(fleet.groups);
  fleet.node_load = cores(costs.redis_us) * kLoad / kNodes / groups;
  const double names = by_position ? 0 : records_per_s * kLeaseSeconds;
  fleet.node_mib = names * kAskedNodes / kNodes * kLeaseBytes / kMiB / groups;
  fleet.database_cores = cores(costs.postgres_us);
  fleet.broker_cores = cores(costs.kafka_us);
  fleet.connections = fleet.workers;
  return fleet;
}

std::string SizesTable(const std::vector<Json>& measurements) {
  std::string text =
      "| records/s | by | worker processes | their cores | groups of 5 lock nodes | load of a "
      "node, % of a core | leases on a node, MiB | database cores | broker cores "
      "| connections of a node, of the database |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const std::int64_t rate : {10'000, 100'000, 1'000'000, 10'000'000}) {
    for (const char* by : {"position", "id"}) {
      const auto costs = CostsOf(by, measurements);
      if (!costs) continue;
      const Fleet fleet =
          FleetFor(static_cast<double>(rate), *costs, std::string_view(by) == "position");
      text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
                          fmt::group_digits(rate), by, fleet.workers, Number(fleet.worker_cores),
                          fleet.groups, Number(fleet.node_load * 100), Number(fleet.node_mib),
                          Number(fleet.database_cores), Number(fleet.broker_cores),
                          fleet.connections);
    }
  }
  return text;
}

std::string WithSizes(const std::string& document, const std::vector<Json>& measurements) {
  const std::size_t begin = document.find(kBegin);
  const std::size_t end = document.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) {
    throw std::runtime_error("the marks of the table of sizes are missing");
  }
  const std::size_t from = begin + std::string_view(kBegin).size();
  return document.substr(0, from) + SizesTable(measurements) + document.substr(end);
}

}  // namespace fencepost::bench
