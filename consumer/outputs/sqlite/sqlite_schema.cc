// What is in the SQLite file: the tables of effects, and the ledger.
#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "consumer/outputs/ledger/table_check.h"
#include "consumer/outputs/rows/row_sql.h"
#include "consumer/outputs/sqlite/sqlite_output.h"
#include "consumer/outputs/tables/table_store.h"

namespace fencepost::consumer {
namespace {

std::string Upper(std::string_view text) {
  std::string upper(text);
  std::ranges::transform(upper, upper.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return upper;
}

void Bind(const SqliteStatement& statement, int at, std::string_view text) {
  sqlite3_bind_text64(statement.get(), at, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

// By SQLite's rules of affinity, in their order: INT is a number's; then text, then bytes; what is
// left is a number's again. Text compares as text, and so does what is bound to a column that is no
// number's. `type`: in upper case.
Comparison ComparisonOf(std::string_view type) {
  const auto holds = [&](const char* part) { return type.find(part) != std::string_view::npos; };
  const bool number = holds("INT") || !(holds("CHAR") || holds("CLOB") || holds("TEXT") ||
                                        holds("BLOB") || holds("ANY") || type.empty());
  return number ? Comparison::kValue : Comparison::kText;
}

class SqliteCatalogue final : public Catalogue {
 public:
  SqliteCatalogue(SqliteConnection& connection, const SqliteOptions& options)
      : connection_(connection), options_(options) {}

  Facts ReadTable(const Name& name, const RowShape& /*shape*/) override {
    table_ = QuoteIdentifier(name.front());
    if (name.size() > 1) table_.append(".").append(QuoteIdentifier(name.back()));
    auto facts =
        Told(Read(name.size() > 1 ? name.front() : "main", name.back(), TableInWords(name)));
    if (!facts || !*facts) return facts;
    columns_ = (*facts)->columns;
    return facts;
  }
  std::string WhyMissing(const Name& /*name*/) override {
    if (options_.path != ":memory:") return "";
    return "; nobody else sees :memory:; use file:NAME?mode=memory&cache=shared";
  }
  Facts ReadLedger(const LedgerTable& ledger) override {
    return Told(Read("main", ledger.name, ledger.name));
  }
  Answer<void> CreateLedger(const LedgerTable& ledger) override { return Run({ledger.sqlite}); }
  Answer<void> Run(const std::vector<std::string>& statements) override {
    std::vector<std::string> all{"BEGIN IMMEDIATE"};
    all.insert(all.end(), statements.begin(), statements.end());
    all.emplace_back("COMMIT");
    for (const std::string& statement : all) {
      if (auto done = connection_.Exec(statement.c_str()); !done) {
        if (sqlite3_get_autocommit(connection_.db()) == 0) (void)connection_.Exec("ROLLBACK");
        return Told(std::move(done));
      }
    }
    return {};
  }
  Answer<bool> HasRows(const LedgerTable& ledger, const std::string& pipeline) override {
    const auto facts = Told(Read("main", ledger.name, ledger.name));
    if (!facts) return tl::unexpected(facts.error());
    if (!*facts) return false;
    const auto row = connection_.Prepare(fmt::format(
        "SELECT 1 FROM main.{} WHERE pipeline = ?1 AND {} LIMIT 1", ledger.name, ledger.written));
    if (!row) return tl::unexpected(ToOutputError(row.error(), options_.path));
    Bind(*row, 1, pipeline);
    return Told(connection_.Step(row->get()));
  }

  void TakeTable(const std::vector<std::size_t>& columns) override {
    SqliteTable& table = tables.emplace_back(SqliteTable{.name = table_, .cells = {}, .types = {}});
    for (const std::size_t place : columns) {
      table.cells.push_back(columns_[place].cell);
      table.types.push_back(columns_[place].type);
    }
  }
  std::vector<SqliteTable> tables;

 private:
  template <typename T>
  using Maybe = tl::expected<T, SqliteFailure>;

  template <typename T>
  Answer<T> Told(Maybe<T> found) const {
    return std::move(found).map_error(
        [&](const SqliteFailure& failure) { return ToOutputError(failure, options_.path); });
  }

  Maybe<std::optional<TableFacts>> Read(std::string_view schema, std::string_view table,
                                        std::string_view as) {
    TableFacts facts{.name = std::string(as), .columns = {}};
    auto columns = connection_.Prepare(
        "SELECT name, type, hidden IN (2, 3), \"notnull\" AND dflt_value IS NULL"
        " AND NOT (pk AND upper(type) = 'INTEGER'), \"notnull\", (SELECT strict FROM "
        "pragma_table_list(?1)"
        // A rowid, or perhaps ON CONFLICT REPLACE.
        " WHERE schema = ?2), \"notnull\" AND dflt_value IS NOT NULL OR pk AND upper(type) ="
        " 'INTEGER' AND (SELECT max(pk) FROM pragma_table_xinfo(?1, ?2)) = 1"
        " FROM pragma_table_xinfo(?1, ?2)");
    if (!columns) return tl::unexpected(columns.error());
    Bind(*columns, 1, table);
    Bind(*columns, 2, schema);
    for (sqlite3_stmt* row = columns->get();;) {
      const auto more = connection_.Step(row);
      if (!more) return tl::unexpected(more.error());
      if (!*more) break;
      const std::string type = Upper(SqliteText(row, 1));
      const std::string name(SqliteText(row, 0));
      CellType cell = SqliteCellType(type, sqlite3_column_int(row, 5) != 0);
      cell.replaces_null = sqlite3_column_int(row, 6) != 0;
      facts.columns.push_back({.name = name,
                               .type = type.empty() ? "of no type" : type,
                               .generated = sqlite3_column_int(row, 2) != 0,
                               .must_fill = sqlite3_column_int(row, 3) != 0,
                               .comparison = ComparisonOf(type),
                               .cell = cell,
                               .takes_null = sqlite3_column_int(row, 4) == 0 && !cell.replaces_null,
                               .folded_by = FoldedBy(schema, table, name)});
    }
    if (facts.columns.empty()) return std::nullopt;
    if (auto done = ReadUnique(schema, table, facts); !done) return tl::unexpected(done.error());
    return facts;
  }

  [[nodiscard]] std::string FoldedBy(std::string_view schema, std::string_view table,
                                     const std::string& column) const {
    const char* collation = nullptr;  // stays where it is a view
    sqlite3_table_column_metadata(connection_.db(), std::string(schema).c_str(),
                                  std::string(table).c_str(), column.c_str(), nullptr, &collation,
                                  nullptr, nullptr, nullptr);
    const std::string_view name = collation == nullptr ? "" : collation;
    return name == "BINARY" ? "" : std::string(name);
  }

  // The primary key of a table with rowids may have no index.
  Maybe<void> ReadUnique(std::string_view schema, std::string_view table, TableFacts& facts) {
    auto indexes = connection_.Prepare(
        "SELECT '', pk, name FROM pragma_table_xinfo(?1, ?2) WHERE pk > 0 UNION ALL"
        " SELECT l.name, i.seqno, i.name FROM pragma_index_list(?1, ?2) l,"
        " pragma_index_info(l.name, ?2) i WHERE l.\"unique\" AND NOT l.partial ORDER BY 1, 2");
    if (!indexes) return tl::unexpected(indexes.error());
    Bind(*indexes, 1, table);
    Bind(*indexes, 2, schema);
    std::optional<std::string> last;
    for (sqlite3_stmt* row = indexes->get();;) {
      const auto more = connection_.Step(row);
      if (!more) return tl::unexpected(more.error());
      if (!*more) return {};
      if (last != SqliteText(row, 0)) facts.unique->emplace_back();
      last = SqliteText(row, 0);
      facts.unique->back().emplace_back(SqliteText(row, 2));
    }
  }

  SqliteConnection& connection_;
  const SqliteOptions& options_;
  std::string table_;                 // the one that was read last, quoted
  std::vector<ColumnFacts> columns_;  // likewise
};

TableTerms TermsOf(const SqliteOptions& options) {
  return {.output = "output.sqlite", .where = options.path, .ledger_file = "", .schema = "main"};
}

class SqliteTables final : public TableStore {
 public:
  explicit SqliteTables(SqliteOptions options) : options_(std::move(options)) {}
  Answer<void> Connect() override {
    return Open(SqliteFileIsMissing(options_.path) ? ":memory:" : options_.path);
  }
  Catalogue& catalogue() override { return *catalogue_; }
  [[nodiscard]] TableTerms terms() const override { return TermsOf(options_); }
  Answer<void> Run(const std::vector<std::string>& statements) override {
    if (SqliteFileIsMissing(options_.path)) {
      if (auto made = MakeSqliteFile(options_.path); !made) return made;
      if (auto opened = Open(options_.path); !opened) return opened;
    }
    return catalogue_->Run(statements);
  }

 private:
  Answer<void> Open(const std::string& path) {
    catalogue_.reset();
    connection_.emplace(path);
    if (auto done = connection_->Open(); !done) {
      return tl::unexpected(ToOutputError(done.error(), path));
    }
    catalogue_.emplace(*connection_, options_);
    return {};
  }

  const SqliteOptions options_;
  std::optional<SqliteConnection> connection_;
  std::optional<SqliteCatalogue> catalogue_;
};

}  // namespace

std::unique_ptr<TableStore> MakeSqliteTables(const SqliteOptions& options) {
  return std::make_unique<SqliteTables>(options);
}

tl::expected<SqliteTarget, OutputError> LearnTarget(SqliteConnection& connection,
                                                    const SqliteOptions& options,
                                                    const EffectShapes& effects,
                                                    const LedgerTerms& terms) {
  if (options.create) {
    SqliteCatalogue before(connection, options);
    const auto made = CreateTables(before, effects, Dialect::kSqlite, terms, TermsOf(options));
    if (!made) return tl::unexpected(made.error());
  }
  SqliteCatalogue catalogue(connection, options);
  const auto learnt = LearnTables(catalogue, effects, terms, TermsOf(options));
  if (!learnt) return tl::unexpected(learnt.error());
  return SqliteTarget{.tables = std::move(catalogue.tables), .advice = std::move(catalogue.advice)};
}

}  // namespace fencepost::consumer
