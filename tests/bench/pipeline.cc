#include "tests/bench/pipeline.h"

#include <fmt/format.h>

#include "tests/bench/floors/pipeline_floor.h"
#include "tests/bench/shared/effects.h"
#include "tests/bench/shared/run.h"
#include "tests/bench/shared/turns.h"

namespace fencepost::bench {
namespace {

Figures Told(double per_s, const Figures& cpu) {
  Figures figures{{"records_per_s", per_s}};
  figures.insert(figures.end(), cpu.begin(), cpu.end());
  return figures;
}

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
  CheckEffects(servers.postgres, records, records);
  return Told(static_cast<double>(records) / (LastCommit(servers.postgres) - opened), cpu);
}

Figures Ours(Servers& servers, Run run) {
  servers.Reset();
  const RunResult result = RunWorkers(servers, std::move(run));
  return Told(result.per_s, result.cpu);
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
                       .turn = [&servers, run] { return Ours(servers, run); }});
    }
  }
  Tell(TakeTurns({.bench = "pipeline",
                  .of = Of(options, {{"records", records}, {"fsync", options.fsync}}),
                  .words = "floor: a consumer that writes effect and ledger row, without a lock",
                  .rounds = options.rounds.value_or(5),
                  .references_only = options.floor_only},
                 std::move(sides)));
}

}  // namespace fencepost::bench
