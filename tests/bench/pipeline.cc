#include "tests/bench/benches.h"

#include <fmt/format.h>

#include "tests/bench/floors/floors.h"
#include "tests/bench/shared/run.h"
#include "tests/bench/shared/turns.h"

namespace fencepost::bench {
namespace {

Figures Floor(Servers& servers, std::int64_t records) {
  servers.Reset();
  Stream stream(servers.kafka, {.topic = servers.NewTopic(), .records = records});
  CpuMeter meter = servers.Meter(&OwnCpuSeconds);
  double opened = 0;
  RunPipelineFloor({.bootstrap = servers.kafka.bootstrap(),
                    .topic = stream.topic(),
                    .group = stream.topic(),
                    .dsn = servers.postgres.dsn(),
                    .partitions = stream.options().partitions,
                    .records = records},
                   [&] {
                     meter.Start();
                     opened = EpochSeconds();
                     stream.Open();
                   });
  const Figures cpu = meter.PerRecord(static_cast<double>(records));
  servers.CheckEffects(records, records);
  return Figures{
             {"records_per_s", static_cast<double>(records) / (servers.LastCommit() - opened)}} +
         cpu;
}

}  // namespace

void RunPipelineBench(const Options& options) {
  Servers servers(options.fsync);
  const std::int64_t records = options.records.value_or(300'000);
  const std::vector<int> workers =
      options.workers.empty() ? std::vector<int>{1, 3} : options.workers;
  std::vector<Side> sides{
      {.name = "floor", .reference = true, .turn = [&] { return Floor(servers, records); }}};
  for (const std::string& by : options.by) {
    for (const int count : workers) {
      const Run run{.by = by, .workers = count, .stream = {.records = records}, .set = options.set};
      sides.push_back({.name = fmt::format("by {}, {} worker{}", by, count, count == 1 ? "" : "s"),
                       .turn = [&servers, run] {
                         servers.Reset();
                         return RunWorkers(servers, run).Told();
                       }});
    }
  }
  TakeTurns({.bench = "pipeline",
             .of = Of(options, {{"records", records}, {"fsync", options.fsync}}),
             .words = "floor: a consumer that writes effect and ledger row, without a lock",
             .rounds = options.rounds.value_or(5),
             .references_only = options.floor_only},
            std::move(sides));
}

}  // namespace fencepost::bench
