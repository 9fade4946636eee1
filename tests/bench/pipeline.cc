#include "tests/bench/pipeline.h"

#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "tests/bench/measure.h"
#include "tests/bench/pipeline_floor.h"
#include "tests/bench/store.h"
#include "tests/bench/workers.h"
#include "tests/support/paths.h"
#include "tests/support/servers.h"

namespace fencepost::bench {
namespace {

using testing::KafkaBroker;
using testing::PostgresServer;
using testing::RedisServers;
using testing::TestProducer;

constexpr int kNodes = 5;
constexpr int kPartitions = 12;
constexpr std::size_t kRecordBytes = 256;
constexpr std::int64_t kFlushEvery = 20'000;
constexpr const char* kDropTables =
    "SET client_min_messages = warning; DROP TABLE IF EXISTS effects, fencepost_ledger";
constexpr const char* kEffects = "CREATE TABLE effects (order_id text, amount bigint)";

std::string RecordValue(std::int64_t number) {
  std::string value =
      fmt::format(R"({{"order_id":"o-{:010}","amount":{},"note":")", number, number % 1000);
  value.append(kRecordBytes - value.size() - 2, 'x');
  return value + "\"}";
}

// The records of one run: all in a topic of their own, but not to be seen by anybody before Open.
// They are written in a transaction, so that its commit is the start of the race.
class Stream {
 public:
  Stream(KafkaBroker& kafka, std::string topic, std::int64_t records)
      : kafka_(kafka),
        topic_(std::move(topic)),
        producer_((kafka.CreateTopic(topic_, kPartitions), kafka.bootstrap()), "fill-" + topic_,
                  {{"transaction.timeout.ms", "600000"}}) {
    producer_.Begin();
    for (std::int64_t n = 0; n < records; ++n) {
      producer_.Send(topic_, static_cast<std::int32_t>(n % kPartitions), fmt::format("{}", n),
                     RecordValue(n));
      if (n % kFlushEvery == 0) producer_.Flush();  // its queue holds 100,000
    }
    producer_.Flush();
  }
  ~Stream() { kafka_.admin().DeleteTopic(topic_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void Open() { producer_.Commit(); }
  [[nodiscard]] const std::string& topic() const { return topic_; }

 private:
  KafkaBroker& kafka_;
  const std::string topic_;
  TestProducer producer_;
};

// Processor time of everything that has a part in a run.
struct Cpu {
  double client = 0, redis = 0, postgres = 0, kafka = 0;
};

struct Side {
  std::vector<double> per_s, client_us, redis_us, postgres_us, kafka_us;

  void Add(std::int64_t records, double seconds, const Cpu& before, const Cpu& after) {
    const auto count = static_cast<double>(records);
    const auto us = [count](double from, double to) { return (to - from) * 1e6 / count; };
    per_s.push_back(count / seconds);
    client_us.push_back(us(before.client, after.client));
    redis_us.push_back(us(before.redis, after.redis));
    postgres_us.push_back(us(before.postgres, after.postgres));
    kafka_us.push_back(us(before.kafka, after.kafka));
  }
  [[nodiscard]] std::string Json() const {
    return fmt::format(R"({{"records_per_s":{:.0f},"client_us":{:.2f},"redis_us":{:.2f},)"
                       R"("postgres_us":{:.2f},"kafka_us":{:.2f}}})",
                       Median(per_s), Median(client_us), Median(redis_us), Median(postgres_us),
                       Median(kafka_us));
  }
  [[nodiscard]] std::string Row(const std::string& name) const {
    return fmt::format("{:>12} {:>10.0f} {:>10.2f} {:>10.2f} {:>10.2f} {:>10.2f}", name,
                       Median(per_s), Median(client_us), Median(redis_us), Median(postgres_us),
                       Median(kafka_us));
  }
};

class Race {
 public:
  explicit Race(const PipelineBench& bench)
      : bench_(bench),
        redis_(kNodes),
        postgres_({.fsync = bench.fsync,
                   .config = {"shared_buffers=256MB", "max_wal_size=4GB", "autovacuum=off"}}) {}

  void Floor(Side& side) {
    const auto stream = Prepare();
    Cpu before;
    double opened = 0;
    RunPipelineFloor({.bootstrap = kafka_.bootstrap(),
                      .topic = stream->topic(),
                      .group = stream->topic(),
                      .dsn = postgres_.dsn(),
                      .partitions = kPartitions,
                      .records = bench_.records},
                     [&] {
                       before = CpuNow(OwnCpuSeconds());
                       opened = Now();
                       stream->Open();
                     });
    const Cpu after = CpuNow(OwnCpuSeconds());
    side.Add(bench_.records, CheckedEnd() - opened, before, after);
  }

  void Ours(int count, Side& side) {
    const auto stream = Prepare();
    ResetStore(redis_);
    Workers workers({.bootstrap = kafka_.bootstrap(),
                     .topic = stream->topic(),
                     .redis = redis_.list(),
                     .dsn = postgres_.dsn(),
                     .output_topic = "",
                     .partitions = kPartitions},
                    count);
    workers.WaitUntilReady();
    const Cpu before = CpuNow(CpuSeconds(workers.Pids()));
    const double opened = Now();
    stream->Open();
    workers.WaitUntilProcessed(bench_.records);
    const Cpu after = CpuNow(CpuSeconds(workers.Pids()));
    side.Add(bench_.records, CheckedEnd() - opened, before, after);
    workers.Stop();
  }

  // To a topic: the end is when the workers say that all is done, asked ten times a second.
  void ToTopic(int count, Side& side) {
    const auto stream = Prepare();
    const std::string output = stream->topic() + "-out";
    kafka_.CreateTopic(output, kPartitions);
    ResetStore(redis_);
    Workers workers({.bootstrap = kafka_.bootstrap(),
                     .topic = stream->topic(),
                     .redis = redis_.list(),
                     .dsn = "",
                     .output_topic = output,
                     .partitions = kPartitions},
                    count);
    workers.WaitUntilReady();
    const Cpu before = CpuNow(CpuSeconds(workers.Pids()));
    const double opened = Now();
    stream->Open();
    workers.WaitUntilProcessed(bench_.records);
    const double ended = Now();
    side.Add(bench_.records, ended - opened, before, CpuNow(CpuSeconds(workers.Pids())));
    workers.Stop();
    kafka_.admin().DeleteTopic(output);
  }

 private:
  std::unique_ptr<Stream> Prepare() {
    postgres_.Exec(kDropTables);
    postgres_.Exec(testing::ReadFile(testing::SourcePath("deploy/postgres/ledger.sql")));
    postgres_.Exec(kEffects);
    postgres_.Exec("CHECKPOINT");
    return std::make_unique<Stream>(kafka_, fmt::format("orders-{}", ++runs_), bench_.records);
  }

  [[nodiscard]] Cpu CpuNow(double client) {
    return {client, CpuSeconds(Pids(redis_)), CpuSeconds(postgres_.pid()),
            CpuSeconds(kafka_.pid())};
  }

  // By the database's clock, as is the end: for both sides the time of the last transaction.
  [[nodiscard]] double Now() const {
    return std::stod(postgres_.Value("SELECT extract(epoch FROM clock_timestamp())"));
  }
  [[nodiscard]] double CheckedEnd() const {
    const auto row = postgres_.Exec("SELECT count(*), count(DISTINCT order_id) FROM effects").at(0);
    const std::string all = std::to_string(bench_.records);
    if (row.at(0) != all || row.at(1) != all) {
      throw std::runtime_error(fmt::format("{} effects for {} ids, where {} were due",
                                           row.at(0).value_or(""), row.at(1).value_or(""), all));
    }
    return std::stod(
        postgres_.Value("SELECT extract(epoch FROM max(completed_at)) FROM fencepost_ledger"));
  }

  const PipelineBench& bench_;
  KafkaBroker kafka_;
  RedisServers redis_;
  PostgresServer postgres_;
  int runs_ = 0;
};

}  // namespace

namespace {

void RunToTopic(const PipelineBench& bench, Race& race) {
  for (const int count : bench.workers) {
    Side side;
    for (int round = 0; round < bench.rounds; ++round) race.ToTopic(count, side);
    fmt::print(stderr, "{}\n", side.Row(fmt::format("{} worker", count)));
    fmt::print(
        R"({{"bench":"pipeline_to_topic","records":{},"workers":{},"load":{:.1f},"ours":{}}})"
        "\n",
        bench.records, count, LoadAverage(), side.Json());
  }
}

}  // namespace

void RunPipelineBench(const PipelineBench& bench) {
  Race race(bench);
  if (bench.to_topic) return RunToTopic(bench, race);
  const std::size_t sides = bench.floor_only ? 0 : bench.workers.size();
  Side floor;
  std::vector<Side> ours(sides);
  std::vector<std::vector<double>> ratios(sides);
  for (int round = 0; round < bench.rounds; ++round) {
    race.Floor(floor);
    for (std::size_t i = 0; i < sides; ++i) {
      race.Ours(bench.workers[i], ours[i]);
      ratios[i].push_back(ours[i].per_s.back() / floor.per_s.back());
    }
  }
  fmt::print(stderr,
             "pipeline: {} records of {} B from Kafka to PostgreSQL (fsync {}), floor = ledger and "
             "effect without a lock; medians of {} rounds; load {:.1f}\n"
             "{:>12} {:>10} {:>10} {:>10} {:>10} {:>10}\n{}\n",
             bench.records, kRecordBytes, bench.fsync ? "on" : "off", bench.rounds, LoadAverage(),
             "", "records/s", "client us", "redis us", "postgres", "kafka", floor.Row("floor"));
  const std::string head =
      fmt::format(R"("bench":"pipeline","records":{},"load":{:.1f},"floor":{})", bench.records,
                  LoadAverage(), floor.Json());
  if (bench.floor_only) fmt::print("{{{}}}\n", head);
  for (std::size_t i = 0; i < sides; ++i) {
    fmt::print(stderr, "{}  ratio {:.3f}\n",
               ours[i].Row(fmt::format("{} worker", bench.workers[i])), Median(ratios[i]));
    fmt::print(R"({{{},"workers":{},"ours":{},"ratio":{:.3f}}})"
               "\n",
               head, bench.workers[i], ours[i].Json(), Median(ratios[i]));
  }
  std::fflush(stdout);
}

}  // namespace fencepost::bench
