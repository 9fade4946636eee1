#include "consumer/outputs/mysql/mysql_schema.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "consumer/outputs/ledger/table_check.h"
#include "consumer/outputs/tables/table_store.h"
#include "consumer/record/text.h"

namespace fencepost::consumer {
namespace {

constexpr unsigned kNoTable = 1146;
constexpr unsigned kDenied = 1142;

class MysqlCatalogue final : public Catalogue {
 public:
  MysqlCatalogue(MysqlConnection& connection, const MysqlOptions& options)
      : connection_(connection), options_(options) {}

  Facts ReadTable(const Name& name, const RowShape& /*shape*/) override {
    const std::string& schema = name.size() > 1 ? name.front() : options_.database;
    table_ = QuoteName(schema) + "." + QuoteName(name.back());
    columns_.clear();
    return Read(schema, name.back(), TableInWords(name, '`'), columns_);
  }

  void TakeTable(const std::vector<std::size_t>& columns) override {
    MysqlTable& table = tables.emplace_back(MysqlTable{.name = table_, .columns = {}});
    for (const std::size_t place : columns) table.columns.push_back(columns_[place]);
  }
  std::vector<MysqlTable> tables;

  std::string WhyMissing(const Name& /*name*/) override {
    return "; or may this account not see it?";
  }

  Facts ReadLedger(const LedgerTable& ledger) override {
    std::vector<MysqlColumn> columns;
    return Read(options_.database, ledger.name, ledger.name, columns,
                " AND index_name NOT IN (SELECT index_name FROM information_schema.statistics" +
                    Where(options_.database, ledger.name) + " AND sub_part IS NOT NULL)");
  }

  Answer<void> CreateLedger(const LedgerTable& ledger) override { return Run({ledger.mysql}); }

  // Each is committed at once: there is no transaction of statements that change tables.
  Answer<void> Run(const std::vector<std::string>& statements) override {
    for (std::size_t i = 0; i < statements.size(); ++i) {
      if (auto made = Query(statements[i]); !made) {
        OutputError error = std::move(made.error());
        if (i > 0) error.error.what += fmt::format(" (done before it: {})", i);
        return tl::unexpected(std::move(error));
      }
    }
    return {};
  }

  Answer<bool> HasSchema(const std::string& name) override {
    const auto there =
        Query("SELECT 1 FROM information_schema.schemata WHERE schema_name = " + Quoted(name));
    if (!there) return tl::unexpected(there.error());
    return !there->empty();
  }

  Answer<bool> HasRows(const LedgerTable& ledger, const std::string& pipeline) override {
    const auto rows =
        connection_.Query(fmt::format("SELECT 1 FROM {} WHERE pipeline = {} AND {} LIMIT 1",
                                      LedgerName(ledger.name), Quoted(pipeline), ledger.written));
    if (rows) return !rows->empty();
    if (rows.error().code == kNoTable || rows.error().code == kDenied) return false;
    return tl::unexpected(ToOutputError(rows.error(), connection_.where()));
  }

  [[nodiscard]] std::string LedgerName(std::string_view ledger) const {
    return QuoteName(options_.database) + "." + QuoteName(ledger);
  }

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
        " datetime_precision, character_maximum_length,"
        // Of a text: what its bytes are here is known of these alone.
        " CASE WHEN coalesce(character_set_name, 'binary') IN ('binary', 'ascii', 'utf8', "
        "'utf8mb3',"
        " 'utf8mb4') THEN character_octet_length ELSE 0 END,"
        " numeric_precision, numeric_scale, is_nullable = 'NO', coalesce(collation_name, ''),"
        " is_nullable = 'NO' AND (data_type = 'timestamp' OR extra LIKE '%auto_increment%')"
        " FROM information_schema.columns" +
        Where(schema, table) + " ORDER BY ordinal_position");
    if (!rows) return tl::unexpected(rows.error());
    for (const auto& row : *rows) {
      const auto number = [&row](std::size_t at) {
        return row[at] ? std::optional(MysqlNumber<int>(row[at])) : std::nullopt;
      };
      MysqlColumn& column = columns.emplace_back(
          MysqlColumn{.name = row[0].value_or(""),
                      .declared = row[2].value_or(""),
                      .cell = MysqlCellType({.data_type = Lower(row[1].value_or("")),
                                             .declared = row[2].value_or(""),
                                             .characters = MysqlNumber<std::size_t>(row[6]),
                                             .octets = MysqlNumber<std::size_t>(row[7]),
                                             .precision = number(8),
                                             .scale = number(9),
                                             .digits = MysqlNumber<int>(row[5])})});
      column.cell.replaces_null = row[12] == "1";
      const std::string collation = row[11].value_or("");
      const CellKind kind = column.cell.kind;
      const bool text =
          kind == CellKind::kText || kind == CellKind::kBytes || kind == CellKind::kChoice;
      facts.columns.push_back({.name = column.name,
                               .type = column.declared,
                               .generated = row[4] == "1",
                               .must_fill = row[3] == "1",
                               .comparison = text                 ? Comparison::kText
                                             : column.cell.single ? Comparison::kInexact
                                                                  : Comparison::kValue,
                               .cell = column.cell,
                               .takes_null = row[10] != "1",
                               .folded_by = collation.ends_with("_bin") ? "" : collation});
    }
    if (!connection_.mariadb()) return {};
    const auto checks = Query("SELECT check_clause FROM information_schema.check_constraints" +
                              Where(schema, table, "constraint"));
    if (!checks) return tl::unexpected(checks.error());
    for (std::size_t i = 0; i < columns.size(); ++i) {
      MysqlColumn& column = columns[i];
      const std::string json = "json_valid(" + QuoteName(column.name) + ")";
      const bool is = std::ranges::any_of(*checks, [&](const auto& row) { return row[0] == json; });
      if (!is) continue;
      column.cell = {.kind = CellKind::kJson};
      facts.columns[i].cell = column.cell;
    }
    return {};
  }

  MysqlConnection& connection_;
  const MysqlOptions& options_;
  std::string table_;                 // the one that was read last, quoted
  std::vector<MysqlColumn> columns_;  // likewise
};

// A server that does not keep what it has acknowledged through a crash of its host loses effects
// and ledger rows, while the group's offset is past them.
tl::expected<void, OutputError> CheckDurability(MysqlConnection& connection) {
  const auto settings = connection.Query(
      "SELECT @@GLOBAL.innodb_flush_log_at_trx_commit, @@GLOBAL.log_bin, @@GLOBAL.sync_binlog");
  if (!settings) return tl::unexpected(ToOutputError(settings.error(), connection.where()));
  const auto& row = settings->front();
  const bool binlog = row[1] == "1" && row[2] != "1";
  if (row[0] == "1" && !binlog) return {};
  const std::string_view name = binlog ? "sync_binlog" : "innodb_flush_log_at_trx_commit";
  return tl::unexpected(SchemaError(
      connection.where(),
      fmt::format("guarantee: exactly-once cannot be kept: {} is {}, so a crash loses what the "
                  "server has acknowledged",
                  name, row[binlog ? 2 : 0].value_or("")),
      fmt::format("SET GLOBAL {} = 1, and in the server's file; or write guarantee: at-least-once",
                  name)));
}

TableTerms TermsOf(const MysqlConnection& connection, const MysqlOptions& options) {
  const bool mariadb = connection.open() && connection.mariadb();
  return {.output = "output.mysql",
          .where = connection.where(),
          .ledger_file = "deploy/mysql/ledger.sql",
          .quote = '`',
          .schema = options.database,
          .collation = mariadb ? "utf8mb4_nopad_bin" : "utf8mb4_0900_bin"};
}

class MysqlTables final : public TableStore {
 public:
  explicit MysqlTables(MysqlOptions options)
      : options_(std::move(options)), connection_(options_), catalogue_(connection_, options_) {
    connection_.LiftLimits();
  }
  Answer<void> Connect() override {
    if (auto done = connection_.Connect(); !done) {
      return tl::unexpected(ToOutputError(done.error(), connection_.where()));
    }
    return {};
  }
  Catalogue& catalogue() override { return catalogue_; }
  [[nodiscard]] TableTerms terms() const override { return TermsOf(connection_, options_); }

 private:
  const MysqlOptions options_;
  MysqlConnection connection_;
  MysqlCatalogue catalogue_;
};

}  // namespace

std::unique_ptr<TableStore> MakeMysqlTables(const MysqlOptions& options) {
  return std::make_unique<MysqlTables>(options);
}

tl::expected<MysqlTarget, OutputError> LearnTarget(MysqlConnection& connection,
                                                   const MysqlOptions& options,
                                                   const EffectShapes& effects,
                                                   const LedgerTerms& terms) {
  if (terms.exactly_once) {
    if (auto durable = CheckDurability(connection); !durable) {
      return tl::unexpected(durable.error());
    }
  }
  if (options.create) {
    MysqlCatalogue before(connection, options);
    const auto made =
        CreateTables(before, effects, Dialect::kMysql, terms, TermsOf(connection, options));
    if (!made) return tl::unexpected(made.error());
  }
  MysqlCatalogue catalogue(connection, options);
  const auto learnt = LearnTables(catalogue, effects, terms, TermsOf(connection, options));
  if (!learnt) return tl::unexpected(learnt.error());
  return MysqlTarget{.ledger = catalogue.LedgerName(TableOfLedger(terms.by_position).name),
                     .ids = catalogue.LedgerName(kLedgerTable),
                     .tables = std::move(catalogue.tables),
                     .advice = std::move(catalogue.advice)};
}

}  // namespace fencepost::consumer
