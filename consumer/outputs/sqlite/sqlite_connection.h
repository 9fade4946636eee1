// One connection to an SQLite file, and its statements. Apart from Interrupt, one thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <sqlite3.h>
#include <tl/expected.hpp>

#include "consumer/outputs/output.h"
#include "locking/base/fd.h"
#include "locking/base/wake_up.h"

namespace fencepost::consumer {

struct SqliteFailure {
  int code = SQLITE_OK;  // extended
  std::string text;      // may hold parts of a record: for its dead letter
  std::string shown{};   // nothing of any record; empty: nor has `text`
  [[nodiscard]] const std::string& Shown() const { return shown.empty() ? text : shown; }
};
// What it says about the records of a transaction.
WriteFailure FailureOf(const SqliteFailure& failure);
OutputError ToOutputError(const SqliteFailure& failure, std::string path);

std::string SqliteVersion();  // of the library, at run time: "3.40.1"

// A path, not a URI, that leads to no file.
bool SqliteFileIsMissing(const std::string& path);
// An empty one. Error: output_denied.
tl::expected<void, OutputError> MakeSqliteFile(const std::string& path);

// Which file a path leads to; all 0: none, the database lives in memory.
struct FileId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool operator==(const FileId&) const = default;
};

// A file, and a hold on it: as long as that lasts, no other file is given its inode, so another id
// is another file, and the same id the same one, also after the file was removed. Copies share it.
class HeldFile {
 public:
  HeldFile() = default;  // none
  explicit HeldFile(const std::string& path);
  [[nodiscard]] const FileId& id() const { return id_; }
  [[nodiscard]] bool none() const { return id_ == FileId(); }

 private:
  FileId id_;
  std::shared_ptr<const Fd> hold_;
};

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
  // The path leads elsewhere than to the open file: it was moved, removed or replaced, and what is
  // committed into it nobody will find.
  [[nodiscard]] bool Moved() const;
  [[nodiscard]] const HeldFile& file() const { return file_; }  // the one opened last

  tl::expected<void, SqliteFailure> Exec(const char* sql);
  tl::expected<SqliteStatement, SqliteFailure> Prepare(const std::string& sql);
  // true: a row is there; false: done. The caller resets the statement after a row.
  tl::expected<bool, SqliteFailure> Step(sqlite3_stmt* statement);

  // Any thread. For shutdown: a wait for the lock and a long statement end, and so do later ones.
  void Interrupt() { stop_.Stop(); }
  [[nodiscard]] bool interrupted() const { return stop_.stopped(); }

 private:
  static int OnBusy(void* self, int tries);
  static int OnProgress(void* self);
  SqliteFailure Failure() const;
  tl::expected<void, SqliteFailure> RefuseOldLog() const;
  [[nodiscard]] std::string path_of_file() const;  // "": in memory

  std::string path_;
  sqlite3* db_ = nullptr;
  HeldFile file_;
  HeldFile wal_;  // its write-ahead log
  StopSwitch stop_;
  std::chrono::steady_clock::time_point waiting_since_;
};

std::string_view SqliteText(sqlite3_stmt* row, int column);

}  // namespace fencepost::consumer
