// SQLite as a database server of tests: a file a database, in a folder that is its owner's.
#pragma once

#include <string>

#include "tests/support/sql_server.h"

namespace fencepost::testing {

class SqliteFiles : public SqlServer {
 public:
  explicit SqliteFiles(std::string folder) : folder_(std::move(folder)) {}

  // FOLDER/DATABASE.db
  [[nodiscard]] std::string path(const std::string& database) const {
    return folder_ + "/" + database + ".db";
  }
  // Makes the file where there is none, with a write-ahead log.
  [[nodiscard]] std::unique_ptr<SqlSession> Open(const std::string& database,
                                                 const std::string& user = "") const override;

  // There is no server.
  void Start() override {}
  void Stop() override {}
  void Kill() override {}
  void Pause() override {}
  void Resume() override {}
  [[nodiscard]] int port() const override { return 1; }
  [[nodiscard]] Kind kind() const override { return Kind::kSqlite; }

 private:
  std::string folder_;
};

}  // namespace fencepost::testing
