// A real PostgreSQL for tests.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/sql_server.h"

namespace fencepost::testing {

struct PostgresOptions {
  bool fsync = false;                 // durable against a crash of the machine, not of a process
  std::vector<std::string> config{};  // more lines of postgresql.conf
};

// One cluster on 127.0.0.1 with superuser `postgres` and trust authentication. The constructor
// returns when it takes connections. The port and the data stay the same over restarts.
class PostgresServer : public SqlServer {
 public:
  explicit PostgresServer(PostgresOptions options = {});
  // A standby of it (pg_basebackup), streaming from 127.0.0.1:stream_port, the primary's port or a
  // proxy's before it. It takes reads.
  PostgresServer(const PostgresServer& primary, int stream_port, PostgresOptions options = {});
  ~PostgresServer() override;

  [[nodiscard]] int port() const override { return port_; }
  [[nodiscard]] Kind kind() const override { return Kind::kPostgres; }
  [[nodiscard]] std::string dsn(const std::string& database = "postgres",
                                const std::string& user = "postgres") const;
  [[nodiscard]] pid_t pid() const;  // the postmaster; -1 when stopped

  void Start() override;
  void Stop() override;   // fast shutdown
  void Kill() override;   // to the postmaster; its children follow by themselves
  void Pause() override;  // the postmaster and all its children
  void Resume() override;
  void Promote();  // a standby; returns when it takes writes

  [[nodiscard]] std::unique_ptr<SqlSession> Open(const std::string& database,
                                                 const std::string& user = "") const override;
  Rows Exec(const std::string& sql, const std::string& database = "postgres") const {
    return SqlServer::Exec(sql, database);
  }
  [[nodiscard]] std::string Value(const std::string& sql,
                                  const std::string& database = "postgres") const {
    return SqlServer::Value(sql, database);
  }

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
