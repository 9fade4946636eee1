#include "consumer/cli/demo/effects.h"

#include <libpq-fe.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstdlib>

#include "consumer/outputs/postgres/postgres_dsn.h"

namespace fencepost::cli {
namespace {

// A pipeline's name as one of a table.
std::string TableName(std::string pipeline) {
  std::replace(pipeline.begin(), pipeline.end(), '-', '_');
  return pipeline;
}

class SqliteEffects final : public Effects {
 public:
  explicit SqliteEffects(std::string path) : Effects("effects"), path_(std::move(path)) {}
  ~SqliteEffects() override { sqlite3_close(db_); }

  tl::expected<void, Error> Open() {
    if (sqlite3_open(path_.c_str(), &db_) != SQLITE_OK) return Failed();
    sqlite3_busy_timeout(db_, 10'000);
    return Run("PRAGMA journal_mode=WAL", nullptr).and_then([this] {
      return Run("CREATE TABLE effects (order_id TEXT, amount INTEGER)", nullptr);
    });
  }

  [[nodiscard]] std::string OutputYaml() const override {
    return "  sqlite:\n    path: " + path_ +
           "\n    table: effects\n    columns: {order_id: json:/order_id, amount: json:/amount}\n";
  }
  tl::expected<void, Error> Lock() override { return Run("BEGIN IMMEDIATE", nullptr); }

 private:
  tl::expected<void, Error> Failed() {
    return tl::unexpected(Error{"sqlite", sqlite3_errmsg(db_), path_, ""});
  }
  tl::expected<void, Error> Run(const std::string& sql, const RowVisitor& visit) override {
    const auto each = [](void* visitor, int columns, char** values, char**) {
      const auto& call = *static_cast<const RowVisitor*>(visitor);
      if (call && columns > 1) call(values[0], values[1]);
      return 0;
    };
    if (sqlite3_exec(db_, sql.c_str(), each, const_cast<RowVisitor*>(&visit), nullptr) != SQLITE_OK)
      return Failed();
    return {};
  }

  const std::string path_;
  sqlite3* db_ = nullptr;
};

class PostgresEffects final : public Effects {
 public:
  PostgresEffects(std::string dsn, std::string pipeline)
      : Effects(TableName(pipeline)), dsn_(std::move(dsn)), pipeline_(std::move(pipeline)) {}
  ~PostgresEffects() override {
    if (db_ != nullptr) {
      (void)Run("DROP TABLE IF EXISTS " + table_, nullptr);
      (void)Run("DELETE FROM fencepost_ledger WHERE pipeline = '" + pipeline_ + "'", nullptr);
    }
    PQfinish(db_);
  }

  tl::expected<void, Error> Open() {
    db_ = PQconnectdb(dsn_.c_str());
    if (PQstatus(db_) != CONNECTION_OK) return Failed();
    PQsetNoticeProcessor(
        db_, [](void*, const char*) {}, nullptr);
    return Run("CREATE TABLE " + table_ + " (order_id text, amount bigint)", nullptr);
  }

  [[nodiscard]] std::string OutputYaml() const override {
    std::string quoted;
    for (const char c : dsn_) quoted += c == '\'' ? std::string("''") : std::string(1, c);
    return "  postgres:\n    dsn: '" + quoted + "'\n    table: " + table_ +
           "\n    columns: {order_id: json:/order_id, amount: json:/amount}\n";
  }
  tl::expected<void, Error> Lock() override {
    return Run("BEGIN; LOCK TABLE " + table_ + " IN SHARE ROW EXCLUSIVE MODE", nullptr);
  }

 private:
  tl::expected<void, Error> Failed() {
    std::string what = PQerrorMessage(db_);
    std::replace(what.begin(), what.end(), '\n', ' ');
    return tl::unexpected(Error{"postgres", what, "", "check the --postgres DSN"});
  }
  tl::expected<void, Error> Run(const std::string& sql, const RowVisitor& visit) override {
    PGresult* result = PQexec(db_, sql.c_str());
    const ExecStatusType status = PQresultStatus(result);
    for (int row = 0; visit && row < PQntuples(result); ++row) {
      visit(PQgetvalue(result, row, 0), PQgetvalue(result, row, 1));
    }
    PQclear(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) return Failed();
    return {};
  }

  const std::string dsn_;
  const std::string pipeline_;
  PGconn* db_ = nullptr;
};

template <typename T>
tl::expected<std::unique_ptr<Effects>, Error> Opened(std::unique_ptr<T> effects) {
  if (auto opened = effects->Open(); !opened) return tl::unexpected(opened.error());
  return effects;
}

}  // namespace

tl::expected<std::size_t, Error> Effects::Count() {
  std::size_t count = 0;
  return Run("SELECT count(*), 0 FROM " + table_,
             [&count](const char* n, const char*) { count = std::strtoull(n, nullptr, 10); })
      .map([&count] { return count; });
}

tl::expected<std::map<std::string, int>, Error> Effects::Audit() {
  std::map<std::string, int> rows;
  return Run("SELECT order_id, count(*) FROM " + table_ + " GROUP BY order_id",
             [&rows](const char* id, const char* n) {
               rows[id == nullptr ? "" : id] = std::atoi(n);
             })
      .map([&rows] { return rows; });
}

tl::expected<std::unique_ptr<Effects>, Error> MakeSqliteEffects(const std::string& path) {
  return Opened(std::make_unique<SqliteEffects>(path));
}

tl::expected<std::unique_ptr<Effects>, Error> MakePostgresEffects(const std::string& dsn,
                                                                  const std::string& pipeline) {
  if (const auto problem = consumer::ProblemOfDsn(dsn)) {
    return tl::unexpected(Error{"postgres", problem->what, "", "check the --postgres DSN"});
  }
  return Opened(std::make_unique<PostgresEffects>(dsn, pipeline));
}

}  // namespace fencepost::cli
