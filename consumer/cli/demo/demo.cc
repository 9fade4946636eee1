// fencepost demo: the main job on real parts, with a worker killed and another frozen on the way,
// and an audit at the end. Read Story from top to bottom.
#include <csignal>
#include <cstdio>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "consumer/cli/demo/child.h"
#include "consumer/cli/demo/effects.h"
#include "consumer/cli/demo/team.h"
#include "consumer/cli/shared/command.h"
#include "consumer/kafka/client/admin.h"
#include "consumer/kafka/client/mock_cluster.h"
#include "consumer/kafka/client/producer.h"
#include "locking/base/check.h"
#include "locking/base/temp_folder.h"

namespace fencepost::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr int kRedisNodes = 5;
constexpr int kPartitions = 12;
constexpr std::size_t kAhead = 100'000;  // records that may be unread (the mock trims beyond)
constexpr milliseconds kLookInterval{200};
constexpr seconds kStepLimit{90};

struct DemoArguments {
  std::size_t records = 20'000;
  int workers = 3;
  std::uint64_t seed = 1;
  std::string kafka;
  std::string postgres;
};

// What ends the demo early: a sentence for the user. Interrupted by a signal: empty.
using Outcome = tl::expected<void, Error>;

tl::unexpected<Error> Failure(std::string what, std::string hint = "") {
  return tl::unexpected(Error{"demo", std::move(what), "", std::move(hint)});
}

// The records that the demo produces: orders, about 5% of them a second time, some of those on
// another partition. Deterministic by seed.
class Stream {
 public:
  Stream(std::string topic, std::uint64_t seed, std::unique_ptr<consumer::Producer> producer)
      : topic_(std::move(topic)), random_(seed), producer_(std::move(producer)) {}
  // Produces until `total` records are in the topic, and waits until they do.
  Outcome ProduceUpTo(std::size_t total) {
    while (produced_ < total) {
      if (auto sent = SendOne(); !sent) return sent;
    }
    return producer_->Flush(seconds(60));
  }
  [[nodiscard]] std::size_t produced() const { return produced_; }
  [[nodiscard]] const std::set<std::string>& unique() const { return unique_; }

 private:
  static constexpr std::uint64_t kDuplicatesPercent = 5;
  static constexpr std::size_t kDuplicateReach = 3000;  // how far back its original lies at most

  Outcome SendOne() {
    const bool duplicate = next_ > 100 && random_() % 100 < kDuplicatesPercent;
    const std::size_t number =
        duplicate ? next_ - 1 - random_() % std::min(next_, kDuplicateReach) : next_++;
    const std::string id = fmt::format("o-{:07}", number);
    const std::string value =
        fmt::format(R"({{"order_id":"{}","amount":{},"item":"fence post"}})", id, number % 997);
    // Half of the duplicates come by another partition, as from a second producer.
    const bool astray = duplicate && random_() % 2 == 0;
    const auto partition = static_cast<std::int32_t>((number + (astray ? 1 : 0)) % kPartitions);
    unique_.insert(id);
    ++produced_;
    return producer_->Send({.topic = topic_, .partition = partition, .key = id, .value = value});
  }

  const std::string topic_;
  std::mt19937_64 random_;
  std::unique_ptr<consumer::Producer> producer_;
  std::size_t produced_ = 0;
  std::size_t next_ = 0;
  std::set<std::string> unique_;
};

class Demo {
 public:
  explicit Demo(const DemoArguments& arguments)
      : arguments_(arguments), name_(fmt::format("demo-{:08x}", std::random_device{}())) {
    FENCEPOST_CHECK(!folder_.path().empty(), "no temporary folder");
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }

  Outcome Story() {
    const std::size_t all = arguments_.records;
    return StartKafka()
        .and_then([&] { return StartRedis(); })
        .and_then([&] { return StartWorkers(); })
        .and_then([&] { return Produce(all * 40 / 100); })
        .and_then([&] { return WaitForProcessed(all * 30 / 100); })
        .and_then([&] { return KillOne(all * 55 / 100); })
        .and_then([&] { return Produce(all * 70 / 100); })
        .and_then([&] { return WaitForProcessed(all * 60 / 100); })
        .and_then([&] { return FreezeOne(all * 85 / 100); })
        .and_then([&] { return Produce(all); })
        .and_then([&] { return WaitForTheEnd(); });
  }

  int Audit();

 private:
  // --- the parts -----------------------------------------------------------------------------

  Outcome StartKafka() {
    consumer::KafkaOptions options;
    topic_ = name_ + "-orders";
    if (arguments_.kafka.empty()) {
      auto mock = consumer::MockCluster::Make();
      if (!mock) return tl::unexpected(mock.error());
      mock_ = std::move(*mock);
      options.brokers = mock_->brokers();
      if (auto made = mock_->CreateTopic(topic_, kPartitions); !made) return made;
    } else {
      options.brokers = {arguments_.kafka};
      auto admin = consumer::KafkaAdmin::Make(options);
      if (!admin) return tl::unexpected(admin.error());
      auto made = (*admin)->CreateTopic(topic_, kPartitions, 1, seconds(15));
      if (!made) return made;
    }
    brokers_ = options.brokers;
    auto producer = consumer::Producer::Make(options, {{"linger.ms", "5"}});
    if (!producer) return tl::unexpected(producer.error());
    stream_.emplace(topic_, arguments_.seed, std::move(*producer));
    Say(fmt::format("Kafka: {} at {}", mock_ ? "in this process" : "real broker", brokers_[0]));
    return {};
  }

  Outcome StartRedis() {
    for (int i = 0; i < kRedisNodes; ++i) {
      const auto folder = folder_.path() / fmt::format("redis-{}", i);
      std::filesystem::create_directories(folder);
      const std::string socket = folder / "socket";
      redis_.push_back(std::make_unique<Child>(
          std::vector<std::string>{"redis-server", "--port", "0", "--unixsocket", socket, "--save",
                                   "", "--appendonly", "no", "--maxmemory-policy", "noeviction",
                                   "--dir", folder.string()},
          folder / "log"));
      redis_list_ += fmt::format("{}unix:{}", i == 0 ? "" : ",", socket);
    }
    // It waits for the servers.
    Child init({"/proc/self/exe", "locks", "init", "--redis", redis_list_},
               folder_.path() / "locks-init");
    if (init.Wait(seconds(20)) != 0) {
      return Failure("locks init failed: " + init.Errors(), "is redis-server installed?");
    }
    Say("Redis: 5 independent primaries at " + redis_list_);
    return {};
  }

  Outcome StartWorkers() {
    auto effects = arguments_.postgres.empty() ? MakeSqliteEffects(folder_.path() / "effects.db")
                                               : MakePostgresEffects(arguments_.postgres, name_);
    if (!effects) return tl::unexpected(effects.error());
    effects_ = std::move(*effects);
    const std::string file = folder_.path() / "demo.yaml";
    std::ofstream(file) << PipelineYaml();
    team_.emplace(folder_.path(), file, arguments_.workers);
    Say(fmt::format("{} workers, output {}", arguments_.workers,
                    arguments_.postgres.empty() ? "SQLite" : "PostgreSQL"));
    return WaitUntil("the workers join the group",
                     [this] { return team_->SumRunning().partitions == kPartitions; })
        .map([this] { started_ = steady_clock::now(); });
  }

  [[nodiscard]] std::string PipelineYaml() const {
    return fmt::format(
        "version: 1\n"
        "name: {}\n"
        "guarantee: exactly-once\n"
        "kafka:\n"
        "  brokers: ['{}']\n"
        "  topics: [{}]\n"
        "  start_from: earliest\n"
        "  commit_interval: 500ms\n"
        "  librdkafka: {{session.timeout.ms: {}, heartbeat.interval.ms: 300}}\n"
        "record_id: json:/order_id\n"
        "lock:\n"
        "  redis: {{nodes: [{}]}}\n"
        "  ttl: 3s\n"
        "  min_validity: 1s\n"
        "output:\n{}",
        name_, brokers_[0], topic_, mock_ ? 4000 : 6000, redis_list_, effects_->OutputYaml());
  }

  // --- the story's steps ---------------------------------------------------------------------

  Outcome Produce(std::size_t total) {
    while (stream_->produced() < total) {
      const std::size_t step = std::min(total, stream_->produced() + 10'000);
      if (auto made = stream_->ProduceUpTo(step); !made) return made;
      auto room = WaitUntil("the workers keep up", [this] {
        const auto count = effects_->Count();
        return count && stream_->unique().size() < *count + kAhead;
      });
      if (!room) return room;
    }
    return {};
  }

  Outcome WaitForProcessed(std::size_t records) {
    return WaitUntil(fmt::format("{} records are processed", records), [this, records] {
      const Totals sum = team_->Sum();
      return static_cast<std::size_t>(sum.processed + sum.skipped) >= records;
    });
  }

  // With the output locked, the workers take leases for what is produced meanwhile and cannot
  // finish: so the one that is struck does hold some.
  tl::expected<int, Error> StrikeWhileHolding(std::size_t produce_to,
                                              const std::function<void(int)>& strike) {
    if (auto locked = effects_->Lock(); !locked) return tl::unexpected(locked.error());
    int victim = -1;
    Outcome ready = stream_->ProduceUpTo(produce_to);
    if (ready) {
      ready = WaitUntil("a worker holds leases",
                        [this, &victim] { return (victim = team_->BusiestHolder()) >= 0; });
    }
    if (ready) strike(victim);
    effects_->Unlock();
    if (!ready) return tl::unexpected(ready.error());
    return victim;
  }

  Outcome KillOne(std::size_t produce_to) {
    const auto victim = StrikeWhileHolding(produce_to, [this](int worker) { team_->Kill(worker); });
    if (!victim) return tl::unexpected(victim.error());
    ++killed_;
    Say(fmt::format("killed worker-{} (SIGKILL) while it held leases", *victim + 1));
    return {};
  }

  Outcome FreezeOne(std::size_t produce_to) {
    const std::int64_t before = team_->Sum().takeovers;  // the frozen worker's stay as they are
    const auto victim =
        StrikeWhileHolding(produce_to, [this](int worker) { team_->Freeze(worker); });
    if (!victim) return tl::unexpected(victim.error());
    ++frozen_;
    Say(fmt::format("froze worker-{} (SIGSTOP) while it held leases", *victim + 1));
    auto taken = WaitUntil("others take the frozen worker's records over", [this, before] {
      const Totals running = team_->SumRunning();
      return team_->Sum().takeovers > before && running.partitions == kPartitions &&
             running.lag == 0;
    });
    if (!taken) return taken;
    team_->Thaw(*victim);
    Say(fmt::format("thawed worker-{}: its leases are over, and others have its records",
                    *victim + 1));
    return {};
  }

  Outcome WaitForTheEnd() {
    auto done = WaitUntil("every record is finished and committed", [this] {
      const Totals running = team_->SumRunning();
      const auto count = effects_->Count();
      return count && *count >= stream_->unique().size() && running.lag == 0 &&
             running.commit_gap == 0 && running.partitions == kPartitions;
    });
    if (!done) return done;
    seconds_ = std::chrono::duration<double>(steady_clock::now() - started_).count();
    team_->Look();
    sum_ = team_->Sum();
    const std::string trouble = team_->StopAll(seconds(40));
    return trouble.empty() ? Outcome() : Failure(trouble);
  }

  // --- watching ------------------------------------------------------------------------------

  Outcome WaitUntil(const std::string& what, const std::function<bool()>& condition) {
    const auto end = steady_clock::now() + kStepLimit + seconds(arguments_.records / 1000);
    for (;;) {
      if (team_) {
        team_->Look();
        Show();
        if (const std::string trouble = team_->UnexpectedEnd(); !trouble.empty()) {
          return Failure(trouble);
        }
      }
      if (condition()) return {};
      if (steady_clock::now() >= end) return Failure("waited too long until " + what);
      const timespec pause{0, std::chrono::nanoseconds(kLookInterval).count()};
      if (sigtimedwait(&signals_, nullptr, &pause) > 0) return Failure("interrupted");
    }
  }

  void Show() {
    if (steady_clock::now() < next_line_) return;
    next_line_ = steady_clock::now() + seconds(1);
    const Totals sum = team_->Sum();
    Say(
        fmt::format("produced {}, done {}, skipped {}, in flight {}, contended {}, expired {}, "
                    "fenced {}, lag {}",
                    stream_->produced(), sum.processed, sum.skipped, team_->SumRunning().in_flight,
                    sum.contended, sum.expired, sum.fenced, team_->SumRunning().lag));
  }

  static void Say(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }

  const DemoArguments arguments_;
  const std::string name_;
  sigset_t signals_{};
  TempFolder folder_;
  std::string topic_, redis_list_;
  std::vector<std::string> brokers_;
  std::unique_ptr<consumer::MockCluster> mock_;
  std::vector<std::unique_ptr<Child>> redis_;
  std::optional<Stream> stream_;
  std::unique_ptr<Effects> effects_;
  std::optional<Team> team_;  // after what it needs: ends first
  int killed_ = 0, frozen_ = 0;
  Totals sum_;
  steady_clock::time_point started_, next_line_;
  double seconds_ = 0;
};

// Counts apart from everything that the workers say.
int Demo::Audit() {
  const auto rows = effects_->Audit();
  if (!rows) return ExitFailed(rows.error());
  std::size_t effects = 0, lost = 0, duplicated = 0, foreign = 0;
  for (const auto& [id, count] : *rows) {
    effects += static_cast<std::size_t>(count);
    duplicated += static_cast<std::size_t>(count - 1);
    if (stream_->unique().count(id) == 0) ++foreign;
  }
  for (const std::string& id : stream_->unique()) lost += rows->count(id) == 0 ? 1 : 0;
  const nlohmann::ordered_json summary = {
      {"produced", stream_->produced()},
      {"unique", stream_->unique().size()},
      {"effects", effects},
      {"lost", lost},
      {"duplicated", duplicated},
      {"workers_killed", killed_},
      {"workers_frozen", frozen_},
      {"lock_contended", sum_.contended},
      {"lock_expired", sum_.expired},
      {"fencing_rejected", sum_.fenced},
      {"dedupe_skipped", sum_.skipped},
      {"records_per_second", std::llround(static_cast<double>(stream_->produced()) / seconds_)}};
  std::string trouble;
  if (lost + duplicated + foreign > 0) trouble = "the effects are not exactly the unique ids";
  if (sum_.takeovers == 0) trouble = "no lease was taken over: nothing was shown";
  if (sum_.skipped == 0) trouble = "no duplicate was skipped: nothing was shown";
  if (sum_.violations > 0) trouble = "a worker counted an invariant violation";
  if (!trouble.empty()) PrintError("demo: " + trouble);
  std::printf("%s\n", summary.dump().c_str());
  return trouble.empty() ? kOk : kFailed;
}

int RunDemo(const DemoArguments& arguments) {
  if (arguments.workers < 3 || arguments.records < 1000) {
    return ExitUsage("demo: needs at least 3 workers (one is killed, one frozen) and 1000 records");
  }
  Demo demo(arguments);
  if (const auto told = demo.Story(); !told) return ExitFailed("demo: " + told.error().Line());
  return demo.Audit();
}

}  // namespace

void AddDemo(CLI::App& app, Run& run) {
  const auto arguments = std::make_shared<DemoArguments>();
  CLI::App* command = app.add_subcommand(
      "demo",
      "the main job on real parts: a worker is killed, another frozen, the effects audited");
  command->add_option("--records", arguments->records, "how many")->capture_default_str();
  command->add_option("--workers", arguments->workers, "at least 3")->capture_default_str();
  command->add_option("--seed", arguments->seed, "of the stream")->capture_default_str();
  command->add_option("--kafka", arguments->kafka, "HOST:PORT of a real broker");
  command->add_option("--postgres", arguments->postgres, "DSN, instead of SQLite");
  command->callback([&run, arguments] { run = [arguments] { return RunDemo(*arguments); }; });
}

}  // namespace fencepost::cli
