#include "consumer/outputs/mysql/mysql_schema.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "consumer/outputs/ledger/table_check.h"

namespace fencepost::consumer {
namespace {

constexpr unsigned kNoTable = 1146;
constexpr unsigned kDenied = 1142;

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

class MysqlCatalogue final : public Catalogue {
 public:
  MysqlCatalogue(MysqlConnection& connection, const MysqlOptions& options)
      : connection_(connection), options_(options) {}

  Facts ReadTable(const Name& name) override {
    const std::string& schema = name.size() > 1 ? name.front() : options_.database;
    table_ = QuoteName(schema) + "." + QuoteName(name.back());
    return Read(schema, name.back(), TableInWords(name, '`'), columns_);
  }

  std::string WhyMissing(const Name& /*name*/) override {
    return "create it, or correct output.mysql.table; or may this account not see it?";
  }

  Facts ReadLedger(const LedgerTable& ledger) override {
    std::vector<MysqlColumn> columns;
    return Read(options_.database, ledger.name, ledger.name, columns,
                " AND index_name NOT IN (SELECT index_name FROM information_schema.statistics" +
                    Where(options_.database, ledger.name) + " AND sub_part IS NOT NULL)");
  }

  Answer<void> CreateLedger(const LedgerTable& ledger) override {
    if (auto made = Query(ledger.mysql); !made) return tl::unexpected(made.error());
    return {};
  }

  Answer<bool> HasRows(std::string_view ledger, const std::string& pipeline) override {
    const auto rows = connection_.Query("SELECT 1 FROM " + LedgerName(ledger) +
                                        " WHERE pipeline = " + Quoted(pipeline) + " LIMIT 1");
    if (rows) return !rows->empty();
    if (rows.error().code == kNoTable || rows.error().code == kDenied) return false;
    return tl::unexpected(ToOutputError(rows.error(), connection_.where()));
  }

  [[nodiscard]] std::string LedgerName(std::string_view ledger) const {
    return QuoteName(options_.database) + "." + QuoteName(ledger);
  }
  [[nodiscard]] const std::string& table() const { return table_; }
  [[nodiscard]] const MysqlColumn& column(std::size_t place) const { return columns_[place]; }

 private:
  Answer<MysqlConnection::Rows> Query(const std::string& sql) {
    auto rows = connection_.Query(sql);
    if (!rows) return tl::unexpected(ToOutputError(rows.error(), connection_.where()));
    return std::move(*rows);
  }
  static std::string Where(std::string_view schema, std::string_view table,
                           std::string_view prefix = "table") {
    return fmt::format(" WHERE {}_schema = {} AND table_name = {}", prefix, Quoted(schema),
                       Quoted(table));
  }

  // `indexes`: which of them count.
  Facts Read(std::string_view schema, std::string_view table, std::string_view as,
             std::vector<MysqlColumn>& columns, const std::string& indexes = "") {
    const auto engine =
        Query("SELECT coalesce(engine, '') FROM information_schema.tables" + Where(schema, table));
    if (!engine) return tl::unexpected(engine.error());
    if (engine->empty()) return std::nullopt;
    TableFacts facts{.name = std::string(as), .columns = {}};
    const std::string& name = *engine->front().front();
    if (Lower(name) != "innodb") {
      facts.unsafe = {fmt::format("is {}, which has no transactions: an effect could be there "
                                  "without its ledger row",
                                  name.empty() ? "a view" : name),
                      fmt::format("ALTER TABLE {} ENGINE=InnoDB", as)};
    }
    if (auto done = ReadColumns(schema, table, facts, columns); !done)
      return tl::unexpected(done.error());
    const auto unique = Query("SELECT index_name, column_name FROM information_schema.statistics" +
                              Where(schema, table) + " AND non_unique = 0" + indexes +
                              " ORDER BY index_name, seq_in_index");
    if (!unique) return tl::unexpected(unique.error());
    for (std::size_t i = 0; i < unique->size(); ++i) {
      const auto& row = (*unique)[i];
      if (i == 0 || row[0] != (*unique)[i - 1][0]) facts.unique->emplace_back();
      facts.unique->back().push_back(row[1].value_or(""));
    }
    return facts;
  }

  Answer<void> ReadColumns(std::string_view schema, std::string_view table, TableFacts& facts,
                           std::vector<MysqlColumn>& columns) {
    const auto rows = Query(
        "SELECT column_name, data_type, column_type, is_nullable = 'NO' AND column_default IS NULL"
        " AND extra NOT LIKE '%auto_increment%', coalesce(generation_expression, '') <> '',"
        " datetime_precision, is_nullable = 'NO' FROM information_schema.columns" +
        Where(schema, table) + " ORDER BY ordinal_position");
    if (!rows) return tl::unexpected(rows.error());
    for (const auto& row : *rows) {
      const MysqlColumn& column =
          columns.emplace_back(TypeOf(row[0].value_or(""), Lower(row[1].value_or("")),
                                      row[2].value_or(""), MysqlNumber<int>(row[5])));
      const bool text = column.type == MysqlType::kText || column.type == MysqlType::kBytes;
      facts.columns.push_back({.name = column.name,
                               .type = column.declared,
                               .generated = row[4] == "1",
                               .must_fill = row[3] == "1",
                               .comparison = text ? Comparison::kText : Comparison::kValue,
                               .takes_null = row[6] != "1"});
    }
    if (!connection_.mariadb()) return {};
    const auto checks = Query("SELECT check_clause FROM information_schema.check_constraints" +
                              Where(schema, table, "constraint"));
    if (!checks) return tl::unexpected(checks.error());
    for (MysqlColumn& column : columns) {
      const std::string json = "json_valid(" + QuoteName(column.name) + ")";
      const bool is = std::ranges::any_of(*checks, [&](const auto& row) { return row[0] == json; });
      if (is) column.type = MysqlType::kJson;
    }
    return {};
  }

  MysqlConnection& connection_;
  const MysqlOptions& options_;
  std::string table_;                 // of effects, quoted
  std::vector<MysqlColumn> columns_;  // likewise
};

}  // namespace

tl::expected<MysqlTarget, OutputError> LearnTarget(MysqlConnection& connection,
                                                   const MysqlOptions& options,
                                                   const RowShape& shape,
                                                   const LedgerTerms& terms) {
  MysqlCatalogue catalogue(connection, options);
  const auto places = LearnTables(catalogue, options.table, shape, terms,
                                  {.output = "output.mysql",
                                   .where = connection.where(),
                                   .ledger_file = "deploy/mysql/ledger.sql",
                                   .quote = '`'});
  if (!places) return tl::unexpected(places.error());
  MysqlTarget target{.table = catalogue.table(),
                     .ledger = catalogue.LedgerName(TableOfLedger(terms.by_position).name),
                     .columns = {}};
  for (const std::size_t place : *places) target.columns.push_back(catalogue.column(place));
  target.advice = std::move(catalogue.advice);
  return target;
}

}  // namespace fencepost::consumer
