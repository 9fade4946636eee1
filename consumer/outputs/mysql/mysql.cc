// The MySQL and MariaDB output: one transaction a batch. It first reads, and locks, the ledger rows
// of the batch's ids, then inserts those that are missing with their effects.
#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "consumer/flow/ports/ledger_duplicate.h"
#include "consumer/outputs/batch_rows.h"
#include "consumer/outputs/ledger.h"
#include "consumer/outputs/lost_commit_detector.h"
#include "consumer/outputs/mysql/mysql_connection.h"
#include "consumer/outputs/mysql/mysql_effects.h"
#include "consumer/outputs/mysql/mysql_schema.h"
#include "consumer/outputs/output.h"

namespace fencepost::consumer {
namespace {

constexpr const char* kPruneFirst = "1000-01-01 00:00:00";
constexpr unsigned kDuplicateEntry = 1062;
constexpr std::size_t kIds = 500;  // of one statement

template <typename Int>
Int Number(const MysqlConnection::Cell& cell) {
  Int value = 0;
  if (cell) std::from_chars(cell->data(), cell->data() + cell->size(), value);
  return value;
}

// Its bits as a signed number, as the ledger has them.
std::int64_t Signed(std::uint64_t bits) { return static_cast<std::int64_t>(bits); }
std::uint64_t Unsigned(const MysqlConnection::Cell& cell) {
  return static_cast<std::uint64_t>(Number<std::int64_t>(cell));
}

class MysqlOutput final : public Output {
 public:
  MysqlOutput(const MysqlOptions& options, std::string pipeline, std::string worker,
              OutputTerms terms)
      : options_(options),
        pipeline_(std::move(pipeline)),
        worker_(std::move(worker)),
        connection_(options),
        terms_(std::move(terms)),
        clock_(terms_.clock ? terms_.clock : locking::ReadClocks),
        lost_commits_(terms_.keep),
        shape_(ShapeOfRows(options.columns, options.rules)),
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
  using Done = tl::expected<void, MysqlFailure>;
  using Rows = MysqlConnection::Rows;

  // Which server, since when, and which ledger: while it stays the same, nothing was lost.
  struct Incarnation {
    std::string server;
    std::int64_t started = 0;  // seconds; a second more or less is the same
    [[nodiscard]] bool IsSame(const Incarnation& other) const {
      return server == other.server && std::abs(started - other.started) <= 2;
    }
  };
  tl::expected<Incarnation, MysqlFailure> LearnIncarnation();
  // Whether the database that was connected still has what it had acknowledged.
  tl::expected<void, OutputError> CheckLostCommits();
  tl::expected<void, OutputError> PrepareIfNeedBe();

  // All of rows_.
  Done Transaction(Outcomes& outcomes);
  Done Ledgered(Outcomes& outcomes, std::vector<std::size_t>& fresh);
  Done InsertLedger(std::vector<std::size_t> fresh);
  Done RollBack(MysqlFailure failure);
  Done Run(const std::string& sql);
  // "pipeline = … AND record_id IN (…)" of ids[begin, end).
  [[nodiscard]] std::string OfIds(const std::vector<std::string>& ids, std::size_t begin,
                                  std::size_t end) const;

  OutputError Refused(const MysqlFailure& failure);
  [[nodiscard]] std::optional<std::size_t> RefusedColumn(const MysqlFailure& failure) const;
  // The next call connects again and reads the catalog again.
  OutputError Fail(const MysqlFailure& failure);

  const MysqlOptions options_;
  const std::string pipeline_;
  const std::string worker_;
  MysqlConnection connection_;
  const OutputTerms terms_;
  const std::function<locking::Now()> clock_;
  LostCommitDetector lost_commits_;
  std::optional<Incarnation> incarnation_;  // of the last connection that was prepared
  const tl::expected<RowShape, RowProblem> shape_;
  BatchRows rows_;
  MysqlTarget target_;
  MysqlCells cells_;
  std::string prune_from_ = kPruneFirst;  // where the next window of Prune begins
  bool prune_behind_ = false;             // behind that time, not at it
};

OutputError MysqlOutput::Fail(const MysqlFailure& failure) {
  if (!WorthRetryingAtOnce(failure)) connection_.Close();
  return ToOutputError(failure, connection_.where());
}

OutputError MysqlOutput::Refused(const MysqlFailure& failure) {
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

// "Data too long for column 'a' at row 1", "Incorrect integer value: '…' for column `d`.`t`.`a` at
// row 1": what the server says last names the column. Of a single row.
std::optional<std::size_t> MysqlOutput::RefusedColumn(const MysqlFailure& failure) const {
  if (rows_.size() != 1 || rows_.rows(0) != 1) return std::nullopt;
  const std::string_view text = failure.text;
  const auto at = text.rfind("olumn ");
  if (at == std::string_view::npos) return std::nullopt;
  for (std::size_t column = 0; column < rows_.columns(); ++column) {
    const std::string& name = target_.columns[column].name;
    for (const std::string& quoted : {"`" + name + "`", "'" + name + "'"}) {
      if (text.find(quoted + " at row", at) != std::string_view::npos ||
          text.find(quoted + " cannot be null", at) != std::string_view::npos) {
        return column;
      }
    }
  }
  return std::nullopt;
}

tl::expected<void, OutputError> MysqlOutput::Prepare() {
  if (!shape_) {
    return tl::unexpected(OutputError{.error = {.code = "output_schema",
                                                .what = "output.mysql: " + shape_.error().what,
                                                .where = connection_.where(),
                                                .hint = shape_.error().hint}});
  }
  if (auto connected = connection_.Connect(); !connected) {
    return tl::unexpected(Fail(connected.error()));
  }
  auto target = LearnTarget(
      connection_, options_, *shape_,
      {.exactly_once = terms_.exactly_once,
       .missing = IfLedgerIsMissing(terms_, incarnation_.has_value())});
  if (!target) {
    connection_.Close();
    return tl::unexpected(target.error());
  }
  target_ = std::move(*target);
  cells_ = MysqlCells(target_.columns, *shape_);
  return CheckLostCommits();
}

tl::expected<MysqlOutput::Incarnation, MysqlFailure> MysqlOutput::LearnIncarnation() {
  const auto rows = connection_.Query(
      "SELECT concat_ws(' ', @@hostname, @@port, @@server_id, @@datadir), unix_timestamp()");
  if (!rows) return tl::unexpected(rows.error());
  const auto status = connection_.Query("SHOW GLOBAL STATUS LIKE 'Uptime'");
  if (!status) return tl::unexpected(status.error());
  const std::int64_t up = status->empty() ? 0 : Number<std::int64_t>(status->front()[1]);
  return Incarnation{.server = rows->front()[0].value_or(""),
                     .started = Number<std::int64_t>(rows->front()[1]) - up};
}

tl::expected<void, OutputError> MysqlOutput::CheckLostCommits() {
  auto incarnation = LearnIncarnation();
  if (!incarnation) return tl::unexpected(Fail(incarnation.error()));
  auto search = lost_commits_.Look(clock_().boot);
  while (const std::vector<std::string>* ids = search.Ask()) {
    const auto found = connection_.Query("SELECT record_id, token FROM " + target_.ledger +
                                         " WHERE " + OfIds(*ids, 0, ids->size()));
    if (!found) return tl::unexpected(Fail(found.error()));
    bool there = false;
    for (const auto& row : *found) {
      const auto id = std::ranges::find(*ids, row[0].value_or("")) - ids->begin();
      there =
          there || search.IsOurs(static_cast<std::size_t>(id), locking::Token(Unsigned(row[1])));
    }
    search.Answer(there);
  }
  const auto lost = search.Lost();
  if (lost && !(incarnation_ && incarnation_->IsSame(*incarnation))) {
    OutputError error{.error = LostCommitsError(*lost, connection_.where(), "", terms_.group),
                      .fatal = true};
    connection_.Close();  // the next call fails the same way
    return tl::unexpected(std::move(error));
  }
  // The server has run all the time, so it lost nothing: somebody deleted these rows (`forget`).
  if (lost) lost_commits_.Forget();
  incarnation_ = std::move(*incarnation);
  return {};
}

tl::expected<void, OutputError> MysqlOutput::PrepareIfNeedBe() {
  if (connection_.open() && !connection_.IdleTooLong()) return {};
  return Prepare();
}

std::string MysqlOutput::OfIds(const std::vector<std::string>& ids, std::size_t begin,
                               std::size_t end) const {
  std::string sql = "pipeline = ";
  AppendText(pipeline_, sql);
  sql += " AND record_id IN (";
  for (std::size_t i = begin; i < end; ++i) {
    if (i > begin) sql += ", ";
    AppendBytes(ids[i], sql);
  }
  return sql + ")";
}

MysqlOutput::Done MysqlOutput::Run(const std::string& sql) {
  auto done = connection_.Query(sql);
  if (!done) return tl::unexpected(done.error());
  return {};
}

tl::expected<std::vector<WriteOutcome>, OutputError> MysqlOutput::Write(
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
  if (const auto done = Transaction(outcomes); !done) {
    return tl::unexpected(Refused(done.error()));
  }
  lost_commits_.Remember(clock_(), rows_, outcomes);
  return outcomes;
}

MysqlOutput::Done MysqlOutput::Transaction(Outcomes& outcomes) {
  if (auto begun = Run("START TRANSACTION READ WRITE"); !begun) return begun;
  std::vector<std::size_t> fresh;
  Done done = Ledgered(outcomes, fresh);
  if (done) done = InsertLedger(fresh);
  if (done) {
    const MysqlEffects effects(target_, *shape_, connection_.max_statement());
    done = effects.Write(rows_, fresh, [this](const std::string& sql) { return Run(sql); });
  }
  if (!done) return RollBack(done.error());
  // Without an answer the outcome is unknown, whatever the client library calls it.
  if (auto committed = Run("COMMIT"); !committed) return RollBack(committed.error());
  return {};
}

MysqlOutput::Done MysqlOutput::RollBack(MysqlFailure failure) {
  if (connection_.open() && !Run("ROLLBACK")) connection_.Close();
  return tl::unexpected(std::move(failure));
}

// What the ledger knows of the batch, locked until the transaction's end: a row of another one that
// is not committed yet is waited for. `fresh`: the others, in the order of the request. Behind an
// id conflict nothing of its chain is written.
MysqlOutput::Done MysqlOutput::Ledgered(Outcomes& outcomes, std::vector<std::size_t>& fresh) {
  std::vector<std::string> ids;
  for (std::size_t record = 0; record < rows_.size(); ++record) {
    ids.emplace_back(rows_.item(record).record_id);
  }
  std::ranges::sort(ids);
  std::vector<std::optional<WriteOutcome>> known(rows_.size());
  for (std::size_t begin = 0; begin < ids.size(); begin += kIds) {
    const auto rows = connection_.Query(
        "SELECT record_id, token, source, content_crc FROM " + target_.ledger + " WHERE " +
        OfIds(ids, begin, std::min(ids.size(), begin + kIds)) + " FOR UPDATE");
    if (!rows) return tl::unexpected(rows.error());
    for (const auto& row : *rows) {
      const auto record = rows_.Find(row[0].value_or(""));
      if (!record) continue;
      known[*record] =
          DuplicateOrConflict({.token = Unsigned(row[1]),
                               .source = *row[2],
                               .crc = static_cast<locking::ContentCrc>(Unsigned(row[3]))},
                              rows_.item(*record), rows_.source(*record));
    }
  }
  std::vector<std::size_t> order(rows_.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [this](std::size_t record) { return rows_.index(record); });
  std::set<std::uint64_t> held;
  for (const std::size_t record : order) {
    WriteOutcome& outcome = outcomes[rows_.index(record)];
    const std::uint64_t chain = rows_.item(record).chain;
    if (held.contains(chain)) {
      outcome.result = WriteResult::kNotWritten;
    } else if (known[record]) {
      outcome = std::move(*known[record]);
      if (chain != 0 && outcome.result == WriteResult::kIdConflict) held.insert(chain);
    } else {
      outcome.took_rows = rows_.takes_rows(record);
      fresh.push_back(record);
    }
  }
  return {};
}

// In the byte order of the ids, so that no two writers deadlock. Another transaction may have
// inserted one since it was looked for: then all of this is done again at once.
MysqlOutput::Done MysqlOutput::InsertLedger(std::vector<std::size_t> fresh) {
  std::ranges::sort(fresh, {}, [this](std::size_t record) { return rows_.item(record).record_id; });
  for (std::size_t begin = 0; begin < fresh.size(); begin += kIds) {
    std::string sql = "INSERT INTO " + target_.ledger +
                      " (pipeline, record_id, token, worker, source, content_crc, completed_at)"
                      " VALUES ";
    for (std::size_t i = begin; i < std::min(fresh.size(), begin + kIds); ++i) {
      const WriteItem& item = rows_.item(fresh[i]);
      sql += i == begin ? "(" : ", (";
      AppendText(pipeline_, sql);
      sql += ", ";
      AppendBytes(item.record_id, sql);
      fmt::format_to(std::back_inserter(sql), ", {}, ", Signed(item.token.value()));
      AppendText(worker_, sql);
      sql += ", ";
      AppendText(rows_.source(fresh[i]), sql);
      fmt::format_to(std::back_inserter(sql), ", {}, now(6))",
                     Signed(static_cast<std::uint64_t>(item.crc)));
    }
    auto done = Run(sql);
    if (done) continue;
    if (done.error().code == kDuplicateEntry) done.error().code = 1213;  // as a deadlock
    return done;
  }
  return {};
}

tl::expected<std::vector<std::optional<LedgerEntry>>, OutputError> MysqlOutput::Lookup(
    const std::vector<std::string>& ids) {
  std::vector<std::optional<LedgerEntry>> entries(ids.size());
  if (ids.empty()) return entries;
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  for (std::size_t begin = 0; begin < ids.size(); begin += kIds) {
    const std::size_t end = std::min(ids.size(), begin + kIds);
    const auto rows = connection_.Query(
        "SELECT record_id, token, content_crc, worker, source,"
        " concat(left(date_format(completed_at, '%Y-%m-%dT%H:%i:%s.%f'), 23), 'Z') FROM " +
        target_.ledger + " WHERE " + OfIds(ids, begin, end));
    if (!rows) return tl::unexpected(Fail(rows.error()));
    std::unordered_map<std::string_view, LedgerEntry> found;
    for (const auto& row : *rows) {
      found.emplace(*row[0], LedgerEntry{.token = locking::Token(Unsigned(row[1])),
                                         .crc = static_cast<locking::ContentCrc>(Unsigned(row[2])),
                                         .worker = *row[3],
                                         .source = *row[4],
                                         .completed_at = *row[5]});
    }
    for (std::size_t i = begin; i < end; ++i) {
      const auto entry = found.find(ids[i]);
      if (entry != found.end()) entries[i] = entry->second;
    }
  }
  return entries;
}

tl::expected<std::size_t, OutputError> MysqlOutput::Forget(const std::vector<std::string>& ids) {
  if (ids.empty()) return 0;
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  std::size_t gone = 0;
  for (std::size_t begin = 0; begin < ids.size(); begin += kIds) {
    const auto done = Run("DELETE FROM " + target_.ledger + " WHERE " +
                          OfIds(ids, begin, std::min(ids.size(), begin + kIds)));
    if (!done) return tl::unexpected(Fail(done.error()));
    gone += connection_.affected();
  }
  return gone;
}

tl::expected<bool, OutputError> MysqlOutput::KnowsTopic(const std::string& topic) {
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  std::string sql = "SELECT 1 FROM " + target_.ledger + " WHERE pipeline = ";
  AppendText(pipeline_, sql);
  fmt::format_to(std::back_inserter(sql), " AND left(source, {}) = ", topic.size() + 1);
  AppendText(topic + "/", sql);
  const auto found = connection_.Query(sql + " LIMIT 1");
  if (!found) return tl::unexpected(Fail(found.error()));
  return !found->empty();
}

tl::expected<std::size_t, OutputError> MysqlOutput::Prune(const PruneScope& scope,
                                                          std::size_t limit) {
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  std::string sql =
      "SELECT record_id, source, completed_at FROM " + target_.ledger + " WHERE pipeline = ";
  AppendText(pipeline_, sql);
  sql += prune_behind_ ? " AND completed_at > " : " AND completed_at >= ";
  AppendText(prune_from_, sql);
  sql +=
      fmt::format(" AND completed_at < now(6) - INTERVAL {} SECOND ORDER BY completed_at LIMIT {}",
                  scope.keep.count(), kPruneWindow);
  const auto rows = connection_.Query(sql);
  if (!rows) return tl::unexpected(Refused(rows.error()));
  // Those that are still the same rows: one that was forgotten and written again since is young.
  std::string old;
  std::string last = prune_from_;
  std::size_t count = 0;
  for (const auto& row : *rows) {
    last = *row[2];
    if (!MayPrune(scope, *row[1])) continue;
    old += old.empty() ? "(" : ", (";
    AppendBytes(*row[0], old);
    old += ", ";
    AppendText(*row[2], old);
    old += ")";
    if (++count == limit) break;
  }
  if (count < limit) {
    // All rows of a window may have one time: then it is passed over as a whole.
    if (rows->size() < kPruneWindow) {
      prune_from_ = kPruneFirst;
      prune_behind_ = false;
    } else {
      prune_behind_ = last == prune_from_;
      prune_from_ = last;
    }
  }
  if (count == 0) return 0;
  std::string gone = "DELETE FROM " + target_.ledger + " WHERE pipeline = ";
  AppendText(pipeline_, gone);
  const auto done = Run(gone + " AND (record_id, completed_at) IN (" + old + ")");
  if (!done) return tl::unexpected(Refused(done.error()));
  return connection_.affected();
}

}  // namespace

std::unique_ptr<Output> MakeMysqlOutput(const MysqlOptions& options, std::string pipeline,
                                        std::string worker, OutputTerms terms) {
  return std::make_unique<MysqlOutput>(options, std::move(pipeline), std::move(worker),
                                       std::move(terms));
}

}  // namespace fencepost::consumer
