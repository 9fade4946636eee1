// What happens to Kafka and to PostgreSQL.
#include <libpq-fe.h>

#include <set>

#include <fmt/format.h>

#include "tests/fault/matrix/faults.h"
#include "tests/support/kafka_group.h"

namespace fencepost::matrix {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::TcpProxy;

namespace {

// Of Kafka or PostgreSQL.
template <typename Server>
void AddServerFaults(std::vector<Fault>& faults, const std::string& name,
                     Server& (System::*server)(), milliseconds frozen) {
  const auto add = [&](const char* what, milliseconds lasts, void (Server::*begin)(),
                       void (Server::*end)()) {
    faults.push_back({name + what, lasts, [server, begin, end](Scene& scene) {
                        Server& one = (scene.system.*server)();
                        scene.undo.Add([&one, end] { (one.*end)(); });
                        (one.*begin)();
                      }});
  };
  add("-killed", milliseconds(500), &Server::Kill, &Server::Start);
  add("-restarted", milliseconds(500), &Server::Stop, &Server::Start);
  add("-frozen", frozen, &Server::Pause, &Server::Resume);
}

// All workers stop, and the group is forgotten: it begins at the earliest record again.
void DeleteOffsets(Scene& scene) {
  auto workers = scene.trial.team().Running();
  for (testing::WorkerProcess* worker : workers) scene.Terminate(*worker);
  scene.undo.Add([&scene, workers] {
    for (testing::WorkerProcess* worker : workers) {
      if (worker->Wait(seconds(40)) != 0) throw std::runtime_error("a worker did not end with 0");
      scene.trial.Forgive(*worker);
      ++scene.counts["stops"];
    }
    const std::string broker = scene.system.kafka().bootstrap();
    const std::string& group = scene.trial.options().name;
    testing::RequireWithin(
        seconds(30), [&] { return testing::LookAtGroup(broker, group).members.empty(); },
        "the group to be empty");
    testing::DeleteGroup(broker, group);
    for (testing::WorkerProcess* worker : workers) scene.trial.team().Add(worker->name());
  });
}

constexpr const char* kTerminate =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'";

// What PostgreSQL lets a role have that is nothing special.
constexpr const char* kMostConnections =
    "SELECT sum(CASE name WHEN 'max_connections' THEN setting::int ELSE -setting::int END)"
    " FROM pg_settings WHERE name IN"
    " ('max_connections', 'superuser_reserved_connections', 'reserved_connections')";

// All connections that the role of the workers can have: one more is refused.
void UseUpConnections(Scene& scene) {
  using Connection = std::shared_ptr<PGconn>;
  auto taken = std::make_shared<std::vector<Connection>>();
  const std::string dsn = scene.system.postgres().dsn(scene.trial.options().name, /*user=*/"app");
  const std::string most = scene.system.postgres().Value(kMostConnections);
  TcpProxy& proxy = scene.system.postgres_proxy();
  scene.undo.Add([taken] { taken->clear(); });
  scene.undo.Add([&proxy] { proxy.Restore(); });
  proxy.Refuse();  // the workers get nothing of what comes free
  const auto full = [&] {
    Connection connection(PQconnectdb(dsn.c_str()), &PQfinish);
    if (PQstatus(connection.get()) == CONNECTION_OK) {
      taken->push_back(std::move(connection));
      return false;
    }
    const std::string why = PQerrorMessage(connection.get());
    if (why.find("too many clients") == std::string::npos &&
        why.find("connection slots are reserved") == std::string::npos) {
      throw std::runtime_error("PostgreSQL refuses, but not since it is full: " + why);
    }
    return std::to_string(taken->size()) == most;
  };
  testing::RequireWithin(seconds(10), full, most + " connections to be taken");
  scene.counts["connections taken"] += static_cast<int>(taken->size());
  proxy.Restore();
}

// As pruning does: of orders all of whose records the group has committed, and that are too old to
// be sent again.
void DropLedgerRows(Scene& scene) {
  auto& kafka = scene.system.kafka();
  const std::string& name = scene.trial.options().name;
  const auto committed = kafka.admin().CommittedOffsets(name, name);
  std::set<std::string> kept{"''"};
  for (const auto& record : testing::ReadTopic(kafka.bootstrap(), name)) {
    if (record.offset < committed.at(static_cast<std::size_t>(record.partition))) continue;
    kept.insert(fmt::format("'{}'", testing::Orders::Id(OrderIn(record.value.value()))));
  }
  scene.trial.table().Exec(fmt::format(
      "DELETE FROM fencepost_ledger WHERE substring(record_id from 3)::int < {} AND record_id NOT"
      " IN ({})",
      scene.trial.orders() - kSentAgain, fmt::join(kept, ",")));
}

}  // namespace

void AddKafkaFaults(std::vector<Fault>& faults) {
  AddNetworkFaults(faults, "kafka", [](Scene& scene) {
    return std::vector<TcpProxy*>{&scene.system.kafka_proxy()};
  });
  AddServerFaults(faults, "kafka", &System::kafka, kSession + seconds(1));
  faults.push_back(
      {"kafka-partitions-added", seconds(1), [](Scene& scene) { scene.trial.AddPartitions(2); }});
  faults.push_back({"kafka-group-emptied", seconds(1), [](Scene& scene) {
                      testing::RemoveMembers(scene.system.kafka().bootstrap(),
                                             scene.trial.options().name);
                    }});
  faults.push_back({"kafka-offsets-deleted", milliseconds(0), DeleteOffsets});
}

void AddPostgresFaults(std::vector<Fault>& faults) {
  AddNetworkFaults(faults, "postgres", [](Scene& scene) {
    return std::vector<TcpProxy*>{&scene.system.postgres_proxy()};
  });
  AddServerFaults(faults, "postgres", &System::postgres, seconds(3));
  faults.push_back({"postgres-backends-terminated", seconds(1),
                    [](Scene& scene) { scene.system.postgres().Exec(kTerminate); }});
  faults.push_back({"postgres-table-locked", seconds(3), [](Scene& scene) {
                      auto lock = std::make_shared<testing::TableLock>(scene.trial.table());
                      scene.undo.Add([lock]() mutable { lock.reset(); });
                    }});
  faults.push_back({"postgres-connections-used-up", seconds(2), UseUpConnections});
  faults.push_back({"postgres-ledger-rows-dropped", seconds(1), DropLedgerRows});
}

}  // namespace fencepost::matrix
