// The PostgreSQL output: one transaction a batch, sent in one go.
#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "consumer/outputs/ledger/sql.h"
#include "consumer/outputs/postgres/postgres_output.h"
#include "consumer/outputs/postgres/postgres_sql.h"
#include "consumer/outputs/rows/row_sql.h"

namespace fencepost::consumer {
OutputError PostgresOutput::Refused(const PgFailure& failure, std::size_t before) {
  OutputError error = Refusal(ToOutputError(failure, Where()), FailureOf(failure), failure.text);
  error.unanswered = failure.kind != PgFailure::Kind::kServer;
  // BEGIN is the first that is answered.
  if (failure.answered > before) NameEffect(error, failure.answered - before - 1, written_);
  Explain(error);
  return error;
}

void PostgresOutput::NameEffect(OutputError& error, std::size_t step, const Tables& written) const {
  const std::size_t place = terms_.by_position || !several() ? step : step - 1;
  if (error.failure != WriteFailure::kRefused || place >= written.size()) return;
  const TableRows rows = rows_.of(written[place]);
  std::string where = rows.Where();
  if (rows_.size() == 1) {
    // What a type refuses is told by Explain.
    const bool of_table = error.kind.starts_with("23") && !error.kind.ends_with(' ');
    const auto key = KeyIn(error).value_or(QuotedKey());
    if (of_table || rows.rows(0) == 1) where = rows.WhereKey(0, key.columns, key.values);
  }
  for (std::string* text : {&error.error.what, &error.detail}) text->insert(0, where);
  error.table = written[place];
}

void PostgresOutput::Explain(OutputError& refusal) {
  const auto column = RefusedColumn(refusal);
  if (!column) return;
  std::string detail = std::move(refusal.detail);
  refusal = Refusal(std::move(refusal), WriteFailure::kRefused, std::move(detail), column,
                    target_.tables[column->table].columns[column->column].declared);
}

std::optional<PostgresOutput::ColumnOf> PostgresOutput::QuotedColumn(
    const OutputError& refusal) const {
  std::optional<ColumnOf> quoted;
  for (std::size_t table = 0; table < rows_.tables(); ++table) {
    if (refusal.table.value_or(table) != table) continue;
    const TableRows rows = rows_.of(table);
    for (std::size_t row = 0; row < rows.rows(0); ++row) {
      for (std::size_t column = 0; column < rows.columns(); ++column) {
        const auto cell = rows.cell(0, column, row);
        if (!cell || !Quotes(refusal, *cell)) continue;
        if (quoted) return std::nullopt;
        quoted = {.table = table, .row = row, .column = column};
      }
    }
  }
  return quoted;
}

tl::expected<PgResult, PgFailure> PostgresOutput::Cast(const PgColumn& to,
                                                       std::optional<std::string_view> cell) {
  const PgParam text =
      cell ? PgParam{.data = cell->data(), .size = static_cast<int>(cell->size()), .binary = true}
           : PgParam{};
  return connection_.QueryOnce(fmt::format("SELECT ({})::{}", CellSql(to, "$1::text"), to.declared),
                               {text});
}

// What a type's own function or a domain refuses. (Constraints of a table are told by PostgreSQL
// itself.)
std::optional<PostgresOutput::ColumnOf> PostgresOutput::RefusedColumn(const OutputError& refusal) {
  constexpr std::size_t kMostCasts = 64;
  const std::string_view kind = refusal.kind;  // "SQLSTATE TABLE"
  const bool data =
      kind.starts_with("22") || kind.starts_with("42") || kind == "23502 " || kind == "23514 ";
  if (!data || refusal.failure != WriteFailure::kRefused || rows_.size() != 1) return std::nullopt;
  if (const auto quoted = QuotedColumn(refusal)) return quoted;
  std::size_t casts = 0;
  for (std::size_t table = 0; table < rows_.tables(); ++table) {
    if (refusal.table.value_or(table) != table) continue;
    const TableRows rows = rows_.of(table);
    for (std::size_t row = 0; row < rows.rows(0); ++row) {
      for (std::size_t column = 0; column < rows.columns(); ++column) {
        const PgColumn& to = target_.tables[table].columns[column];
        if (to.bytes()) continue;
        if (++casts > kMostCasts) return std::nullopt;
        const auto read = Cast(to, rows.cell(0, column, row));
        if (read) continue;
        if (read.error().kind != PgFailure::Kind::kServer) return std::nullopt;
        return ColumnOf{.table = table, .row = row, .column = column};
      }
    }
  }
  return std::nullopt;
}

PostgresOutput::Answer<void> PostgresOutput::Connect() {
  if (auto connected = connection_.Connect(); !connected) return Failed(connected.error());
  auto target = LearnTarget(connection_, options_, *effects_, AskedOf(incarnation_.has_value()));
  if (!target) return tl::unexpected(target.error());
  target_ = std::move(*target);
  cells_.clear();
  types_.clear();
  for (std::size_t table = 0; table < target_.tables.size(); ++table) {
    cells_.emplace_back(target_.tables[table].columns, rows_.of(table).shape());
  }
  for (PgCells& cells : cells_) types_.push_back(&cells);
  if (auto prepared = PrepareStatements(); !prepared) return Failed(prepared.error());
  return CheckIncarnation();
}

tl::expected<void, PgFailure> PostgresOutput::PrepareStatements() {
  tl::expected<void, PgFailure> done;
  const auto prepare = [&](std::string& as, std::string_view name, const std::string& sql,
                           const std::vector<Oid>& types) {
    as = PgStatementName(name, sql);
    if (done) done = connection_.PrepareStatement(as.c_str(), sql, types);
  };
  row_arrays_.clear();
  rows_statements_.clear();
  bool deletes = false;
  const Part part = several() ? Part::kEffects : Part::kWhole;
  for (std::size_t place = 0; place < target_.tables.size(); ++place) {
    const PgTable& table = target_.tables[place];
    const RowShape& shape = rows_.of(place).shape();
    row_arrays_.emplace_back().cells.resize(table.columns.size());
    // Effects may have the same SQL.
    prepare(rows_statements_.emplace_back(),
            several() ? fmt::format("fencepost_rows_{}", place) : "fencepost_rows",
            RowsSql(target_, table, shape, part), RowsTypes(target_, table, shape, part));
    deletes = deletes || shape.deletes();
  }
  const PgTable& first = target_.tables.front();
  if (several()) {
    prepare(ledger_statement_, "fencepost_ledger", LedgerSql(target_), LedgerTypes(target_));
  } else if (!rows_.ordered()) {
    prepare(write_statement_, "fencepost_write", WriteSql(target_, first),
            WriteTypes(target_, first));
    if (terms_.by_position) {
      prepare(effects_statement_, "fencepost_effects", PlainEffectsSql(first),
              PlainEffectsTypes(first));
    }
  }
  if (terms_.by_position) {
    memory_.OnConnected();
    const std::vector<Oid> keys{kTextOid, kTextArrayOid, kTextArrayOid, kInt8ArrayOid};
    prepare(insert_statement_, "fencepost_insert",
            ForLedger(target_, sql::postgres_insert_positions), keys);
    std::vector<Oid> records{kTextOid,      kTextArrayOid, kTextArrayOid,
                             kTextArrayOid, kInt8ArrayOid, kInt8ArrayOid};
    prepare(reopen_statement_, "fencepost_reopen",
            ForLedger(target_, sql::postgres_reopen_positions), records);
    records.insert(records.end(), {kTextOid, kTextArrayOid, kInt8ArrayOid});
    prepare(letters_statement_, "fencepost_letters", ForLedger(target_, sql::postgres_add_letters),
            records);
    prepare(lock_statement_, "fencepost_lock", ForLedger(target_, sql::postgres_lock_positions),
            keys);
    std::vector<Oid> ranges = keys;
    ranges.push_back(kTextArrayOid);
    prepare(read_statement_, "fencepost_read", ForLedger(target_, sql::postgres_read_positions),
            ranges);
  } else {
    prepare(replace_statement_, "fencepost_replace", ForLedger(target_, sql::postgres_replace),
            {kTextOid, kTextArrayOid});
    prepare(logged_statement_, "fencepost_logged",
            "SELECT pg_logical_emit_message(true, 'fencepost', '')", {});
  }
  if (!done || !deletes) return done;
  // A deletion looks its rows up, and a plan made while the table was small would read all of it.
  if (auto set = connection_.Query("SET plan_cache_mode = force_custom_plan"); !set) {
    return tl::unexpected(set.error());
  }
  return {};
}

PostgresOutput::Answer<void> PostgresOutput::WriteRows(Outcomes& outcomes) {
  if (terms_.by_position) return WritePositions(outcomes);
  if (careful_ > 0) return WriteUnknown(outcomes);
  const auto answer = connection_.Transact(FilledWrite());
  if (answer) {
    TakeRows(*answer, outcomes);
    return {};
  }
  if (!IsOfLedger(answer.error())) {
    EndFrozen(answer.error());
    return tl::unexpected(Refused(answer.error()));
  }
  careful_ = kCarefulFor;
  return WriteUnknown(outcomes);
}

// What is known is looked up before: a row that comes in between refuses the others, and all of it
// is done again at once.
PostgresOutput::Answer<void> PostgresOutput::WriteUnknown(Outcomes& outcomes) {
  auto known = LookUpKnown();
  if (!known) return tl::unexpected(known.error());
  const bool any = std::ranges::any_of(*known, [](const auto& one) { return one.has_value(); });
  careful_ = (any ? kCarefulFor : careful_) - 1;
  rows_.Select(Fresh(std::move(*known), outcomes));
  Steps steps;
  if (any) steps.push_back({logged_statement_.c_str(), {}});
  std::size_t before = steps.size();
  if (rows_.size() > 0) {
    Steps write = NewSteps();
    before += write.size() - written_.size() - (several() ? 1 : 0);
    std::ranges::move(write, std::back_inserter(steps));
  }
  const auto answers = connection_.Transact(steps);
  if (!answers && IsOfLedger(answers.error())) return RowIsGone(answers.error().table);
  if (!answers) {
    EndFrozen(answers.error());
    return tl::unexpected(Refused(answers.error(), before));
  }
  if (rows_.size() > 0) TakeRows(*answers, outcomes);
  return {};
}

// Whose client froze between the statements of a write holds the ledger's rows of its ids.
void PostgresOutput::EndFrozen(const PgFailure& failure) {
  if (several() && failure.sqlstate == "55P03") (void)connection_.Query(sql::postgres_end_frozen);
}

PostgresOutput::Answer<PostgresOutput::Known> PostgresOutput::LookUpKnown() {
  const auto entries = LookUpIds(Ids());
  if (!entries) return tl::unexpected(entries.error());
  return KnownBy(*entries);
}

PostgresOutput::Steps PostgresOutput::NewSteps() {
  std::vector<std::size_t> replacing;
  for (std::size_t record = 0; record < rows_.size(); ++record) {
    if (Replaces(record)) replacing.push_back(record);
  }
  Steps steps;
  if (!replacing.empty()) {
    replaced_ids_.Begin(kTextOid, replacing.size());
    for (const std::size_t record : replacing) replaced_ids_.Add(rows_.item(record).record_id);
    steps.push_back(
        {replace_statement_.c_str(), {{.data = pipeline_.c_str()}, replaced_ids_.Param()}});
  }
  std::ranges::move(FilledWrite(), std::back_inserter(steps));
  return steps;
}

// Another writer, pruning or `forget` came in between. What was committed is found as our own when
// it is written again.
tl::unexpected<OutputError> PostgresOutput::RowIsGone(std::string_view table) const {
  return tl::unexpected(OutputError{
      .error = {.code = "output_retry",
                .what = "a ledger row was changed concurrently",
                .where = Where(),
                .hint = "the batch is written again; does a trigger change the ledger's rows?"},
      .retry_at_once = !table.empty()});
}

bool PostgresOutput::plain() const {
  return !several() && !rows_.ordered() && rows_.of(0).one_row_each();
}

PgConnection::Step PostgresOutput::WriteStep(const std::string& statement,
                                             std::size_t arrays) const {
  PgConnection::Step write{statement.c_str(),
                           {{.data = pipeline_.c_str()}, {.data = worker_.c_str()}}};
  for (std::size_t i = 0; i < arrays; ++i) write.params.push_back(arrays_[i].Param());
  return write;
}

PostgresOutput::Steps PostgresOutput::FilledWrite() {
  const std::size_t length = rows_.size();
  arrays_[0].Begin(kTextOid, length);
  arrays_[1].Begin(kInt8Oid, length);
  arrays_[2].Begin(kTextOid, length);
  arrays_[3].Begin(kInt8Oid, length);
  for (std::size_t record = 0; record < length; ++record) {
    const WriteItem& item = rows_.item(record);
    arrays_[0].Add(item.record_id);
    arrays_[1].Add(TokenOf(record).value());
    arrays_[2].Add(rows_.source(record));
    arrays_[3].Add(item.crc);
  }
  if (!several()) return EffectSteps(kIdArrays);
  // A known id is met before anything is done for it.
  Steps steps{WriteStep(ledger_statement_, kIdArrays)};
  std::ranges::move(EffectSteps(0), std::back_inserter(steps));
  return steps;
}

PostgresOutput::Steps PostgresOutput::EffectSteps(std::size_t ledger_arrays) {
  Steps steps;
  written_.clear();
  for (std::size_t table = 0; table < rows_.tables(); ++table) {
    if (several() && !rows_.of(table).any()) continue;
    written_.push_back(table);
    const std::string& statement = plain() ? write_statement_ : rows_statements_[table];
    steps.push_back(ledger_arrays > 0 ? WriteStep(statement, ledger_arrays)
                                      : PgConnection::Step{statement.c_str(), {}});
    AddRows(table, steps.back());
  }
  return steps;
}

// The rows' cells, one array a column; where there is not one row a record, before them which
// record each belongs to, and whether it deletes.
void PostgresOutput::AddRows(std::size_t table, PgConnection::Step& write) {
  const TableRows rows = rows_.of(table);
  RowArrays& arrays = row_arrays_[table];
  std::size_t length = 0;
  for (std::size_t record = 0; record < rows_.size(); ++record) length += rows.rows(record);
  const auto each = [&](auto add) {
    for (std::size_t record = 0; record < rows_.size(); ++record) {
      for (std::size_t row = 0; row < rows.rows(record); ++row) add(record, row);
    }
  };
  if (!plain()) {
    arrays.records.Begin(kInt8Oid, length);
    arrays.deletes.Begin(kBoolOid, length);
    each([&](std::size_t record, std::size_t row) {
      arrays.records.Add(std::uint64_t{record + 1});
      arrays.deletes.Add(rows.deletes(record, row));
    });
    write.params.push_back(arrays.records.Param());
    write.params.push_back(arrays.deletes.Param());
  }
  for (std::size_t column = 0; column < rows.columns(); ++column) {
    BinaryArray& array = arrays.cells[column];
    array.Begin(target_.tables[table].columns[column].bytes() ? kBytesOid : kTextOid, length);
    each([&](std::size_t record, std::size_t row) { array.Add(rows.cell(record, column, row)); });
    write.params.push_back(array.Param());
  }
  if (plain() || !rows.shape().MayOmit()) return;
  arrays.omitted.Begin(kTextOid, length);
  std::string columns(rows.columns(), '0');
  each([&](std::size_t record, std::size_t row) {
    for (std::size_t column = 0; column < columns.size(); ++column) {
      columns[column] = rows.omits(record, column, row) ? '1' : '0';
    }
    arrays.omitted.Add(std::string_view(columns));
  });
  write.params.push_back(arrays.omitted.Param());
}

void PostgresOutput::TakeRows(const Answers& write, Outcomes& outcomes) const {
  for (std::size_t record = 0; record < rows_.size(); ++record) {
    Took(record, outcomes[rows_.index(record)]);
  }
  for (const std::size_t place : LostOf(write, written_)) outcomes[place].lost_to_newer = true;
}

std::vector<std::size_t> PostgresOutput::LostOf(const Answers& write, const Tables& written) const {
  std::vector<std::size_t> lost;
  // By position the ledger's statement is the last of several.
  const std::size_t behind = several() && terms_.by_position ? 1 : 0;
  const std::size_t first = write.size() - written.size() - behind;
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (!rows_.of(written[i]).shape().fence) continue;
    std::ranges::copy(LostOf(written[i], write[first + i]), std::back_inserter(lost));
  }
  return lost;
}

// Places in the request. Each row is weighed against what those before it left of its key.
std::vector<std::size_t> PostgresOutput::LostOf(std::size_t table, const PgResult& write) const {
  const TableRows of = rows_.of(table);
  struct Row {
    std::size_t place = 0;
    bool deletes = false;
  };
  std::vector<Row> rows{{}};  // by ord; the table's
  for (std::size_t record = 0; record < rows_.size(); ++record) {
    for (std::size_t row = 0; row < of.rows(record); ++row) {
      rows.push_back({rows_.index(record), of.deletes(record, row)});
    }
  }
  std::vector<std::size_t> places;
  if (PQntuples(write.get()) == 0) return places;
  std::string_view weighed = PgText(write, 0, PQnfields(write.get()) - 1);
  const auto next = [&weighed] {
    const std::string_view number = weighed.substr(0, weighed.find(' '));
    weighed.remove_prefix(std::min(number.size() + 1, weighed.size()));
    return PgNumber<std::size_t>(number);
  };
  std::map<std::size_t, std::size_t> stands;  // by key, the fence of its row; 0: there is none
  while (!weighed.empty()) {
    const Row& row = rows.at(next());
    std::size_t& standing = stands[next()];
    const std::size_t fence = next();
    if (fence < standing) places.push_back(row.place);
    if (fence > standing) standing = row.deletes ? 0 : fence;
  }
  return places;
}

PostgresOutput::Answer<bool> PostgresOutput::FindsNewer() {
  for (std::size_t table = 0; table < rows_.tables(); ++table) {
    const TableRows rows = rows_.of(table);
    for (std::size_t row = 0; rows.shape().fence && row < rows.rows(0); ++row) {
      std::vector<PgParam> params;
      const auto cell = [&](std::size_t column) {
        const PgColumn& to = target_.tables[table].columns[column];
        const auto text = rows.cell(0, column, row);
        params.push_back(text ? PgParam{.data = text->data(),
                                        .size = static_cast<int>(text->size()),
                                        .binary = true}
                              : PgParam{});
        return CellSql(to, fmt::format("${}::{}", params.size(), to.bytes() ? "bytea" : "text"));
      };
      const RowSql sql{.shape = rows.shape(), .table = target_.tables[table].name, .cell = cell};
      const auto found = connection_.QueryOnce(sql.FindNewer(), params);
      if (!found) return Failed(found.error());
      if (PQntuples(found->get()) > 0) return true;
    }
  }
  return false;
}

std::unique_ptr<Output> MakePostgresOutput(const PostgresOptions& options, std::string pipeline,
                                           std::string worker, OutputTerms terms) {
  return std::make_unique<PostgresOutput>(options, std::move(pipeline), std::move(worker),
                                          std::move(terms));
}

}  // namespace fencepost::consumer
