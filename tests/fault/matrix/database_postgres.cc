#include <stdexcept>

#include <fmt/format.h>

#include "tests/fault/matrix/database.h"
#include "tests/support/postgres_server.h"

namespace fencepost::matrix {

using testing::Effect;
using testing::PostgresServer;
using testing::TcpProxy;

namespace {

constexpr std::chrono::seconds kLimit{30};

// When a transaction was committed is known by one clock, the server's.
testing::PostgresOptions Options() {
  return {.config = {fmt::format("max_connections={}", kConnections), "track_commit_timestamp=on"}};
}

class Postgres : public Database {
 public:
  Postgres() : Database(std::make_unique<PostgresServer>(Options())) {
    Exec("CREATE ROLE app LOGIN", "postgres");
  }

  [[nodiscard]] std::string Output(const std::string& database) const override {
    return fmt::format("  postgres:\n    dsn: postgresql://{}@{}/{}\n", worker(), proxy().address(),
                       database);
  }
  [[nodiscard]] const char* worker() const override { return "app"; }

  void MakeEffects(const testing::EffectsTable& table, const testing::SmallDisk* disk) override {
    table.Exec(fmt::format(
        "DROP TABLE effects; CREATE TABLE effects (order_id text NOT NULL, amount int NOT NULL,"
        " source_partition int, source_offset bigint, fence bigint,"
        " tx xid8 DEFAULT pg_current_xact_id()); GRANT INSERT, SELECT ON effects TO {0};"
        " CREATE TABLE second_effects (order_id text NOT NULL, amount int NOT NULL);"
        " GRANT INSERT, SELECT ON second_effects TO {0};"
        " GRANT ALL ON SCHEMA public TO {0}",
        worker()));
    if (disk == nullptr) return;
    const std::string space = SpaceOf(table.Value("SELECT current_database()"));
    table.Exec(
        fmt::format("CREATE TABLESPACE \"{}\" LOCATION '{}'", space, disk->FolderOf("postgres")));
    table.Exec(
        fmt::format("ALTER TABLE effects ADD wide text DEFAULT repeat('x', {});"
                    " ALTER TABLE effects ALTER wide SET STORAGE PLAIN; ALTER TABLE effects SET "
                    "TABLESPACE \"{}\"",
                    kWide, space));
  }

  // Rows of a transaction take effect at once: here they stand in the order of their positions.
  [[nodiscard]] std::vector<Effect> ReadEffects(const testing::EffectsTable& table) override {
    std::vector<Effect> effects;
    for (const auto& row :
         table.Exec(fmt::format("SELECT {}, pg_xact_commit_timestamp(xid(tx)) FROM effects"
                                " ORDER BY pg_xact_commit_timestamp(xid(tx)), tx, source_partition,"
                                " source_offset",
                                kEffectColumns))) {
      if (!row.back()) throw std::runtime_error("nothing says when an effect was committed");
      effects.push_back(EffectOf(row));
    }
    return effects;
  }
  void Drop(const std::string& database) override {
    Exec(fmt::format("DROP DATABASE \"{}\" WITH (FORCE)", database), "postgres");
    const std::string space = SpaceOf(database);
    const std::string there = Value(
        fmt::format("SELECT count(*) FROM pg_tablespace WHERE spcname = '{}'", space), "postgres");
    if (there != "0") Exec(fmt::format("DROP TABLESPACE \"{}\"", space), "postgres");
  }

  // In a query, and in the tag of what was done.
  [[nodiscard]] Seen Commits(TcpProxy::Way way) const override {
    return [way](const TcpProxy::Passing& passing) {
      return passing.way == way && passing.bytes.find("COMMIT") != std::string_view::npos;
    };
  }
  void EndSessions() override {
    Exec(fmt::format("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{}'",
                     worker()),
         "postgres");
  }
  [[nodiscard]] std::vector<std::string> WaitFor(const testing::EffectsTable& of,
                                                 const std::string& table) const override {
    std::vector<std::string> names;
    for (const auto& row : of.Exec(
             fmt::format("SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)"
                         " WHERE NOT granted AND relation = '{}'::regclass AND usename = '{}'",
                         table, worker()))) {
      names.push_back(row.front().value());
    }
    return names;
  }
  [[nodiscard]] int MostConnections() const override {
    return std::stoi(Value(
        "SELECT sum(CASE name WHEN 'max_connections' THEN setting::int ELSE -setting::int END)"
        " FROM pg_settings WHERE name IN"
        " ('max_connections', 'superuser_reserved_connections', 'reserved_connections')",
        "postgres"));
  }
  [[nodiscard]] bool IsFull(std::string_view refusal) const override {
    return refusal.find("too many clients") != std::string_view::npos ||
           refusal.find("connection slots are reserved") != std::string_view::npos;
  }
  [[nodiscard]] std::string_view NoRoom() const override { return "No space left on device"; }

 protected:
  std::unique_ptr<testing::SqlServer> MakeReplica() override {
    auto& primary = static_cast<PostgresServer&>(first());
    auto standby = std::make_unique<PostgresServer>(primary, primary.port(), Options());
    primary.Exec("ALTER SYSTEM SET synchronous_standby_names = '*'");
    primary.Exec("SELECT pg_reload_conf()");
    const auto waits = [&] {
      return primary.Value("SELECT sync_state FROM pg_stat_replication") == "sync";
    };
    testing::RequireWithin(kLimit, "the standby to be synchronous", waits);
    return standby;
  }
  void Promote(testing::SqlServer& replica) override {
    static_cast<PostgresServer&>(replica).Promote();
  }
  void Forget() override {
    Exec("ALTER SYSTEM RESET synchronous_standby_names", "postgres");
    Exec("SELECT pg_reload_conf()", "postgres");
  }

 private:
  static std::string SpaceOf(const std::string& database) { return "small-" + database; }
};

}  // namespace

std::unique_ptr<Database> MakePostgres() { return std::make_unique<Postgres>(); }

}  // namespace fencepost::matrix
