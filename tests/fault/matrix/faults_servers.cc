// What happens to Kafka and to PostgreSQL.
#include <libpq-fe.h>
#include <sys/types.h>

#include <csignal>
#include <set>

#include <fmt/format.h>

#include "tests/fault/matrix/faults.h"
#include "tests/support/kafka_group.h"

namespace fencepost::matrix {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::TcpProxy;

namespace {

void Nothing(Scene&) {}

// All workers stop, and the group is forgotten: it begins at the earliest record again.
End DeleteOffsets(Scene& scene) {
  auto workers = scene.trial.team().Running();
  for (testing::WorkerProcess* worker : workers) scene.Terminate(*worker);
  return [workers](Scene& later) {
    for (testing::WorkerProcess* worker : workers) {
      if (worker->Wait(seconds(40)) != 0) throw std::runtime_error("a worker did not end with 0");
      later.trial.Forgive(*worker);
      ++later.counts["stops"];
    }
    const std::string broker = later.system.kafka().bootstrap();
    const std::string& group = later.trial.options().name;
    testing::RequireWithin(
        seconds(30), [&] { return testing::LookAtGroup(broker, group).members.empty(); },
        "the group to be empty");
    testing::DeleteGroup(broker, group);
    for (testing::WorkerProcess* worker : workers) later.trial.team().Add(worker->name());
  };
}

// The postmaster and all its children: each of them has a session of its own.
std::vector<pid_t> ProcessesOf(testing::PostgresServer& postgres) {
  std::vector<pid_t> pids{postgres.pid()};
  for (const auto& row :
       postgres.Exec("SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()")) {
    pids.push_back(static_cast<pid_t>(std::stoi(row.at(0).value())));
  }
  return pids;
}

End FreezePostgres(Scene& scene) {
  const auto pids = ProcessesOf(scene.system.postgres());
  for (const pid_t pid : pids) kill(pid, SIGSTOP);
  return [pids](Scene&) {
    for (const pid_t pid : pids) kill(pid, SIGCONT);
  };
}

constexpr const char* kTerminate =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'";

// Connections of the role that the workers have, until there is none more.
End UseUpConnections(Scene& scene) {
  using Connection = std::shared_ptr<PGconn>;
  auto taken = std::make_shared<std::vector<Connection>>();
  const std::string dsn = scene.system.postgres().dsn(scene.trial.options().name, /*user=*/"app");
  const auto take = [&] {
    while (true) {
      Connection connection(PQconnectdb(dsn.c_str()), &PQfinish);
      if (PQstatus(connection.get()) != CONNECTION_OK) return;
      taken->push_back(std::move(connection));
    }
  };
  take();
  scene.system.postgres_proxy().Cut();
  take();
  return [taken](Scene&) { taken->clear(); };
}

// As pruning does: of orders all of whose records the group has committed, and that are too old to
// be sent again.
End DropLedgerRows(Scene& scene) {
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
  return Nothing;
}

}  // namespace

void AddKafkaFaults(std::vector<Fault>& faults) {
  AddNetworkFaults(faults, "kafka", [](Scene& scene) {
    return std::vector<TcpProxy*>{&scene.system.kafka_proxy()};
  });
  faults.push_back({"kafka-killed", milliseconds(500), [](Scene& scene) -> End {
                      scene.system.kafka().Kill();
                      return [](Scene& later) { later.system.kafka().Start(); };
                    }});
  faults.push_back({"kafka-restarted", milliseconds(500), [](Scene& scene) -> End {
                      scene.system.kafka().Stop();
                      return [](Scene& later) { later.system.kafka().Start(); };
                    }});
  faults.push_back({"kafka-frozen", kSession + seconds(1), [](Scene& scene) -> End {
                      scene.system.kafka().Pause();
                      return [](Scene& later) { later.system.kafka().Resume(); };
                    }});
  faults.push_back({"kafka-partitions-added", seconds(1), [](Scene& scene) -> End {
                      scene.trial.AddPartitions(2);
                      return Nothing;
                    }});
  faults.push_back({"kafka-group-emptied", seconds(1), [](Scene& scene) -> End {
                      testing::RemoveMembers(scene.system.kafka().bootstrap(),
                                             scene.trial.options().name);
                      return Nothing;
                    }});
  faults.push_back({"kafka-offsets-deleted", milliseconds(0), DeleteOffsets});
}

void AddPostgresFaults(std::vector<Fault>& faults) {
  AddNetworkFaults(faults, "postgres", [](Scene& scene) {
    return std::vector<TcpProxy*>{&scene.system.postgres_proxy()};
  });
  faults.push_back({"postgres-killed", milliseconds(500), [](Scene& scene) -> End {
                      scene.system.postgres().Kill();
                      return [](Scene& later) { later.system.postgres().Start(); };
                    }});
  faults.push_back({"postgres-restarted", milliseconds(500), [](Scene& scene) -> End {
                      scene.system.postgres().Stop();
                      return [](Scene& later) { later.system.postgres().Start(); };
                    }});
  faults.push_back({"postgres-frozen", seconds(3), FreezePostgres});
  faults.push_back({"postgres-backends-terminated", seconds(1), [](Scene& scene) -> End {
                      scene.system.postgres().Exec(kTerminate);
                      return Nothing;
                    }});
  faults.push_back({"postgres-table-locked", seconds(3), [](Scene& scene) -> End {
                      auto lock = std::make_shared<testing::TableLock>(scene.trial.table());
                      return [lock](Scene&) mutable { lock.reset(); };
                    }});
  faults.push_back({"postgres-connections-used-up", seconds(2), UseUpConnections});
  faults.push_back({"postgres-ledger-rows-dropped", seconds(1), DropLedgerRows});
}

}  // namespace fencepost::matrix
