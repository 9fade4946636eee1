// One PostgreSQL for the whole program, an empty database for each test.
#pragma once

#include <memory>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/component/outputs/batch.h"
#include "tests/support/postgres_server.h"

namespace fencepost::consumer {

class PostgresTest : public ::testing::Test {
 protected:
  static testing::PostgresServer& Server() {
    static testing::PostgresServer server;
    return server;
  }

  PostgresTest() {
    static int number = 0;
    database_ = fmt::format("test_{}", ++number);
    Server().Exec("CREATE DATABASE " + database_);
    Exec("CREATE TABLE effects (order_id text PRIMARY KEY, amount numeric(12,2))");
  }

  testing::PostgresServer::Rows Exec(const std::string& sql) const {
    return Server().Exec(sql, database_);
  }
  [[nodiscard]] std::string Value(const std::string& sql) const {
    return Server().Value(sql, database_);
  }
  [[nodiscard]] std::string Dsn(const std::string& user = "postgres") const {
    return Server().dsn(database_, user);
  }
  // Through a proxy on this port.
  [[nodiscard]] std::string DsnAt(int port) const {
    return fmt::format("postgresql://postgres@127.0.0.1:{}/{}", port, database_);
  }
  [[nodiscard]] PostgresOptions Options() const {
    return {.dsn = Dsn(), .table = "effects", .columns = OrderColumns()};
  }
  [[nodiscard]] std::unique_ptr<Output> Open(const PostgresOptions& options,
                                             const std::string& worker = "worker-1") const {
    return MakePostgresOutput(options, "orders", worker);
  }
  [[nodiscard]] std::unique_ptr<Output> Open() const { return Open(Options()); }
  [[nodiscard]] std::unique_ptr<Output> OpenByPosition(const PostgresOptions& options,
                                                       const std::string& worker) const {
    OutputTerms terms;
    terms.by_position = true;
    return MakePostgresOutput(options, "orders", worker, std::move(terms));
  }

  std::string database_;
};

}  // namespace fencepost::consumer
