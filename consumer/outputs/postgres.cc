// The PostgreSQL output: one transaction a batch, sent in one go.
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "consumer/outputs/batch_rows.h"
#include "consumer/outputs/ledger.h"
#include "consumer/outputs/output.h"
#include "consumer/outputs/postgres_array.h"
#include "consumer/outputs/postgres_connection.h"
#include "consumer/outputs/postgres_schema.h"
#include "consumer/outputs/postgres_sql.h"
#include "locking/check.h"

namespace fencepost::consumer {
namespace {

constexpr const char* kWriteStatement = "fencepost_write";
constexpr const char* kRowsStatement = "fencepost_rows";
constexpr const char* kRestStatement = "fencepost_rest";
// A message of the protocol ends at 1 GiB, and the server holds several copies of it.
constexpr std::size_t kMostBytes = 64u << 20;

template <typename Int>
Int Number(std::string_view text) {
  Int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

tl::expected<RowShape, RowProblem> ShapeOf(const PostgresOptions& options) {
  if (!options.statement.empty()) return ShapeOfStatement(options.args);
  return ShapeOfRows(options.columns, options.rules);
}

class PostgresOutput final : public Output {
 public:
  PostgresOutput(const PostgresOptions& options, std::string pipeline, std::string worker)
      : options_(options),
        pipeline_(std::move(pipeline)),
        worker_(std::move(worker)),
        connection_(options.dsn, fmt::format("fencepost/{}/{}", pipeline_, worker_)),
        shape_(ShapeOf(options)),
        rows_(shape_.value_or(RowShape{}), worker_) {}

  tl::expected<void, OutputError> Prepare() override;
  tl::expected<std::vector<WriteOutcome>, OutputError> Write(const WriteRequest& request) override;
  tl::expected<std::vector<std::optional<LedgerEntry>>, OutputError> Lookup(
      const std::vector<std::string>& ids) override;
  tl::expected<std::size_t, OutputError> Forget(const std::vector<std::string>& ids) override;
  tl::expected<std::size_t, OutputError> Prune(std::chrono::seconds keep,
                                               std::size_t limit) override;
  void Interrupt() override { connection_.Interrupt(); }

 private:
  using Outcomes = std::vector<WriteOutcome>;

  tl::expected<void, PgFailure> PrepareStatements();
  tl::expected<void, OutputError> PrepareIfNeedBe();
  tl::expected<PgResult, OutputError> OfIds(const std::string& sql,
                                            const std::vector<std::string>& ids);
  // Records [begin, end) of rows_; what the server refuses for one record's sake is halved down to
  // it.
  tl::expected<void, OutputError> WriteRange(std::size_t begin, std::size_t end,
                                             Outcomes& outcomes);
  tl::expected<std::vector<PgResult>, PgFailure> Transaction(std::size_t begin, std::size_t end);
  void FillRows(std::size_t begin, std::size_t end, std::size_t first_array, bool numbered);
  tl::expected<void, OutputError> Judge(const std::vector<PgResult>& answers, std::size_t begin,
                                        std::size_t end, Outcomes& outcomes);
  // The next call connects anew and reads the catalog again: the operator may have mended the
  // schema.
  OutputError Fail(const PgFailure& failure);

  const PostgresOptions options_;
  const std::string pipeline_;
  const std::string worker_;
  PgConnection connection_;
  const tl::expected<RowShape, RowProblem> shape_;
  BatchRows rows_;
  PgTarget target_;
  std::vector<BinaryArray> arrays_;
};

OutputError PostgresOutput::Fail(const PgFailure& failure) {
  if (!WorthRetryingAtOnce(failure)) connection_.Drop();
  return ToOutputError(failure, connection_.where());
}

tl::expected<void, OutputError> PostgresOutput::Prepare() {
  if (!shape_) {
    return tl::unexpected(
        SchemaError(connection_, "output.postgres: " + shape_.error().what, shape_.error().hint));
  }
  if (auto connected = connection_.Connect(); !connected) {
    return tl::unexpected(Fail(connected.error()));
  }
  auto target = LearnTarget(connection_, options_, *shape_);
  if (!target) {
    connection_.Drop();
    return tl::unexpected(target.error());
  }
  target_ = std::move(*target);
  if (auto prepared = PrepareStatements(); !prepared) return tl::unexpected(Fail(prepared.error()));
  return {};
}

tl::expected<void, PgFailure> PostgresOutput::PrepareStatements() {
  arrays_.resize(6 + target_.columns.size());
  if (!shape_->ordered()) {
    auto done = connection_.PrepareStatement(kWriteStatement, WriteSql(target_, *shape_),
                                             WriteTypes(target_));
    if (!done) return done;
  }
  auto done =
      connection_.PrepareStatement(kRowsStatement, RowsSql(target_, *shape_), RowsTypes(target_));
  if (done) done = connection_.PrepareStatement(kRestStatement, RestSql(target_), {kTextOid});
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
  if (shape_) rows_.Fill(items, outcomes);
  if (shape_ && rows_.size() == 0) return outcomes;
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  if (auto done = WriteRange(0, rows_.size(), outcomes); !done) return tl::unexpected(done.error());
  return outcomes;
}

tl::expected<void, OutputError> PostgresOutput::WriteRange(std::size_t begin, std::size_t end,
                                                           Outcomes& outcomes) {
  std::size_t bytes = 0;
  for (std::size_t row = begin; row < end; ++row) bytes += rows_.bytes(row);
  const bool one = end - begin == 1;
  if (one || bytes <= kMostBytes) {
    const auto answers = Transaction(begin, end);
    if (answers) return Judge(*answers, begin, end, outcomes);
    if (!RefusesRecord(answers.error())) return tl::unexpected(Fail(answers.error()));
    if (one) {
      outcomes[rows_.index(begin)] = {WriteResult::kBadRecord, answers.error().text, true};
      return {};
    }
  }
  const std::size_t middle = begin + (end - begin) / 2;
  if (auto first = WriteRange(begin, middle, outcomes); !first) return first;
  return WriteRange(middle, end, outcomes);
}

tl::expected<std::vector<PgResult>, PgFailure> PostgresOutput::Transaction(std::size_t begin,
                                                                           std::size_t end) {
  const std::size_t length = end - begin;
  arrays_[0].Begin(kTextOid, length);
  arrays_[1].Begin(kInt8Oid, length);
  arrays_[2].Begin(kTextOid, length);
  arrays_[3].Begin(kInt8Oid, length);
  for (std::size_t record = begin; record < end; ++record) {
    const WriteItem& item = rows_.item(record);
    arrays_[0].Add(item.record_id);
    arrays_[1].Add(item.token.value());
    arrays_[2].Add(rows_.source(record));
    arrays_[3].Add(std::uint64_t{item.crc});
  }
  const bool plain = !shape_->ordered() && rows_.one_row_each();
  const std::size_t first_cells = plain ? 4 : 6;
  FillRows(begin, end, first_cells, !plain);
  const PgParam pipeline{.data = pipeline_.c_str()};
  PgConnection::Step write{plain ? kWriteStatement : kRowsStatement,
                           {pipeline, {.data = worker_.c_str()}}};
  for (std::size_t i = 0; i < first_cells + rows_.columns(); ++i) {
    write.params.push_back(arrays_[i].Param());
  }
  return connection_.Transact({write, {kRestStatement, {pipeline}}});
}

// The rows' cells from `first_array` on, one array a column; numbered: before them, which record
// each belongs to, and whether it deletes.
void PostgresOutput::FillRows(std::size_t begin, std::size_t end, std::size_t first_array,
                              bool numbered) {
  std::size_t length = 0;
  for (std::size_t record = begin; record < end; ++record) length += rows_.rows(record);
  const auto each = [&](auto add) {
    for (std::size_t record = begin; record < end; ++record) {
      for (std::size_t row = 0; row < rows_.rows(record); ++row) add(record, row);
    }
  };
  if (numbered) {
    arrays_[4].Begin(kInt8Oid, length);
    arrays_[5].Begin(kBoolOid, length);
    each([&](std::size_t record, std::size_t row) {
      arrays_[4].Add(std::uint64_t{record - begin + 1});
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
                                                      std::size_t begin, std::size_t end,
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
  if (inserted + others != end - begin) {
    return unclear(fmt::format("{} rows were written, and the ledger took {} and knew {}",
                               end - begin, inserted, others),
                   "does a trigger or rule change the ledger's rows?");
  }
  for (int r = 0; r < PQntuples(rest.get()); ++r) {
    const auto row = rows_.Find(PgText(rest, r, 0), begin, end);
    // Pruned or forgotten between the two statements. The others are committed; written again, they
    // are found as our own.
    if (!row || PQgetisnull(rest.get(), r, 1) != 0) {
      return unclear(fmt::format("the ledger row of {} went away meanwhile", PgText(rest, r, 0)),
                     "");
    }
    outcomes[rows_.index(*row)] =
        Classify({.token = Number<std::uint64_t>(PgText(rest, r, 1)),
                  .source = PgText(rest, r, 2),
                  .content_crc = Number<std::int64_t>(PgText(rest, r, 3))},
                 rows_.item(*row), rows_.source(*row));
  }
  return {};
}

// Planned anew each time, since what these look up grows: a plan made while the ledger was empty
// would read all of it for every id.
tl::expected<PgResult, OutputError> PostgresOutput::OfIds(const std::string& sql,
                                                          const std::vector<std::string>& ids) {
  arrays_[0].Begin(kTextOid, ids.size());
  for (const std::string& id : ids) arrays_[0].Add(std::string_view(id));
  auto answer =
      connection_.QueryOnce(sql, {PgParam{.data = pipeline_.c_str()}, arrays_[0].Param()});
  if (!answer) return tl::unexpected(Fail(answer.error()));
  return std::move(*answer);
}

tl::expected<std::vector<std::optional<LedgerEntry>>, OutputError> PostgresOutput::Lookup(
    const std::vector<std::string>& ids) {
  std::vector<std::optional<LedgerEntry>> entries(ids.size());
  if (ids.empty()) return entries;
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  const auto found = OfIds(LookupSql(target_), ids);
  if (!found) return tl::unexpected(found.error());
  FENCEPOST_CHECK(PQntuples(found->get()) == static_cast<int>(ids.size()), "a row an id");
  for (int r = 0; r < PQntuples(found->get()); ++r) {
    if (PQgetisnull(found->get(), r, 0) != 0) continue;
    entries[static_cast<std::size_t>(r)] = LedgerEntry{
        .token = locking::Token(Number<std::uint64_t>(PgText(*found, r, 0))),
        .crc = static_cast<locking::ContentCrc>(Number<std::int64_t>(PgText(*found, r, 1))),
        .worker = std::string(PgText(*found, r, 2)),
        .source = std::string(PgText(*found, r, 3)),
        .completed_at = std::string(PgText(*found, r, 4))};
  }
  return entries;
}

tl::expected<std::size_t, OutputError> PostgresOutput::Forget(const std::vector<std::string>& ids) {
  if (ids.empty()) return 0;
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  const auto gone = OfIds(ForgetSql(target_), ids);
  if (!gone) return tl::unexpected(gone.error());
  return Number<std::size_t>(PQcmdTuples(gone->get()));
}

tl::expected<std::size_t, OutputError> PostgresOutput::Prune(std::chrono::seconds keep,
                                                             std::size_t limit) {
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  const auto pruned = connection_.Query(
      PruneSql(target_).c_str(), {pipeline_, std::to_string(keep.count()), std::to_string(limit)});
  if (!pruned) return tl::unexpected(Fail(pruned.error()));
  return Number<std::size_t>(PQcmdTuples(pruned->get()));
}

}  // namespace

std::unique_ptr<Output> MakePostgresOutput(const PostgresOptions& options, std::string pipeline,
                                           std::string worker) {
  return std::make_unique<PostgresOutput>(options, std::move(pipeline), std::move(worker));
}

}  // namespace fencepost::consumer
