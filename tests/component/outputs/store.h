// PostgreSQL, MySQL (MariaDB) and SQLite behind one face, for what all must do alike.
#pragma once

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/component/outputs/batch.h"
#include "tests/support/mysql_server.h"
#include "tests/support/postgres_server.h"
#include "tests/support/process.h"
#include "tests/support/sqlite_file.h"

namespace fencepost::consumer {

// What an output is opened with, but for its database.
struct Opening {
  std::vector<Column> columns;
  RowRules rules{};
  OutputTerms terms{};
  std::string worker = "worker-1";
  std::string table = "effects";
  int port = 0;                   // of a proxy before the server
  std::string user{};             // empty: one who may do everything
  std::string options{};          // PostgreSQL's: further text of the dsn
  std::vector<Effect> effects{};  // instead of table, columns and rules
};

// An empty database of its own, of one server a kind.
class Store {
 public:
  using Kind = testing::SqlServer::Kind;
  explicit Store(Kind kind) : kind_(kind) {
    static int number = 0;
    database_ = fmt::format("store_{}", ++number);
    if (kind == Kind::kSqlite) return;
    server().Exec("CREATE DATABASE " + database_, kind == Kind::kMysql ? "mysql" : "postgres");
  }

  [[nodiscard]] testing::SqlServer& server() {
    if (kind_ == Kind::kPostgres) return Postgres();
    return kind_ == Kind::kMysql ? static_cast<testing::SqlServer&>(Mysql()) : files_;
  }
  static testing::PostgresServer& Postgres() {
    static testing::PostgresServer server;
    return server;
  }
  static testing::MysqlServer& Mysql() {
    static testing::MysqlServer server;
    return server;
  }
  [[nodiscard]] const std::string& database() const { return database_; }
  [[nodiscard]] std::string sqlite_path() const { return files_.path(database_); }
  // The rows of the last statement: "cell|cell cell|cell", NULL for null.
  std::string Exec(const std::string& sql) {
    std::string text;
    for (const auto& row : server().Exec(sql, database_)) {
      std::string line;
      for (const auto& cell : row) line += (line.empty() ? "" : "|") + cell.value_or("NULL");
      text += (text.empty() ? "" : " ") + line;
    }
    return text;
  }
  // Another session, in a transaction of its own until it goes.
  [[nodiscard]] std::unique_ptr<testing::SqlSession> Hold(const std::string& sql) {
    auto session = server().Open(database_);
    if (kind_ == Kind::kMysql) session->Exec("SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
    session->Exec("BEGIN");
    session->Exec(sql);
    return session;
  }
  // Until so many sessions wait for what others hold. (MySQL counts those of all databases.)
  [[nodiscard]] ::testing::AssertionResult SomeoneWaits(
      int sessions = 1, testing::Deadline limit = std::chrono::seconds(20)) {
    const std::string sql = kind_ == Kind::kMysql
                                ? "SELECT variable_value FROM information_schema.global_status"
                                  " WHERE variable_name = 'innodb_row_lock_current_waits'"
                                : "SELECT count(*) FROM pg_stat_activity WHERE datname ="
                                  " current_database() AND wait_event_type = 'Lock'";
    return testing::WaitUntil(limit, fmt::format("{} sessions to wait", sessions),
                              [&] { return Exec(sql) == std::to_string(sessions); });
  }

  [[nodiscard]] MysqlOptions MysqlTable() const {
    MysqlOptions options = Mysql().Options(database_);
    options.table = "effects";
    return options;
  }
  [[nodiscard]] std::unique_ptr<Output> Open(Opening with) {
    if (kind_ == Kind::kPostgres) {
      const std::string dsn =
          with.port == 0
              ? Postgres().dsn(database_, with.user.empty() ? "postgres" : with.user)
              : fmt::format("postgresql://postgres@127.0.0.1:{}/{}", with.port, database_);
      return MakePostgresOutput({.dsn = dsn + with.options,
                                 .table = with.table,
                                 .columns = std::move(with.columns),
                                 .rules = std::move(with.rules),
                                 .effects = std::move(with.effects)},
                                "orders", with.worker, std::move(with.terms));
    }
    if (kind_ == Kind::kMysql) {
      MysqlOptions options = MysqlTable();
      if (with.port != 0) options.port = with.port;
      if (!with.user.empty()) options.user = with.user;
      options.table = with.table;
      options.columns = std::move(with.columns);
      options.rules = std::move(with.rules);
      options.effects = std::move(with.effects);
      return MakeMysqlOutput(options, "orders", with.worker, std::move(with.terms));
    }
    return MakeSqliteOutput({.path = sqlite_path(),
                             .table = with.table,
                             .columns = std::move(with.columns),
                             .rules = std::move(with.rules),
                             .effects = std::move(with.effects)},
                            "orders", with.worker, std::move(with.terms));
  }
  [[nodiscard]] std::unique_ptr<Output> Open(std::vector<Column> columns, RowRules rules,
                                             OutputTerms terms = {},
                                             const std::string& worker = "worker-1") {
    return Open({.columns = std::move(columns),
                 .rules = std::move(rules),
                 .terms = std::move(terms),
                 .worker = worker});
  }
  // Of a server: ends the outputs' sessions.
  void Disconnect() {
    if (kind_ == Kind::kPostgres) {
      Exec(
          "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = "
          "current_database() AND pid <> pg_backend_pid()");
    } else {
      Exec("KILL " + Exec("SELECT id FROM information_schema.processlist WHERE db = database()"
                          " AND id <> connection_id() ORDER BY id LIMIT 1"));
    }
  }
  // Makes another instance of the server, as a standby that was promoted or a restored backup is:
  // MySQL's is told by the second in which it was started.
  void Restart() {
    if (kind_ == Kind::kMysql) {
      EXPECT_TRUE(testing::WaitUntil(std::chrono::seconds(20), "4 s of the server", [&] {
        return std::stoll(Exec("SHOW GLOBAL STATUS LIKE 'Uptime'").substr(7)) >= 4;
      }));
    }
    server().Restart();
  }

 private:
  const Kind kind_;
  std::string database_;
  testing::TempDir folder_;
  testing::SqliteFiles files_{folder_.path().string()};
};

// A table effects (id, amount, version, note) with a primary key, empty for each test.
class StoreTest : public ::testing::TestWithParam<const char*> {
 protected:
  StoreTest() {
    store_->Exec(
        fmt::format("CREATE TABLE effects (id {0} PRIMARY KEY, amount integer CHECK (amount <> 13),"
                    " version bigint, note {0} DEFAULT 'new')",
                    Text()));
  }
  std::string Exec(const std::string& sql) { return store_->Exec(sql); }
  [[nodiscard]] std::string Effects() {
    return store_->Exec("SELECT id, amount, version FROM effects ORDER BY id");
  }
  [[nodiscard]] std::string Ledger() {
    return store_->Exec("SELECT record_id FROM fencepost_ledger ORDER BY record_id");
  }
  // The rows are named by the records' keys.
  [[nodiscard]] static std::vector<Column> ByKey() {
    return Columns({{"id", "key"}, {"amount", "json:/amount"}});
  }
  [[nodiscard]] std::unique_ptr<Output> Open(RowRules rules, OutputTerms terms = {}) {
    return store_->Open(ByKey(), std::move(rules), std::move(terms));
  }
  [[nodiscard]] static bool Is(std::string_view store) { return GetParam() == store; }
  [[nodiscard]] static bool IsMysql() { return Is("mysql"); }
  [[nodiscard]] static bool IsPostgres() { return Is("postgres"); }
  // A type that may be a key.
  [[nodiscard]] static std::string Text() {
    return IsMysql() ? "varchar(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin" : "text";
  }
  [[nodiscard]] std::string Refusal(std::vector<Column> columns, RowRules rules) {
    const auto prepared = store_->Open(std::move(columns), std::move(rules))->Prepare();
    if (prepared) return "";
    EXPECT_EQ(prepared.error().error.code, "output_schema");
    return prepared.error().error.Line();
  }
  [[nodiscard]] std::string Refusal(RowRules rules) { return Refusal(ByKey(), std::move(rules)); }

  const std::unique_ptr<Store> store_ =
      std::make_unique<Store>(IsPostgres() ? Store::Kind::kPostgres
                              : IsMysql()  ? Store::Kind::kMysql
                                           : Store::Kind::kSqlite);
};
inline const auto kStores = ::testing::Values("postgres", "mysql", "sqlite");
inline const auto kServers = ::testing::Values("postgres", "mysql");
inline std::string StoreName(const ::testing::TestParamInfo<const char*>& store) {
  return store.param;
}

inline std::optional<Selector> Parsed(const char* selector) {
  return Selector::Parse(selector).value();
}

}  // namespace fencepost::consumer
