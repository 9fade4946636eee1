// PostgreSQL and SQLite behind one face, for what both must do alike.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "tests/component/outputs/batch.h"
#include "tests/support/postgres_server.h"
#include "tests/support/process.h"

namespace fencepost::consumer {

class Store {
 public:
  virtual ~Store() = default;
  // The rows of the last statement: "cell|cell cell|cell", NULL for null.
  virtual std::string Exec(const std::string& sql) = 0;
  virtual std::unique_ptr<Output> Open(std::vector<Column> columns, RowRules rules,
                                       OutputTerms terms = {}) = 0;
};

class PostgresStore final : public Store {
 public:
  PostgresStore() {
    static int number = 0;
    database_ = fmt::format("store_{}", ++number);
    Server().Exec("CREATE DATABASE " + database_);
  }
  std::string Exec(const std::string& sql) override {
    std::string text;
    for (const auto& row : Server().Exec(sql, database_)) {
      std::string line;
      for (const auto& cell : row) line += (line.empty() ? "" : "|") + cell.value_or("NULL");
      text += (text.empty() ? "" : " ") + line;
    }
    return text;
  }
  std::unique_ptr<Output> Open(std::vector<Column> columns, RowRules rules,
                               OutputTerms terms) override {
    return MakePostgresOutput({.dsn = Server().dsn(database_),
                               .table = "effects",
                               .columns = std::move(columns),
                               .rules = std::move(rules)},
                              "orders", "worker-1", std::move(terms));
  }

 private:
  static testing::PostgresServer& Server() {
    static testing::PostgresServer server;
    return server;
  }
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
  std::unique_ptr<Output> Open(std::vector<Column> columns, RowRules rules,
                               OutputTerms terms) override {
    return MakeSqliteOutput({.path = folder_.File("effects.db"),
                             .table = "effects",
                             .columns = std::move(columns),
                             .rules = std::move(rules)},
                            "orders", "worker-1", std::move(terms));
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
    } else {
      store_ = std::make_unique<SqliteStore>();
    }
    store_->Exec(
        "CREATE TABLE effects (id text PRIMARY KEY, amount integer CHECK (amount <> 13),"
        " version bigint, note text DEFAULT 'new')");
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
