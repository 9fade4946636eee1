#include "tests/bench/benches.h"

#include <poll.h>

#include <algorithm>
#include <cmath>
#include <future>

#include <fmt/format.h>

#include "tests/bench/floors/floors.h"
#include "tests/bench/shared/pipeline_file.h"
#include "tests/bench/shared/run.h"
#include "tests/bench/shared/turns.h"

namespace fencepost::bench {
namespace {

constexpr int kPartitions = 12;
constexpr double kAskEveryS = 0.1;  // a look costs the worker time
constexpr double kWarmUpS = 1;      // not counted: connections and caches are made

// Sends records at an even rate; each has the microsecond at which it was sent as its amount.
void SendEvenly(Servers& servers, const std::string& topic, double per_s, std::int64_t records) {
  testing::TestProducer producer(servers.kafka.bootstrap(), "", {{"linger.ms", "0"}});
  const auto start = Clock::now();
  for (std::int64_t sent = 0; sent < records;) {
    const auto due = static_cast<std::int64_t>(SecondsSince(start) * per_s);
    for (; sent < std::min(due, records); ++sent) {
      const auto now_us = static_cast<std::int64_t>(EpochSeconds() * 1e6);
      producer.Send(topic, static_cast<std::int32_t>(sent % kPartitions), fmt::format("{}", sent),
                    RecordValue(sent, now_us, 256));
    }
    poll(nullptr, 0, 1);
  }
  producer.Flush();
}

Figures Quantiles(const Servers& servers, std::int64_t records) {
  servers.CheckEffects(records, records);
  const auto row =
      servers.postgres
          .Exec(fmt::format(
              "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY ms),"
              " percentile_cont(0.99) WITHIN GROUP (ORDER BY ms), max(ms) FROM ("
              " SELECT extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1e3 - amount / 1e3 ms"
              " FROM effects WHERE amount >= (SELECT min(amount) FROM effects) + {}) counted",
              static_cast<std::int64_t>(kWarmUpS * 1e6)))
          .at(0);
  return {{"p50_ms", std::stod(row.at(0).value_or("0"))},
          {"p99_ms", std::stod(row.at(1).value_or("0"))},
          {"worst_ms", std::stod(row.at(2).value_or("0"))}};
}

// A topic of its own while it lives.
struct Topic {
  explicit Topic(Servers& its_servers) : servers(its_servers), name(its_servers.NewTopic()) {
    servers.kafka.CreateTopic(name, kPartitions);
  }
  ~Topic() { servers.kafka.admin().DeleteTopic(name); }
  Topic(const Topic&) = delete;
  Topic& operator=(const Topic&) = delete;

  Servers& servers;
  const std::string name;
};

Figures Floor(Servers& servers, double per_s, std::int64_t records) {
  servers.Reset();
  const Topic topic(servers);
  std::future<void> sender;
  RunPipelineFloor({.bootstrap = servers.kafka.bootstrap(),
                    .topic = topic.name,
                    .group = topic.name,
                    .dsn = servers.postgres.dsn(),
                    .partitions = kPartitions,
                    .records = records},
                   [&] {
                     sender = std::async(std::launch::async,
                                         [&] { SendEvenly(servers, topic.name, per_s, records); });
                   });
  sender.get();
  return Quantiles(servers, records);
}

Figures Ours(Servers& servers, const std::string& by, const Options& options, double per_s,
             std::int64_t records) {
  servers.Reset();
  const Topic topic(servers);
  const PipelineFile file{.bootstrap = servers.kafka.bootstrap(),
                          .topic = topic.name,
                          .nodes = servers.redis.addresses(),
                          .by = by,
                          .dsn = servers.postgres.dsn(),
                          .set = options.set};
  Workers workers(file, 1, kPartitions);
  SendEvenly(servers, topic.name, per_s, records);
  auto asked = Clock::now();
  workers.Await(
      [&] {
        if (SecondsSince(asked) < kAskEveryS) return false;
        asked = Clock::now();
        return workers.Processed() >= static_cast<double>(records);
      },
      "all records to be processed");
  workers.Stop();
  return Quantiles(servers, records);
}

}  // namespace

void RunLatencyBench(const Options& options) {
  Servers servers(options.fsync);
  const double seconds = options.seconds.value_or(6) + kWarmUpS;
  for (const std::string& by : options.by) {
    servers.Reset();
    const double peak =
        RunWorkers(servers, {.by = by,
                             .stream = {.records = options.records.value_or(200'000)},
                             .set = options.set})
            .per_s;
    const double per_s = std::max(std::round(peak / 10), 1.0);
    const auto records = static_cast<std::int64_t>(std::ceil(per_s * seconds));
    TakeTurns(
        {.bench = "latency",
         .of = Of(options, {{"by", by}, {"records_per_s", static_cast<std::int64_t>(per_s)}}),
         .words = "from a record's time to its effect's commit; floor: as that of pipeline",
         .rounds = options.rounds.value_or(5),
         .compared = {"p50_ms", "p99_ms"},
         .references_only = options.floor_only},
        {{.name = "floor",
          .reference = true,
          .turn = [&] { return Floor(servers, per_s, records); }},
         {.name = "1 worker", .turn = [&] { return Ours(servers, by, options, per_s, records); }}});
  }
}

}  // namespace fencepost::bench
