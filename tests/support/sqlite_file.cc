#include "tests/support/sqlite_file.h"

#include <sqlite3.h>

#include <stdexcept>

namespace fencepost::testing {
namespace {

class Session : public SqlSession {
 public:
  explicit Session(const std::string& path) {
    if (sqlite3_open(path.c_str(), &db_) != SQLITE_OK) throw std::runtime_error(path);
    sqlite3_busy_timeout(db_, 20'000);
    Exec("PRAGMA journal_mode=WAL");
  }
  ~Session() override { sqlite3_close(db_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Rows Exec(const std::string& sql) override {
    Rows rows;
    const auto keep = [](void* to, int count, char** cells, char**) {
      auto& row = static_cast<Rows*>(to)->emplace_back();
      for (int i = 0; i < count; ++i) {
        row.push_back(cells[i] == nullptr ? std::nullopt : std::optional<std::string>(cells[i]));
      }
      return 0;
    };
    if (sqlite3_exec(db_, sql.c_str(), keep, &rows, nullptr) == SQLITE_OK) return rows;
    throw std::runtime_error(sql + ": " + sqlite3_errmsg(db_));
  }

 private:
  sqlite3* db_ = nullptr;
};

}  // namespace

std::unique_ptr<SqlSession> SqliteFiles::Open(const std::string& database,
                                              const std::string&) const {
  return std::make_unique<Session>(path(database));
}

}  // namespace fencepost::testing
