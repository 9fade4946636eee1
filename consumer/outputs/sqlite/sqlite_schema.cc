#include "consumer/outputs/sqlite/sqlite_schema.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "consumer/outputs/ledger/ledger.h"

namespace fencepost::consumer {
namespace {

constexpr const char* kNewLedger = "rename it, and a new one is made";

struct TableColumn {
  std::string name;
  std::string type;  // as declared, in upper case
  bool generated = false;
  bool must_fill = false;  // NOT NULL without a default
  bool in_primary_key = false;
};

std::string Upper(std::string_view text) {
  std::string upper(text);
  std::ranges::transform(upper, upper.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return upper;
}

// SQLite's names know no case.
bool SameName(std::string_view a, std::string_view b) { return Upper(a) == Upper(b); }

OutputError SchemaError(const SqliteOptions& options, std::string what, std::string hint) {
  return {.error = {.code = "output_schema",
                    .what = std::move(what),
                    .where = options.path,
                    .hint = std::move(hint)}};
}

// Empty: there is no such table.
tl::expected<std::vector<TableColumn>, SqliteFailure> ReadColumns(SqliteConnection& connection,
                                                                  const std::string& schema,
                                                                  const std::string& table) {
  auto query = connection.Prepare(
      "SELECT name, type, hidden IN (2, 3), \"notnull\" AND dflt_value IS NULL"
      " AND NOT (pk AND upper(type) = 'INTEGER'), pk > 0 FROM pragma_table_xinfo(?1, ?2)");
  if (!query) return tl::unexpected(query.error());
  sqlite3_stmt* row = query->get();
  sqlite3_bind_text64(row, 1, table.data(), table.size(), SQLITE_STATIC, SQLITE_UTF8);
  sqlite3_bind_text64(row, 2, schema.data(), schema.size(), SQLITE_STATIC, SQLITE_UTF8);
  std::vector<TableColumn> columns;
  for (;;) {
    const auto more = connection.Step(row);
    if (!more) return tl::unexpected(more.error());
    if (!*more) return columns;
    columns.push_back({.name = std::string(SqliteText(row, 0)),
                       .type = Upper(SqliteText(row, 1)),
                       .generated = sqlite3_column_int(row, 2) != 0,
                       .must_fill = sqlite3_column_int(row, 3) != 0,
                       .in_primary_key = sqlite3_column_int(row, 4) != 0});
  }
}

tl::expected<std::vector<bool>, OutputError> CheckColumns(const std::vector<TableColumn>& columns,
                                                          const SqliteOptions& options,
                                                          const RowShape& shape) {
  std::vector<bool> blobs;
  for (const Column& wanted : shape.columns) {
    const auto column = std::ranges::find_if(
        columns, [&](const TableColumn& c) { return SameName(c.name, wanted.name); });
    if (column == columns.end()) {
      return tl::unexpected(
          SchemaError(options, fmt::format("{} has no column {}", options.table, wanted.name),
                      "add it, or correct output.sqlite.columns"));
    }
    if (column->generated) {
      return tl::unexpected(
          SchemaError(options, fmt::format("{}.{} is generated", options.table, wanted.name),
                      "take it out of output.sqlite.columns"));
    }
    blobs.push_back(column->type.find("BLOB") != std::string::npos);
  }
  for (const TableColumn& column : columns) {
    const bool filled = std::ranges::any_of(
        shape.columns, [&](const Column& c) { return SameName(c.name, column.name); });
    if (column.must_fill && !column.generated && !filled) {
      return tl::unexpected(SchemaError(
          options,
          fmt::format("{}.{} is NOT NULL, and nothing fills it", options.table, column.name),
          "add it to output.sqlite.columns, or give it a default"));
    }
  }
  return blobs;
}

// Text compares as text, and so does what is bound to a column that is no number's: 9 above 10.
tl::expected<void, OutputError> CheckFence(const std::vector<TableColumn>& columns,
                                           const SqliteOptions& options, const RowShape& shape) {
  if (!shape.fence || !IsNumber(shape.columns[*shape.fence].selector)) return {};
  const Column& fence = shape.columns[*shape.fence];
  const auto column = std::ranges::find_if(
      columns, [&](const TableColumn& c) { return SameName(c.name, fence.name); });
  // SQLite's rules of affinity, in their order: INT is a number's; then text, then bytes; what is
  // left is a number's again.
  const auto holds = [&](const char* part) { return column->type.find(part) != std::string::npos; };
  const bool number = holds("INT") || !(holds("CHAR") || holds("CLOB") || holds("TEXT") ||
                                        holds("BLOB") || holds("ANY") || column->type.empty());
  if (number) return {};
  return tl::unexpected(SchemaError(
      options,
      fmt::format("the fence column {}.{} is {}: as text, {} 9 stands above 10", options.table,
                  fence.name, column->type.empty() ? "of no type" : column->type,
                  fence.selector.Text()),
      "declare it integer"));
}

// As ON CONFLICT finds it: the primary key, or a unique index without a WHERE, on exactly these
// columns.
tl::expected<bool, SqliteFailure> KeyIsUnique(SqliteConnection& connection,
                                              const std::string& schema, const std::string& table,
                                              const std::vector<TableColumn>& columns,
                                              const RowShape& shape) {
  std::vector<std::string> wanted;
  for (const std::size_t place : shape.key) wanted.push_back(Upper(shape.columns[place].name));
  std::ranges::sort(wanted);
  std::vector<std::string> primary;
  for (const TableColumn& column : columns) {
    if (column.in_primary_key) primary.push_back(Upper(column.name));
  }
  std::ranges::sort(primary);
  if (primary == wanted) return true;
  auto query = connection.Prepare(
      "SELECT l.name, upper(i.name) FROM pragma_index_list(?1, ?2) l,"
      " pragma_index_info(l.name, ?2) i WHERE l.\"unique\" AND NOT l.partial ORDER BY 1, 2");
  if (!query) return tl::unexpected(query.error());
  sqlite3_stmt* row = query->get();
  sqlite3_bind_text64(row, 1, table.data(), table.size(), SQLITE_STATIC, SQLITE_UTF8);
  sqlite3_bind_text64(row, 2, schema.data(), schema.size(), SQLITE_STATIC, SQLITE_UTF8);
  std::map<std::string, std::vector<std::string>> indexes;
  for (;;) {
    const auto more = connection.Step(row);
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    indexes[std::string(SqliteText(row, 0))].emplace_back(SqliteText(row, 1));
  }
  return std::ranges::any_of(indexes, [&](const auto& index) { return index.second == wanted; });
}

OutputError NoUniqueIndex(const SqliteOptions& options) {
  std::string names;
  for (const std::string& name : options.rules.key) {
    names += (names.empty() ? "" : ", ") + QuoteIdentifier(name);
  }
  return SchemaError(
      options,
      fmt::format("{} has no unique index on ({}), so nothing tells which row to update",
                  options.table, names),
      fmt::format("CREATE UNIQUE INDEX … ON {} ({}), or correct key", options.table, names));
}

tl::expected<void, SqliteFailure> CreateLedger(SqliteConnection& connection, const char* ddl) {
  for (const char* statement : {"BEGIN IMMEDIATE", ddl, "COMMIT"}) {
    if (auto done = connection.Exec(statement); !done) {
      if (sqlite3_get_autocommit(connection.db()) == 0) (void)connection.Exec("ROLLBACK");
      return done;
    }
  }
  return {};
}

// What is wrong with the ledger, or "".
tl::expected<std::string, SqliteFailure> LedgerProblem(SqliteConnection& connection,
                                                       const LedgerTable& kind) {
  const std::string name(kind.name);
  auto columns = ReadColumns(connection, "main", name);
  if (columns && columns->empty()) {
    if (auto created = CreateLedger(connection, kind.sqlite); !created)
      return tl::unexpected(created.error());
    columns = ReadColumns(connection, "main", name);
  }
  if (!columns) return tl::unexpected(columns.error());
  for (const LedgerColumn& wanted : kind.columns) {
    if (std::ranges::none_of(*columns,
                             [&](const TableColumn& c) { return SameName(c.name, wanted.name); })) {
      return fmt::format("{} has no column {}", name, wanted.name);
    }
  }
  auto key = connection.Prepare(
      "SELECT count(*) FROM pragma_index_list(?1) l WHERE l.\"unique\" AND NOT "
      "l.partial"
      " AND (SELECT group_concat(lower(name), ', ') FROM (SELECT name FROM "
      "pragma_index_info(l.name)"
      " ORDER BY seqno)) = ?2");
  if (!key) return tl::unexpected(key.error());
  sqlite3_bind_text64(key->get(), 1, name.data(), name.size(), SQLITE_STATIC, SQLITE_UTF8);
  sqlite3_bind_text64(key->get(), 2, kind.key.data(), kind.key.size(), SQLITE_STATIC, SQLITE_UTF8);
  if (const auto row = connection.Step(key->get()); !row) return tl::unexpected(row.error());
  if (sqlite3_column_int(key->get(), 0) != 0) return "";
  return fmt::format(
      "{} has no primary key ({}): nothing would keep an effect from happening twice", name,
      kind.key);
}

// Whether the table is there, with a row of the pipeline.
tl::expected<bool, SqliteFailure> HasRowOf(SqliteConnection& connection, std::string_view table,
                                           const std::string& pipeline) {
  const auto columns = ReadColumns(connection, "main", std::string(table));
  if (!columns) return tl::unexpected(columns.error());
  if (columns->empty()) return false;
  const auto row =
      connection.Prepare(fmt::format("SELECT 1 FROM main.{} WHERE pipeline = ?1 LIMIT 1", table));
  if (!row) return tl::unexpected(row.error());
  sqlite3_bind_text64(row->get(), 1, pipeline.data(), pipeline.size(), SQLITE_STATIC, SQLITE_UTF8);
  return connection.Step(row->get());
}

tl::expected<void, OutputError> CheckOtherRows(SqliteConnection& connection,
                                               const SqliteOptions& options,
                                               const LedgerTerms& terms) {
  const auto [own, other] = terms.by_position ? std::pair(kPositionsTable, kLedgerTable)
                                              : std::pair(kLedgerTable, kPositionsTable);
  const auto read = HasRowOf(connection, own, terms.pipeline);
  if (!read) return tl::unexpected(ToOutputError(read.error(), options.path));
  if (*read) return {};
  const auto left = HasRowOf(connection, other, terms.pipeline);
  if (!left) return tl::unexpected(ToOutputError(left.error(), options.path));
  if (*left) {
    return tl::unexpected(OtherRowsLeft(terms.pipeline, options.path, terms.by_position));
  }
  return {};
}

}  // namespace

tl::expected<SqliteTarget, OutputError> LearnTarget(SqliteConnection& connection,
                                                    const SqliteOptions& options,
                                                    const RowShape& shape,
                                                    const LedgerTerms& terms) {
  const auto parts = SplitTableName(options.table);
  if (!parts) {
    return tl::unexpected(SchemaError(options, parts.error(), "correct output.sqlite.table"));
  }
  const bool qualified = parts->size() > 1;
  const auto columns = ReadColumns(connection, qualified ? parts->front() : "main", parts->back());
  if (!columns) return tl::unexpected(ToOutputError(columns.error(), options.path));
  if (columns->empty()) {
    return tl::unexpected(
        SchemaError(options, fmt::format("there is no table {}", options.table),
                    options.path == ":memory:"
                        ? "nobody else sees :memory:; use file:NAME?mode=memory&cache=shared"
                        : "create it, or correct output.sqlite.table"));
  }
  auto blobs = CheckColumns(*columns, options, shape);
  if (!blobs) return tl::unexpected(blobs.error());
  if (auto fine = CheckFence(*columns, options, shape); !fine) return tl::unexpected(fine.error());
  if (shape.updates()) {
    const auto unique = KeyIsUnique(connection, qualified ? parts->front() : "main", parts->back(),
                                    *columns, shape);
    if (!unique) return tl::unexpected(ToOutputError(unique.error(), options.path));
    if (!*unique) return tl::unexpected(NoUniqueIndex(options));
  }
  const LedgerTable& kind = TableOfLedger(terms.by_position);
  if (auto fine = CheckOtherRows(connection, options, terms); !fine) {
    return tl::unexpected(fine.error());
  }
  if (terms.missing != MissingLedger::kCreate) {
    const auto ledger = ReadColumns(connection, "main", std::string(kind.name));
    if (!ledger) return tl::unexpected(ToOutputError(ledger.error(), options.path));
    if (ledger->empty()) {
      return tl::unexpected(
          terms.missing == MissingLedger::kGone
              ? LedgerGone(kind.name, options.path, "was it dropped, or the file replaced?")
              : LedgerMissing(kind.name, options.path, ""));
    }
  }
  const auto problem = LedgerProblem(connection, kind);
  if (!problem) return tl::unexpected(ToOutputError(problem.error(), options.path));
  if (!problem->empty()) return tl::unexpected(SchemaError(options, *problem, kNewLedger));
  std::string table = QuoteIdentifier(parts->front());
  if (qualified) table.append(".").append(QuoteIdentifier(parts->back()));
  return SqliteTarget{.table = std::move(table), .blobs = std::move(*blobs)};
}

}  // namespace fencepost::consumer
