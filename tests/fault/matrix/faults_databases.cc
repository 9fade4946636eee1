// What happens to the database.
#include <future>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/fault/matrix/faults.h"

namespace fencepost::matrix {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::TcpProxy;

namespace {

// Both wait for what a worker has begun and is held in, but not here.
void LockTable(Scene& scene) {
  using Lock = std::unique_ptr<testing::TableLock>;
  const testing::EffectsTable& table = scene.trial.table();
  auto lock = std::make_shared<std::future<Lock>>(std::async(
      std::launch::async, [&table] { return std::make_unique<testing::TableLock>(table); }));
  scene.undo.Add([lock] { lock->get(); });
}

void HideTable(Scene& scene) {
  const testing::EffectsTable& table = scene.trial.table();
  auto hidden = std::make_shared<std::future<void>>(std::async(
      std::launch::async, [&table] { table.Exec("ALTER TABLE effects RENAME TO elsewhere"); }));
  scene.undo.Add([&table] { table.Exec("ALTER TABLE IF EXISTS elsewhere RENAME TO effects"); });
  scene.undo.Add([&scene, hidden] {
    hidden->get();
    scene.AwaitSaying("effects");
  });
}

void FillDisk(Scene& scene) {
  const testing::SmallDisk& disk = scene.trial.disk();
  scene.undo.Add([&disk] { disk.MakeRoom(); });
  scene.undo.Add([&scene] { scene.AwaitSaying(scene.trial.database().NoRoom()); });
  disk.Fill();
}

// All connections that the role of the workers can have: one more is refused.
void UseUpConnections(Scene& scene) {
  auto taken = std::make_shared<std::vector<std::unique_ptr<testing::SqlSession>>>();
  Database& database = scene.trial.database();
  const auto most = static_cast<std::size_t>(database.MostConnections());
  scene.undo.Add([taken] { taken->clear(); });
  scene.undo.Add([&database] { database.proxy().Restore(); });
  database.proxy().Refuse();  // the workers get nothing of what comes free
  const auto full = [&] {
    try {
      taken->push_back(database.Open(scene.trial.options().name, database.worker()));
      return false;
    } catch (const std::runtime_error& refusal) {
      if (!database.IsFull(refusal.what())) throw;
    }
    return taken->size() == most;
  };
  testing::RequireWithin(seconds(10), fmt::format("{} connections to be taken", most), full);
  scene.counts["connections taken"] += static_cast<int>(taken->size());
  database.proxy().Restore();
}

// Ids of orders all of whose records the group has committed, and that are too old to be sent
// again.
std::vector<std::string> PrunableIds(Scene& scene) {
  auto& kafka = scene.system.kafka();
  const std::string& topic = scene.trial.topic();
  const auto committed = kafka.admin().CommittedOffsets(scene.trial.group(), topic);
  std::set<std::string> kept{"''"};
  for (const auto& record : testing::ReadTopic(kafka.bootstrap(), topic)) {
    if (record.offset < committed.at(static_cast<std::size_t>(record.partition))) continue;
    kept.insert(fmt::format("'{}'", testing::Orders::Id(OrderIn(record.value.value()))));
  }
  const auto rows = scene.trial.table().Exec(
      fmt::format("SELECT record_id FROM fencepost_ledger WHERE"
                  " CAST(substring(record_id FROM 3) AS integer) < {} AND record_id NOT IN ({})",
                  scene.trial.orders() - kSentAgain, fmt::join(kept, ",")));
  std::vector<std::string> ids;
  for (const auto& row : rows) ids.push_back(row.at(0).value());
  return ids;
}

// As pruning does.
void DropLedgerRows(Scene& scene) {
  std::vector<std::string> ids;
  const auto some_are_old = [&] { return !(ids = PrunableIds(scene)).empty(); };
  if (!scene.trial.FeedUntil(seconds(20), some_are_old)) {
    throw std::runtime_error("no ledger row is old enough to be dropped");
  }
  // Each by its key: a scan would wait for the rows of the worker that is held.
  std::string sql;
  for (const auto& id : ids) {
    sql += fmt::format("DELETE FROM fencepost_ledger WHERE pipeline = '{}' AND record_id = '{}';",
                       scene.trial.group(), id);
  }
  scene.trial.table().Exec(sql);
  scene.counts["ledger rows dropped"] += static_cast<int>(ids.size());
}

}  // namespace

void AddDatabaseFaults(std::vector<Fault>& all, DatabaseKind kind) {
  const std::string name(NameOf(kind));
  std::vector<Fault> faults;
  AddNetworkFaults(faults, name, [](Scene& scene) {
    return std::vector<TcpProxy*>{&scene.trial.database().proxy()};
  });
  AddServerFaults<Database>(
      faults, name, [](Scene & scene) -> auto& { return scene.trial.database(); }, seconds(3));
  faults.push_back({name + "-sessions-ended", seconds(1),
                    [](Scene& scene) { scene.trial.database().EndSessions(); }});
  faults.push_back({name + "-table-locked", seconds(3), LockTable});
  faults.push_back({name + "-table-missing", seconds(1), HideTable});
  faults.push_back({name + "-connections-used-up", seconds(2), UseUpConnections});
  const std::vector<Pipeline> in_database{Pipeline::kId, Pipeline::kPosition};
  for (Fault& fault : faults) fault.pipelines = in_database;
  faults.push_back({.name = name + "-disk-full",
                    .lasts = seconds(1),
                    .begin = FillDisk,
                    .small_disk = true,
                    .pipelines = in_database});
  faults.push_back({.name = name + "-failed-over",
                    .lasts = seconds(1),
                    .begin = [](Scene& scene) { scene.trial.database().FailOver(); },
                    .replica = true,
                    .pipelines = in_database});
  faults.push_back({.name = name + "-ledger-rows-dropped",
                    .lasts = seconds(1),
                    .begin = DropLedgerRows,
                    .pipelines = {Pipeline::kId}});
  for (Fault& fault : faults) {
    fault.database = kind;
    all.push_back(std::move(fault));
  }
}

void AddSqliteFaults(std::vector<Fault>& faults) {
  faults.push_back({.name = "sqlite-table-locked",
                    .lasts = seconds(3),
                    .begin = LockTable,
                    .database = DatabaseKind::kSqlite,
                    .pipelines = {Pipeline::kId, Pipeline::kPosition}});
}

}  // namespace fencepost::matrix
