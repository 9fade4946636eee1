#include "tests/bench/benches.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/bench/shared/run.h"
#include "tests/bench/shared/turns.h"

namespace fencepost::bench {
namespace {

using testing::TcpProxy;
using Place = StreamOptions::Place;

constexpr int kMostNodes = 7;
constexpr std::size_t kNodes = 5;
constexpr int kPartitions = 12;
constexpr double kSeconds = 4;  // of a run at most, its start and end not counted
constexpr std::int64_t kRecords = 100'000;
constexpr std::int64_t kMostBytes = 256 << 20;  // of a topic

class Growth {
 public:
  explicit Growth(const Options& options)
      : options_(options), servers_(options.fsync, kMostNodes) {}

  void Partitions();
  void Nodes();
  void Bytes();
  void InFlight();
  void Duplicates();
  void Contended();
  void Ledger();
  void SlowNode();
  void Workers();

 private:
  [[nodiscard]] std::int64_t Records() const { return options_.records.value_or(kRecords); }
  [[nodiscard]] Run Plan(const std::string& by) const;
  // One point. `prepare` is what a round begins with, instead of a Reset.
  void Measure(const std::string& curve, const Json& x, const Run& run,
               const std::function<void()>& prepare = {});
  // A point for each x and way to identify records.
  void Each(const std::string& curve, const std::vector<int>& points,
            const std::function<void(Run&, int x)>& change);

  const Options& options_;
  Servers servers_;
};

Run Growth::Plan(const std::string& by) const {
  std::vector<std::string> nodes = servers_.redis.addresses();
  nodes.resize(kNodes);
  return {.by = by,
          .stream = {.partitions = kPartitions, .records = Records()},
          .nodes = std::move(nodes),
          .set = options_.set,
          .limit_s = options_.seconds.value_or(kSeconds)};
}

void Growth::Measure(const std::string& curve, const Json& x, const Run& run,
                     const std::function<void()>& prepare) {
  const auto turn = [&]() -> Figures {
    prepare ? prepare() : servers_.Reset(run.nodes.size());
    const RunResult result = RunWorkers(servers_, run);
    return Figures{{"records_per_s", result.processed_per_s}} + result.cpu;
  };
  TakeTurns({.bench = "growth",
             .of = Of(options_, {{"curve", curve}, {"x", x}, {"by", run.by}}),
             .words = "",
             .rounds = options_.rounds.value_or(1)},
            {{.name = run.workers == 1 ? "1 worker" : fmt::format("{} workers", run.workers),
              .turn = turn}});
}

void Growth::Each(const std::string& curve, const std::vector<int>& points,
                  const std::function<void(Run&, int x)>& change) {
  for (const std::string& by : options_.by) {
    for (const int x : points) {
      Run run = Plan(by);
      change(run, x);
      Measure(curve, x, run);
    }
  }
}

void Growth::Partitions() {
  Each("partitions", {1, 12, 100, 1000}, [](Run& run, int x) { run.stream.partitions = x; });
}

void Growth::Nodes() {
  Each("nodes", {1, 3, 5, 7}, [this](Run& run, int x) {
    run.nodes = servers_.redis.addresses();
    run.nodes.resize(static_cast<std::size_t>(x));
  });
}

void Growth::Bytes() {
  Each("bytes", {64, 256, 1024, 16'384, 131'072, 1'048'576}, [this](Run& run, int x) {
    run.stream.bytes = static_cast<std::size_t>(x);
    run.stream.records = std::min(Records(), kMostBytes / x);
  });
}

void Growth::InFlight() {
  Each("in-flight", {1, 10, 100, 1'000, 10'000, 50'000}, [](Run& run, int x) {
    run.set.push_back(fmt::format("processing.max_in_flight={}", x));
    run.set.emplace_back("processing.max_in_flight_bytes=1GiB");
  });
}

void Growth::Workers() {
  Each("workers", {1, 2, 3, 4}, [](Run& run, int x) { run.workers = x; });
}

// So many in a hundred records have an id that was done before, with another topic.
void Growth::Duplicates() {
  for (const std::int64_t percent : {0, 10, 50, 90, 100}) {
    Run run = Plan("id");
    Run before = run;
    before.stream.records = Records() / 100 * percent;
    before.stream.place = [percent](std::int64_t n) {
      return Place{n / percent * 100 + n % percent, static_cast<std::int32_t>(n % kPartitions)};
    };
    before.limit_s.reset();
    run.stream.records = Records() / 100 * 100;
    run.effects = run.stream.records;
    Measure("duplicates", percent, run, [this, before] {
      servers_.Reset();
      if (before.stream.records > 0) RunWorkers(servers_, before);
    });
  }
}

// So many in a hundred records have a rival of the same id, with the same content, in the same
// place of another worker's partition.
void Growth::Contended() {
  for (const std::int64_t percent : {0, 10, 25, 50}) {
    Run run = Plan("id");
    run.workers = 2;
    run.stream.records = Records() / 200 * 200;
    run.stream.place = [percent](std::int64_t n) {
      const std::int64_t pair = n / 2;
      const std::int64_t rival = n % 2;
      return Place{pair % 100 < percent ? pair * 2 : n,
                   static_cast<std::int32_t>(rival * (kPartitions / 2) + pair % (kPartitions / 2))};
    };
    run.effects = run.stream.records - run.stream.records / 200 * percent;
    Measure("contended", percent, run);
  }
}

// The ledger keeps its rows from point to point; ids are spread over all of it, as random ones are.
void Growth::Ledger() {
  constexpr std::int64_t kSpread = 7'777'777'777;  // prime to 10^10: no two are the same
  constexpr std::int64_t kIds = 10'000'000'000;
  constexpr std::int64_t kFilledFrom = 1'000'000'000;
  constexpr std::int64_t kOfOneRun = 10'000'000;
  servers_.Reset();
  std::int64_t filled = 0;
  std::int64_t runs = 0;
  for (const std::int64_t rows : options_.ledger_rows) {
    Run run = Plan("id");
    run.stream.place = [&runs](std::int64_t n) {
      return Place{(runs * kOfOneRun + n) * kSpread % kIds,
                   static_cast<std::int32_t>(n % kPartitions)};
    };
    Measure("ledger", rows, run, [&] {
      ++runs;
      servers_.NewEffects();
      servers_.postgres.Exec(fmt::format(
          "INSERT INTO fencepost_ledger SELECT 'bench', 'o-' || lpad((g * {} % {})::text, 10, '0'),"
          " 1, 'fill', 'orders/0/' || g, 0, now() FROM generate_series({}, {}) g",
          kSpread, kIds, kFilledFrom + filled, kFilledFrom + rows - 1));
      filled = std::max(filled, rows);
      servers_.postgres.Exec("ANALYZE fencepost_ledger");
      servers_.postgres.Exec("CHECKPOINT");
      ResetStore(servers_.redis, kNodes);
    });
  }
}

void Growth::SlowNode() {
  struct Fault {
    const char* name;
    std::function<void(TcpProxy&)> make;
  };
  const auto slow = [](int ms) {
    return [ms](TcpProxy& proxy) {
      proxy.Delay(std::chrono::milliseconds(ms), TcpProxy::Way::kToClient);
    };
  };
  const std::vector<Fault> faults{{"none", [](TcpProxy&) {}},
                                  {"10 ms late", slow(10)},
                                  {"100 ms late", slow(100)},
                                  {"frozen", [](TcpProxy& proxy) { proxy.BlackHole(); }},
                                  {"dead", [](TcpProxy& proxy) { proxy.Refuse(); }}};
  for (const std::string& by : options_.by) {
    for (const Fault& fault : faults) {
      TcpProxy proxy(servers_.redis[0].port());  // also where there is no fault
      Run run = Plan(by);
      run.nodes.front() = proxy.address();
      run.before_open = [&] { fault.make(proxy); };
      Measure("slow-node", fault.name, run);
    }
  }
}

}  // namespace

void RunGrowthBench(const Options& options) {
  struct Curve {
    std::string name;
    void (Growth::*measure)();
  };
  const std::vector<Curve> curves{
      {"partitions", &Growth::Partitions}, {"nodes", &Growth::Nodes},
      {"bytes", &Growth::Bytes},           {"in-flight", &Growth::InFlight},
      {"duplicates", &Growth::Duplicates}, {"contended", &Growth::Contended},
      {"ledger", &Growth::Ledger},         {"slow-node", &Growth::SlowNode},
      {"workers", &Growth::Workers}};
  for (const std::string& wanted : options.curves) {
    if (std::ranges::find(curves, wanted, &Curve::name) != curves.end()) continue;
    std::vector<std::string> names;
    for (const Curve& curve : curves) names.push_back(curve.name);
    throw std::invalid_argument(
        fmt::format("no curve {}: there are {}", wanted, fmt::join(names, ", ")));
  }
  Growth growth(options);
  for (const Curve& curve : curves) {
    const bool wanted = options.curves.empty() ||
                        std::ranges::find(options.curves, curve.name) != options.curves.end();
    if (wanted) (growth.*curve.measure)();
  }
}

}  // namespace fencepost::bench
