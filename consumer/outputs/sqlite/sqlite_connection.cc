#include "consumer/outputs/sqlite/sqlite_connection.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "consumer/outputs/failure_text.h"
#include "locking/base/check.h"

namespace fencepost::consumer {
namespace {

// A writer that is frozen inside its transaction holds the file's lock until it thaws or dies.
constexpr std::chrono::seconds kLockWait{5};
constexpr int kProgressSteps = 10'000;

FileId IdOf(const struct stat& about) { return {.device = about.st_dev, .inode = about.st_ino}; }

FileId FileAt(const std::string& path) {
  struct stat about {};
  if (path.empty() || stat(path.c_str(), &about) != 0) return {};
  return IdOf(about);
}

// SQLite quotes names, and values only where an expression failed; the words of RAISE are an
// expression, too, in newer versions.
std::string WithoutRecord(int code, const std::string& text) {
  const bool raised = code == SQLITE_CONSTRAINT_TRIGGER || code == SQLITE_CONSTRAINT_FUNCTION;
  if (raised) return "a trigger refused the row";
  if ((code & 0xff) != SQLITE_ERROR) return text;
  const std::string beginning = BeforeQuotes(text);
  return beginning.empty() ? sqlite3_errstr(code) : beginning;
}

OutputError::Between BetweenRows(int code) {
  switch (code) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
      return OutputError::Between::kUnique;
    case SQLITE_CONSTRAINT_FOREIGNKEY:
      return OutputError::Between::kForeignKey;
    default:
      return OutputError::Between::kNone;
  }
}

}  // namespace

bool SqliteFileIsMissing(const std::string& path) {
  return !path.starts_with("file:") && path != ":memory:" && access(path.c_str(), F_OK) != 0;
}

tl::expected<void, OutputError> MakeSqliteFile(const std::string& path) {
  const Fd made(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (made.open() || errno == EEXIST) return {};
  const bool folder = errno == ENOENT;
  return tl::unexpected(OutputError{
      .error = {.code = "output_denied",
                .what = fmt::format("the file cannot be made: {}",
                                    folder ? "there is no such folder" : std::strerror(errno)),
                .where = path,
                .hint = folder ? "make the folder, or correct output.sqlite.path" : ""}});
}

// O_PATH, and nothing else: closing any other descriptor of the file would end the POSIX locks by
// which SQLite keeps the processes that share it apart.
HeldFile::HeldFile(const std::string& path) {
  if (path.empty()) return;
  Fd hold(open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat about {};
  if (!hold.open() || fstat(hold.get(), &about) != 0) return;
  id_ = IdOf(about);
  hold_ = std::make_shared<const Fd>(std::move(hold));
}

// These speak of the file or the disk, whatever is written. Everything else can be one record's
// doing (SQLITE_ERROR is also "malformed JSON" of a generated column), and whether it is,
// WriteRetry finds out.
WriteFailure FailureOf(const SqliteFailure& failure) {
  switch (failure.code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
    case SQLITE_NOMEM:
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
    case SQLITE_NOLFS:
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_INTERRUPT:
      return WriteFailure::kUnavailable;
    default:
      return WriteFailure::kRefused;
  }
}

OutputError ToOutputError(const SqliteFailure& failure, std::string path) {
  const auto error = [&](std::string code, std::string hint) {
    return OutputError{.error = {.code = std::move(code),
                                 .what = failure.Shown(),
                                 .where = std::move(path),
                                 .hint = std::move(hint)},
                       .kind = std::to_string(failure.code),
                       .between = BetweenRows(failure.code)};
  };
  switch (failure.code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return error(
          "output_locked",
          "another process holds the file's write lock (a frozen worker?); the batch waits");
    case SQLITE_FULL:
      return error("output_full", "give the disk room; the batch waits");
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return error("output_denied",
                   "the file must exist with its table, and file and folder be writable");
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return error("output_corrupt", "restore it from a backup");
    case SQLITE_ERROR:
      return error("output_schema", "compare the table with output.sqlite in the pipeline file");
    default:
      if (FailureOf(failure) == WriteFailure::kUnavailable) return error("output_unavailable", "");
      return error("output_refused", "compare the table with output.sqlite in the pipeline file");
  }
}

std::string_view SqliteText(sqlite3_stmt* row, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
  if (text == nullptr) return {};
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(row, column))};
}

SqliteConnection::SqliteConnection(std::string path) : path_(std::move(path)) {}

SqliteConnection::~SqliteConnection() { Close(); }

int SqliteConnection::OnBusy(void* self, int tries) {
  auto& connection = *static_cast<SqliteConnection*>(self);
  const auto now = std::chrono::steady_clock::now();
  if (tries == 0) connection.waiting_since_ = now;
  if (connection.stop_.stopped() || now - connection.waiting_since_ > kLockWait) return 0;
  pollfd wake{connection.stop_.fd(), POLLIN, 0};
  poll(&wake, 1, std::min(1 + tries, 20));
  return 1;
}

int SqliteConnection::OnProgress(void* self) {
  return static_cast<SqliteConnection*>(self)->interrupted() ? 1 : 0;
}

void SqliteConnection::Close() {
  if (db_ == nullptr) return;
  const int code = sqlite3_close(db_);
  FENCEPOST_CHECK(code == SQLITE_OK, sqlite3_errstr(code));
  db_ = nullptr;
}

SqliteFailure SqliteConnection::Failure() const {
  return {sqlite3_extended_errcode(db_), ErrorText(sqlite3_errmsg(db_))};
}

bool SqliteConnection::Moved() const {
  int moved = 0;
  if (sqlite3_file_control(db_, "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK) return false;
  return moved != 0 || (!file_.none() && FileAt(path_of_file()) != file_.id());
}

std::string SqliteConnection::path_of_file() const {
  const char* name = sqlite3_db_filename(db_, "main");
  return name == nullptr ? "" : name;
}

// SQLite would play the log of the file that was here before into the one that is here now.
tl::expected<void, SqliteFailure> SqliteConnection::RefuseOldLog() const {
  const std::string log = path_of_file() + "-wal";
  struct stat about {};
  if (wal_.none() || FileAt(path_of_file()) == file_.id()) return {};
  if (FileAt(log) != wal_.id() || stat(log.c_str(), &about) != 0 || about.st_size == 0) return {};
  return tl::unexpected(SqliteFailure{
      SQLITE_CANTOPEN,
      fmt::format("the file was replaced, and the log of the former one, {}, lies beside it: stop "
                  "the workers, remove it and {}-shm, and start them",
                  log, path_of_file())});
}

tl::expected<void, SqliteFailure> SqliteConnection::Open() {
  Close();
  // Without CREATE: a mistyped path must not become an empty database.
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI;
  const int code = sqlite3_open_v2(path_.c_str(), &db_, kFlags, nullptr);
  if (code != SQLITE_OK) {
    SqliteFailure failure{code, db_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(db_)};
    const bool uri = path_.starts_with("file:");
    if (!uri && access(path_.c_str(), F_OK) != 0) failure.text = std::strerror(errno);
    Close();
    return tl::unexpected(std::move(failure));
  }
  if (auto fine = RefuseOldLog(); !fine) {
    Close();
    return fine;
  }
  sqlite3_extended_result_codes(db_, 1);
  sqlite3_busy_handler(db_, &OnBusy, this);
  sqlite3_progress_handler(db_, kProgressSteps, &OnProgress, this);
  {
    auto wal = Prepare("PRAGMA journal_mode = WAL");
    if (!wal) return tl::unexpected(wal.error());
    const auto row = Step(wal->get());
    if (!row) return tl::unexpected(row.error());
    // A database in memory knows no WAL and needs none.
    const auto mode = SqliteText(wal->get(), 0);
    if (mode != "wal" && mode != "memory") {
      return tl::unexpected(SqliteFailure{SQLITE_ERROR, "the file cannot be switched to WAL"});
    }
  }
  // Ids fall all over the ledger's tree, so each batch touches most of its pages again: a
  // checkpoint every 32 MiB instead of 4 writes a page once for many batches.
  auto set = Exec(
      "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA cache_size = -65536;"
      "PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 8192;"
      "SELECT count(*) FROM sqlite_schema");  // reads: from now on the log is there
  if (!set) return set;
  file_ = HeldFile(path_of_file());
  wal_ = file_.none() ? HeldFile() : HeldFile(path_of_file() + "-wal");
  return {};
}

tl::expected<void, SqliteFailure> SqliteConnection::Exec(const char* sql) {
  if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return tl::unexpected(Failure());
}

tl::expected<SqliteStatement, SqliteFailure> SqliteConnection::Prepare(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return tl::unexpected(Failure());
  return SqliteStatement(statement);
}

tl::expected<bool, SqliteFailure> SqliteConnection::Step(sqlite3_stmt* statement) {
  const int code = sqlite3_step(statement);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) {
    sqlite3_reset(statement);
    return false;
  }
  SqliteFailure failure = Failure();
  failure.shown = WithoutRecord(failure.code, failure.text);
  sqlite3_reset(statement);
  return tl::unexpected(std::move(failure));
}

std::string SqliteVersion() { return sqlite3_libversion(); }

}  // namespace fencepost::consumer
