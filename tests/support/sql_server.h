// A database server of a test, whatever its kind.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fencepost::testing {

// A connection, which ends with it.
class SqlSession {
 public:
  using Row = std::vector<std::optional<std::string>>;  // NULL is nullopt
  using Rows = std::vector<Row>;

  virtual ~SqlSession() = default;
  // Runs SQL (one or many statements); rows of the last one. Throws with the server's message.
  virtual Rows Exec(const std::string& sql) = 0;
};

class SqlServer {
 public:
  enum class Kind : std::uint8_t { kPostgres, kMysql, kSqlite };
  using Row = SqlSession::Row;
  using Rows = SqlSession::Rows;

  virtual ~SqlServer() = default;
  virtual void Start() = 0;
  virtual void Stop() = 0;
  virtual void Kill() = 0;    // SIGKILL
  virtual void Pause() = 0;   // SIGSTOP to all of it, sessions too
  virtual void Resume() = 0;  // no effect where it was not paused; Stop and Kill do it first
  [[nodiscard]] virtual int port() const = 0;
  [[nodiscard]] virtual Kind kind() const = 0;
  [[nodiscard]] bool IsPostgres() const { return kind() == Kind::kPostgres; }
  // As that user, or as one who may do everything. Throws with the server's message.
  [[nodiscard]] virtual std::unique_ptr<SqlSession> Open(const std::string& database,
                                                         const std::string& user = "") const = 0;

  // On a session of its own, as one who may do everything.
  Rows Exec(const std::string& sql, const std::string& database) const {
    return Open(database)->Exec(sql);
  }
  void Restart() {
    Stop();
    Start();
  }
  // The first cell: "" for NULL or no row.
  [[nodiscard]] std::string Value(const std::string& sql, const std::string& database) const {
    const Rows rows = Exec(sql, database);
    return rows.empty() || rows[0].empty() ? "" : rows[0][0].value_or("");
  }
};

}  // namespace fencepost::testing
