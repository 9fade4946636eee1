// A real PostgreSQL for tests.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace fencepost::testing {

struct PostgresOptions {
  bool fsync = false;                 // durable against a crash of the machine, not of a process
  std::vector<std::string> config{};  // more lines of postgresql.conf
};

// One cluster on 127.0.0.1 with superuser `postgres` and trust authentication. The constructor
// returns when it takes connections. The port and the data stay the same over restarts.
class PostgresServer {
 public:
  using Row = std::vector<std::optional<std::string>>;  // NULL is nullopt
  using Rows = std::vector<Row>;

  explicit PostgresServer(PostgresOptions options = {});
  // A standby of it (pg_basebackup), streaming from 127.0.0.1:stream_port, the primary's port or a
  // proxy's before it. It takes reads.
  PostgresServer(const PostgresServer& primary, int stream_port, PostgresOptions options = {});
  ~PostgresServer();

  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] std::string dsn(const std::string& database = "postgres",
                                const std::string& user = "postgres") const;
  [[nodiscard]] pid_t pid() const;  // the postmaster; -1 when stopped

  void Start();
  void Stop();     // fast shutdown
  void Kill();     // SIGKILL to the postmaster; its children follow by themselves
  void Restart();  // Stop, Start
  void Promote();  // a standby; returns when it takes writes

  // Runs SQL (one or many statements) as superuser on a connection of its own; rows of the last
  // one. Throws with PostgreSQL's message.
  Rows Exec(const std::string& sql, const std::string& database = "postgres") const;
  // The first cell: "" for NULL or no row.
  [[nodiscard]] std::string Value(const std::string& sql,
                                  const std::string& database = "postgres") const;

 private:
  bool Ready() const;
  void OwnFolder() const;  // gives it to kUser
  void StartOnFreePort();

  PostgresOptions options_;
  TempDir dir_;
  int port_ = 0;
  std::unique_ptr<Process> process_;
};

}  // namespace fencepost::testing
