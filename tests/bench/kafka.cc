#include "tests/bench/benches.h"

#include <set>
#include <stdexcept>

#include <fmt/format.h>

#include "tests/bench/floors/floors.h"
#include "tests/bench/shared/pipeline_file.h"
#include "tests/bench/shared/servers.h"
#include "tests/bench/shared/stream.h"
#include "tests/bench/shared/turns.h"
#include "tests/bench/shared/workers.h"
#include "tests/support/paths.h"

namespace fencepost::bench {
namespace {

constexpr testing::Deadline kStart = std::chrono::seconds(60);
constexpr testing::Deadline kLimit = std::chrono::minutes(10);
constexpr double kLookEveryS = 0.05;

// One run's two topics. The time starts with Open.
class Turn {
 public:
  Turn(Servers& servers, std::int64_t records)
      : servers_(servers),
        stream_(servers.kafka, {.topic = servers.NewTopic(), .records = records}),
        output_(stream_.topic() + "-out") {
    servers_.kafka.CreateTopic(output_, stream_.options().partitions);
  }
  ~Turn() { servers_.kafka.admin().DeleteTopic(output_); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  void Open(CpuMeter::Seconds client) {
    meter_.Add("client_us", std::move(client));
    meter_.Add("redis_us", [this] { return CpuSeconds(Pids(servers_.redis)); });
    meter_.Add("kafka_us", [this] { return CpuSeconds(servers_.kafka.pid()); });
    meter_.Start();
    opened_ = Clock::now();
    stream_.Open();
  }

  void WaitUntilCommitted() {
    auto looked = Clock::now();
    testing::RequireWithin(kLimit, "the commit of the last record", [&] {
      if (SecondsSince(looked) < kLookEveryS) return false;
      looked = Clock::now();
      return stream_.CommittedBy(stream_.topic());
    });
  }

  [[nodiscard]] Figures Ended() const {
    const auto records = static_cast<double>(stream_.options().records);
    return Figures{{"records_per_s", records / SecondsSince(opened_)}} + meter_.PerRecord(records);
  }

  void CheckOutput() const {
    const auto written = testing::ReadTopic(servers_.kafka.bootstrap(), output_, true, kStart);
    std::set<std::string> keys;
    for (const auto& record : written) keys.insert(record.key.value_or(""));
    const auto due = static_cast<std::size_t>(stream_.options().records);
    if (written.size() == due && keys.size() == due) return;
    throw std::runtime_error(fmt::format("{} records of {} keys were written, where {} were due",
                                         written.size(), keys.size(), due));
  }

  [[nodiscard]] const Stream& stream() const { return stream_; }
  [[nodiscard]] const std::string& output() const { return output_; }

 private:
  Servers& servers_;
  Stream stream_;
  const std::string output_;
  CpuMeter meter_;
  Clock::time_point opened_;
};

Figures Floor(Servers& servers, std::int64_t records) {
  Turn turn(servers, records);
  RunKafkaFloor({.bootstrap = servers.kafka.bootstrap(),
                 .topic = turn.stream().topic(),
                 .group = turn.stream().topic(),
                 .output_topic = turn.output(),
                 .partitions = turn.stream().options().partitions,
                 .records = records},
                [&turn] { turn.Open(&OwnCpuSeconds); });
  turn.WaitUntilCommitted();  // for the same look as the others
  Figures figures = turn.Ended();
  turn.CheckOutput();
  return figures;
}

Figures Ours(Servers& servers, std::int64_t records, const std::string& by, int count,
             const Options& options) {
  Turn turn(servers, records);
  ResetStore(servers.redis, servers.redis.size());
  const PipelineFile file{.bootstrap = servers.kafka.bootstrap(),
                          .topic = turn.stream().topic(),
                          .nodes = servers.redis.addresses(),
                          .by = by,
                          .output_topic = turn.output(),
                          .set = options.set};
  Workers workers(file, count, turn.stream().options().partitions);
  turn.Open([&workers] { return CpuSeconds(workers.Pids()); });
  turn.WaitUntilCommitted();
  Figures figures = turn.Ended();
  workers.Stop();
  turn.CheckOutput();
  return figures;
}

Figures Streams(Servers& servers, std::int64_t records, const std::string& jars) {
  Turn turn(servers, records);
  const testing::TempDir state;
  testing::Process streams(
      {.argv = {"java", "-Xmx512m", "-cp", jars + "/*",
                testing::SourcePath("tests/bench/peers/streams/Copy.java"),
                servers.kafka.bootstrap(), turn.stream().topic(), turn.output(), state.path()}});
  const int partitions = turn.stream().options().partitions;
  if (!testing::WaitUntil(kStart,
                          [&] {
                            return !streams.Running() ||
                                   streams.Output().find(fmt::format(
                                       "owns {} partitions\n", partitions)) != std::string::npos;
                          }) ||
      !streams.Running()) {
    throw std::runtime_error("Kafka Streams did not start: " + streams.Output());
  }
  turn.Open([&streams] { return CpuSeconds(streams.pid()); });
  turn.WaitUntilCommitted();
  Figures figures = turn.Ended();
  streams.Kill(SIGTERM);
  if (!streams.Wait(kStart)) throw std::runtime_error("Kafka Streams did not end");
  turn.CheckOutput();
  return figures;
}

}  // namespace

void RunKafkaBench(const Options& options) {
  Servers servers(options.fsync);
  const std::int64_t records = options.records.value_or(500'000);
  const std::vector<int> workers = options.workers.empty() ? std::vector<int>{1} : options.workers;
  std::vector<Side> sides{
      {.name = "floor", .reference = true, .turn = [&] { return Floor(servers, records); }}};
  if (!options.streams.empty()) {
    sides.push_back({.name = "streams", .reference = true, .turn = [&] {
                       return Streams(servers, records, options.streams);
                     }});
  }
  for (const std::string& by : options.by) {
    if (by == "id") continue;  // exactly once is by position
    for (const int count : workers) {
      sides.push_back(
          {.name = fmt::format("by {}, {} worker{}", by, count, count == 1 ? "" : "s"),
           .turn = [&, by, count] { return Ours(servers, records, by, count, options); }});
    }
  }
  TakeTurns({.bench = "kafka",
             .of = Of(options, {{"records", records}}),
             .words = "floor: librdkafka alone, transactions of as many records",
             .rounds = options.rounds.value_or(5),
             .references_only = options.floor_only},
            std::move(sides));
}

}  // namespace fencepost::bench
