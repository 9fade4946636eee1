// One PostgreSQL for the whole program, an empty database for each test.
#pragma once

#include "tests/component/outputs/store.h"

namespace fencepost::consumer {

class PostgresTest : public ::testing::Test {
 protected:
  static testing::PostgresServer& Server() { return Store::Postgres(); }

  PostgresTest() { Exec("CREATE TABLE effects (order_id text PRIMARY KEY, amount numeric(12,2))"); }

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
  using NamedColumns = std::initializer_list<std::pair<const char*, const char*>>;
  [[nodiscard]] std::unique_ptr<Output> Open(const std::string& table, NamedColumns columns) const {
    PostgresOptions options = Options();
    options.table = table;
    options.columns = Columns(columns);
    return Open(options);
  }
  [[nodiscard]] std::string Refusal(const PostgresOptions& options) const {
    return consumer::Refusal(*Open(options));
  }
  [[nodiscard]] std::unique_ptr<Output> OpenByPosition(const PostgresOptions& options,
                                                       const std::string& worker) const {
    OutputTerms terms;
    terms.by_position = true;
    return MakePostgresOutput(options, "orders", worker, std::move(terms));
  }

  Store store_{Store::Kind::kPostgres};
  const std::string database_ = store_.database();
};

}  // namespace fencepost::consumer
