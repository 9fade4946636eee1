#include "consumer/outputs/mysql/mysql_schema.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "consumer/outputs/ledger/ledger.h"

namespace fencepost::consumer {
namespace {

template <typename T>
using Checked = tl::expected<T, OutputError>;

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

// Column names know no case.
bool SameName(std::string_view a, std::string_view b) { return Lower(a) == Lower(b); }

std::string Quoted(std::string_view text) {
  std::string quoted;
  AppendText(text, quoted);
  return quoted;
}

int Number(const MysqlConnection::Cell& cell) {
  int number = 0;
  if (cell) std::from_chars(cell->data(), cell->data() + cell->size(), number);
  return number;
}

constexpr unsigned kNoTable = 1146;
constexpr unsigned kDenied = 1142;

struct TableColumn {
  MysqlColumn column;
  bool generated = false;
  bool must_fill = false;  // NOT NULL without a default
};

MysqlColumn TypeOf(std::string name, const std::string& data_type, const std::string& declared,
                   int digits) {
  constexpr std::array<std::pair<std::string_view, int>, 5> kIntegers{
      {{"tinyint", 8}, {"smallint", 16}, {"mediumint", 24}, {"int", 32}, {"bigint", 64}}};
  constexpr std::array<std::pair<std::string_view, MysqlType>, 23> kTypes{
      {{"decimal", MysqlType::kNumber},    {"float", MysqlType::kNumber},
       {"double", MysqlType::kNumber},     {"bit", MysqlType::kBit},
       {"char", MysqlType::kText},         {"varchar", MysqlType::kText},
       {"tinytext", MysqlType::kText},     {"text", MysqlType::kText},
       {"mediumtext", MysqlType::kText},   {"longtext", MysqlType::kText},
       {"enum", MysqlType::kText},         {"set", MysqlType::kText},
       {"json", MysqlType::kJson},         {"binary", MysqlType::kBytes},
       {"varbinary", MysqlType::kBytes},   {"tinyblob", MysqlType::kBytes},
       {"blob", MysqlType::kBytes},        {"mediumblob", MysqlType::kBytes},
       {"longblob", MysqlType::kBytes},    {"date", MysqlType::kDate},
       {"datetime", MysqlType::kDateTime}, {"timestamp", MysqlType::kDateTime},
       {"inet6", MysqlType::kText}}};
  MysqlColumn column{.name = std::move(name), .declared = declared, .digits = digits};
  for (const auto& [type, bits] : kIntegers) {
    if (type != data_type) continue;
    column.type = MysqlType::kInteger;
    const bool is_unsigned = declared.find("unsigned") != std::string::npos;
    const int positive = std::min(is_unsigned ? bits : bits - 1, 63);
    column.most = positive == 63 ? std::numeric_limits<std::int64_t>::max()
                                 : (std::int64_t{1} << positive) - 1;
    column.least = is_unsigned ? 0 : -column.most - 1;
  }
  for (const auto& [type, is] : kTypes) {
    if (type == data_type) column.type = is;
  }
  return column;
}

class Catalog {
 public:
  Catalog(MysqlConnection& connection, const MysqlOptions& options, const RowShape& shape,
          const LedgerTerms& terms)
      : connection_(connection), options_(options), shape_(shape), terms_(terms) {}

  Checked<MysqlTarget> Learn() {
    auto parts = SplitTableName(options_.table);
    if (!parts) return Bad(parts.error(), "correct output.mysql.table");
    table_ = parts->back();
    schema_ = parts->size() > 1 ? parts->front() : options_.database;
    MysqlTarget target{.table = QuoteName(schema_) + "." + QuoteName(table_),
                       .ledger = LedgerName(TableOfLedger(terms_.by_position).name)};
    const auto engine = EngineOf(schema_, table_);
    if (!engine) return tl::unexpected(engine.error());
    if (!*engine) {
      return Bad(fmt::format("there is no table {}", options_.table),
                 "create it, or correct output.mysql.table; or may this account not see it?");
    }
    if (auto fine = IsTransactional(options_.table, **engine); !fine) {
      return tl::unexpected(fine.error());
    }
    auto columns = Columns();
    if (!columns) return tl::unexpected(columns.error());
    target.columns = std::move(*columns);
    if (auto fine = CheckRules(target); !fine) return tl::unexpected(fine.error());
    if (auto fine = Ledger(); !fine) return tl::unexpected(fine.error());
    return target;
  }

 private:
  [[nodiscard]] OutputError Problem(std::string what, std::string hint) const {
    return {.error = {.code = "output_schema",
                      .what = std::move(what),
                      .where = connection_.where(),
                      .hint = std::move(hint)}};
  }
  tl::unexpected<OutputError> Bad(std::string what, std::string hint) const {
    return tl::unexpected(Problem(std::move(what), std::move(hint)));
  }
  Checked<MysqlConnection::Rows> Query(const std::string& sql) {
    auto rows = connection_.Query(sql);
    if (!rows) return tl::unexpected(ToOutputError(rows.error(), connection_.where()));
    return std::move(*rows);
  }
  static std::string Where(std::string_view schema, std::string_view table,
                           std::string_view prefix = "table") {
    return fmt::format(" WHERE {}_schema = {} AND table_name = {}", prefix, Quoted(schema),
                       Quoted(table));
  }

  [[nodiscard]] std::string LedgerName(std::string_view table) const {
    return QuoteName(options_.database) + "." + QuoteName(table);
  }

  // nullopt: there is no such table.
  Checked<std::optional<std::string>> EngineOf(std::string_view schema, std::string_view table) {
    const auto rows =
        Query("SELECT coalesce(engine, '') FROM information_schema.tables" + Where(schema, table));
    if (!rows) return tl::unexpected(rows.error());
    if (rows->empty()) return std::nullopt;
    return rows->front().front().value_or("");
  }

  Checked<void> IsTransactional(std::string_view table, const std::string& engine) {
    if (!terms_.exactly_once || SameName(engine, "InnoDB")) return {};
    return Bad(
        fmt::format("{} is {}, which has no transactions: an effect could be there without "
                    "its ledger row",
                    table, engine.empty() ? "a view" : engine),
        fmt::format("ALTER TABLE {} ENGINE=InnoDB, or write guarantee: at-least-once", table));
  }

  Checked<std::vector<TableColumn>> ReadColumns(std::string_view schema, std::string_view table) {
    const auto rows = Query(
        "SELECT column_name, data_type, column_type, is_nullable = 'NO' AND column_default IS NULL"
        " AND extra NOT LIKE '%auto_increment%', coalesce(generation_expression, '') <> '',"
        " datetime_precision FROM information_schema.columns" +
        Where(schema, table) + " ORDER BY ordinal_position");
    if (!rows) return tl::unexpected(rows.error());
    std::vector<TableColumn> columns;
    for (const auto& row : *rows) {
      columns.push_back({.column = TypeOf(row[0].value_or(""), Lower(row[1].value_or("")),
                                          row[2].value_or(""), Number(row[5])),
                         .generated = row[4] == "1",
                         .must_fill = row[3] == "1"});
    }
    if (!connection_.mariadb()) return columns;
    const auto checks = Query("SELECT check_clause FROM information_schema.check_constraints" +
                              Where(schema, table, "constraint"));
    if (!checks) return tl::unexpected(checks.error());
    for (TableColumn& column : columns) {
      const std::string json = "json_valid(" + QuoteName(column.column.name) + ")";
      const bool is = std::ranges::any_of(*checks, [&](const auto& row) { return row[0] == json; });
      if (is) column.column.type = MysqlType::kJson;
    }
    return columns;
  }

  Checked<std::vector<MysqlColumn>> Columns() {
    const auto there = ReadColumns(schema_, table_);
    if (!there) return tl::unexpected(there.error());
    std::vector<MysqlColumn> columns;
    for (const Column& wanted : shape_.columns) {
      const auto column = std::ranges::find_if(
          *there, [&](const TableColumn& c) { return SameName(c.column.name, wanted.name); });
      if (column == there->end()) {
        return Bad(fmt::format("{} has no column {}", options_.table, wanted.name),
                   "add it, or correct output.mysql.columns");
      }
      if (column->generated) {
        return Bad(fmt::format("{}.{} is generated", options_.table, wanted.name),
                   "take it out of output.mysql.columns");
      }
      columns.push_back(column->column);
    }
    for (const TableColumn& column : *there) {
      const bool filled = std::ranges::any_of(
          shape_.columns, [&](const Column& c) { return SameName(c.name, column.column.name); });
      if (column.must_fill && !column.generated && !filled) {
        return Bad(fmt::format("{}.{} is NOT NULL, and nothing fills it", options_.table,
                               column.column.name),
                   "add it to output.mysql.columns, or give it a default");
      }
    }
    return columns;
  }

  Checked<void> CheckRules(const MysqlTarget& target) {
    if (shape_.fence && IsNumber(shape_.columns[*shape_.fence].selector)) {
      const MysqlColumn& fence = target.columns[*shape_.fence];
      if (fence.type == MysqlType::kText || fence.type == MysqlType::kBytes) {
        return Bad(
            fmt::format("the fence column {}.{} is {}: as text, {} 9 stands above 10",
                        options_.table, fence.name, fence.declared,
                        shape_.columns[*shape_.fence].selector.Text()),
            fmt::format("ALTER TABLE {} MODIFY {} bigint", options_.table, QuoteName(fence.name)));
      }
    }
    return shape_.updates() ? KeyIsUnique() : Checked<void>();
  }

  Checked<void> KeyIsUnique() {
    const auto rows = Query("SELECT index_name, column_name FROM information_schema.statistics" +
                            Where(schema_, table_) + " AND non_unique = 0");
    if (!rows) return tl::unexpected(rows.error());
    std::map<std::string, std::vector<std::string>> indexes;
    for (const auto& row : *rows) {
      indexes[row[0].value_or("")].push_back(Lower(row[1].value_or("")));
    }
    std::vector<std::string> key;
    std::string names;
    for (const std::size_t place : shape_.key) {
      key.push_back(Lower(shape_.columns[place].name));
      names += (names.empty() ? "" : ", ") + QuoteIdentifier(shape_.columns[place].name);
    }
    std::ranges::sort(key);
    for (auto& [name, columns] : indexes) {
      std::ranges::sort(columns);
      if (columns == key) return {};
    }
    return Bad(
        fmt::format("{} has no unique index on ({}), so nothing tells which row to update",
                    options_.table, names),
        fmt::format("CREATE UNIQUE INDEX … ON {} ({}), or correct key", options_.table, names));
  }

  Checked<void> Ledger() {
    const LedgerTable& kind = TableOfLedger(terms_.by_position);
    const std::string name(kind.name);
    auto engine = EngineOf(options_.database, name);
    if (!engine) return tl::unexpected(engine.error());
    if (auto fine = OtherRows(engine->has_value()); !fine) return fine;
    if (!*engine && terms_.missing == MissingLedger::kTell) {
      return tl::unexpected(LedgerMissing(name, connection_.where(), "deploy/mysql/ledger.sql"));
    }
    if (!*engine && terms_.missing == MissingLedger::kGone) {
      return tl::unexpected(
          LedgerGone(name, connection_.where(), "was it dropped, or the database replaced?"));
    }
    if (!*engine) {
      if (auto made = Query(kind.mysql); !made) return tl::unexpected(made.error());
      engine = EngineOf(options_.database, name);
      if (!engine) return tl::unexpected(engine.error());
    }
    if (auto fine = IsTransactional(name, engine->value_or("")); !fine) return fine;
    return CheckLedger(kind);
  }

  Checked<void> CheckLedger(const LedgerTable& kind) {
    constexpr const char* kNew = "rename it, and a new one is made";
    const auto columns = ReadColumns(options_.database, kind.name);
    if (!columns) return tl::unexpected(columns.error());
    for (const LedgerColumn& wanted : kind.columns) {
      const bool there = std::ranges::any_of(
          *columns, [&](const TableColumn& c) { return SameName(c.column.name, wanted.name); });
      if (!there) return Bad(fmt::format("{} has no column {}", kind.name, wanted.name), kNew);
    }
    const auto key = Query(
        "SELECT group_concat(column_name ORDER BY seq_in_index SEPARATOR ', '), min(sub_part)"
        " FROM information_schema.statistics" +
        Where(options_.database, kind.name) + " AND non_unique = 0 GROUP BY index_name");
    if (!key) return tl::unexpected(key.error());
    const bool good = std::ranges::any_of(
        *key, [&](const auto& row) { return row[0] && *row[0] == kind.key && !row[1]; });
    if (good) return {};
    return Bad(fmt::format("{} has no primary key ({}): nothing would keep an effect from "
                           "happening twice",
                           kind.name, kind.key),
               kNew);
  }

  // `own`: the ledger that is read is there. An account that may not read the other has written
  // nothing there.
  Checked<void> OtherRows(bool own) {
    const auto [mine, other] = terms_.by_position ? std::pair(kPositionsTable, kLedgerTable)
                                                  : std::pair(kLedgerTable, kPositionsTable);
    std::string of = " WHERE pipeline = ";
    AppendText(terms_.pipeline, of);
    of += " LIMIT 1";
    const auto left = connection_.Query("SELECT 1 FROM " + LedgerName(other) + of);
    const bool none = !left && (left.error().code == kNoTable || left.error().code == kDenied);
    if (none || (left && left->empty())) return {};
    if (!left) return tl::unexpected(ToOutputError(left.error(), connection_.where()));
    if (own) {
      const auto rows = Query("SELECT 1 FROM " + LedgerName(mine) + of);
      if (!rows) return tl::unexpected(rows.error());
      if (!rows->empty()) return {};
    }
    return tl::unexpected(OtherRowsLeft(terms_.pipeline, connection_.where(), terms_.by_position));
  }

  MysqlConnection& connection_;
  const MysqlOptions& options_;
  const RowShape& shape_;
  const LedgerTerms& terms_;
  std::string schema_, table_;
};

}  // namespace

tl::expected<MysqlTarget, OutputError> LearnTarget(MysqlConnection& connection,
                                                   const MysqlOptions& options,
                                                   const RowShape& shape,
                                                   const LedgerTerms& terms) {
  return Catalog(connection, options, shape, terms).Learn();
}

}  // namespace fencepost::consumer
