// One connection to an SQLite file, and its statements. Apart from Interrupt, one thread.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <sqlite3.h>
#include <tl/expected.hpp>

#include "consumer/outputs/output.h"

namespace fencepost::consumer {

struct SqliteFailure {
  int code = SQLITE_OK;  // extended
  std::string text;
};
// The data of one record: a constraint, a type in a STRICT table, a trigger's RAISE, too big.
bool RefusesRecord(const SqliteFailure& failure);
OutputError ToOutputError(const SqliteFailure& failure, std::string path);

struct SqliteStatementDeleter {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using SqliteStatement = std::unique_ptr<sqlite3_stmt, SqliteStatementDeleter>;

class SqliteConnection {
 public:
  explicit SqliteConnection(std::string path);
  ~SqliteConnection();
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  [[nodiscard]] bool open() const { return db_ != nullptr; }
  [[nodiscard]] sqlite3* db() const { return db_; }

  // Opens the file, which must exist, and sets WAL and synchronous=FULL. A path that begins with
  // file: is a URI: file:NAME?mode=memory&cache=shared lives in this process, as long as anyone has
  // it open.
  tl::expected<void, SqliteFailure> Open();
  void Close();  // statements must be gone

  tl::expected<void, SqliteFailure> Exec(const char* sql);
  tl::expected<SqliteStatement, SqliteFailure> Prepare(const std::string& sql);
  // true: a row stands there; false: done. The caller resets the statement after a row.
  tl::expected<bool, SqliteFailure> Step(sqlite3_stmt* statement);

  // Any thread. For shutdown: a wait for the lock and a long statement end, and so do later ones.
  void Interrupt();
  [[nodiscard]] bool interrupted() const { return interrupted_; }

 private:
  static int OnBusy(void* self, int tries);
  static int OnProgress(void* self);
  SqliteFailure Failure() const;

  std::string path_;
  sqlite3* db_ = nullptr;
  std::atomic<bool> interrupted_ = false;
  int wake_fd_ = -1;
  std::chrono::steady_clock::time_point waiting_since_;
};

std::string_view SqliteText(sqlite3_stmt* row, int column);

}  // namespace fencepost::consumer
