// The PostgreSQL output: one transaction a batch, sent in one go.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "consumer/outputs/ledger/sql.h"
#include "consumer/outputs/postgres/postgres_output.h"
#include "consumer/outputs/postgres/postgres_sql.h"
#include "consumer/outputs/rows/row_sql.h"

namespace fencepost::consumer {
OutputError PostgresOutput::Refused(const PgFailure& failure) {
  OutputError error = Refusal(ToOutputError(failure, Where()), FailureOf(failure), failure.text);
  error.unanswered = failure.kind != PgFailure::Kind::kServer;
  Explain(error);
  return error;
}

void PostgresOutput::Explain(OutputError& refusal) {
  const auto column = RefusedColumn(refusal);
  if (!column) return;
  std::string detail = std::move(refusal.detail);
  refusal = Refusal(std::move(refusal), WriteFailure::kRefused, std::move(detail), column,
                    target_.columns[*column].declared);
}

// What a type's own function or a domain refuses. (Constraints of a table are told by PostgreSQL
// itself.)
std::optional<std::size_t> PostgresOutput::RefusedColumn(const OutputError& refusal) {
  const std::string_view kind = refusal.kind;  // "SQLSTATE TABLE"
  const bool data =
      kind.starts_with("22") || kind.starts_with("42") || kind == "23502 " || kind == "23514 ";
  if (!data || refusal.failure != WriteFailure::kRefused || rows_.size() != 1 || rows_.rows(0) != 1)
    return std::nullopt;
  std::vector<std::size_t> quoted;
  for (std::size_t column = 0; column < rows_.columns(); ++column) {
    const auto cell = rows_.cell(0, column);
    if (cell && Quotes(refusal, *cell)) quoted.push_back(column);
  }
  if (quoted.size() == 1) return quoted.front();
  for (std::size_t column = 0; column < rows_.columns(); ++column) {
    const PgColumn& to = target_.columns[column];
    const auto cell = rows_.cell(0, column);
    if (to.bytes()) continue;
    const PgParam text =
        cell ? PgParam{.data = cell->data(), .size = static_cast<int>(cell->size()), .binary = true}
             : PgParam{};
    const auto read = connection_.QueryOnce(
        fmt::format("SELECT ({})::{}", CellSql(to, "$1::text"), to.declared), {text});
    if (read) continue;
    const bool refused = read.error().kind == PgFailure::Kind::kServer;
    return refused ? std::optional(column) : std::nullopt;
  }
  return std::nullopt;
}

PostgresOutput::Answer<void> PostgresOutput::Connect() {
  if (auto connected = connection_.Connect(); !connected) return Failed(connected.error());
  auto target = LearnTarget(connection_, options_, *shape_, AskedOf(incarnation_.has_value()));
  if (!target) return tl::unexpected(target.error());
  target_ = std::move(*target);
  cells_ = PgCells(target_.columns, *shape_);
  if (auto prepared = PrepareStatements(); !prepared) return Failed(prepared.error());
  return CheckIncarnation();
}

tl::expected<void, PgFailure> PostgresOutput::PrepareStatements() {
  arrays_.resize(kCellArrays + target_.columns.size() + 1);
  tl::expected<void, PgFailure> done;
  const auto prepare = [&](std::string& as, std::string_view name, const std::string& sql,
                           const std::vector<Oid>& types) {
    as = PgStatementName(name, sql);
    if (done) done = connection_.PrepareStatement(as.c_str(), sql, types);
  };
  if (!shape_->ordered()) {
    prepare(write_statement_, "fencepost_write", WriteSql(target_), WriteTypes(target_));
  }
  prepare(rows_statement_, "fencepost_rows", RowsSql(target_, *shape_),
          RowsTypes(target_, *shape_));
  if (terms_.by_position && !shape_->ordered()) {
    prepare(effects_statement_, "fencepost_effects", PlainEffectsSql(target_),
            PlainEffectsTypes(target_));
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
  if (!done || !shape_->deletes()) return done;
  // A deletion looks its rows up, and a plan made while the table was small would read all of it.
  if (auto set = connection_.Query("SET plan_cache_mode = force_custom_plan"); !set) {
    return tl::unexpected(set.error());
  }
  return {};
}

PostgresOutput::Answer<void> PostgresOutput::WriteRows(Outcomes& outcomes) {
  if (terms_.by_position) return WritePositions(outcomes);
  if (careful_ > 0) return WriteUnknown(outcomes);
  const auto answer = connection_.Transact({FilledWrite()});
  if (answer) {
    TakeRows(answer->front(), outcomes);
    return {};
  }
  if (!IsOfLedger(answer.error())) return tl::unexpected(Refused(answer.error()));
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
  std::vector<PgConnection::Step> steps;
  if (rows_.size() > 0) steps = NewSteps();
  if (any) steps.push_back({logged_statement_.c_str(), {}});
  const auto answers = connection_.Transact(steps);
  if (!answers && IsOfLedger(answers.error())) return RowIsGone(answers.error().table);
  if (!answers) return tl::unexpected(Refused(answers.error()));
  if (rows_.size() > 0) TakeRows((*answers)[answers->size() - (any ? 2 : 1)], outcomes);
  return {};
}

PostgresOutput::Answer<PostgresOutput::Known> PostgresOutput::LookUpKnown() {
  const auto entries = LookUpIds(Ids());
  if (!entries) return tl::unexpected(entries.error());
  return KnownBy(*entries);
}

std::vector<PgConnection::Step> PostgresOutput::NewSteps() {
  std::vector<std::size_t> replacing;
  for (std::size_t record = 0; record < rows_.size(); ++record) {
    if (Replaces(record)) replacing.push_back(record);
  }
  std::vector<PgConnection::Step> steps;
  if (!replacing.empty()) {
    replaced_ids_.Begin(kTextOid, replacing.size());
    for (const std::size_t record : replacing) replaced_ids_.Add(rows_.item(record).record_id);
    steps.push_back(
        {replace_statement_.c_str(), {{.data = pipeline_.c_str()}, replaced_ids_.Param()}});
  }
  steps.push_back(FilledWrite());
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

bool PostgresOutput::plain() const { return !shape_->ordered() && rows_.one_row_each(); }

// With its first two parameters.
PgConnection::Step PostgresOutput::WriteStep() const {
  return {plain() ? write_statement_.c_str() : rows_statement_.c_str(),
          {{.data = pipeline_.c_str()}, {.data = worker_.c_str()}}};
}

PgConnection::Step PostgresOutput::FilledWrite() {
  PgConnection::Step write = WriteStep();
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
  for (std::size_t i = 0; i < 4; ++i) write.params.push_back(arrays_[i].Param());
  AddRows(write);
  return write;
}

// The rows' cells, one array a column; where there is not one row a record, before them which
// record each belongs to, and whether it deletes.
void PostgresOutput::AddRows(PgConnection::Step& write) {
  std::size_t length = 0;
  for (std::size_t record = 0; record < rows_.size(); ++record) length += rows_.rows(record);
  const auto each = [&](auto add) {
    for (std::size_t record = 0; record < rows_.size(); ++record) {
      for (std::size_t row = 0; row < rows_.rows(record); ++row) add(record, row);
    }
  };
  if (!plain()) {
    BinaryArray& records = arrays_[kRowArrays];
    BinaryArray& deletes = arrays_[kRowArrays + 1];
    records.Begin(kInt8Oid, length);
    deletes.Begin(kBoolOid, length);
    each([&](std::size_t record, std::size_t row) {
      records.Add(std::uint64_t{record + 1});
      deletes.Add(rows_.deletes(record, row));
    });
    write.params.push_back(records.Param());
    write.params.push_back(deletes.Param());
  }
  for (std::size_t column = 0; column < rows_.columns(); ++column) {
    BinaryArray& array = arrays_[kCellArrays + column];
    array.Begin(target_.columns[column].bytes() ? kBytesOid : kTextOid, length);
    each([&](std::size_t record, std::size_t row) { array.Add(rows_.cell(record, column, row)); });
    write.params.push_back(array.Param());
  }
  if (plain() || !shape_->MayOmit()) return;
  BinaryArray& omitted = arrays_.back();
  omitted.Begin(kTextOid, length);
  std::string columns(rows_.columns(), '0');
  each([&](std::size_t record, std::size_t row) {
    for (std::size_t column = 0; column < columns.size(); ++column) {
      columns[column] = rows_.omits(record, column, row) ? '1' : '0';
    }
    omitted.Add(std::string_view(columns));
  });
  write.params.push_back(omitted.Param());
}

void PostgresOutput::TakeRows(const PgResult& write, Outcomes& outcomes) const {
  for (std::size_t record = 0; record < rows_.size(); ++record) {
    Took(record, outcomes[rows_.index(record)]);
  }
  if (!shape_->fence) return;
  for (const std::size_t place : LostOf(write)) outcomes[place].lost_to_newer = true;
}

// Places in the request. Each row is weighed against what those before it left of its key.
std::vector<std::size_t> PostgresOutput::LostOf(const PgResult& write) const {
  struct Row {
    std::size_t place = 0;
    bool deletes = false;
  };
  std::vector<Row> rows{{}};  // by ord; the table's
  for (std::size_t record = 0; record < rows_.size(); ++record) {
    for (std::size_t row = 0; row < rows_.rows(record); ++row) {
      rows.push_back({rows_.index(record), rows_.deletes(record, row)});
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
  for (std::size_t row = 0; row < rows_.rows(0); ++row) {
    std::vector<PgParam> params;
    const auto cell = [&](std::size_t column) {
      const PgColumn& to = target_.columns[column];
      const auto text = rows_.cell(0, column, row);
      params.push_back(text ? PgParam{.data = text->data(),
                                      .size = static_cast<int>(text->size()),
                                      .binary = true}
                            : PgParam{});
      return CellSql(to, fmt::format("${}::{}", params.size(), to.bytes() ? "bytea" : "text"));
    };
    const RowSql sql{.shape = *shape_, .table = target_.table, .cell = cell};
    const auto found = connection_.QueryOnce(sql.FindNewer(), params);
    if (!found) return Failed(found.error());
    if (PQntuples(found->get()) > 0) return true;
  }
  return false;
}

std::unique_ptr<Output> MakePostgresOutput(const PostgresOptions& options, std::string pipeline,
                                           std::string worker, OutputTerms terms) {
  return std::make_unique<PostgresOutput>(options, std::move(pipeline), std::move(worker),
                                          std::move(terms));
}

}  // namespace fencepost::consumer
