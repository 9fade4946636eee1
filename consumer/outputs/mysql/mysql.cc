// The MySQL and MariaDB output: one transaction a batch. It first reads, and locks, the ledger rows
// of the batch, then writes what is missing with its effects.
#include <algorithm>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "consumer/flow/ports/ledger_duplicate.h"
#include "consumer/outputs/ledger/ledger.h"
#include "consumer/outputs/mysql/mysql_effects.h"
#include "consumer/outputs/mysql/mysql_output.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

constexpr unsigned kDuplicateEntry = 1062;

}  // namespace

OutputError MysqlOutput::Fail(const MysqlFailure& failure) {
  if (!WorthRetryingAtOnce(failure)) connection_.Close();
  return ToOutputError(failure, connection_.where());
}

OutputError MysqlOutput::Refused(const MysqlFailure& failure) {
  const WriteFailure kind = FailureOf(failure);
  OutputError error = kind == WriteFailure::kUnavailable
                          ? Fail(failure)
                          : ToOutputError(failure, connection_.where());
  // Anything but COMMIT is rolled back with its connection.
  error.unanswered = failure.at_commit && failure.kind != MysqlFailure::Kind::kServer;
  if (kind == WriteFailure::kUnavailable) return error;
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

MysqlOutput::Answer<void> MysqlOutput::Connect() {
  if (auto fine = CheckShape("output.mysql", connection_.where()); !fine) return fine;
  if (auto connected = connection_.Connect(); !connected) {
    return tl::unexpected(Fail(connected.error()));
  }
  auto target = LearnTarget(connection_, options_, *shape_,
                            {.pipeline = pipeline_,
                             .exactly_once = terms_.exactly_once,
                             .by_position = terms_.by_position,
                             .missing = IfLedgerIsMissing(terms_, incarnation_.has_value())});
  if (!target) return tl::unexpected(target.error());
  target_ = std::move(*target);
  cells_ = MysqlCells(target_.columns, *shape_);
  if (positions_) positions_->OnConnected(target_.ledger);
  return CheckIncarnation();
}

MysqlOutput::Answer<void> MysqlOutput::PrepareIfNeedBe() {
  if (connection_.open() && !connection_.IdleTooLong()) return {};
  return Prepare();
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
  if (positions_ && !PositionBatch::AllArePositions(items, outcomes)) return outcomes;
  if (auto prepared = PrepareIfNeedBe(); !prepared) return tl::unexpected(prepared.error());
  auto filled = FillRows(items, outcomes, &cells_, connection_.where());
  if (!filled) return tl::unexpected(filled.error());
  if (rows_.size() == 0) return outcomes;
  if (positions_) {
    positions_->changes().Fill(rows_);
    auto same = CheckLogs(items, positions_->changes().parts());
    if (!same) return tl::unexpected(same.error());
  }
  if (const auto done = Transaction(outcomes); !done) {
    return tl::unexpected(Refused(done.error()));
  }
  if (!positions_) {
    lost_commits_.Remember(clock_(), items, outcomes);
  } else if (auto stands = positions_->changes().OnCommitted(); !stands) {
    return tl::unexpected(stands.error());
  }
  return outcomes;
}

MysqlOutput::Done MysqlOutput::Transaction(Outcomes& outcomes) {
  if (auto begun = Run("START TRANSACTION READ WRITE"); !begun) return begun;
  auto known = Lock();
  if (!known) return RollBack(known.error());
  const std::vector<std::size_t> fresh = Fresh(std::move(*known), outcomes);
  Done done = positions_ ? positions_->Store() : InsertLedger(fresh);
  if (done) {
    const MysqlEffects effects(target_, *shape_, connection_.max_statement());
    done = effects.Write(rows_, fresh, [this](const std::string& sql) { return Run(sql); });
  }
  if (!done) return RollBack(done.error());
  // Without an answer the outcome is unknown, whatever the client library calls it.
  if (auto committed = Run("COMMIT"); !committed) {
    committed.error().at_commit = true;
    return RollBack(std::move(committed.error()));
  }
  return {};
}

MysqlOutput::Done MysqlOutput::RollBack(MysqlFailure failure) {
  if (connection_.open() && !Run("ROLLBACK")) connection_.Close();
  return tl::unexpected(std::move(failure));
}

// A row of another transaction that is not committed yet is waited for.
tl::expected<MysqlOutput::Known, MysqlFailure> MysqlOutput::Lock() {
  if (!positions_) return LockIds();
  if (auto locked = positions_->Lock(); !locked) return tl::unexpected(locked.error());
  Known known;
  for (std::size_t record = 0; record < rows_.size(); ++record) {
    known.push_back(positions_->changes().DoneBefore(record, rows_.item(record)));
  }
  return known;
}

tl::expected<MysqlOutput::Known, MysqlFailure> MysqlOutput::LockIds() {
  std::vector<std::string> ids;
  for (std::size_t record = 0; record < rows_.size(); ++record) {
    ids.emplace_back(rows_.item(record).record_id);
  }
  std::ranges::sort(ids);
  Known known(rows_.size());
  for (std::size_t begin = 0; begin < ids.size(); begin += kIds) {
    const auto rows = connection_.Query(
        "SELECT record_id, token, source, content_crc FROM " + target_.ledger + " WHERE " +
        OfIds(ids, begin, std::min(ids.size(), begin + kIds)) + " FOR UPDATE");
    if (!rows) return tl::unexpected(rows.error());
    for (const auto& row : *rows) {
      const auto record = rows_.Find(row[0].value_or(""));
      if (!record) continue;
      known[*record] =
          DuplicateOrConflict({.token = MysqlUnsigned(row[1]),
                               .source = *row[2],
                               .crc = static_cast<locking::ContentCrc>(MysqlUnsigned(row[3]))},
                              rows_.item(*record), rows_.source(*record));
    }
  }
  return known;
}

// Behind an id conflict nothing of its chain is written.
std::vector<std::size_t> MysqlOutput::Fresh(Known known, Outcomes& outcomes) const {
  std::vector<std::size_t> fresh;
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
  return fresh;
}

// In the byte order of the ids, so that no two writers deadlock. Another transaction may have
// inserted one since it was looked for: then all of this is done again at once.
MysqlOutput::Done MysqlOutput::InsertLedger(std::vector<std::size_t> fresh) {
  std::ranges::sort(fresh, {}, [this](std::size_t record) { return rows_.item(record).record_id; });
  for (std::size_t begin = 0; begin < fresh.size(); begin += kIds) {
    const bool optional = Planted("mysql_ledger_row_is_optional");
    std::string sql = (optional ? "INSERT IGNORE INTO " : "INSERT INTO ") + target_.ledger +
                      " (pipeline, record_id, token, worker, source, content_crc, completed_at)"
                      " VALUES ";
    for (std::size_t i = begin; i < std::min(fresh.size(), begin + kIds); ++i) {
      const WriteItem& item = rows_.item(fresh[i]);
      sql += i == begin ? "(" : ", (";
      AppendText(pipeline_, sql);
      sql += ", ";
      AppendBytes(item.record_id, sql);
      fmt::format_to(std::back_inserter(sql), ", {}, ",
                     static_cast<std::int64_t>(item.token.value()));
      AppendText(worker_, sql);
      sql += ", ";
      AppendText(rows_.source(fresh[i]), sql);
      fmt::format_to(std::back_inserter(sql), ", {}, now(6))", static_cast<std::int64_t>(item.crc));
    }
    auto done = Run(sql);
    if (done) continue;
    if (done.error().code == kDuplicateEntry) done.error().code = 1213;  // as a deadlock
    return done;
  }
  return {};
}

std::unique_ptr<Output> MakeMysqlOutput(const MysqlOptions& options, std::string pipeline,
                                        std::string worker, OutputTerms terms) {
  return std::make_unique<MysqlOutput>(options, std::move(pipeline), std::move(worker),
                                       std::move(terms));
}

}  // namespace fencepost::consumer
