// What becomes of a cell: the way from a pipeline file to the table, and back.
#include "tests/component/values/values.h"

#include <cctype>
#include <cstdlib>
#include <map>
#include <sstream>
#include <variant>

#include <gmock/gmock.h>

#include "config/loader.h"
#include "tests/component/outputs/store.h"

namespace fencepost::consumer {

void PrintTo(const ValueRow& row, std::ostream* out) { *out << row.name; }

std::string ValueName(const ::testing::TestParamInfo<ValueRow>& row) {
  std::string name;
  bool begins = true;
  for (const char c : row.param.name) {
    if (c == '-' && begins) name += "Minus";
    const bool letter = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (letter) {
      name += begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    }
    begins = !letter;
  }
  return name;
}

namespace {

using Kind = Store::Kind;

// Everything that a server, a database, a role or the environment may say of values, otherwise than
// they are meant.
constexpr const char* kOddPostgres =
    "ALTER DATABASE {0} SET timezone = 'America/New_York';"
    "ALTER DATABASE {0} SET datestyle = 'SQL, DMY';"
    "ALTER DATABASE {0} SET intervalstyle = 'sql_standard';"
    "ALTER DATABASE {0} SET extra_float_digits = -15;"
    "ALTER DATABASE {0} SET array_nulls = off;"
    "ALTER DATABASE {0} SET bytea_output = 'escape';"
    "ALTER DATABASE {0} SET xmloption = 'document'";
constexpr const char* kOddMysql = "SET GLOBAL time_zone = '+02:00', GLOBAL sql_mode = ''";

// A database and the session that looks at it.
class Table {
 public:
  static Table& Of(Kind kind) {
    static std::map<Kind, Table> tables;
    return tables.try_emplace(kind, kind).first->second;
  }

  explicit Table(Kind kind) : kind_(kind), store_(kind) {
    if (kind == Kind::kPostgres) {
      store_.Exec(fmt::format(kOddPostgres, store_.database()));
      store_.Exec(
          "CREATE TYPE mood AS ENUM ('glad', 'sad'); CREATE DOMAIN doc AS jsonb;"
          "CREATE DOMAIN short AS varchar(4); CREATE DOMAIN moment AS timestamp;"
          "CREATE DOMAIN even AS text CHECK (length(VALUE) % 2 = 0); CREATE EXTENSION hstore");
      ::setenv("PGTZ", "Asia/Tokyo", 1);
      ::setenv("PGDATESTYLE", "German", 1);
    } else if (kind == Kind::kMysql) {
      store_.Exec(kOddMysql);
    }
    session_ = store_.server().Open(store_.database());
    if (kind == Kind::kPostgres) {
      session_->Exec(
          "SET timezone = 'UTC'; SET datestyle = 'ISO'; SET intervalstyle = 'postgres';"
          "SET extra_float_digits = 1; SET bytea_output = 'hex'");
    } else if (kind == Kind::kMysql) {
      session_->Exec("SET time_zone = '+00:00'");
    }
  }

  // What `row` leaves in a column of this type, or "! " and why it is refused.
  std::string Write(const ValueRow& row, const std::string& type) {
    const std::string table = fmt::format("t{}", ++tables_);
    const bool strict = kind_ == Kind::kSqlite && type.ends_with(" strict");
    const bool nulls = type.find("NOT NULL") == std::string::npos;
    session_->Exec(fmt::format("CREATE TABLE {} (id {}, v {}{}){}", table,
                               kind_ == Kind::kSqlite ? "text" : "varchar(20)",
                               strict ? type.substr(0, type.size() - 7) : type,
                               nulls ? " NULL" : "", strict ? " STRICT" : ""));
    const auto loaded = config::LoadText(File(row, table), "values.yaml", {});
    if (!loaded.options) return "! " + Findings(loaded);
    const auto output = Open(*loaded.options);
    Batch batch;
    Batch::Entry entry{.id = table,
                       .offset = 7,
                       .value = row.value.empty() ? "{\"v\":" + row.v + "}" : row.value,
                       .key = row.key};
    for (const auto& [name, value] : row.headers) entry.headers.emplace_back(name, value);
    batch.Add(std::move(entry));
    const auto outcomes = WriteAll(*output, batch);
    if (!outcomes) return "! " + outcomes.error().error.Line();
    const WriteOutcome& outcome = outcomes->at(0);
    if (outcome.result == WriteResult::kBadRecord) {
      EXPECT_THAT(outcome.shown, ::testing::Not(::testing::HasSubstr("s3cret"))) << "on the port";
      return "! " + outcome.detail;
    }
    const auto rows = session_->Exec(fmt::format("SELECT {} FROM {}", AsText(type), table));
    return rows.empty() ? "no row" : rows.at(0).at(0).value_or("NULL");
  }

 private:
  [[nodiscard]] std::string File(const ValueRow& row, const std::string& table) {
    std::string text = fmt::format(
        "version: 1\nname: orders\nkafka: {{brokers: [127.0.0.1:9092], topics: [orders]}}\n"
        "record_id: key\nlock: {{redis: {{nodes: [127.0.0.1:1, 127.0.0.1:2, 127.0.0.1:3]}}}}\n"
        "dead_letter: {{topic: orders.dead}}\noutput:\n  {}\n    table: {}\n"
        "    columns:\n      id: record_id\n      v: '{}'\n",
        Where(), table, row.from);
    if (!row.given.empty()) text += fmt::format("    convert:\n      v: '{}'\n", row.given);
    std::istringstream also(row.also);
    for (std::string line; std::getline(also, line);) text += "    " + line + "\n";
    return text;
  }
  [[nodiscard]] std::string Where() {
    if (kind_ == Kind::kPostgres) {
      return fmt::format("postgres:\n    dsn: '{}'", Store::Postgres().dsn(store_.database()));
    }
    if (kind_ == Kind::kMysql) {
      const MysqlOptions options = Store::Mysql().Options(store_.database());
      return fmt::format("mysql:\n    host: {}\n    port: {}\n    user: {}\n    database: {}",
                         options.host, options.port, options.user, options.database);
    }
    return fmt::format("sqlite:\n    path: '{}'", store_.sqlite_path());
  }
  static std::string Findings(const config::LoadResult& loaded) {
    std::string text;
    for (const config::Finding& finding : loaded.findings) text += FormatFinding(finding) + "\n";
    return text;
  }
  static std::unique_ptr<Output> Open(const PipelineOptions& options) {
    if (const auto* postgres = std::get_if<PostgresOptions>(&options.output)) {
      return MakePostgresOutput(*postgres, options.name, "worker-1");
    }
    if (const auto* mysql = std::get_if<MysqlOptions>(&options.output)) {
      return MakeMysqlOutput(*mysql, options.name, "worker-1");
    }
    return MakeSqliteOutput(std::get<SqliteOptions>(options.output), options.name, "worker-1");
  }
  [[nodiscard]] std::string AsText(const std::string& type) const {
    if (kind_ == Kind::kPostgres) return "v::text";
    if (kind_ == Kind::kSqlite) return "quote(v)";
    const bool bytes = type.find("blob") != std::string::npos || type.starts_with("bit") ||
                       type.find("binary") != std::string::npos;
    return bytes ? "hex(v)" : "v";
  }

  const Kind kind_;
  Store store_;
  std::unique_ptr<testing::SqlSession> session_;
  int tables_ = 0;
};

// "postgres mysql date": the databases, and what is left.
std::pair<std::vector<Kind>, std::string> Columns(std::string_view column) {
  constexpr std::array<std::pair<std::string_view, Kind>, 3> kNames{
      {{"postgres ", Kind::kPostgres}, {"mysql ", Kind::kMysql}, {"sqlite ", Kind::kSqlite}}};
  std::vector<Kind> kinds;
  for (bool found = true; found;) {
    found = false;
    for (const auto& [name, kind] : kNames) {
      if (!column.starts_with(name)) continue;
      kinds.push_back(kind);
      column.remove_prefix(name.size());
      found = true;
    }
  }
  return {std::move(kinds), std::string(column)};
}

}  // namespace

TEST_P(Values, AreStoredAsTheyAreMeantOrRefused) {
  const ValueRow& row = GetParam();
  for (const auto& [column, expected] : row.cells) {
    const auto [kinds, type] = Columns(column);
    ASSERT_FALSE(kinds.empty()) << column;
    for (const Kind kind : kinds) {
      SCOPED_TRACE(fmt::format("{} into {} ({})", row.v + row.value, column,
                               kind == Kind::kPostgres ? "postgres"
                               : kind == Kind::kMysql  ? "mysql"
                                                       : "sqlite"));
      const std::string found = Table::Of(kind).Write(row, type);
      if (!expected.starts_with("! ")) {
        EXPECT_EQ(found, expected);
        continue;
      }
      EXPECT_THAT(found, ::testing::StartsWith("! "));
      EXPECT_THAT(found, ::testing::HasSubstr(expected.substr(2)));
    }
  }
}

}  // namespace fencepost::consumer
