#include "tests/bench/report/aims.h"

#include <algorithm>

namespace fencepost::bench {
namespace {

bool Has(const Json& whole, const Json& part) {
  return std::ranges::all_of(part.items(), [&whole](const auto& item) {
    return whole.contains(item.key()) && whole.at(item.key()) == item.value();
  });
}

std::optional<double> ValueOf(const Aim& aim, const Json& side) {
  if (!side.at("name").get_ref<const std::string&>().starts_with(aim.side)) return {};
  if (aim.reference.empty()) {
    const Json& figures = side.at("figures");
    return figures.contains(aim.figure) ? std::optional<double>(figures.at(aim.figure))
                                        : std::nullopt;
  }
  const auto pointer = Json::json_pointer("/ratios/" + aim.reference + "/" + aim.figure);
  return side.contains(pointer) ? std::optional<double>(side.at(pointer)) : std::nullopt;
}

}  // namespace

const std::vector<Aim>& Aims() {
  constexpr bool kLeast = true;
  constexpr bool kMost = false;
  static const std::vector<Aim> aims{
      {"Kafka → PostgreSQL by position, one worker, of the floor", "pipeline", Json::object(),
       "by position, 1 worker", "floor", "records_per_s", 1.0, kLeast},
      {"the same by id", "pipeline", Json::object(), "by id, 1 worker", "floor", "records_per_s",
       0.55, kLeast},
      {"the worker's processor time a record by position, µs", "pipeline", Json::object(),
       "by position, 1 worker", "", "client_us", 3, kMost},
      {"the same by id", "pipeline", Json::object(), "by id, 1 worker", "", "client_us", 5, kMost},
      {"Kafka → Kafka by position, of the floor", "kafka", Json::object(), "", "floor",
       "records_per_s", 0.9, kLeast},
      {"the same, of Kafka Streams", "kafka", Json::object(), "", "streams", "records_per_s", 1.0,
       kLeast},
      {"http handler, of the floor", "handler", Json::object(), "", "floor", "records_per_s", 0.7,
       kLeast},
      {"lock cycles at 256 in flight, of rslock",
       "peers",
       {{"in_flight", 256}},
       "ours",
       "rslock",
       "cycles_per_s",
       5,
       kLeast},
      {"lock cycles at 1 in flight, of the floor",
       "locks",
       {{"in_flight", 1}, {"then", "release"}},
       "ours",
       "floor",
       "cycles_per_s",
       0.9,
       kLeast},
      {"latency by position at a tenth of the peak, p50, of the floor",
       "latency",
       {{"by", "position"}},
       "",
       "floor",
       "p50_ms",
       1.5,
       kMost},
      {"p99", "latency", {{"by", "position"}}, "", "floor", "p99_ms", 1.5, kMost},
      {"the same by id, p50", "latency", {{"by", "id"}}, "", "floor", "p50_ms", 1.5, kMost},
      {"p99", "latency", {{"by", "id"}}, "", "floor", "p99_ms", 1.5, kMost},
      {"bytes on a node a remembered name", "node-memory", Json::object(), "contact", "",
       "bytes_per_name", 120, kMost},
      {"a worker's memory by position, MiB", "memory", Json::object(), "by position", "",
       "peak_mib", 150, kMost},
      {"the same by id", "memory", Json::object(), "by id", "", "peak_mib", 150, kMost},
      {"a worker's idle processor time by position, % of a core", "memory", Json::object(),
       "by position", "", "idle_cpu_percent", 1, kMost},
      {"the same by id", "memory", Json::object(), "by id", "", "idle_cpu_percent", 1, kMost}};
  return aims;
}

std::optional<double> Measured(const Aim& aim, const std::vector<Json>& measurements) {
  std::optional<double> best;
  for (const Json& measured : measurements) {
    if (measured.at("bench") != aim.bench || measured.at("of").contains("set") ||
        !Has(measured.at("of"), aim.of)) {
      continue;
    }
    for (const Json& side : measured.at("sides")) {
      const auto value = ValueOf(aim, side);
      if (!value) continue;
      if (!best || (aim.at_least ? *value > *best : *value < *best)) best = value;
    }
  }
  return best;
}

bool Reached(const Aim& aim, double measured) {
  return aim.at_least ? measured >= aim.bound : measured <= aim.bound;
}

}  // namespace fencepost::bench
