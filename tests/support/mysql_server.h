// A real MariaDB for tests.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "consumer/pipeline/options.h"
#include "tests/support/process.h"
#include "tests/support/sql_server.h"

namespace fencepost::testing {

struct MysqlServerOptions {
  std::vector<std::string> arguments{};
  std::string folder{};  // of the data; empty: one of its own
};

// One server on 127.0.0.1 with the account `app` without a password, which may do everything. The
// constructor returns when it takes connections. The port and the data stay the same over restarts.
class MysqlServer : public SqlServer {
 public:
  explicit MysqlServer(MysqlServerOptions options = {});
  ~MysqlServer() override;

  [[nodiscard]] int port() const override { return port_; }
  [[nodiscard]] Kind kind() const override { return Kind::kMysql; }
  [[nodiscard]] consumer::MysqlOptions Options(const std::string& database) const;
  [[nodiscard]] pid_t pid() const;

  void Start() override;
  void Stop() override;
  void Kill() override;
  void Pause() override;
  void Resume() override;
  [[nodiscard]] std::unique_ptr<SqlSession> Open(const std::string& database,
                                                 const std::string& user = "") const override;
  Rows Exec(const std::string& sql, const std::string& database = "mysql") const {
    return SqlServer::Exec(sql, database);
  }

 private:
  [[nodiscard]] bool Ready() const;

  MysqlServerOptions options_;
  TempDir dir_;
  int port_ = 0;
  std::unique_ptr<Process> process_;
};

}  // namespace fencepost::testing
