// A database server of a test, whatever its kind.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace fencepost::testing {

class SqlServer {
 public:
  using Row = std::vector<std::optional<std::string>>;  // NULL is nullopt
  using Rows = std::vector<Row>;

  virtual ~SqlServer() = default;
  virtual void Start() = 0;
  virtual void Stop() = 0;
  virtual void Kill() = 0;  // SIGKILL
  [[nodiscard]] virtual int port() const = 0;
  [[nodiscard]] virtual bool IsPostgres() const = 0;
  // Runs SQL (one or many statements) as one who may do everything, on a connection of its own;
  // rows of the last one. Throws with the server's message.
  virtual Rows Exec(const std::string& sql, const std::string& database) const = 0;

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
