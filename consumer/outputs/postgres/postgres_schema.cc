#include "consumer/outputs/postgres/postgres_schema.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "consumer/outputs/ledger/ledger.h"

namespace fencepost::consumer {
namespace {

// Only one worker creates the ledger; the number is "fencepost" in no code in particular.
constexpr const char* kCreateLock = "SELECT pg_advisory_xact_lock(7310293748451)";

constexpr const char* kFindRelation =
    "SELECT c.oid, quote_ident(n.nspname) || '.' || quote_ident(c.relname), c.relkind,"
    " c.relpersistence = 'p', has_table_privilege(c.oid, 'SELECT'),"
    " has_table_privilege(c.oid, 'INSERT'), row_security_active(c.oid), c.relpersistence,"
    " (SELECT string_agg(quote_ident(p.relname), ', ') FROM pg_partition_tree(c.oid) t"
    "  JOIN pg_class p ON p.oid = t.relid WHERE p.relkind = 'f' OR p.relpersistence <> 'p'),"
    " has_table_privilege(c.oid, 'UPDATE')"
    " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)";

// format_type with -1: `bpchar` and "bit", where without it is `character`, which means one.
// The sixth: NOT NULL, and neither a default nor a trigger that could fill it.
constexpr const char* kReadColumns =
    "SELECT a.attname, b.oid, format_type(b.oid, -1),"
    " a.attgenerated <> '' OR a.attidentity = 'a', has_column_privilege($1::oid, a.attnum, "
    "'INSERT'),"
    " a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AND t.typdefault IS NULL"
    " AND NOT EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = a.attrelid AND NOT g.tgisinternal"
    "                 AND g.tgtype & 2 <> 0 AND g.tgtype & 4 <> 0),"
    " (SELECT quote_ident(s.nspname) || '.' || quote_ident(l.collname) FROM pg_collation l"
    "  JOIN pg_namespace s ON s.oid = l.collnamespace WHERE l.oid = a.attcollation"
    "  AND l.collname <> 'default'), t.typcategory,"
    " (WITH RECURSIVE x AS (SELECT e.typelem AS oid FROM pg_type e"
    "   WHERE e.oid = b.oid AND e.typcategory = 'A'"
    "   UNION ALL SELECT p.typbasetype FROM x JOIN pg_type p ON p.oid = x.oid AND p.typtype = 'd')"
    "  SELECT x.oid FROM x JOIN pg_type p ON p.oid = x.oid WHERE p.typtype <> 'd'),"
    " format_type(a.atttypid, a.atttypmod),"
    " CASE WHEN a.atttypid IN ('varchar'::regtype, 'bpchar'::regtype) AND a.atttypmod > 4"
    "  THEN a.atttypmod - 4 ELSE 0 END"
    " FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid,"
    " LATERAL (WITH RECURSIVE d AS (SELECT t.oid, t.typtype, t.typbasetype UNION ALL"
    "   SELECT p.oid, p.typtype, p.typbasetype FROM d JOIN pg_type p ON d.typtype = 'd'"
    "   AND p.oid = d.typbasetype) SELECT oid FROM d WHERE typtype <> 'd') b"
    " WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";

// $2: the names of its columns, in their order.
constexpr const char* kUniqueKey =
    "SELECT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = $1::oid AND i.indisunique"
    " AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL"
    " AND (SELECT string_agg(a.attname, ', ' ORDER BY k.n) FROM unnest(i.indkey::int2[])"
    "      WITH ORDINALITY k(number, n) JOIN pg_attribute a ON a.attrelid = i.indrelid"
    "      AND a.attnum = k.number WHERE k.n <= i.indnkeyatts) = $2)";

constexpr int kMultirangeVersion = 140'000;

constexpr const char* kLedgerHint = "create it with deploy/postgres/ledger.sql, as its owner";

std::string QuotedName(const std::vector<std::string>& parts) {
  std::string name = QuoteIdentifier(parts[0]);
  if (parts.size() > 1) name.append(".").append(QuoteIdentifier(parts[1]));
  return name;
}

// 0 of NULL.
Oid Number(std::string_view text) {
  return text.empty() ? 0 : static_cast<Oid>(std::stoul(std::string(text)));
}

// The catalog's rows on one relation and its columns.
struct Relation {
  PgResult about;
  PgResult columns;
  [[nodiscard]] std::string name() const { return std::string(PgText(about, 0, 1)); }
  [[nodiscard]] std::optional<int> Column(std::string_view column) const {
    for (int r = 0; r < PQntuples(columns.get()); ++r) {
      if (PgText(columns, r, 0) == column) return r;
    }
    return std::nullopt;
  }
  [[nodiscard]] std::string ColumnList() const {
    std::string list;
    for (int r = 0; r < PQntuples(columns.get()); ++r) {
      if (r > 0) list += ", ";
      list += PgText(columns, r, 0);
    }
    return list;
  }
};

// nullopt: there is none.
tl::expected<std::optional<Relation>, PgFailure> ReadRelation(PgConnection& connection,
                                                              const std::string& quoted) {
  auto about = connection.Query(kFindRelation, {quoted});
  if (!about) return tl::unexpected(about.error());
  if (PQntuples(about->get()) == 0) return std::nullopt;
  auto columns = connection.Query(kReadColumns, {std::string(PgText(*about, 0, 0))});
  if (!columns) return tl::unexpected(columns.error());
  return Relation{std::move(*about), std::move(*columns)};
}

OutputError NoTable(PgConnection& connection, const PostgresOptions& options,
                    const std::vector<std::string>& parts) {
  std::string hint = "create it, or correct output.postgres.table";
  const auto similar = connection.Query(
      "SELECT string_agg(n.nspname || '.' || c.relname, ', ') FROM pg_class c"
      " JOIN pg_namespace n ON n.oid = c.relnamespace"
      " WHERE lower(c.relname) = lower($1) AND c.relkind IN ('r', 'p', 'v', 'f')",
      {parts.back()});
  if (similar && !PgText(*similar, 0, 0).empty()) {
    hint = fmt::format("there is {}: names are taken as they are written", PgText(*similar, 0, 0));
  }
  return SchemaError(connection, fmt::format("there is no table {}", options.table),
                     std::move(hint));
}

// A crash or another server's transaction would part the effects from the ledger's rows.
tl::expected<void, OutputError> CheckKeeps(const PgConnection& connection, const Relation& table) {
  const auto bad = [&](std::string what, std::string hint) {
    return tl::unexpected(SchemaError(
        connection,
        fmt::format("guarantee: exactly-once cannot be kept: {} {}", table.name(), what),
        std::move(hint) + ", or write guarantee: at-least-once"));
  };
  const std::string_view kind = PgText(table.about, 0, 2);
  const std::string_view persistence = PgText(table.about, 0, 7);
  if (kind == "f") {
    return bad("is a foreign table, whose rows are of another server's transaction",
               "write into a table of this database");
  }
  if (kind == "v") {
    return bad("is a view, whose triggers may write anywhere", "name the table below it");
  }
  if (persistence == "u") {
    return bad("is unlogged: a crash of PostgreSQL empties it, while the ledger says done",
               fmt::format("ALTER TABLE {} SET LOGGED", table.name()));
  }
  if (persistence == "t") {
    return bad("is temporary: it goes with the connection", "write into a permanent table");
  }
  if (const std::string_view partitions = PgText(table.about, 0, 8); !partitions.empty()) {
    return bad(fmt::format("has partitions that are foreign or unlogged: {}", partitions),
               "detach them or make them logged tables");
  }
  return {};
}

tl::expected<Relation, OutputError> FindTable(PgConnection& connection,
                                              const PostgresOptions& options) {
  const auto parts = SplitTableName(options.table);
  if (!parts) {
    return tl::unexpected(SchemaError(connection, parts.error(),
                                      "correct output.postgres.table in the pipeline file"));
  }
  auto table = ReadRelation(connection, QuotedName(*parts));
  if (!table) return tl::unexpected(ToOutputError(table.error(), connection.where()));
  if (!*table) return tl::unexpected(NoTable(connection, options, *parts));
  return std::move(**table);
}

tl::expected<std::vector<PgColumn>, OutputError> CheckColumns(const PgConnection& connection,
                                                              const Relation& table,
                                                              const std::vector<Column>& wanted) {
  const auto flag = [&](int row, int field) { return PgBool(table.columns, row, field); };
  std::vector<PgColumn> columns;
  for (const Column& column : wanted) {
    const auto row = table.Column(column.name);
    if (!row) {
      return tl::unexpected(
          SchemaError(connection, fmt::format("{} has no column {}", table.name(), column.name),
                      fmt::format("it has {}", table.ColumnList())));
    }
    if (flag(*row, 3)) {
      return tl::unexpected(SchemaError(
          connection, fmt::format("{}.{} is generated always", table.name(), column.name),
          "take it out of output.postgres.columns"));
    }
    if (!flag(*row, 4)) {
      return tl::unexpected(DeniedError(
          connection, fmt::format("no right to insert into {}.{}", table.name(), column.name),
          fmt::format("GRANT INSERT ON {} to this role", table.name())));
    }
    const char category = PgText(table.columns, *row, 7)[0];  // D: a time, S: text
    const auto base = Number(PgText(table.columns, *row, 1));
    const bool fits =
        column.conversion == Conversion::kNone ||
        (IsTime(column.conversion) ? category == 'D' || category == 'S' : base == kBytesOid);
    if (!fits) {
      return tl::unexpected(SchemaError(
          connection,
          fmt::format("{}.{} is {}, which output.postgres.convert: {} cannot fill", table.name(),
                      column.name, PgText(table.columns, *row, 2), WordOf(column.conversion)),
          IsTime(column.conversion) ? "it is for timestamps, dates and text" : "it is for bytea"));
    }
    columns.push_back(
        {.name = column.name,
         .base = static_cast<Oid>(std::stoul(std::string(PgText(table.columns, *row, 1)))),
         .cast = std::string(PgText(table.columns, *row, 2)),
         .collation = std::string(PgText(table.columns, *row, 6)),
         .category = PgText(table.columns, *row, 7)[0],
         .element = Number(PgText(table.columns, *row, 8)),
         .declared = std::string(PgText(table.columns, *row, 9)),
         .length = Number(PgText(table.columns, *row, 10))});
  }
  for (int row = 0; row < PQntuples(table.columns.get()); ++row) {
    const std::string_view name = PgText(table.columns, row, 0);
    if (flag(row, 5) && !flag(row, 3) &&
        std::ranges::find(wanted, name, &Column::name) == wanted.end()) {
      return tl::unexpected(SchemaError(
          connection, fmt::format("{}.{} is NOT NULL, and nothing fills it", table.name(), name),
          "add it to output.postgres.columns, or give it a default"));
    }
  }
  return columns;
}

tl::expected<void, OutputError> CheckLedger(PgConnection& connection, const Relation& ledger,
                                            const LedgerTable& wanted) {
  const auto bad = [&](std::string what, std::string hint = kLedgerHint) {
    return tl::unexpected(
        SchemaError(connection, fmt::format("{} {}", ledger.name(), what), std::move(hint)));
  };
  const std::string_view kind = PgText(ledger.about, 0, 2);
  if (kind != "r" && kind != "p") return bad("is not a table");
  if (!PgBool(ledger.about, 0, 3)) {
    return bad("is unlogged or temporary: a crash would forget what is done",
               fmt::format("ALTER TABLE {} SET LOGGED", ledger.name()));
  }
  for (const LedgerColumn& column : wanted.columns) {
    const auto row = ledger.Column(column.name);
    if (!row) return bad(fmt::format("has no column {}", column.name));
    if (const auto type = PgText(ledger.columns, *row, 2); type != column.postgres) {
      return bad(fmt::format("has {} as {}, not {}", column.name, type, column.postgres));
    }
  }
  for (int row = 0; row < PQntuples(ledger.columns.get()); ++row) {
    const std::string_view name = PgText(ledger.columns, row, 0);
    const bool ours =
        std::ranges::find(wanted.columns, name, &LedgerColumn::name) != wanted.columns.end();
    if (!ours && PgBool(ledger.columns, row, 5)) {
      return bad(fmt::format("has {} as NOT NULL, and nothing fills it", name),
                 "give it a default");
    }
  }
  const auto key = connection.Query(
      kUniqueKey, {std::string(PgText(ledger.about, 0, 0)), std::string(wanted.key)});
  if (!key) return tl::unexpected(ToOutputError(key.error(), connection.where()));
  if (!PgBool(*key, 0, 0)) {
    return bad(
        fmt::format("has no primary key ({}): nothing would keep an effect from happening "
                    "twice",
                    wanted.key));
  }
  if (PgBool(ledger.about, 0, 6)) {
    return bad("hides rows from this role by row level security",
               "the ledger needs a role that sees every row");
  }
  const auto may = [&](int field) { return PgBool(ledger.about, 0, field); };
  if (!may(4) || !may(5) || (wanted.updates && !may(9))) {
    return tl::unexpected(
        DeniedError(connection,
                    fmt::format("no right to read{} and insert into {}",
                                wanted.updates ? ", update" : "", ledger.name()),
                    fmt::format("GRANT SELECT, INSERT, {} ON {} to this role",
                                wanted.updates ? "UPDATE" : "DELETE", ledger.name())));
  }
  return {};
}

// Under an advisory lock, since CREATE TABLE IF NOT EXISTS in two sessions at once can fail in one.
tl::expected<void, PgFailure> CreateLedger(PgConnection& connection, const char* ddl) {
  const std::array<const char*, 4> statements{"BEGIN", kCreateLock, ddl, "COMMIT"};
  for (const char* statement : statements) {
    if (auto done = connection.Query(statement); !done) {
      connection.Drop();
      return tl::unexpected(done.error());
    }
  }
  return {};
}

// `own`: the ledger that is read is there. A role that may not read the other has written nothing
// there.
tl::expected<void, OutputError> CheckOtherRows(PgConnection& connection, const LedgerTerms& terms,
                                               bool own) {
  const std::string_view other = terms.by_position ? kLedgerTable : kPositionsTable;
  const auto failed = [&](const PgFailure& failure) {
    return tl::unexpected(ToOutputError(failure, connection.where()));
  };
  const auto may =
      connection.Query("SELECT coalesce(has_table_privilege(to_regclass($1), 'SELECT'), false)",
                       {std::string(other)});
  if (!may) return failed(may.error());
  if (!PgBool(*may, 0, 0)) return {};
  const auto left = connection.Query(
      fmt::format("SELECT EXISTS (SELECT FROM {} WHERE pipeline = $1){}", other,
                  own ? fmt::format(" AND NOT EXISTS (SELECT FROM {} WHERE pipeline = $1)",
                                    terms.by_position ? kPositionsTable : kLedgerTable)
                      : "")
          .c_str(),
      {terms.pipeline});
  if (!left) return failed(left.error());
  if (PgBool(*left, 0, 0)) {
    return tl::unexpected(OtherRowsLeft(terms.pipeline, connection.where(), terms.by_position));
  }
  return {};
}

tl::expected<Relation, OutputError> FindLedger(PgConnection& connection, MissingLedger missing,
                                               const LedgerTable& wanted) {
  const std::string name = QuoteIdentifier(wanted.name);
  auto ledger = ReadRelation(connection, name);
  if (ledger && !*ledger && missing == MissingLedger::kGone) {
    return tl::unexpected(
        LedgerGone(wanted.name, connection.where(),
                   "was it dropped or renamed, or the search_path of the role changed?"));
  }
  if (ledger && !*ledger && missing == MissingLedger::kTell) {
    return tl::unexpected(
        LedgerMissing(wanted.name, connection.where(), "deploy/postgres/ledger.sql"));
  }
  if (ledger && !*ledger) {
    if (auto created = CreateLedger(connection, wanted.postgres); !created) {
      OutputError error = ToOutputError(created.error(), connection.where());
      error.error.what = fmt::format("the ledger {} is missing and could not be created: {}",
                                     wanted.name, error.error.what);
      if (created.error().kind == PgFailure::Kind::kServer) error.error.hint = kLedgerHint;
      return tl::unexpected(error);
    }
    ledger = ReadRelation(connection, name);
  }
  if (!ledger) return tl::unexpected(ToOutputError(ledger.error(), connection.where()));
  if (!*ledger) {
    return tl::unexpected(SchemaError(connection, "the ledger was created but is not found",
                                      "check the role's search_path"));
  }
  return std::move(**ledger);
}

}  // namespace

OutputError SchemaError(const PgConnection& connection, std::string what, std::string hint) {
  return {.error = {.code = "output_schema",
                    .what = std::move(what),
                    .where = connection.where(),
                    .hint = std::move(hint)}};
}

OutputError DeniedError(const PgConnection& connection, std::string what, std::string hint) {
  OutputError error = SchemaError(connection, std::move(what), std::move(hint));
  error.error.code = "output_denied";
  return error;
}

tl::expected<PgTarget, OutputError> LearnTarget(PgConnection& connection,
                                                const PostgresOptions& options,
                                                const RowShape& shape, const LedgerTerms& terms) {
  PgTarget target;
  std::string table_oid;
  if (shape.statement) {
    auto columns = LearnStatement(connection, options.statement, shape);
    if (!columns) return tl::unexpected(columns.error());
    target.columns = std::move(*columns);
    target.function = StatementFunction(options.statement);
  } else {
    auto table = FindTable(connection, options);
    if (!table) return tl::unexpected(table.error());
    if (terms.exactly_once) {
      if (auto keeps = CheckKeeps(connection, *table); !keeps) return tl::unexpected(keeps.error());
    }
    auto columns = CheckColumns(connection, *table, shape.columns);
    if (!columns) return tl::unexpected(columns.error());
    target.table = table->name();
    target.columns = std::move(*columns);
    table_oid = PgText(table->about, 0, 0);
  }
  if (auto fine = CheckRules(connection, table_oid, target, shape); !fine) {
    return tl::unexpected(fine.error());
  }
  const LedgerTable& kind = TableOfLedger(terms.by_position);
  if (terms.by_position && connection.server_version() < kMultirangeVersion) {
    return tl::unexpected(
        SchemaError(connection,
                    fmt::format("record_id: position needs PostgreSQL 14 or later, and this is {}",
                                connection.server_version() / 10'000),
                    "upgrade the server, or choose another record_id"));
  }
  auto ledger = FindLedger(connection, terms.missing, kind);
  if (ledger && terms.exactly_once) {
    if (auto keeps = CheckKeeps(connection, *ledger); !keeps) return tl::unexpected(keeps.error());
  }
  if (ledger) {
    auto fine = CheckLedger(connection, *ledger, kind);
    if (!fine) return tl::unexpected(fine.error());
  }
  if (ledger || IsMissingLedger(ledger.error())) {
    auto fine = CheckOtherRows(connection, terms, ledger.has_value());
    if (!fine) return tl::unexpected(fine.error());
  }
  if (!ledger) return tl::unexpected(ledger.error());
  target.ledger = ledger->name();
  target.by_position = terms.by_position;
  return target;
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
