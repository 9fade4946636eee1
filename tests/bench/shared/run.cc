#include "tests/bench/shared/run.h"

#include <utility>

#include "tests/bench/shared/pipeline_file.h"

namespace fencepost::bench {
namespace {

constexpr double kLookEveryS = 0.2;  // a look costs the worker time

// What the workers have processed at the last look, when it is all or the limit has passed.
struct Progress {
  double processed = 0;
  double seconds = 0;  // since the opening
};

Progress Watch(Workers& workers, double records, std::optional<double> limit_s) {
  Progress progress;
  const auto opened = Clock::now();
  const auto ended = [&] {
    if (SecondsSince(opened) - progress.seconds < kLookEveryS) return false;
    progress.processed = workers.Processed();
    progress.seconds = SecondsSince(opened);
    return progress.processed >= records ||
           (limit_s && progress.processed > 0 && progress.seconds >= *limit_s);
  };
  workers.Await(ended, "all records to be processed");
  return progress;
}

}  // namespace

RunResult RunWorkers(Servers& servers, Run run) {
  run.stream.topic = servers.NewTopic();
  if (run.nodes.empty()) run.nodes = servers.redis.addresses();
  Stream stream(servers.kafka, run.stream);
  const PipelineFile file{.bootstrap = servers.kafka.bootstrap(),
                          .topic = stream.topic(),
                          .nodes = run.nodes,
                          .by = run.by,
                          .dsn = servers.postgres.dsn(),
                          .handler_url = run.handler_url,
                          .set = run.set,
                          .tables = run.tables};
  Workers workers(file, run.workers, run.stream.partitions);
  if (run.before_open) run.before_open();
  CpuMeter meter = servers.Meter([&workers] { return CpuSeconds(workers.Pids()); });
  if (run.server) meter.Add("server_us", run.server);
  meter.Start();
  const double opened = EpochSeconds();
  stream.Open();
  const Progress progress = Watch(workers, static_cast<double>(run.stream.records), run.limit_s);
  RunResult result{.processed = static_cast<std::int64_t>(progress.processed),
                   .per_s = 0,
                   .processed_per_s = progress.processed / progress.seconds,
                   .cpu = meter.PerRecord(progress.processed)};
  if (run.at_end) run.at_end(workers);
  workers.Stop();
  const std::int64_t due = run.effects.value_or(run.stream.records);
  const bool all = result.processed >= run.stream.records;
  const std::int64_t without = run.stream.records - due;  // records that have no effect of theirs
  servers.CheckEffects(all ? due : result.processed - without, due, run.tables);
  if (all && due > 0) {
    result.per_s = static_cast<double>(result.processed) / (servers.LastCommit() - opened);
  }
  return result;
}

}  // namespace fencepost::bench
