// fencepost demo: the main job on real parts, with a worker killed and another frozen on the way,
// and an audit at the end. Read Story from top to bottom.
#include <csignal>
#include <cstdio>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "consumer/cli/demo/effects.h"
#include "consumer/cli/demo/orders.h"
#include "consumer/cli/demo/screen.h"
#include "consumer/cli/demo/team.h"
#include "consumer/cli/local/local_servers.h"
#include "consumer/cli/shared/command.h"
#include "consumer/kafka/client/admin.h"
#include "consumer/kafka/client/producer.h"
#include "locking/base/check.h"
#include "locking/base/temp_folder.h"

namespace fencepost::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr int kRedisNodes = 5;
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

// Sends the orders.
class Stream {
 public:
  Stream(std::string topic, std::uint64_t seed, std::unique_ptr<consumer::Producer> producer)
      : topic_(std::move(topic)), orders_(seed), producer_(std::move(producer)) {}
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
  Outcome SendOne() {
    const auto [number, partition] = orders_.Take();
    const std::string id = fmt::format("o-{:07}", number);
    const std::string value =
        fmt::format(R"({{"order_id":"{}","amount":{},"item":"fence post"}})", id, number % 997);
    unique_.insert(id);
    ++produced_;
    return producer_->Send({.topic = topic_, .partition = partition, .key = id, .value = value});
  }

  const std::string topic_;
  Orders orders_;
  std::unique_ptr<consumer::Producer> producer_;
  std::size_t produced_ = 0;
  std::set<std::string> unique_;
};

class Demo {
 public:
  explicit Demo(const DemoArguments& arguments)
      : arguments_(arguments), name_(fmt::format("demo-{:08x}", std::random_device{}())) {
    FENCEPOST_CHECK(!folder_.path().empty(), "no temporary folder");
    picture_.orders = Orders::DistinctOf(arguments.records, arguments.seed);
    sigemptyset(&signals_);
    // SIGPIPE: nobody reads what it says.
    for (const int one : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) sigaddset(&signals_, one);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }

  Outcome Story() {
    const std::size_t all = arguments_.records;
    screen_.Say(
        fmt::format("{} records of {} orders, some sent twice, from Kafka to {}; each order "
                    "shall get one row",
                    Grouped(static_cast<std::int64_t>(all)),
                    Grouped(static_cast<std::int64_t>(picture_.orders)),
                    arguments_.postgres.empty() ? "SQLite" : "PostgreSQL"));
    return StartKafka()
        .and_then([&] { return StartRedis(); })
        .and_then([&] { return StartWorkers(); })
        .and_then([&] { return Produce(all * 40 / 100); })
        .and_then([&] { return WaitForProcessed(all * 30 / 100); })
        .and_then([&] { return KillOne(all * 55 / 100); })
        .and_then([&] { return Produce(all * 70 / 100); })
        .and_then([&] { return WaitUntilOthersGoOn(); })
        .and_then([&] { return FreezeOne(all * 85 / 100); })
        .and_then([&] { return Produce(all); })
        .and_then([&] { return WaitForTheEnd(); });
  }

  int Audit();

 private:
  // --- the parts -----------------------------------------------------------------------------

  Outcome StartKafka() {
    screen_.Say(fmt::format("starting Kafka: {}", arguments_.kafka.empty()
                                                      ? "in this process"
                                                      : "a topic at " + arguments_.kafka));
    consumer::KafkaOptions options;
    topic_ = name_ + "-orders";
    if (arguments_.kafka.empty()) {
      if (auto made = servers_.StartKafka({{topic_, Orders::kPartitions}}); !made) return made;
      options.brokers = servers_.brokers();
    } else {
      options.brokers = {arguments_.kafka};
      auto admin = consumer::KafkaAdmin::Make(options);
      if (!admin) return tl::unexpected(admin.error());
      auto made = (*admin)->CreateTopic(topic_, Orders::kPartitions, 1, seconds(15));
      if (!made) return made;
    }
    brokers_ = options.brokers;
    auto producer = consumer::Producer::Make(options, {{"linger.ms", "5"}});
    if (!producer) return tl::unexpected(producer.error());
    stream_.emplace(topic_, arguments_.seed, std::move(*producer));
    return {};
  }

  Outcome StartRedis() {
    screen_.Say(fmt::format("starting {} Redis nodes, which hold the locks", kRedisNodes));
    return servers_.StartLockNodes(kRedisNodes);
  }

  Outcome StartWorkers() {
    auto effects = arguments_.postgres.empty() ? MakeSqliteEffects(folder_.path() / "effects.db")
                                               : MakePostgresEffects(arguments_.postgres, name_);
    if (!effects) return tl::unexpected(effects.error());
    effects_ = std::move(*effects);
    const std::string file = folder_.path() / "demo.yaml";
    std::ofstream(file) << PipelineYaml();
    screen_.Say(fmt::format("starting {} workers", arguments_.workers));
    team_.emplace(folder_.path(), file, arguments_.workers);
    return WaitUntil("the workers have joined Kafka's group",
                     [this] { return team_->SumRunning().partitions == Orders::kPartitions; })
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
        name_, brokers_[0], topic_, Mock() ? 3000 : 6000, fmt::join(servers_.lock_nodes(), ","),
        effects_->OutputYaml());
  }

  [[nodiscard]] bool Mock() const { return arguments_.kafka.empty(); }

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
    return WaitUntil(Grouped(static_cast<std::int64_t>(records)) + " records are done",
                     [this, records] {
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
    SayStruck("killed", "SIGKILL", *victim);
    return {};
  }

  // Not until they have the dead worker's partitions: the group takes seconds to notice that it is
  // gone, and the freeze falls into them.
  Outcome WaitUntilOthersGoOn() {
    return WaitUntil("the others have gone on", [this, before = team_->SumRunning().processed] {
      return team_->SumRunning().processed > before;
    });
  }

  Outcome FreezeOne(std::size_t produce_to) {
    const std::int64_t before = team_->Sum().takeovers;  // the frozen worker's stay as they are
    const auto victim =
        StrikeWhileHolding(produce_to, [this](int worker) { team_->Freeze(worker); });
    if (!victim) return tl::unexpected(victim.error());
    ++frozen_;
    frozen_worker_ = *victim;
    SayStruck("froze", "SIGSTOP", *victim);
    auto taken = WaitUntil("Kafka's group gives both up, and others have taken their records over",
                           [this, before] {
                             const Totals running = team_->SumRunning();
                             return team_->Sum().takeovers > before &&
                                    running.partitions == Orders::kPartitions && running.lag == 0;
                           });
    if (!taken) return taken;
    team_->Thaw(*victim);
    screen_.Say(fmt::format("thawed worker-{}: its locks are over, and others have its records",
                            *victim + 1));
    return {};
  }

  Outcome WaitForTheEnd() {
    auto done = WaitUntil("every record is finished and committed", [this] {
      const Totals running = team_->SumRunning();
      const auto count = effects_->Count();
      return count && *count >= stream_->unique().size() && running.lag == 0 &&
             running.commit_gap == 0 && running.partitions == Orders::kPartitions;
    });
    if (!done) return done;
    seconds_ = std::chrono::duration<double>(steady_clock::now() - started_).count();
    team_->Look();
    sum_ = team_->Sum();
    late_writes_ = team_->View()[static_cast<std::size_t>(frozen_worker_)].last.late_writes;
    team_->Stop();
    return WaitUntil("the workers have ended", [this] { return team_->Ended(); });
  }

  void SayStruck(const std::string& what, const std::string& signal, int worker) {
    const WorkerView view = team_->View()[static_cast<std::size_t>(worker)];
    screen_.Say(fmt::format("{} {} ({}) while it held {} locks", what, view.name, signal,
                            Grouped(view.last.held)));
  }

  // --- watching ------------------------------------------------------------------------------

  Outcome WaitUntil(const std::string& what, const std::function<bool()>& condition) {
    const auto end = steady_clock::now() + kStepLimit + seconds(arguments_.records / 1000);
    for (;;) {
      if (const auto words = servers_.EndedLockNode()) {
        return Failure("a lock node ended: " + *words);
      }
      if (team_) {
        team_->Look();
        if (const std::string trouble = team_->UnexpectedEnd(); !trouble.empty()) {
          return Failure(trouble);
        }
      }
      const bool met = condition();
      Show(met ? what : "waiting until " + what);
      if (met) return {};
      if (steady_clock::now() >= end) return Failure("waited too long until " + what);
      const timespec pause{0, std::chrono::nanoseconds(kLookInterval).count()};
      if (sigtimedwait(&signals_, nullptr, &pause) > 0) return Failure("interrupted");
    }
  }

  void Show(const std::string& step) {
    const auto now = steady_clock::now();
    if (team_) {
      picture_.workers = team_->View();
      picture_.sum = team_->Sum();
    }
    if (effects_) picture_.rows = effects_->Count().value_or(picture_.rows);
    if (now >= rate_from_ + seconds(1)) {
      const double passed = std::chrono::duration<double>(now - rate_from_).count();
      picture_.rows_per_second = static_cast<double>(picture_.rows - rate_rows_) / passed;
      rate_from_ = now;
      rate_rows_ = picture_.rows;
    }
    picture_.age = std::chrono::duration_cast<seconds>(now - began_);
    picture_.step = step;
    screen_.Show(picture_);
  }

  const DemoArguments arguments_;
  const std::string name_;
  sigset_t signals_{};
  TempFolder folder_;
  LocalServers servers_{folder_.path()};
  std::string topic_;
  std::vector<std::string> brokers_;
  std::optional<Stream> stream_;
  std::unique_ptr<Effects> effects_;
  std::optional<Team> team_;  // after what it needs: ends first
  int killed_ = 0, frozen_ = 0, frozen_worker_ = 0;
  std::int64_t late_writes_ = 0;
  Totals sum_;
  Screen screen_;
  Picture picture_;
  const steady_clock::time_point began_ = steady_clock::now();
  steady_clock::time_point started_, rate_from_ = began_;
  std::size_t rate_rows_ = 0;
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
  screen_.Keep();
  screen_.Say("");
  for (const std::string& words : WordsOf({.orders = stream_->unique().size(),
                                  .lost = lost,
                                  .doubled = duplicated,
                                  .foreign = foreign,
                                  .late_writes = late_writes_})) {
    screen_.Say(words);
  }
  std::string trouble;
  if (lost + duplicated + foreign > 0) trouble = "the effects are not exactly the unique ids";
  if (sum_.takeovers == 0) trouble = "no lease was taken over: nothing was shown";
  if (sum_.skipped == 0) trouble = "no duplicate was skipped: nothing was shown";
  if (sum_.violations > 0) trouble = "a worker counted an invariant violation";
  if (!trouble.empty()) PrintError("demo: " + trouble);
  screen_.Say(summary.dump());
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
