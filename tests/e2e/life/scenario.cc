#include "tests/e2e/life/scenario.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace fencepost::testing {
namespace {

using std::chrono::seconds;

constexpr int kPartitions = 6;
constexpr double kRepeats = 0.05;
constexpr int kCustomers = 101;  // few, so that their chains are long
constexpr const char* kProcessed = "fencepost_records_processed_total";

// The rows of a transaction take effect at once, in whatever order they are written: here they
// stand in the order of their positions. {}: the table, the pipeline, what orders transactions.
constexpr const char* kSelect =
    "SELECT order_id, amount, source_partition, source_offset, life FROM {}"
    " WHERE effects.pipeline = '{}' ORDER BY {}, source_partition, source_offset";
// In SQLite a transaction shows by the time in its ledger rows.
constexpr const char* kWithLedger =
    "effects JOIN fencepost_ledger ON fencepost_ledger.record_id = order_id";

Effect EffectOf(const std::string& order_id, const std::string& amount,
                const std::string& partition, const std::string& offset, const std::string& life) {
  return {.record = {std::stoi(order_id.substr(2)), {std::stoi(partition), std::stoll(offset)}},
          .amount = std::stoll(amount),
          .life = std::stoi(life)};
}

std::vector<Effect> EffectsInRows(const SqlServer::Rows& rows) {
  std::vector<Effect> effects;
  for (const auto& row : rows) {
    effects.push_back(
        EffectOf(row[0].value(), row[1].value(), row[2].value(), row[3].value(), row[4].value()));
  }
  return effects;
}

std::vector<Sent> SentTo(const std::string& topic) {
  std::vector<Sent> all;
  for (const TestRecord& record : ReadTopic(Servers::Kafka().bootstrap(), topic)) {
    const auto value = nlohmann::json::parse(record.value.value());
    all.push_back({.record = {std::stoi(value.at("order_id").get<std::string>().substr(2)),
                              {record.partition, record.offset}},
                   .key = record.key.value_or("")});
  }
  return all;
}

std::string Text(const nlohmann::json& cell) {
  return cell.is_string() ? cell.get<std::string>() : cell.dump();
}

std::vector<Effect> EffectsInLines(const std::string& lines) {
  std::vector<Effect> effects;
  std::istringstream text(lines);
  for (std::string line; std::getline(text, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) continue;
    effects.push_back(EffectOf(Text(json["order_id"]), Text(json["amount"]),
                               Text(json["source_partition"]), Text(json["source_offset"]),
                               Text(json["life"])));
  }
  return effects;
}

std::vector<Effect> EffectsInTopic(const std::string& topic) {
  std::vector<Effect> effects;
  for (const TestRecord& record : ReadTopic(Servers::Kafka().bootstrap(), topic)) {
    const auto json = nlohmann::json::parse(record.value.value());
    effects.push_back(EffectOf(
        Text(json["order_id"]), Text(json["amount"]), record.Header("source_partition").value(),
        record.Header("source_offset").value(), record.Header("life").value()));
  }
  return effects;
}

bool CanBeHeld(const Combination& combination) {
  return combination.Outside() || combination.HasLedger();
}

}  // namespace

std::uint64_t Seed() {
  const char* seed = std::getenv("FENCEPOST_SEED");
  return seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10);
}

// While it lives, no handler outside answers and no database is written: who has records there
// gathers leases and waits, and nobody is inside a transaction of SQLite.
class Scenario::Held {
 public:
  explicit Held(Scenario& scenario) : scenario_(scenario), lock_(scenario.table_) {
    for (const Combination& combination : AllCombinations()) {
      if (combination.target != Target::kSqlite) continue;
      files_.push_back(scenario.files_.Open(combination.Name()));
      files_.back()->Exec("BEGIN IMMEDIATE");
    }
    scenario_.script_->Hold();
    scenario_.service_->Hold();
  }
  ~Held() {
    scenario_.script_->Release();
    scenario_.service_->Release();
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  Scenario& scenario_;
  const TableLock lock_;
  std::vector<std::unique_ptr<SqlSession>> files_;
};

Scenario::Scenario()
    : random_(Seed()),
      table_(Servers::Postgres(), "life"),
      files_(folder_.path().string()),
      script_(MakeExecReceiver(folder_)),
      many_orders_(Servers::Kafka().bootstrap(), "many", kPartitions, Seed(), kRepeats, kCustomers),
      few_orders_(Servers::Kafka().bootstrap(), "few", kPartitions, Seed() + 1, kRepeats,
                  kCustomers),
      team_({.files = WriteFiles()}) {
  script_->Behave(Manner::kMoody);
  service_->Behave(Manner::kMoody);
  for (const char* topic : {"many", "few"}) Servers::Kafka().CreateTopic(topic, kPartitions);
  table_.Exec(
      "ALTER TABLE effects ADD source_partition int, ADD source_offset bigint, ADD life text,"
      " ADD pipeline text, ADD seq bigserial, ADD tx xid8 DEFAULT pg_current_xact_id()");
  for (const Combination& combination : AllCombinations()) {
    if (combination.target == Target::kKafka) {
      Servers::Kafka().CreateTopic("out-" + combination.Name(), 1);
    } else if (combination.target == Target::kSqlite) {
      files_.Exec(
          "CREATE TABLE effects (order_id text, amount int, source_partition int,"
          " source_offset int, life text, pipeline text)",
          combination.Name());
    }
  }
}

std::vector<std::string> Scenario::WriteFiles() {
  const Surroundings around{.brokers = Servers::Kafka().bootstrap(),
                            .nodes = Servers::Nodes().list(),
                            .dsn = table_.dsn(),
                            .service = *service_,
                            .script = *script_,
                            .files = files_,
                            .folder = folder_.path().string()};
  std::vector<std::string> files;
  for (const Combination& combination : AllCombinations()) {
    files.push_back(folder_.Write(combination.Name() + ".yaml", PipelineYaml(combination, around)));
  }
  return files;
}

double Scenario::Metric(int life, std::string_view metric, const Combination& combination,
                        MetricsPage::Labels labels) {
  labels["pipeline"] = combination.Name();
  return team_[static_cast<std::size_t>(life)].Last(metric, labels);
}

double Scenario::Sum(std::string_view metric, const Combination& combination,
                     MetricsPage::Labels labels) {
  labels["pipeline"] = combination.Name();
  return team_.Sum(metric, labels);
}

void Scenario::Feed(int many, int few) {
  many_orders_.Produce(many);
  few_orders_.Produce(few);
}

// Feeds while it waits, in small steps: whoever joins late, or is looked at late, would else find
// all of it done.
void Scenario::FeedUntil(const std::function<bool()>& condition, int many,
                         const std::function<std::string()>& what) {
  using Clock = std::chrono::steady_clock;
  auto next_feed = Clock::now();
  const bool came = WaitUntil(seconds(240), [&] {
    if (Clock::now() >= next_feed) {
      Feed(many, many / 4);
      next_feed = Clock::now() + std::chrono::milliseconds(500);
    }
    return condition();
  });
  if (!came) throw std::runtime_error(fmt::format("waited 240 s in vain for {}", what()));
}

// Every life that runs gets on in every pipeline.
void Scenario::AwaitProgress() {
  std::map<std::pair<std::size_t, std::string>, double> before;
  std::vector<std::string> standing;
  const auto all_get_on = [&] {
    team_.Look();
    standing.clear();
    for (std::size_t life = 0; life < team_.size(); ++life) {
      if (!team_[life].Running()) continue;
      for (const Combination& combination : AllCombinations()) {
        const double now = Metric(static_cast<int>(life), kProcessed, combination);
        const auto [then, first] = before.try_emplace({life, combination.Name()}, now);
        if (!first && now > then->second) continue;
        standing.push_back(fmt::format("life {} in {}", life, combination.Name()));
      }
    }
    return standing.empty();
  };
  FeedUntil(all_get_on, 120,
            [&] { return fmt::format("progress of {}", fmt::join(standing, ", ")); });
}

void Scenario::KillOne() {
  killed_ = static_cast<int>(random_() % team_.size());
  WorkerProcess& victim = team_[static_cast<std::size_t>(killed_)];
  FeedUntil([&] { return victim.Now("fencepost_records_in_flight") > 500; }, 2000,
            [] { return "the victim to have more than 500 records in flight"; });
  victim.Kill();
  team_.Add(victim.name());
}

// A life that holds leases in every pipeline that is held; -1 while there is none.
int Scenario::FindHolder() {
  team_.Look();
  const int count = lives();
  const auto first = static_cast<int>(random_() % static_cast<unsigned>(count));
  for (int i = 0; i < count; ++i) {
    const int life = (first + i) % count;
    if (life == killed_) continue;
    bool all = true;
    for (const Combination& combination : AllCombinations()) {
      all =
          all && (!CanBeHeld(combination) || Metric(life, "fencepost_locks_held", combination) > 0);
    }
    if (all) return life;
  }
  return -1;
}

// Longer than the lease and the session, so that others take its records over. But not from a Kafka
// transaction that is past sending its offsets: there they wait for it to end, or to time out.
void Scenario::FreezeOne() {
  std::vector<double> before;
  for (const Combination& combination : AllCombinations()) {
    before.push_back(Sum("fencepost_lock_takeovers_total", combination));
  }
  {
    const Held held(*this);
    Feed(600, 600);
    RequireWithin(seconds(180), "a worker that holds leases in every pipeline that is held",
                  [&] { return (frozen_ = FindHolder()) >= 0; });
    team_[static_cast<std::size_t>(frozen_)].Pause();
  }
  Feed(1000, 400);
  // Where the group gave its partitions away so late that what it had leased was gone from the
  // nodes, nobody counts a takeover: there others must have done all of it.
  std::size_t takeovers = 0;
  std::vector<std::string> without;
  const bool all = WaitUntil(seconds(240), [&] {
    team_.Look();
    takeovers = 0;
    without.clear();
    for (std::size_t i = 0; i < before.size(); ++i) {
      const Combination& combination = AllCombinations()[i];
      if (!CanBeHeld(combination) || combination.ByPosition()) continue;
      if (Sum("fencepost_lock_takeovers_total", combination) > before[i]) {
        ++takeovers;
      } else if (!CommittedToTheEnd(Servers::Kafka(), combination.Name(), combination.Topic())) {
        without.push_back(combination.Name());
      }
    }
    return without.empty();
  });
  if (!all || takeovers == 0) {
    throw std::runtime_error(fmt::format(
        "waited in vain for others to take over what the frozen worker had leased in {}",
        all ? "any pipeline" : fmt::to_string(fmt::join(without, ", "))));
  }
  WorkerProcess& frozen = team_[static_cast<std::size_t>(frozen_)];
  frozen.Resume();
  RequireWithin(seconds(180), "the thawed worker to come back", [&] { return frozen.Ready(); });
}

// However slow the machine is: it must get on.
void Scenario::AwaitCommitted(const Combination& combination) {
  using Clock = std::chrono::steady_clock;
  auto committed =
      Servers::Kafka().admin().CommittedOffsets(combination.Name(), combination.Topic());
  auto moved = Clock::now();
  RequireWithin(seconds(600), "all offsets to be committed of " + combination.Name(), [&] {
    if (CommittedToTheEnd(Servers::Kafka(), combination.Name(), combination.Topic())) return true;
    auto now = Servers::Kafka().admin().CommittedOffsets(combination.Name(), combination.Topic());
    if (now != committed) {
      committed = std::move(now);
      moved = Clock::now();
    }
    if (Clock::now() - moved < seconds(90)) return false;
    throw std::runtime_error("no offset was committed for 90 s of " + combination.Name());
  });
}

// A worker counts a line once the output has answered, and others may have passed its offset
// before: the last pages are to be of later.
void Scenario::AwaitCounted() {
  (void)WaitUntil(seconds(60), "every line to be counted", [&] {
    team_.Look();
    return std::ranges::all_of(AllCombinations(), [&](const Combination& combination) {
      std::map<int, int> lines;
      if (combination.AtLeastOnce()) {
        for (const Effect& effect : Effects(combination)) ++lines[effect.life];
      }
      lines.erase(killed_);
      return std::ranges::all_of(lines, [&](const auto& line) {
        return Metric(line.first, kProcessed, combination, {{"result", "done"}}) == line.second;
      });
    });
  });
}

void Scenario::Finish() {
  for (const Combination& combination : AllCombinations()) AwaitCommitted(combination);
  RequireWithin(seconds(60), "nothing to be in flight", [&] {
    team_.Look();
    double busy = 0;
    for (WorkerProcess* worker : team_.Running()) {
      busy += worker->Last("fencepost_records_in_flight");
    }
    return busy == 0;
  });
  AwaitCounted();
  if (const std::string trouble = team_.StopAll(); !trouble.empty()) {
    throw std::runtime_error(trouble);
  }
  many_ = SentTo("many");
  few_ = SentTo("few");
}

void Scenario::Run() {
  team_.Start(3);
  Feed(4000, 1000);
  AwaitProgress();
  Feed(4000, 1500);
  KillOne();
  AwaitProgress();
  FreezeOne();
  Feed(3400, 1500);
  Finish();
}

std::string Scenario::LinesOf(const Combination& combination) const {
  if (combination.target == Target::kFile) {
    return ReadFile(folder_.File(combination.Name() + ".jsonl"));
  }
  std::string lines;
  auto& team = const_cast<WorkerTeam&>(team_);
  for (std::size_t life = 0; life < team.size(); ++life) lines += team[life].Output() + "\n";
  return lines;
}

std::string Scenario::WarningsOf(const Combination& combination) {
  std::string warnings;
  for (std::size_t life = 0; life < team_.size(); ++life) {
    for (const char* metric : {"fencepost_lock_losses_total", "fencepost_rebalances_total",
                               "fencepost_redis_command_errors_total"}) {
      warnings += fmt::format("life {}: {} {}\n", life, metric,
                              Metric(static_cast<int>(life), metric, combination));
    }
    std::istringstream text(team_[life].Log());
    for (std::string line; std::getline(text, line);) {
      const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (!json.is_object() || json.value("pipeline", "") != combination.Name()) continue;
      if (json.value("level", "") == "info" || json.value("event", "") == "handler_failed")
        continue;
      warnings += fmt::format("life {}: {}\n", life, line);
    }
  }
  return warnings;
}

History Scenario::HistoryOf(const Combination& combination) const {
  History history{.by_position = combination.ByPosition(), .order = combination.order};
  history.sent = StreamOf(combination);
  history.effects = Effects(combination);
  if (combination.Outside()) {
    history.calls = ReceiverOf(combination).Calls(combination.Name());
  }
  return history;
}

std::vector<Effect> Scenario::Effects(const Combination& combination) const {
  switch (combination.target) {
    case Target::kPostgres:
      return EffectsInRows(table_.Exec(
          fmt::format(kSelect, "effects", combination.Name(), "min(seq) OVER (PARTITION BY tx)")));
    case Target::kSqlite:
      return EffectsInRows(
          files_.Exec(fmt::format(kSelect, kWithLedger, combination.Name(),
                                  "min(effects.rowid) OVER (PARTITION BY life, completed_at)"),
                      combination.Name()));
    case Target::kKafka:
      return EffectsInTopic("out-" + combination.Name());
    default:
      return EffectsInLines(LinesOf(combination));
  }
}

int Scenario::LedgerRows(const Combination& combination) const {
  const std::string sql = fmt::format("SELECT count(*) FROM fencepost_ledger WHERE pipeline = '{}'",
                                      combination.Name());
  if (combination.target == Target::kPostgres) return std::stoi(table_.Value(sql));
  return std::stoi(files_.Value(sql, combination.Name()));
}

}  // namespace fencepost::testing
