// PostgreSQL, MySQL (MariaDB) and SQLite behind one face, for what both must do alike.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "tests/component/outputs/batch.h"
#include "tests/support/mysql_server.h"
#include "tests/support/postgres_server.h"
#include "tests/support/process.h"

namespace fencepost::consumer {

class Store {
 public:
  virtual ~Store() = default;
  // The rows of the last statement: "cell|cell cell|cell", NULL for null.
  virtual std::string Exec(const std::string& sql) = 0;
  virtual std::unique_ptr<Output> Open(std::vector<Column> columns, RowRules rules,
                                       OutputTerms terms = {},
                                       const std::string& worker = "worker-1") = 0;
  // Ends the outputs' sessions; makes another instance of the server, as a standby that was
  // promoted or a restored backup is. (A file has neither.)
  virtual void Disconnect() {}
  virtual void Restart() {}
};

template <typename Rows>
std::string RowsText(const Rows& rows) {
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (const auto& cell : row) line += (line.empty() ? "" : "|") + cell.value_or("NULL");
    text += (text.empty() ? "" : " ") + line;
  }
  return text;
}

class PostgresStore final : public Store {
 public:
  PostgresStore() {
    static int number = 0;
    database_ = fmt::format("store_{}", ++number);
    Server().Exec("CREATE DATABASE " + database_);
  }
  std::string Exec(const std::string& sql) override {
    return RowsText(Server().Exec(sql, database_));
  }
  std::unique_ptr<Output> Open(std::vector<Column> columns, RowRules rules, OutputTerms terms,
                               const std::string& worker = "worker-1") override {
    return MakePostgresOutput({.dsn = Server().dsn(database_),
                               .table = "effects",
                               .columns = std::move(columns),
                               .rules = std::move(rules)},
                              "orders", worker, std::move(terms));
  }
  void Disconnect() override {
    Exec(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = "
        "current_database() AND pid <> pg_backend_pid()");
  }
  void Restart() override { Server().Restart(); }

 private:
  static testing::PostgresServer& Server() {
    static testing::PostgresServer server;
    return server;
  }
  std::string database_;
};

class MysqlStore final : public Store {
 public:
  MysqlStore() {
    static int number = 0;
    database_ = fmt::format("store_{}", ++number);
    Server().Exec("CREATE DATABASE " + database_);
  }
  std::string Exec(const std::string& sql) override {
    return RowsText(Server().Exec(sql, database_));
  }
  std::unique_ptr<Output> Open(std::vector<Column> columns, RowRules rules, OutputTerms terms,
                               const std::string& worker = "worker-1") override {
    MysqlOptions options = Options();
    options.columns = std::move(columns);
    options.rules = std::move(rules);
    return MakeMysqlOutput(options, "orders", worker, std::move(terms));
  }
  void Disconnect() override {
    Exec("KILL " + Exec("SELECT id FROM information_schema.processlist WHERE db = database()"
                        " AND id <> connection_id() ORDER BY id LIMIT 1"));
  }
  // In another second than it was started in.
  void Restart() override {
    EXPECT_TRUE(
        testing::WaitUntil(std::chrono::seconds(20), "the server to be up for some seconds", [&] {
          return std::stoll(
                     Server().Exec("SHOW GLOBAL STATUS LIKE 'Uptime'", database_)[0][1].value()) >=
                 4;
        }));
    Server().Restart();
  }
  [[nodiscard]] MysqlOptions Options() const {
    MysqlOptions options = Server().Options(database_);
    options.table = "effects";
    return options;
  }
  static testing::MysqlServer& Server() {
    static testing::MysqlServer server;
    return server;
  }

 private:
  std::string database_;
};

class SqliteStore final : public Store {
 public:
  SqliteStore() { sqlite3_open(folder_.File("effects.db").c_str(), &db_); }
  ~SqliteStore() override { sqlite3_close(db_); }
  SqliteStore(const SqliteStore&) = delete;
  SqliteStore& operator=(const SqliteStore&) = delete;

  std::string Exec(const std::string& sql) override {
    std::string text;
    char* error = nullptr;
    const auto keep = [](void* to, int count, char** values, char**) {
      auto& all = *static_cast<std::string*>(to);
      if (!all.empty()) all += ' ';
      for (int i = 0; i < count; ++i) {
        all += std::string(i == 0 ? "" : "|") + (values[i] == nullptr ? "NULL" : values[i]);
      }
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(db_, sql.c_str(), keep, &text, &error), SQLITE_OK) << error << sql;
    sqlite3_free(error);
    return text;
  }
  std::unique_ptr<Output> Open(std::vector<Column> columns, RowRules rules, OutputTerms terms,
                               const std::string& worker = "worker-1") override {
    return MakeSqliteOutput({.path = folder_.File("effects.db"),
                             .table = "effects",
                             .columns = std::move(columns),
                             .rules = std::move(rules)},
                            "orders", worker, std::move(terms));
  }

 private:
  testing::TempDir folder_;
  sqlite3* db_ = nullptr;
};

// A table effects (id, amount, version, note) with a primary key, empty for each test.
class StoreTest : public ::testing::TestWithParam<const char*> {
 protected:
  StoreTest() {
    if (std::string_view(GetParam()) == "postgres") {
      store_ = std::make_unique<PostgresStore>();
    } else if (IsMysql()) {
      store_ = std::make_unique<MysqlStore>();
    } else {
      store_ = std::make_unique<SqliteStore>();
    }
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
  [[nodiscard]] bool IsMysql() const { return std::string_view(GetParam()) == "mysql"; }
  // A type that may be a key.
  [[nodiscard]] std::string Text() const {
    return IsMysql() ? "varchar(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin" : "text";
  }
  [[nodiscard]] bool IsPostgres() const { return std::string_view(GetParam()) == "postgres"; }
  [[nodiscard]] std::string Refusal(std::vector<Column> columns, RowRules rules) {
    const auto prepared = store_->Open(std::move(columns), std::move(rules))->Prepare();
    if (prepared) return "";
    EXPECT_EQ(prepared.error().error.code, "output_schema");
    return prepared.error().error.Line();
  }
  [[nodiscard]] std::string Refusal(RowRules rules) { return Refusal(ByKey(), std::move(rules)); }

  std::unique_ptr<Store> store_;
};

inline std::optional<Selector> Parsed(const char* selector) {
  return Selector::Parse(selector).value();
}

}  // namespace fencepost::consumer
