#include "tests/fault/positions/storm.h"

#include <sqlite3.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/support/kafka_group.h"

namespace fencepost::positions {

using std::chrono::seconds;
using testing::RequireWithin;
using testing::WorkerProcess;
using Rows = testing::SqlServer::Rows;

namespace {

constexpr const char* kColumns =
    "    table: effects\n"
    "    columns: {order_id: json:/order_id, amount: json:/amount, source_partition: partition,"
    " source_offset: offset}\n";
constexpr const char* kTable =
    "CREATE TABLE effects (order_id text NOT NULL, amount int NOT NULL, source_partition int,"
    " source_offset bigint)";
constexpr const char* kEffects = "SELECT order_id, source_partition, source_offset FROM effects";
constexpr seconds kLong{240};  // however slow the machine is

Rows ExecSqlite(const std::string& path, const std::string& sql) {
  sqlite3* db = nullptr;
  if (sqlite3_open(path.c_str(), &db) != SQLITE_OK) throw std::runtime_error(path);
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close)> closed(db, &sqlite3_close);
  sqlite3_busy_timeout(db, 20'000);
  Rows rows;
  const auto keep = [](void* to, int count, char** cells, char**) {
    auto& row = static_cast<Rows*>(to)->emplace_back();
    for (int i = 0; i < count; ++i) {
      row.push_back(cells[i] == nullptr ? std::nullopt : std::optional<std::string>(cells[i]));
    }
    return 0;
  };
  if (sqlite3_exec(db, sql.c_str(), keep, &rows, nullptr) == SQLITE_OK) return rows;
  throw std::runtime_error(sql + ": " + sqlite3_errmsg(db));
}

}  // namespace

// The table of effects and the ledger, in a database of its own.
class Storm::Table {
 public:
  Table(Database kind, const Servers& servers, const std::string& name, const std::string& path)
      : name_(name), path_(path) {
    if (kind != Database::kSqlite) {
      server_ = kind == Database::kPostgres ? &servers.postgres : &servers.mysql;
      table_ = std::make_unique<testing::EffectsTable>(*server_, name);
      table_->Exec("DROP TABLE effects");
    } else {
      Exec("PRAGMA journal_mode=WAL");
    }
    Exec(kTable);
  }
  [[nodiscard]] testing::SqlServer* server() const { return server_; }
  Rows Exec(const std::string& sql) const {
    return server_ == nullptr ? ExecSqlite(path_, sql) : table_->Exec(sql);
  }
  [[nodiscard]] std::string Output() const {
    if (server_ == nullptr) return fmt::format("  sqlite:\n    path: {}\n", path_);
    if (!server_->IsPostgres()) return "  mysql:\n" + table_->mysql();
    return fmt::format("  postgres:\n    dsn: {}\n", table_->dsn());
  }
  // False: whoever is frozen is inside a transaction of SQLite, and has the file until it goes on.
  [[nodiscard]] bool TakesWrites() const {
    if (server_ != nullptr) return true;
    try {
      Exec("BEGIN IMMEDIATE");
    } catch (const std::runtime_error&) {
      return false;
    }
    return true;
  }
  // -1: it does not answer.
  [[nodiscard]] int Count() const {
    try {
      return std::stoi(Exec("SELECT count(*) FROM effects").at(0).at(0).value());
    } catch (const std::runtime_error&) {
      return -1;
    }
  }
  [[nodiscard]] std::vector<Effect> Effects() const {
    std::vector<Effect> effects;
    for (const auto& row : Exec(kEffects)) {
      effects.push_back({std::stoi(row.at(0).value().substr(2)), std::stoi(row.at(1).value()),
                         std::stoll(row.at(2).value())});
    }
    return effects;
  }
  [[nodiscard]] std::map<int, std::string> Ledger(const std::string& pipeline) const {
    const bool postgres = server_ != nullptr && server_->IsPostgres();
    const char quote = server_ == nullptr || postgres ? '"' : '`';
    std::map<int, std::string> ranges;
    for (const auto& row : Exec(fmt::format(
             "SELECT {0}partition{0}, {1} FROM fencepost_positions WHERE pipeline = '{2}'", quote,
             postgres ? "done::text" : "done", pipeline))) {
      ranges[std::stoi(row.at(0).value())] = row.at(1).value_or("");
    }
    return ranges;
  }

 private:
  const std::string name_;
  const std::string path_;
  testing::SqlServer* server_ = nullptr;  // null: SQLite
  std::unique_ptr<testing::EffectsTable> table_;
};

Storm::Storm(Servers servers, std::uint64_t seed, int steps)
    : servers_(servers),
      seed_(seed),
      steps_(steps),
      random_(seed),
      database_(static_cast<Database>(seed % 3)),
      partitions_(1 + Draw(4)),
      workers_(2 + Draw(2)),
      topic_(fmt::format("storm-{}", seed)),
      pipeline_(topic_),
      block_(std::vector<std::string>{"", "7", "1024"}.at(static_cast<std::size_t>(Draw(3)))),
      order_(std::vector<std::string>{"none", "key", "partition"}.at(
          static_cast<std::size_t>(Draw(3)))),
      nodes_(Draw(2) == 0 ? 3 : 5),
      ends_(static_cast<std::size_t>(partitions_)) {
  testing::InitLocks(nodes_);
  servers_.kafka.CreateTopic(topic_, partitions_);
  table_ = std::make_unique<Table>(database_, servers_, topic_, folder_.File("effects.db"));
  StartTeam(workers_);
}

Storm::~Storm() = default;

std::string Storm::Line() const {
  std::string text = fmt::format(
      "seed {}: {}, {} nodes, {} partitions, block {}, order {}, {} records in {} logs", seed_,
      std::vector<std::string>{"postgres", "mysql", "sqlite"}.at(
          static_cast<std::size_t>(database_)),
      nodes_.size(), partitions_, block_, order_, expected_.sent.size(), log_ + 1);
  for (const auto& [what, count] : counts_) text += fmt::format(", {} {}", what, count);
  return text + (trouble_.empty() ? ": nothing lost or doubled" : ": TROUBLE");
}

void Storm::Trouble(const std::string& when, const std::string& what) {
  if (!what.empty()) trouble_ += fmt::format("{}: {}\n", when, what);
}

// --- the workers -------------------------------------------------------------------------------

std::string Storm::Yaml(const std::string& name) const {
  testing::PipelineText text;
  text.name = name;
  text.topic = topic_;
  text.brokers = servers_.kafka.bootstrap();
  text.nodes = nodes_.list();
  text.record_id = "position";
  text.order = order_;
  text.block = block_;
  text.output = "output:\n" + table_->Output() + kColumns;
  return text.Yaml();
}

void Storm::StartTeam(int workers) {
  team_ = std::make_unique<testing::WorkerTeam>(
      testing::WorkerOptions{.files = {folder_.Write(pipeline_ + ".yaml", Yaml(pipeline_))}});
  team_->Start(workers);
}

void Storm::StopTeam() { Trouble("stop", team_->StopAll(seconds(90))); }

WorkerProcess& Storm::AnyRunning() {
  const auto running = team_->Running();
  if (running.empty()) throw std::runtime_error("no worker runs");
  return *running.at(static_cast<std::size_t>(Draw(static_cast<int>(running.size()))));
}

// --- records -----------------------------------------------------------------------------------

// Offsets are counted here: one producer, and nothing but records.
void Storm::Produce(int records) {
  testing::TestProducer producer(servers_.kafka.bootstrap(), "", {{"linger.ms", "5"}});
  for (int i = 0; i < records; ++i) {
    const int partition = Draw(partitions_);
    const auto order = static_cast<int>(expected_.sent.size());
    auto& end = ends_.at(static_cast<std::size_t>(partition));
    expected_.sent.push_back({log_, partition, end++});
    producer.Send(topic_, partition, fmt::format("customer-{}", order % 97),
                  testing::Orders::Value(order));
  }
  producer.Flush();
  // A broker that had no time to say that it lives leads no partition for a moment.
  std::vector<std::int64_t> ends;
  const auto led = [&] { return (ends = servers_.kafka.admin().EndOffsets(topic_)).size(); };
  RequireWithin(
      kLong, [&] { return led() == ends_.size(); }, "a leader for each partition");
  if (ends != ends_) {
    throw std::runtime_error(fmt::format("the partitions end at [{}] and not at [{}]",
                                         fmt::join(ends, ","), fmt::join(ends_, ",")));
  }
}

void Storm::AwaitEffects(int more) {
  const int before = table_->Count();
  const auto wanted = std::min<std::size_t>(static_cast<std::size_t>(std::max(before, 0) + more),
                                            expected_.sent.size());
  RequireWithin(
      kLong, [&] { return table_->Count() >= static_cast<int>(wanted); }, "more effects");
}

void Storm::AwaitEnd(const char* what) {
  RequireWithin(
      kLong, [&] { return testing::CommittedToTheEnd(servers_.kafka, pipeline_, topic_); },
      fmt::format("all to be committed {}", what));
}

// --- faults ------------------------------------------------------------------------------------

void Storm::Step() {
  Produce(500 + Draw(6000));
  AwaitEffects(Draw(300));
  switch (Draw(8)) {
    case 0: {
      WorkerProcess& victim = AnyRunning();
      victim.Kill();
      team_->Add(Draw(2) == 0 ? victim.name() : "");
      return Count("kills");
    }
    case 1:
      return Freeze();
    case 2:
    case 3: {
      const int which = Draw(static_cast<int>(nodes_.size()));
      testing::RedisServer& node = nodes_[static_cast<std::size_t>(which)];
      if (Draw(2) == 0) {
        node.Command({"FLUSHALL"});
        return Count("wipes");
      }
      node.Kill();
      AwaitEffects(0);
      node.Start();
      return Count("node kills");
    }
    case 4:
      if (team_->Running().size() > 1 && Draw(2) == 0) {
        const auto code = AnyRunning().Stop(seconds(90));
        if (code != 0) Trouble("a worker that is stopped", fmt::format("{}", code.value_or(-1)));
      } else {
        team_->Add();
      }
      return Count("joins and leaves");
    case 5:
      testing::RemoveMembers(servers_.kafka.bootstrap(), pipeline_);
      return Count("groups emptied");
    case 6:
      return Truncate();
    default:
      return KillDatabase();
  }
}

// Until the others have done all, or, where there are none, its leases are over.
void Storm::Freeze() {
  Count("freezes");
  if (team_->Running().size() < 2) team_->Add();
  WorkerProcess& frozen = AnyRunning();
  frozen.Pause();
  while (!table_->TakesWrites()) {
    frozen.Resume();
    AwaitEffects(0);
    frozen.Pause();
  }
  Produce(500 + Draw(2000));
  AwaitEnd("while a worker is frozen");
  Produce(500 + Draw(2000));
  frozen.Resume();
}

// Below what the group has committed.
void Storm::Truncate() {
  const int partition = Draw(partitions_);
  const auto committed = servers_.kafka.admin().CommittedOffsets(pipeline_, topic_);
  const std::int64_t done = committed.at(static_cast<std::size_t>(partition));
  if (done <= 1) return;
  servers_.kafka.admin().DeleteRecordsBefore(
      topic_, partition, 1 + static_cast<std::int64_t>(random_() % static_cast<unsigned>(done)));
  Count("truncations");
}

void Storm::KillDatabase() {
  if (table_->server() == nullptr) return;
  table_->server()->Kill();
  Produce(500);
  table_->server()->Start();
  Count("database kills");
}

// Once the group has forgotten its members, of whom some were killed.
void Storm::SetOffsets(const std::vector<std::int64_t>& offsets) {
  RequireWithin(
      kLong,
      [&] { return testing::LookAtGroup(servers_.kafka.bootstrap(), pipeline_).members.empty(); },
      "the group to be empty");
  servers_.kafka.admin().CommitOffsets(pipeline_, topic_, offsets);
}

// The group's offsets are set back, of all partitions to somewhere that is still there.
void Storm::GoBack() {
  StopTeam();
  std::vector<std::int64_t> offsets = servers_.kafka.admin().StartOffsets(topic_);
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const auto left = static_cast<unsigned>(ends_[i] - offsets[i]);
    if (left > 0) offsets[i] += static_cast<std::int64_t>(random_() % left);
  }
  SetOffsets(offsets);
  Count("goes back");
  StartTeam(workers_);
  Produce(Draw(1000));
  AwaitEnd("after the group went back");
}

// --- a topic that is made again ------------------------------------------------------------------

void Storm::Recreate() {
  const bool under_workers = Draw(2) == 0;
  const bool longer = Draw(2) == 0;
  if (!under_workers) StopTeam();
  const std::vector<std::int64_t> before = ends_;
  const int records = static_cast<int>(expected_.sent.size());
  servers_.kafka.admin().DeleteTopic(topic_);
  servers_.kafka.CreateTopic(topic_, partitions_);
  ++log_;
  std::fill(ends_.begin(), ends_.end(), 0);
  // Under workers it stays shorter: one that is longer at once reads on from where it was.
  Produce(!under_workers && longer ? records + 500 : 50 * partitions_);
  Count(under_workers ? "recreated under workers" : "recreated");
  if (!under_workers) {
    SetOffsets(std::vector<std::int64_t>(static_cast<std::size_t>(partitions_), 0));
    StartTeam(2);
  }
  ExpectExplained();
  Remedy();
}

// No worker passes over a record of the new log: each ends, and says why.
void Storm::ExpectExplained() {
  RequireWithin(
      kLong, [&] { return team_->Running().empty(); },
      "the workers to end where the topic is another one");
  bool replaced = false;
  for (std::size_t i = 0; i < team_->size(); ++i) {
    const auto code = (*team_)[i].Wait(seconds(1));
    const std::string log = (*team_)[i].Log();
    replaced = replaced || log.find("topic_replaced") != std::string::npos ||
               log.find("offset_out_of_range") != std::string::npos;
    if (code == 1) Count("workers that ended and said why");
  }
  if (!replaced) Trouble("a topic that was made again", "no worker says why it ended");
  const auto committed = servers_.kafka.admin().CommittedOffsets(pipeline_, topic_);
  for (std::size_t i = 0; i < committed.size(); ++i) {
    if (committed[i] > 0) Trouble("a topic that was made again", "an offset has moved");
  }
}

// As the message says. What of the new log was written before may be written again.
void Storm::Remedy() {
  for (const Effect& effect : table_->Effects()) {
    if (expected_.sent.at(static_cast<std::size_t>(effect.order)).log != log_) continue;
    ++expected_.repeats[effect.order];
    Count("effects before the explanation");
  }
  if (Draw(2) == 0) {
    pipeline_ += "-again";
    Count("other names");
  } else {
    for (int partition = 0; partition < partitions_; ++partition) {
      const auto done = testing::RunFencepost(
          {"forget", folder_.File(pipeline_ + ".yaml"), "--topic", topic_, "--partition",
           std::to_string(partition), "--from", "0", "--to",
           std::to_string(std::numeric_limits<std::int64_t>::max()), "--execute"},
          {}, seconds(90));
      if (done.exit_code != 0) Trouble("forget", done.output + done.error_output);
    }
    Count("forgets");
  }
  StartTeam(workers_);
  Produce(500);
  AwaitEnd("after the remedy");
}

void Storm::Audit(const std::string& when) {
  Trouble(when, AuditEffects(expected_, table_->Effects()));
  Trouble(when, AuditLedger(table_->Ledger(pipeline_), ends_));
}

void Storm::Run() {
  for (int step = 0; step < steps_; ++step) Step();
  AwaitEnd("after all faults");
  Audit("after all faults");
  GoBack();
  Audit("after the group went back");
  Recreate();
  StopTeam();
  Audit("after the topic was made again");
}

}  // namespace fencepost::positions
