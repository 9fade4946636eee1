#include "consumer/testing/stand_in_table.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <sqlite3.h>

#include "consumer/outputs/ledger/ledger.h"
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

std::string CreateSql(const StandInTable& table) {
  std::string parts;
  for (const Column& column : table.columns) {
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", QuoteIdentifier(column.name),
                         TypeOf(column, table.rules));
  }
  std::string key;
  for (const std::string& name : table.rules.key) {
    key += fmt::format("{}{}", key.empty() ? "" : ", ", QuoteIdentifier(name));
  }
  if (!key.empty()) parts += fmt::format(", UNIQUE ({})", key);
  return fmt::format("CREATE TABLE {} ({})", QuoteIdentifier(table.name), parts);
}

std::string LastName(const std::string& table) {
  const auto name = SplitTableName(table);
  return name ? name->back() : table;
}

// Of a statement its arguments are the row.
void StandIn(std::size_t place, Effect& effect) {
  effect.table = Written(LastName(effect.table));
  if (effect.route) {
    for (auto& [text, name] : effect.route->of) name = Written(LastName(name));
    effect.route->name = Written(LastName(effect.route->name));
  }
  if (effect.statement.empty()) return;
  effect.table = Written(fmt::format("statement {}", place));
  for (std::size_t i = 0; i < effect.args.size(); ++i) {
    effect.columns.push_back({fmt::format("${}", i + 1), effect.args[i]});
  }
  effect.statement.clear();
  effect.args.clear();
}

void AddTo(StandInTable& table, const Effect& effect) {
  const auto has = [&](const std::string& name) {
    return std::ranges::find(table.columns, name, &Column::name) != table.columns.end();
  };
  if (table.columns.empty() || table.rules.key.empty()) table.rules = effect.rules;
  for (const Column& column : effect.columns) {
    if (!has(column.name)) table.columns.push_back(column);
  }
  const std::string& fence = effect.rules.fence_column;
  if (!fence.empty() && !has(fence)) {
    table.columns.push_back({fence, effect.rules.fence_by.value_or(Selector())});
  }
}

}  // namespace

std::string Written(const std::string& name) {
  const bool plain = !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  });
  return plain ? name : QuoteIdentifier(name);
}

SqliteOptions StandInFor(const OutputOptions& output) {
  SqliteOptions table;
  const auto take = [&](const auto& options) {
    if constexpr (requires { options.effects; }) {
      table.effects = EffectsOf(options);
      table.max_records = options.max_records;
    }
  };
  std::visit(take, output);
  for (std::size_t i = 0; i < table.effects.size(); ++i) StandIn(i + 1, table.effects[i]);
  return table;
}

std::vector<StandInTable> TablesOf(const SqliteOptions& options) {
  std::vector<StandInTable> tables;
  for (const Effect& effect : EffectsOf(options)) {
    std::vector<std::string> names{effect.table};
    if (effect.route) {
      names.clear();
      for (const auto& [text, name] : effect.route->of) names.push_back(name);
      if (effect.route->otherwise == Route::Otherwise::kName) names.push_back(effect.route->name);
    }
    for (const std::string& quoted : names) {
      const std::string name = LastName(quoted);
      auto at = std::ranges::find(tables, name, &StandInTable::name);
      if (at == tables.end()) at = tables.insert(tables.end(), {.name = name, .columns = {}});
      AddTo(*at, effect);
    }
  }
  return tables;
}

tl::expected<std::shared_ptr<sqlite3>, std::string> CreateTables(const SqliteOptions& options) {
  sqlite3* opened = nullptr;
  bool good = sqlite3_open(options.path.c_str(), &opened) == SQLITE_OK;
  std::shared_ptr<sqlite3> file(opened, &sqlite3_close);
  for (const StandInTable& table : TablesOf(options)) {
    const std::string sql = CreateSql(table);
    good = good && sqlite3_exec(opened, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
  }
  if (good) return file;
  return tl::unexpected(std::string(sqlite3_errmsg(opened)));
}

}  // namespace fencepost::consumer
