#include "consumer/outputs/postgres/postgres_schema.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "consumer/outputs/ledger/sql.h"
#include "consumer/outputs/ledger/table_check.h"
#include "consumer/outputs/postgres/postgres_dsn.h"
#include "consumer/outputs/rows/row_sql.h"
#include "consumer/outputs/tables/table_store.h"
#include "consumer/record/text.h"

namespace fencepost::consumer {
namespace {

// Only one worker creates the ledger; the number is "fencepost" in no code in particular.
constexpr const char* kCreateLock = "SELECT pg_advisory_xact_lock(7310293748451)";

enum About : int {
  kOid,
  kName,
  kKind,
  kMaySelect,
  kMayInsert,
  kHidesRows,
  kPersistence,
  kUnsafePartitions,
  kMayUpdate,
  kMayDelete,
};
enum ColumnField : int {
  kColumn,
  kBase,
  kCast,
  kGenerated,
  kColumnInsert,
  kMustFill,
  kCollation,
  kCategory,
  kElement,
  kDeclared,
  kModifier,
  kColumnSelect,
  kColumnUpdate,
  kNotNull,
  kDefault,
  kFoldedBy,
};
constexpr int kMultirangeVersion = 140'000;

std::string QuotedName(const std::vector<std::string>& parts) {
  std::string name = QuoteIdentifier(parts[0]);
  if (parts.size() > 1) name.append(".").append(QuoteIdentifier(parts[1]));
  return name;
}

// Why rows may be lost, or are another transaction's.
std::optional<RowProblem> UnsafeBecause(const PgResult& about) {
  const std::string_view kind = PgText(about, 0, kKind);
  const std::string_view persistence = PgText(about, 0, kPersistence);
  if (kind == "f") {
    return RowProblem{"is a foreign table, whose rows are of another server's transaction",
                      "write into a table of this database"};
  }
  if (kind == "v") {
    return RowProblem{"is a view, whose triggers may write anywhere", "name the table below it"};
  }
  if (persistence == "u") {
    return RowProblem{"is unlogged: a crash of PostgreSQL empties it, while the ledger says done",
                      fmt::format("ALTER TABLE {} SET LOGGED", PgText(about, 0, kName))};
  }
  if (persistence == "t") {
    return RowProblem{"is temporary: it goes with the connection", "write into a permanent table"};
  }
  if (const std::string_view partitions = PgText(about, 0, kUnsafePartitions);
      !partitions.empty()) {
    return RowProblem{fmt::format("has partitions that are foreign or unlogged: {}", partitions),
                      "detach them or make them logged tables"};
  }
  return std::nullopt;
}

class PgCatalogue final : public Catalogue {
 public:
  explicit PgCatalogue(PgConnection& connection) : connection_(connection) {}

  Facts ReadTable(const Name& name, const RowShape& shape) override {
    columns_.clear();
    auto facts = Read(QuotedName(name), &columns_);
    if (!facts || !*facts) return facts;
    table_ = (*facts)->name;
    if (auto done = LearnOrder(shape, **facts); !done) return tl::unexpected(done.error());
    return facts;
  }

  void TakeTable(const std::vector<std::size_t>& columns) override {
    PgTable& table = tables.emplace_back();
    table.name = table_;
    for (const std::size_t place : columns) table.columns.push_back(columns_[place]);
  }

  Answer<void> TakeStatement(const EffectShape& effect) override {
    auto columns = LearnStatement(connection_, effect, tables.size());
    if (!columns) return tl::unexpected(columns.error());
    tables.push_back({.name = "",
                      .function = StatementFunction(effect.effect.statement),
                      .columns = std::move(*columns)});
    return {};
  }
  std::vector<PgTable> tables;

  std::string WhyMissing(const Name& name) override {
    const auto similar = connection_.Query(
        "SELECT string_agg(n.nspname || '.' || c.relname, ', ') FROM pg_class c"
        " JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE lower(c.relname) = lower($1) AND c.relkind IN ('r', 'p', 'v', 'f')",
        {name.back()});
    if (!similar || PgText(*similar, 0, 0).empty()) return "";
    return fmt::format("; there is {}: names are taken as they are written",
                       PgText(*similar, 0, 0));
  }

  Facts ReadLedger(const LedgerTable& ledger) override {
    auto facts = Read(QuoteIdentifier(ledger.name), nullptr);
    if (facts && *facts) (ledger.updates ? positions_ : ids_) = (*facts)->name;
    return facts;
  }

  Answer<void> CreateLedger(const LedgerTable& ledger) override { return Run({ledger.postgres}); }

  // Under an advisory lock, since CREATE TABLE IF NOT EXISTS in two sessions at once can fail in
  // one.
  Answer<void> Run(const std::vector<std::string>& statements) override {
    std::vector<std::string> all{"BEGIN", kCreateLock};
    all.insert(all.end(), statements.begin(), statements.end());
    all.emplace_back("COMMIT");
    for (const std::string& statement : all) {
      if (auto done = connection_.Query(statement.c_str()); !done) {
        (void)connection_.RollBack();
        return Failed(done.error());
      }
    }
    return {};
  }

  // PostgreSQL tells the type of a value, with its length, but for a domain, whose name it is.
  Answer<std::string> TypeInFull(const std::string& type) override {
    constexpr std::string_view kCollate = " collate ";
    const std::string plain = type.substr(0, Lower(type).find(kCollate));
    // An expression behind it would be run.
    const auto is = connection_.Query("SELECT to_regtype($1) IS NOT NULL", {plain});
    if (!is && is.error().kind != PgFailure::Kind::kServer) return Failed(is.error());
    if (!is || !PgBool(*is, 0, 0)) return type;
    const auto value =
        connection_.QueryOnce(fmt::format("SELECT NULL::{0}, t.oid, t.typtype = 'd' FROM pg_type t"
                                          " WHERE t.oid = pg_typeof(NULL::{0})",
                                          plain),
                              {});
    if (!value && value.error().kind != PgFailure::Kind::kServer) return Failed(value.error());
    if (!value || PQntuples(value->get()) == 0) return type;
    const bool domain = PgBool(*value, 0, 2);
    const auto name = connection_.Query(
        "SELECT format_type($1::oid, $2::int)",
        {domain ? std::string(PgText(*value, 0, 1)) : std::to_string(PQftype(value->get(), 0)),
         std::to_string(domain ? -1 : PQfmod(value->get(), 0))});
    if (!name) return Failed(name.error());
    return std::string(PgText(*name, 0, 0));
  }

  Answer<bool> HasSchema(const std::string& name) override {
    const auto there =
        connection_.Query("SELECT to_regnamespace($1) IS NOT NULL", {QuoteIdentifier(name)});
    if (!there) return Failed(there.error());
    return PgBool(*there, 0, 0);
  }

  Answer<bool> HasRows(const LedgerTable& ledger, const std::string& pipeline) override {
    const auto may =
        connection_.Query("SELECT coalesce(has_table_privilege(to_regclass($1), 'SELECT'), false)",
                          {std::string(ledger.name)});
    if (!may) return Failed(may.error());
    if (!PgBool(*may, 0, 0)) return false;
    const auto rows =
        connection_.Query(fmt::format("SELECT EXISTS (SELECT FROM {} WHERE pipeline = $1 AND {})",
                                      ledger.name, ledger.written)
                              .c_str(),
                          {pipeline});
    if (!rows) return Failed(rows.error());
    return PgBool(*rows, 0, 0);
  }

  [[nodiscard]] const std::string& ledger(bool by_position) const {
    return by_position ? positions_ : ids_;
  }

 private:
  [[nodiscard]] tl::unexpected<OutputError> Failed(const PgFailure& failure) const {
    return tl::unexpected(ToOutputError(failure, connection_.where()));
  }

  Facts Read(const std::string& quoted, std::vector<PgColumn>* columns) {
    const auto about = connection_.Query(sql::postgres_relation, {quoted});
    if (!about) return Failed(about.error());
    if (PQntuples(about->get()) == 0) return std::nullopt;
    const std::string_view kind = PgText(*about, 0, kKind);
    TableFacts facts{.name = std::string(PgText(*about, 0, kName)),
                     .columns = {},
                     .unsafe = UnsafeBecause(*about),
                     .is_table = kind == "r" || kind == "p",
                     .hides_rows = PgBool(*about, 0, kHidesRows),
                     .may_insert = PgBool(*about, 0, kMayInsert),
                     .may_select = PgBool(*about, 0, kMaySelect),
                     .may_update = PgBool(*about, 0, kMayUpdate),
                     .may_delete = PgBool(*about, 0, kMayDelete)};
    const std::string oid(PgText(*about, 0, kOid));
    if (auto done = ReadColumns(oid, facts, columns); !done) return tl::unexpected(done.error());
    if (auto done = ReadUnique(oid, facts); !done) return tl::unexpected(done.error());
    return facts;
  }

  Answer<void> ReadColumns(const std::string& oid, TableFacts& facts,
                           std::vector<PgColumn>* columns) {
    const auto found = connection_.Query(sql::postgres_columns, {oid});
    if (!found) return Failed(found.error());
    for (int row = 0; row < PQntuples(found->get()); ++row) {
      const auto text = [&](int field) { return std::string(PgText(*found, row, field)); };
      const auto flag = [&](int field) { return PgBool(*found, row, field); };
      const auto base = PgNumber<Oid>(text(kBase));
      const char category = text(kCategory)[0];  // S: text
      const int modifier = PgNumber<int>(text(kModifier));
      CellType cell = PgCellType(base, modifier, category);
      if (text(kCast) == "hstore" || text(kCast).ends_with(".hstore")) cell.kind = CellKind::kMap;
      const auto element = PgElementType(PgNumber<Oid>(text(kElement)), modifier);
      facts.columns.push_back(
          {.name = text(kColumn),
           .type = text(kCast),
           .generated = flag(kGenerated),
           .must_fill = flag(kMustFill),
           .comparison = category == 'S' ? Comparison::kText : Comparison::kValue,
           .cell = element.value_or(cell),
           .may_insert = flag(kColumnInsert),
           .may_select = flag(kColumnSelect),
           .may_update = flag(kColumnUpdate),
           .takes_null = !flag(kNotNull),
           .folded_by = text(kFoldedBy),
           .declared = text(kDeclared)});
      if (columns == nullptr) continue;
      columns->push_back({.name = text(kColumn),
                          .base = base,
                          .cast = text(kCast),
                          .collation = text(kCollation),
                          .declared = text(kDeclared),
                          .cell = cell,
                          .element = element,
                          .fallback = text(kDefault)});
    }
    return {};
  }

  Answer<void> ReadUnique(const std::string& oid, TableFacts& facts) {
    if (!facts.is_table) {
      facts.unique.reset();
      return {};
    }
    const auto found = connection_.Query(sql::postgres_unique, {oid});
    if (!found) return Failed(found.error());
    for (int row = 0; row < PQntuples(found->get()); ++row) {
      const bool same = row > 0 && PgText(*found, row, 0) == PgText(*found, row - 1, 0);
      if (!same) facts.unique->emplace_back();
      facts.unique->back().emplace_back(PgText(*found, row, 1));
    }
    return {};
  }

  // Any operator class will do: the database is asked to sort and to compare.
  Answer<void> LearnOrder(const RowShape& shape, TableFacts& facts) {
    if (!shape.updates() && !shape.deletes()) return {};
    for (std::size_t place = 0; place < shape.columns.size(); ++place) {
      if (!shape.IsKey(place) && shape.fence != place) continue;
      const auto column =
          std::ranges::find(facts.columns, shape.columns[place].name, &ColumnFacts::name);
      if (column == facts.columns.end()) continue;
      const auto done = connection_.Query(
          fmt::format("SELECT x < x FROM (SELECT NULL::{} AS x) s ORDER BY x", column->type)
              .c_str());
      if (done) continue;
      if (!done.error().sqlstate.starts_with("42")) return Failed(done.error());
      column->comparison = Comparison::kNone;
    }
    return {};
  }

  PgConnection& connection_;
  std::vector<PgColumn> columns_;        // of the table of effects that was read last
  std::string table_, ids_, positions_;  // their names, qualified and quoted
};

TableTerms TermsOf(const PgConnection& connection) {
  return {.output = "output.postgres",
          .where = connection.where(),
          .ledger_file = "deploy/postgres/ledger.sql",
          .exact_names = true,
          .ledger_types = true,
          .schema = "public"};
}

class PgTables final : public TableStore {
 public:
  explicit PgTables(const PostgresOptions& options)
      : connection_(ConnectionString(options), options.password, "fencepost/tables") {
    connection_.LiftLimits();
  }
  Answer<void> Connect() override {
    if (auto done = connection_.Connect(); !done) {
      return tl::unexpected(ToOutputError(done.error(), connection_.where()));
    }
    return {};
  }
  Catalogue& catalogue() override { return catalogue_; }
  [[nodiscard]] TableTerms terms() const override { return TermsOf(connection_); }

 private:
  PgConnection connection_;
  PgCatalogue catalogue_{connection_};
};

}  // namespace

std::unique_ptr<TableStore> MakePostgresTables(const PostgresOptions& options) {
  return std::make_unique<PgTables>(options);
}

tl::expected<PgTarget, OutputError> LearnTarget(PgConnection& connection,
                                                const PostgresOptions& options,
                                                const EffectShapes& effects,
                                                const LedgerTerms& terms) {
  if (terms.by_position && connection.server_version() < kMultirangeVersion) {
    return tl::unexpected(
        SchemaError(connection.where(),
                    fmt::format("record_id: position needs PostgreSQL 14 or later, and this is {}",
                                connection.server_version() / 10'000),
                    "upgrade the server, or choose another record_id"));
  }
  if (options.create) {
    PgCatalogue before(connection);
    const auto made = CreateTables(before, effects, Dialect::kPostgres, terms, TermsOf(connection));
    if (!made) return tl::unexpected(made.error());
  }
  PgCatalogue catalogue(connection);
  const auto learnt = LearnTables(catalogue, effects, terms, TermsOf(connection));
  if (!learnt) return tl::unexpected(learnt.error());
  return PgTarget{.ledger = catalogue.ledger(terms.by_position),
                  .ids = catalogue.ledger(/*by_position=*/false),
                  .by_position = terms.by_position,
                  .tables = std::move(catalogue.tables),
                  .advice = std::move(catalogue.advice)};
}

tl::expected<PgIncarnation, PgFailure> LearnIncarnation(PgConnection& connection,
                                                        const PgTarget& target) {
  const auto same = connection.Query(
      "SELECT pg_postmaster_start_time(), c.oid || '/' || pg_relation_filenode(c.oid)"
      " FROM pg_class c WHERE c.oid = $1::regclass",
      {target.ledger});
  if (!same) return tl::unexpected(same.error());
  PgIncarnation incarnation{.started = std::string(PgText(*same, 0, 0)),
                            .ledger = std::string(PgText(*same, 0, 1)),
                            .timeline = ""};
  // Not every platform lets everyone ask.
  const auto timeline = connection.Query(
      "SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int");
  if (timeline) {
    incarnation.timeline = PgText(*timeline, 0, 0);
  } else if (timeline.error().kind != PgFailure::Kind::kServer) {
    return tl::unexpected(timeline.error());
  }
  return incarnation;
}

}  // namespace fencepost::consumer
