#include "tests/bench/benches.h"

#include <fmt/format.h>

#include "tests/bench/floors/floors.h"
#include "tests/bench/shared/run.h"
#include "tests/bench/shared/turns.h"

namespace fencepost::bench {
namespace {

Figures Floor(Servers& servers, std::int64_t records, int tables) {
  servers.Reset();
  Stream stream(servers.kafka, {.topic = servers.NewTopic(), .records = records});
  CpuMeter meter = servers.Meter(&OwnCpuSeconds);
  double opened = 0;
  RunPipelineFloor({.bootstrap = servers.kafka.bootstrap(),
                    .topic = stream.topic(),
                    .group = stream.topic(),
                    .dsn = servers.postgres.dsn(),
                    .partitions = stream.options().partitions,
                    .records = records,
                    .tables = tables},
                   [&] {
                     meter.Start();
                     opened = EpochSeconds();
                     stream.Open();
                   });
  const Figures cpu = meter.PerRecord(static_cast<double>(records));
  servers.CheckEffects(records, records, tables);
  return Figures{
             {"records_per_s", static_cast<double>(records) / (servers.LastCommit() - opened)}} +
         cpu;
}

void RunInto(int tables, const std::string& bench, const std::string& floor,
             const Options& options) {
  Servers servers(options.fsync);
  const std::int64_t records = options.records.value_or(300'000);
  const std::vector<int> workers =
      options.workers.empty() ? std::vector<int>{1, 3} : options.workers;
  std::vector<Side> sides{{.name = "floor", .reference = true, .turn = [&] {
                             return Floor(servers, records, tables);
                           }}};
  for (const std::string& by : options.by) {
    for (const int count : workers) {
      const Run run{.by = by,
                    .workers = count,
                    .stream = {.records = records},
                    .set = options.set,
                    .tables = tables};
      sides.push_back({.name = fmt::format("by {}, {} worker{}", by, count, count == 1 ? "" : "s"),
                       .turn = [&servers, run] {
                         servers.Reset();
                         return RunWorkers(servers, run).Told();
                       }});
    }
  }
  TakeTurns({.bench = bench,
             .of = Of(options, {{"records", records}, {"fsync", options.fsync}}),
             .words = floor,
             .rounds = options.rounds.value_or(5),
             .references_only = options.floor_only},
            std::move(sides));
}

}  // namespace

void RunPipelineBench(const Options& options) {
  RunInto(1, "pipeline", "floor: a consumer that writes effect and ledger row, without a lock",
          options);
}

void RunTablesBench(const Options& options) {
  RunInto(2, "tables", "floor: a consumer that writes two effects and ledger row, without a lock",
          options);
}

}  // namespace fencepost::bench
