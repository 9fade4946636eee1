// An SQLite file for each test.
#pragma once

#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "tests/component/outputs/batch.h"
#include "tests/support/process.h"

namespace fencepost::consumer {

class SqliteTest : public ::testing::Test {
 protected:
  SqliteTest() : path_(folder_.File("effects.db")) {
    sqlite3_open(path_.c_str(), &db_);
    sqlite3_busy_timeout(db_, 5000);
    Exec("CREATE TABLE effects (order_id text PRIMARY KEY, amount int)");
  }
  ~SqliteTest() override { sqlite3_close(db_); }

  // Runs SQL beside the output; the first cell of the last row.
  std::string Exec(const std::string& sql) {
    std::string cell;
    char* error = nullptr;
    const auto keep = [](void* to, int, char** values, char**) {
      *static_cast<std::string*>(to) = values[0] == nullptr ? "NULL" : values[0];
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(db_, sql.c_str(), keep, &cell, &error), SQLITE_OK)
        << error << ": " << sql;
    sqlite3_free(error);
    return cell;
  }
  [[nodiscard]] SqliteOptions Options() const {
    return {.path = path_, .table = "effects", .columns = OrderColumns()};
  }
  static std::unique_ptr<Output> Open(const SqliteOptions& options,
                                      const std::string& worker = "worker-1") {
    return MakeSqliteOutput(options, "orders", worker);
  }
  [[nodiscard]] std::unique_ptr<Output> Open() const { return Open(Options()); }
  using NamedColumns = std::initializer_list<std::pair<const char*, const char*>>;
  [[nodiscard]] std::unique_ptr<Output> Open(const std::string& table, NamedColumns columns) const {
    SqliteOptions options = Options();
    options.table = table;
    options.columns = Columns(columns);
    return Open(options);
  }
  static std::string Refusal(const SqliteOptions& options) {
    return consumer::Refusal(*Open(options));
  }

  testing::TempDir folder_;
  std::string path_;
  sqlite3* db_ = nullptr;
};

}  // namespace fencepost::consumer
