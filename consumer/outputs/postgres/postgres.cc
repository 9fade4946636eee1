// The PostgreSQL output: one transaction a batch, sent in one go.
#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "consumer/flow/ports/ledger_duplicate.h"
#include "consumer/outputs/batch_rows.h"
#include "consumer/outputs/ledger.h"
#include "consumer/outputs/lost_commit_detector.h"
#include "consumer/outputs/output.h"
#include "consumer/outputs/postgres/postgres_array.h"
#include "consumer/outputs/postgres/postgres_cells.h"
#include "consumer/outputs/postgres/postgres_connection.h"
#include "consumer/outputs/postgres/postgres_schema.h"
#include "consumer/outputs/postgres/postgres_sql.h"
#include "consumer/record/json_digest.h"
#include "locking/base/check.h"

namespace fencepost::consumer {
namespace {

constexpr const char* kPruneFirst = "-infinity";
template <typename Int>
Int Number(std::string_view text) {
  Int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// UTF-8 has one byte of another form for each character but its first.
std::size_t Characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

// By what it does: where a pooler hands this session to others in between, it is missed, and none
// of theirs is taken for it.
std::string NameOf(const char* name, const std::string& sql) {
  return fmt::format("{}_{:016x}", name, DigestText(JsonKind::kString, sql));
}

// RestSql told it, in the third place after BEGIN and the write.
bool IsIdConflict(const PgFailure& failure) {
  return failure.kind == PgFailure::Kind::kServer && failure.answered == 2 &&
         failure.sqlstate == kOtherContentState;
}

tl::expected<RowShape, RowProblem> ShapeOf(const PostgresOptions& options) {
  if (!options.statement.empty()) return ShapeOfStatement(options.args);
  return ShapeOfRows(options.columns, options.rules);
}

class PostgresOutput final : public Output {
 public:
  PostgresOutput(const PostgresOptions& options, std::string pipeline, std::string worker,
                 OutputTerms terms)
      : options_(options),
        pipeline_(std::move(pipeline)),
        worker_(std::move(worker)),
        connection_(options.dsn, fmt::format("fencepost/{}/{}", pipeline_, worker_)),
        terms_(std::move(terms)),
        clock_(terms_.clock ? terms_.clock : locking::ReadClocks),
        lost_commits_(terms_.keep),
        shape_(ShapeOf(options)),
        rows_(shape_.value_or(RowShape{}), worker_) {}

  tl::expected<void, OutputError> Prepare() override;
  [[nodiscard]] std::size_t max_records() const override {
    return static_cast<std::size_t>(options_.max_records);
  }
  tl::expected<std::vector<WriteOutcome>, OutputError> Write(const WriteRequest& request) override;
  tl::expected<std::vector<std::optional<LedgerEntry>>, OutputError> Lookup(
      const std::vector<std::string>& ids) override;
  tl::expected<std::size_t, OutputError> Forget(const std::vector<std::string>& ids) override;
  tl::expected<std::size_t, OutputError> Prune(const PruneScope& scope, std::size_t limit) override;
  tl::expected<bool, OutputError> KnowsTopic(const std::string& topic) override;
  void Interrupt() override { connection_.Interrupt(); }

 private:
  using Outcomes = std::vector<WriteOutcome>;

  tl::expected<void, PgFailure> PrepareStatements();
  tl::expected<void, OutputError> PrepareIfNeedBe();
  tl::expected<PgResult, PgFailure> OfIds(const std::string& sql, std::size_t begin,
                                          std::size_t end, const std::vector<std::string>& ids);
  // All of rows_. `chained`: another content under one of the ids rolls it back.
  tl::expected<std::vector<PgResult>, PgFailure> Transaction(bool chained);
  void FillRows(std::size_t first_array, bool numbered);
  tl::expected<void, OutputError> Judge(const std::vector<PgResult>& answers, Outcomes& outcomes);
  tl::expected<Outcomes, OutputError> Conflicts(Outcomes outcomes);
  tl::expected<void, OutputError> LookUpRange(const std::vector<std::string>& ids,
                                              std::size_t begin, std::size_t end,
                                              std::vector<std::optional<LedgerEntry>>& entries);
  // Of a transaction, or of pruning: the connection stays where the server only refused it.
  OutputError Refused(const PgFailure& failure);
  std::optional<std::size_t> RefusedColumn(const PgFailure& failure);
  // Whether the database that was connected still has what it had acknowledged.
  tl::expected<void, OutputError> CheckLostCommits();
  // The next call connects again and reads the catalog again: the operator may have fixed the
  // schema.
  OutputError Fail(const PgFailure& failure);

  const PostgresOptions options_;
  const std::string pipeline_;
  const std::string worker_;
  PgConnection connection_;
  const OutputTerms terms_;
  const std::function<locking::Now()> clock_;
  LostCommitDetector lost_commits_;
  std::optional<PgIncarnation> incarnation_;  // of the last connection that was prepared
  const tl::expected<RowShape, RowProblem> shape_;
  BatchRows rows_;
  PgTarget target_;
  PgCells cells_;
  std::string write_statement_, rows_statement_, rest_statement_;  // their names
  std::vector<BinaryArray> arrays_;
  std::string prune_from_ = kPruneFirst;  // where the next window of Prune begins
};

OutputError PostgresOutput::Fail(const PgFailure& failure) {
  if (!WorthRetryingAtOnce(failure)) connection_.Drop();
  return ToOutputError(failure, connection_.where());
}

OutputError PostgresOutput::Refused(const PgFailure& failure) {
  const WriteFailure kind = FailureOf(failure);
  if (kind == WriteFailure::kUnavailable) return Fail(failure);
  OutputError error = ToOutputError(failure, connection_.where());
  error.failure = kind;
  error.detail = failure.text;
  if (const auto column = RefusedColumn(failure)) {
    const std::string& type = target_.columns[*column].declared;
    error.detail = rows_.About(*column, type, error.detail);
    error.error.what = rows_.About(*column, type, error.error.what);
  }
  return error;
}

// Of a single row: the first column whose type does not take its cell. (Constraints are told by
// PostgreSQL itself.)
std::optional<std::size_t> PostgresOutput::RefusedColumn(const PgFailure& failure) {
  const bool data = failure.kind == PgFailure::Kind::kServer && failure.sqlstate.starts_with("22");
  if (!data || rows_.size() != 1 || rows_.rows(0) != 1) return std::nullopt;
  for (std::size_t column = 0; column < rows_.columns(); ++column) {
    const PgColumn& to = target_.columns[column];
    const auto cell = rows_.cell(0, column);
    if (!cell || to.bytes()) continue;
    if (to.length > 0 && Characters(*cell) > to.length) return column;
    const PgParam text{
        .data = cell->data(), .size = static_cast<int>(cell->size()), .binary = true};
    const auto read = connection_.QueryOnce(
        fmt::format("SELECT ({})::{}", CellSql(to, shape_->columns[column], "$1::text"),
                    to.length > 0 ? to.cast : to.declared),
        {text});
    if (read) continue;
    const bool refused = read.error().kind == PgFailure::Kind::kServer;
    return refused ? std::optional(column) : std::nullopt;
  }
  return std::nullopt;
}

tl::expected<void, OutputError> PostgresOutput::Prepare() {
  if (!shape_) {
    return tl::unexpected(
        SchemaError(connection_, "output.postgres: " + shape_.error().what, shape_.error().hint));
  }
  if (auto connected = connection_.Connect(); !connected) {
    return tl::unexpected(Fail(connected.error()));
  }
  auto target = LearnTarget(
      connection_, options_, *shape_,
      {.exactly_once = terms_.exactly_once,
       .missing = IfLedgerIsMissing(terms_, incarnation_.has_value())});
  if (!target) {
    connection_.Drop();
    return tl::unexpected(target.error());
  }
  target_ = std::move(*target);
  cells_ = PgCells(target_.columns, *shape_);
  if (auto prepared = PrepareStatements(); !prepared) return tl::unexpected(Fail(prepared.error()));
  return CheckLostCommits();
}

tl::expected<void, OutputError> PostgresOutput::CheckLostCommits() {
  auto incarnation = LearnIncarnation(connection_, target_);
  if (!incarnation) return tl::unexpected(Fail(incarnation.error()));
  auto search = lost_commits_.Look(clock_().boot);
  while (const std::vector<std::string>* ids = search.Ask()) {
    const auto found = OfIds(LookupSql(target_), 0, ids->size(), *ids);
    if (!found) return tl::unexpected(Fail(found.error()));
    bool there = false;
    for (int r = 0; r < PQntuples(found->get()); ++r) {
      const bool stands = PQgetisnull(found->get(), r, 0) == 0;
      const locking::Token token(stands ? Number<std::uint64_t>(PgText(*found, r, 0)) : 0);
      there = there || (stands && search.IsOurs(static_cast<std::size_t>(r), token));
    }
    search.Answer(there);
  }
  const auto lost = search.Lost();
  if (lost && !(incarnation_ && incarnation_->IsSame(*incarnation))) {
    const std::string& before = incarnation_ ? incarnation_->timeline : incarnation->timeline;
    const bool switched = !before.empty() && before != incarnation->timeline;
    const std::string how =
        switched ? fmt::format("timeline {} -> {}", before, incarnation->timeline) : "";
    OutputError error{.error = LostCommitsError(*lost, connection_.where(), how, terms_.group),
                      .fatal = true};
    connection_.Drop();  // the next call fails the same way
    return tl::unexpected(std::move(error));
  }
  // The server has run all the time, so it lost nothing: somebody deleted these rows (`forget`).
  if (lost) lost_commits_.Forget();
  incarnation_ = std::move(*incarnation);
  return {};
}

tl::expected<void, PgFailure> PostgresOutput::PrepareStatements() {
  arrays_.resize(6 + target_.columns.size());
  if (!shape_->ordered()) {
    const std::string sql = WriteSql(target_, *shape_);
    write_statement_ = NameOf("fencepost_write", sql);
    auto done = connection_.PrepareStatement(write_statement_.c_str(), sql, WriteTypes(target_));
    if (!done) return done;
  }
  const std::string rows = RowsSql(target_, *shape_);
  const std::string rest = RestSql(target_);
  rows_statement_ = NameOf("fencepost_rows", rows);
  rest_statement_ = NameOf("fencepost_rest", rest);
  auto done = connection_.PrepareStatement(rows_statement_.c_str(), rows, RowsTypes(target_));
  if (done) {
    done = connection_.PrepareStatement(rest_statement_.c_str(), rest, {kTextOid, kBoolOid});
  }
  if (!done || !shape_->deletes()) return done;
  // A deletion looks its rows up, and a plan made while the table was small would read all of it.
  if (auto set = connection_.Query("SET plan_cache_mode = force_custom_plan"); !set) {
    return tl::unexpected(set.error());
  }
  return {};
}

tl::expected<void, OutputError> PostgresOutput::PrepareIfNeedBe() {
  if (connection_.open()) return {};
  return Prepare();
}

tl::expected<std::vector<WriteOutcome>, OutputError> PostgresOutput::Write(
    const WriteRequest& request) {
  const std::vector<WriteItem>& items = request.items;
  Outcomes outcomes(items.size());
  if (shape_ && !connection_.open()) {  // what selectors refuse is known without any server
    (void)rows_.Fill(items, outcomes);
    if (rows_.size() == 0) return outcomes;
    outcomes.assign(items.size(), {});
  }
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  if (auto filled = rows_.Fill(items, outcomes, &cells_); !filled) {
    return tl::unexpected(OutputError{.error = {.code = "output_refused",
                                                .what = filled.error(),
                                                .where = connection_.where(),
                                                .hint = ""},
                                      .failure = WriteFailure::kRefused,
                                      .detail = filled.error()});
  }
  if (rows_.size() == 0) return outcomes;
  const bool chained =
      std::ranges::any_of(items, [](const WriteItem& item) { return item.chain != 0; });
  const auto answers = Transaction(chained);
  if (!answers) {
    if (IsIdConflict(answers.error())) return Conflicts(std::move(outcomes));
    return tl::unexpected(Refused(answers.error()));
  }
  if (auto judged = Judge(*answers, outcomes); !judged) return tl::unexpected(judged.error());
  return outcomes;
}

tl::expected<std::vector<PgResult>, PgFailure> PostgresOutput::Transaction(bool chained) {
  const std::size_t length = rows_.size();
  arrays_[0].Begin(kTextOid, length);
  arrays_[1].Begin(kInt8Oid, length);
  arrays_[2].Begin(kTextOid, length);
  arrays_[3].Begin(kInt8Oid, length);
  for (std::size_t record = 0; record < length; ++record) {
    const WriteItem& item = rows_.item(record);
    arrays_[0].Add(item.record_id);
    arrays_[1].Add(item.token.value());
    arrays_[2].Add(rows_.source(record));
    arrays_[3].Add(item.crc);
  }
  const bool plain = !shape_->ordered() && rows_.one_row_each();
  const std::size_t first_cells = plain ? 4 : 6;
  FillRows(first_cells, !plain);
  const PgParam pipeline{.data = pipeline_.c_str()};
  PgConnection::Step write{plain ? write_statement_.c_str() : rows_statement_.c_str(),
                           {pipeline, {.data = worker_.c_str()}}};
  for (std::size_t i = 0; i < first_cells + rows_.columns(); ++i) {
    write.params.push_back(arrays_[i].Param());
  }
  const PgParam if_chained{.data = chained ? "t" : "f"};
  return connection_.Transact({write, {rest_statement_.c_str(), {pipeline, if_chained}}});
}

// The rows' cells from `first_array` on, one array a column; numbered: before them, which record
// each belongs to, and whether it deletes.
void PostgresOutput::FillRows(std::size_t first_array, bool numbered) {
  std::size_t length = 0;
  for (std::size_t record = 0; record < rows_.size(); ++record) length += rows_.rows(record);
  const auto each = [&](auto add) {
    for (std::size_t record = 0; record < rows_.size(); ++record) {
      for (std::size_t row = 0; row < rows_.rows(record); ++row) add(record, row);
    }
  };
  if (numbered) {
    arrays_[4].Begin(kInt8Oid, length);
    arrays_[5].Begin(kBoolOid, length);
    each([&](std::size_t record, std::size_t row) {
      arrays_[4].Add(std::uint64_t{record + 1});
      arrays_[5].Add(rows_.deletes(record, row));
    });
  }
  for (std::size_t column = 0; column < rows_.columns(); ++column) {
    BinaryArray& array = arrays_[first_array + column];
    array.Begin(target_.columns[column].bytes() ? kBytesOid : kTextOid, length);
    each([&](std::size_t record, std::size_t row) { array.Add(rows_.cell(record, column, row)); });
  }
}

tl::expected<void, OutputError> PostgresOutput::Judge(const std::vector<PgResult>& answers,
                                                      Outcomes& outcomes) {
  const PgResult& rest = answers[1];
  const auto inserted = Number<std::size_t>(PgText(answers[0], 0, 0));
  const auto others = static_cast<std::size_t>(PQntuples(rest.get()));
  const auto unclear = [&](std::string what, std::string hint) {
    return tl::unexpected(OutputError{.error = {.code = "output_retry",
                                                .what = std::move(what),
                                                .where = connection_.where(),
                                                .hint = std::move(hint)}});
  };
  if (inserted + others != rows_.size()) {
    return unclear(fmt::format("{} rows were written, and the ledger took {} and knew {}",
                               rows_.size(), inserted, others),
                   "does a trigger or rule change the ledger's rows?");
  }
  for (std::size_t record = 0; record < rows_.size(); ++record) {
    outcomes[rows_.index(record)].took_rows = rows_.takes_rows(record);
  }
  for (int r = 0; r < PQntuples(rest.get()); ++r) {
    const auto row = rows_.Find(PgText(rest, r, 0));
    // Pruned or forgotten between the two statements. The others are committed; written again, they
    // are found as our own.
    if (!row || PQgetisnull(rest.get(), r, 1) != 0) {
      return unclear(fmt::format("a ledger row of the batch went away meanwhile"), "");
    }
    outcomes[rows_.index(*row)] =
        DuplicateOrConflict({.token = Number<std::uint64_t>(PgText(rest, r, 1)),
                             .source = PgText(rest, r, 2),
                             .crc = Number<locking::ContentCrc>(PgText(rest, r, 3))},
                            rows_.item(*row), rows_.source(*row));
  }
  lost_commits_.Remember(clock_(), rows_, outcomes);
  return {};
}

// The transaction met a row with another content under one of its ids, and was rolled back, so that
// nothing of that record's chain takes effect behind it. Which ids those are is looked up now;
// whatever else is meanwhile, the write of the others finds it.
tl::expected<PostgresOutput::Outcomes, OutputError> PostgresOutput::Conflicts(Outcomes outcomes) {
  std::vector<std::string> ids;
  for (std::size_t record = 0; record < rows_.size(); ++record) {
    ids.emplace_back(rows_.item(record).record_id);
  }
  const auto entries = Lookup(ids);
  if (!entries) return tl::unexpected(entries.error());
  bool found = false;
  for (std::size_t record = 0; record < rows_.size(); ++record) {
    WriteOutcome& outcome = outcomes[rows_.index(record)];
    const auto& entry = (*entries)[record];
    outcome.result = WriteResult::kNotWritten;
    if (!entry || !locking::IsOtherContent(entry->crc, rows_.item(record).crc)) continue;
    outcome = DuplicateOrConflict(
        {.token = entry->token.value(), .source = entry->source, .crc = entry->crc},
        rows_.item(record), rows_.source(record));
    found = true;
  }
  if (found) return outcomes;
  return tl::unexpected(
      OutputError{.error = {.code = "output_retry",
                            .what = "the ledger row of an id with other content went away",
                            .where = connection_.where(),
                            .hint = ""},
                  .retry_at_once = true});
}

// Planned again each time, since what these look up grows: a plan made while the ledger was empty
// would read all of it for every id.
tl::expected<PgResult, PgFailure> PostgresOutput::OfIds(const std::string& sql, std::size_t begin,
                                                        std::size_t end,
                                                        const std::vector<std::string>& ids) {
  arrays_[0].Begin(kTextOid, end - begin);
  for (std::size_t i = begin; i < end; ++i) arrays_[0].Add(std::string_view(ids[i]));
  return connection_.QueryOnce(sql, {PgParam{.data = pipeline_.c_str()}, arrays_[0].Param()});
}

tl::expected<std::vector<std::optional<LedgerEntry>>, OutputError> PostgresOutput::Lookup(
    const std::vector<std::string>& ids) {
  std::vector<std::optional<LedgerEntry>> entries(ids.size());
  if (ids.empty()) return entries;
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  if (auto done = LookUpRange(ids, 0, ids.size(), entries); !done) {
    return tl::unexpected(done.error());
  }
  return entries;
}

// An id that the database's encoding does not know is in no row: the ids are all that this
// statement is given, so an error about data (class 22) is an error about one of them.
tl::expected<void, OutputError> PostgresOutput::LookUpRange(
    const std::vector<std::string>& ids, std::size_t begin, std::size_t end,
    std::vector<std::optional<LedgerEntry>>& entries) {
  const auto found = OfIds(LookupSql(target_), begin, end, ids);
  if (!found) {
    if (!found.error().sqlstate.starts_with("22")) return tl::unexpected(Fail(found.error()));
    if (end - begin == 1) return {};
    const std::size_t middle = begin + (end - begin) / 2;
    if (auto first = LookUpRange(ids, begin, middle, entries); !first) return first;
    return LookUpRange(ids, middle, end, entries);
  }
  FENCEPOST_CHECK(PQntuples(found->get()) == static_cast<int>(end - begin), "a row an id");
  for (int r = 0; r < PQntuples(found->get()); ++r) {
    if (PQgetisnull(found->get(), r, 0) != 0) continue;
    entries[begin + static_cast<std::size_t>(r)] =
        LedgerEntry{.token = locking::Token(Number<std::uint64_t>(PgText(*found, r, 0))),
                    .crc = Number<locking::ContentCrc>(PgText(*found, r, 1)),
                    .worker = std::string(PgText(*found, r, 2)),
                    .source = std::string(PgText(*found, r, 3)),
                    .completed_at = std::string(PgText(*found, r, 4))};
  }
  return {};
}

tl::expected<std::size_t, OutputError> PostgresOutput::Forget(const std::vector<std::string>& ids) {
  if (ids.empty()) return 0;
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  const auto gone = OfIds(ForgetSql(target_), 0, ids.size(), ids);
  if (!gone) return tl::unexpected(Fail(gone.error()));
  return Number<std::size_t>(PQcmdTuples(gone->get()));
}

tl::expected<bool, OutputError> PostgresOutput::KnowsTopic(const std::string& topic) {
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  const auto found = connection_.Query(KnowsTopicSql(target_).c_str(), {pipeline_, topic + "/"});
  if (!found) return tl::unexpected(Fail(found.error()));
  return PQntuples(found->get()) > 0;
}

tl::expected<std::size_t, OutputError> PostgresOutput::Prune(const PruneScope& scope,
                                                             std::size_t limit) {
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  BinaryArray topics, partitions, offsets, all_topics;
  topics.Begin(kTextOid, scope.committed.size());
  partitions.Begin(kInt8Oid, scope.committed.size());
  offsets.Begin(kInt8Oid, scope.committed.size());
  for (const SourceOffset& committed : scope.committed) {
    topics.Add(std::string_view(committed.where.topic));
    partitions.Add(static_cast<std::uint64_t>(committed.where.partition));
    offsets.Add(static_cast<std::uint64_t>(committed.next));
  }
  all_topics.Begin(kTextOid, scope.topics.size());
  for (const std::string& topic : scope.topics) all_topics.Add(std::string_view(topic));
  const std::string keep = std::to_string(scope.keep.count());
  const std::string most = std::to_string(limit);
  const std::string window = std::to_string(kPruneWindow);
  const auto text = [](const std::string& value) { return PgParam{.data = value.c_str()}; };
  const auto pruned = connection_.QueryOnce(
      PruneSql(target_), {text(pipeline_), text(keep), text(most), text(window), text(prune_from_),
                          topics.Param(), partitions.Param(), offsets.Param(), all_topics.Param()});
  if (!pruned) return tl::unexpected(Refused(pruned.error()));
  const auto gone = Number<std::size_t>(PgText(*pruned, 0, 0));
  const auto seen = Number<std::size_t>(PgText(*pruned, 0, 1));
  if (gone == limit) return gone;  // more of this window may go
  // All rows of a window may have one time: then it is passed over as a whole.
  const bool stands = PgText(*pruned, 0, 2) == prune_from_;
  prune_from_ = seen < kPruneWindow ? kPruneFirst : std::string(PgText(*pruned, 0, stands ? 3 : 2));
  return gone;
}

}  // namespace

std::unique_ptr<Output> MakePostgresOutput(const PostgresOptions& options, std::string pipeline,
                                           std::string worker, OutputTerms terms) {
  return std::make_unique<PostgresOutput>(options, std::move(pipeline), std::move(worker),
                                          std::move(terms));
}

}  // namespace fencepost::consumer
