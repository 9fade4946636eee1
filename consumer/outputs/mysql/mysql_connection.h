// A session at MySQL or MariaDB (libmariadb), with limits for its waits, in which a statement is
// text. One thread, but for Interrupt.
//
// The session is strict (a value that does not fit is refused, not cut), in UTC, in UTF-8, and READ
// COMMITTED: a statement sees what was committed before it began, as in PostgreSQL.
#pragma once

#include <charconv>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <mysql.h>
#include <tl/expected.hpp>

#include "consumer/outputs/output.h"
#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

struct MysqlFailure {
  enum class Kind : std::uint8_t {
    kServer,       // the server refused the statement
    kConnection,   // there is none, or it broke
    kTimeout,      // no answer in time; the connection is closed
    kInterrupted,  // Interrupt()
  };
  Kind kind = Kind::kConnection;
  unsigned code = 0;     // of the server, or of the client library (2000 to 2999)
  std::string sqlstate;  // of the server
  std::string text;      // one line; it may quote a record
  // Of a statement that writes: a trigger may have made up code and text (SIGNAL, RESIGNAL).
  bool of_write = false;
  [[nodiscard]] std::string Shown() const;  // holds nothing of a record
};

// What it says of a transaction that failed by it.
WriteFailure FailureOf(const MysqlFailure& failure);
bool WorthRetryingAtOnce(const MysqlFailure& failure);
OutputError ToOutputError(const MysqlFailure& failure, std::string where);

class MysqlConnection {
 public:
  using Cell = std::optional<std::string>;
  using Rows = std::vector<std::vector<Cell>>;

  explicit MysqlConnection(MysqlOptions options);
  ~MysqlConnection() { Close(); }
  MysqlConnection(const MysqlConnection&) = delete;
  MysqlConnection& operator=(const MysqlConnection&) = delete;

  // From the next Connect on a statement may take days, as one that changes a large table.
  void LiftLimits();
  tl::expected<void, MysqlFailure> Connect();
  void Close();
  [[nodiscard]] bool open() const { return connection_ != nullptr; }
  [[nodiscard]] const std::string& where() const { return where_; }  // HOST:PORT/DATABASE
  // A statement has at most so many bytes (max_allowed_packet). Of the open connection.
  [[nodiscard]] std::size_t max_statement() const { return max_statement_; }
  [[nodiscard]] bool mariadb() const { return mysql_get_server_version(connection_) >= 100'000; }
  // By the diagnostics of a refusal.
  [[nodiscard]] bool NamesRows() const { return mysql_get_server_version(connection_) >= 100'700; }
  // The server may have closed it, since nothing was asked for so long.
  [[nodiscard]] bool IdleTooLong() const;
  // From any thread; for good.
  void Interrupt();

  // One statement. After a failure that is not the server's the connection is closed.
  tl::expected<Rows, MysqlFailure> Query(std::string_view sql);
  // Rows that the last statement changed or deleted.
  [[nodiscard]] std::size_t affected() const { return affected_; }
  // Rows of the last INSERT that changed nothing, since ON DUPLICATE KEY left theirs as it was.
  // `rows`: that it had. One that is inserted counts once in affected(), one that is updated twice.
  [[nodiscard]] std::size_t Unchanged(std::size_t rows) const;

 private:
  MysqlFailure Failure(std::chrono::steady_clock::time_point began, std::string_view sql);
  tl::expected<void, MysqlFailure> SetUp();

  const MysqlOptions options_;
  const std::string where_;
  unsigned call_seconds_ = 30;
  MYSQL* connection_ = nullptr;
  std::size_t max_statement_ = 0;
  std::size_t affected_ = 0;
  std::chrono::steady_clock::time_point used_;  // last, with an answer
  std::mutex mutex_;
  int socket_ = -1;           // guarded: of a connection that may be waiting
  bool interrupted_ = false;  // guarded
};

std::string MysqlClientVersion();

// Of a cell; 0: NULL.
template <typename Int>
Int MysqlNumber(const MysqlConnection::Cell& cell) {
  Int value = 0;
  if (cell) std::from_chars(cell->data(), cell->data() + cell->size(), value);
  return value;
}
// The ledger has its bits as a signed number.
inline std::uint64_t MysqlUnsigned(const MysqlConnection::Cell& cell) {
  return static_cast<std::uint64_t>(MysqlNumber<std::int64_t>(cell));
}

// 'text', with what is special in it escaped. The session's text is UTF-8.
void AppendText(std::string_view text, std::string& sql);
void AppendBytes(std::string_view bytes, std::string& sql);  // X'6279746573'
std::string Quoted(std::string_view text);

}  // namespace fencepost::consumer
