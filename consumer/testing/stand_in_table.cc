#include "consumer/testing/stand_in_table.h"

#include <algorithm>

#include <fmt/format.h>
#include <sqlite3.h>

#include "consumer/outputs/rows/cell_types.h"
#include "consumer/outputs/rows/row_sql.h"

namespace fencepost::consumer {
namespace {

std::string_view TypeOf(const Column& column, const RowRules& rules) {
  if (column.name == rules.fence_column) return "numeric";
  const CellKind kind = KindMadeBy(column.conversion);
  if (kind == CellKind::kBytes) return "blob array";
  return kind == CellKind::kBoolean ? "boolean array" : "text";
}

std::string CreateSql(const SqliteOptions& table) {
  const RowRules& rules = table.rules;
  std::vector<Column> columns = table.columns;
  const bool fenced =
      !rules.fence_column.empty() &&
      std::ranges::find(columns, rules.fence_column, &Column::name) == columns.end();
  if (fenced) columns.push_back({rules.fence_column, {}});
  std::string parts;
  for (const Column& column : columns) {
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", QuoteIdentifier(column.name),
                         TypeOf(column, rules));
  }
  std::string key;
  for (const std::string& name : rules.key) {
    key += fmt::format("{}{}", key.empty() ? "" : ", ", QuoteIdentifier(name));
  }
  if (!key.empty()) parts += fmt::format(", UNIQUE ({})", key);
  return fmt::format("CREATE TABLE {} ({})", QuoteIdentifier(table.table), parts);
}

}  // namespace

SqliteOptions StandInFor(const OutputOptions& output) {
  SqliteOptions table{.path = "", .table = "effects", .columns = {}, .rules = {}};
  const auto take = [&table](const auto& options) {
    if constexpr (requires { options.rules; }) {
      table.columns = options.columns;
      table.rules = options.rules;
      table.max_records = options.max_records;
    }
  };
  std::visit(take, output);
  if (const auto* postgres = std::get_if<PostgresOptions>(&output)) {
    for (std::size_t i = 0; i < postgres->args.size(); ++i) {
      table.columns.push_back({fmt::format("${}", i + 1), postgres->args[i]});
    }
  }
  return table;
}

tl::expected<std::shared_ptr<sqlite3>, std::string> CreateTable(const SqliteOptions& table) {
  sqlite3* opened = nullptr;
  const bool good = sqlite3_open(table.path.c_str(), &opened) == SQLITE_OK;
  std::shared_ptr<sqlite3> file(opened, &sqlite3_close);
  const std::string sql = CreateSql(table);
  if (good && sqlite3_exec(opened, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) {
    return file;
  }
  return tl::unexpected(std::string(sqlite3_errmsg(opened)));
}

}  // namespace fencepost::consumer
