#include "consumer/outputs/postgres/postgres_positions.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "consumer/outputs/postgres/postgres_sql.h"
#include "locking/base/check.h"

namespace fencepost::consumer {
namespace {

// The places of the write's answer (LedgerByPosition in postgres_sql.cc).
enum Answer : int { kNumber, kKnown, kToken, kWorker, kAnchors, kForgotten };

// Sessions of this pipeline that wait in a statement for the rest of what their client sends, for
// as long as a transaction may take (transaction_timeout, PostgreSQL 17): it is frozen. Before 17
// nothing else ends them, and the rows that they have locked stay locked.
constexpr const char* kEndFrozen =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
    " AND usename = current_user AND pid <> pg_backend_pid()"
    " AND regexp_replace(application_name, '/[^/]*$', '') ="
    " regexp_replace(current_setting('application_name'), '/[^/]*$', '')"
    " AND state = 'active' AND wait_event = 'ClientRead'"
    " AND state_change < clock_timestamp() - interval '28 s'";

PositionRow RowOf(const PgResult& result, int row) {
  auto done = PositionRanges::Parse(PgText(result, row, kKnown));
  FENCEPOST_CHECK(done.has_value(), "an int8multirange of another form");
  return {.done = std::move(*done),
          .token = locking::Token(PgNumber<std::uint64_t>(PgText(result, row, kToken))),
          .worker = std::string(PgText(result, row, kWorker)),
          .anchors = PositionAnchors::Parse(PgText(result, row, kAnchors)),
          .forgotten = PgNumber<std::int64_t>(PgText(result, row, kForgotten))};
}

}  // namespace

PgPositions::Maybe<void> PgPositions::Prepare(const PgTarget& target) {
  memory_.OnConnected();
  ledger_ = target.ledger;
  const std::string insert = InsertPositionsSql(target);
  const std::string lock = LockPositionsSql(target);
  insert_statement_ = PgStatementName("fencepost_insert", insert);
  lock_statement_ = PgStatementName("fencepost_lock", lock);
  const std::vector<Oid> keys{kTextOid, kTextArrayOid, kTextArrayOid, kInt8ArrayOid};
  auto done = connection_.PrepareStatement(insert_statement_.c_str(), insert, keys);
  if (!done) return done;
  return connection_.PrepareStatement(lock_statement_.c_str(), lock, keys);
}

void PgPositions::FillKeys(const std::vector<PositionPart>& parts) {
  arrays_[0].Begin(kTextOid, parts.size());
  arrays_[1].Begin(kTextOid, parts.size());
  arrays_[2].Begin(kInt8Oid, parts.size());
  for (const PositionPart& part : parts) {
    arrays_[0].Add(std::string_view(part.key.cluster));
    arrays_[1].Add(std::string_view(part.key.where.topic));
    arrays_[2].Add(static_cast<std::uint64_t>(part.key.where.partition));
  }
}

std::vector<PgParam> PgPositions::Keys() const {
  std::vector<PgParam> params{PgParam{.data = pipeline_.c_str()}};
  for (std::size_t i = 0; i < kKeyArrays; ++i) params.push_back(arrays_[i].Param());
  return params;
}

std::vector<PgParam> PgPositions::KeysAndRanges(const std::vector<PositionPart>& parts) {
  FillKeys(parts);
  arrays_[3].Begin(kTextOid, parts.size());
  for (const PositionPart& part : parts) arrays_[3].Add(std::string_view(part.ranges.Text()));
  std::vector<PgParam> params = Keys();
  params.push_back(arrays_[3].Param());
  return params;
}

PgPositions::Maybe<void> PgPositions::Fill(const BatchRows& rows) {
  const std::vector<PositionPart>& parts = changes_.parts();
  std::vector<PositionPart> unknown;
  for (const PositionPart& part : parts) {
    if (!memory_.Knows(part.key)) unknown.push_back(part);
  }
  insert_ = false;
  if (!unknown.empty()) {
    const auto read = Read(unknown);
    if (!read) return tl::unexpected(read.error());
    for (std::size_t i = 0; i < unknown.size(); ++i) {
      const std::optional<PositionRow>& row = (*read)[i];
      insert_ = insert_ || !row;
      if (row) memory_.Learn(unknown[i].key, row->anchors);
    }
  }
  FillKeys(parts);
  arrays_[3].Begin(kTextOid, parts.size());
  arrays_[4].Begin(kInt8Oid, parts.size());
  arrays_[5].Begin(kTextOid, parts.size());
  for (const PositionPart& part : parts) {
    arrays_[3].Add(std::string_view(part.ranges.Text()));
    arrays_[4].Add(part.token.value());
    arrays_[5].Add(std::string_view(memory_.AnchorsWith(part)));
  }
  arrays_[6].Begin(kInt8Oid, rows.size());
  arrays_[7].Begin(kInt8Oid, rows.size());
  for (std::size_t record = 0; record < rows.size(); ++record) {
    arrays_[6].Add(std::uint64_t{changes_.part(record) + 1});
    arrays_[7].Add(static_cast<std::uint64_t>(changes_.offset(record)));
  }
  return {};
}

void PgPositions::AddParams(std::vector<PgParam>& params) const {
  for (const BinaryArray& array : arrays_) params.push_back(array.Param());
}

PgPositions::Maybe<PgResult> PgPositions::Transact(PgConnection::Step write) {
  std::vector<PgConnection::Step> steps;
  if (insert_) steps.push_back({insert_statement_.c_str(), Keys()});
  steps.push_back({lock_statement_.c_str(), Keys()});
  steps.push_back(std::move(write));
  auto answers = connection_.Transact(steps);
  if (answers) return std::move(answers->back());
  if (RowIsMissing(answers.error())) memory_.OnConnected();
  PgFailure failure = std::move(answers.error());
  // It waited for the row's lock for as long as a statement may take: no record is to blame.
  if (AtLock(failure) && failure.sqlstate == "57014") failure.sqlstate = "55P03";
  if (AtLock(failure) && failure.sqlstate == "55P03") (void)connection_.Query(kEndFrozen);
  return tl::unexpected(std::move(failure));
}

// BEGIN, the rows where they are inserted, then the lock.
bool PgPositions::AtLock(const PgFailure& failure) const {
  return failure.kind == PgFailure::Kind::kServer && failure.answered == (insert_ ? 2U : 1U);
}

bool PgPositions::RowIsMissing(const PgFailure& failure) const {
  return AtLock(failure) && failure.sqlstate == kRowsMissingState;
}

PositionMemory::Rows PgPositions::Before(const PgResult& answer) const {
  const auto parts = static_cast<int>(changes_.parts().size());
  FENCEPOST_CHECK(PQntuples(answer.get()) == parts, "a row a partition");
  PositionMemory::Rows before;
  for (int i = 0; i < parts; ++i) before.emplace_back(RowOf(answer, i));
  return before;
}

PgPositions::Maybe<std::vector<std::optional<PositionRow>>> PgPositions::Read(
    const std::vector<PositionPart>& parts) {
  std::vector<std::optional<PositionRow>> rows(parts.size());
  if (parts.empty()) return rows;
  const auto found = connection_.QueryOnce(ReadPositionsSql(ledger_), KeysAndRanges(parts));
  if (!found) {
    if (!found.error().sqlstate.starts_with("22")) return tl::unexpected(found.error());
    if (parts.size() == 1) return rows;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      auto one = Read({parts[i]});
      if (!one) return tl::unexpected(one.error());
      rows[i] = std::move(one->front());
    }
    return rows;
  }
  for (int r = 0; r < PQntuples(found->get()); ++r) {
    PositionRow row = RowOf(*found, r);
    row.updated_at = PgText(*found, r, kForgotten + 1);
    rows[PgNumber<std::size_t>(PgText(*found, r, kNumber)) - 1] = std::move(row);
  }
  return rows;
}

PgPositions::Maybe<std::size_t> PgPositions::TakeBack(const std::vector<PositionPart>& parts) {
  if (parts.empty()) return 0;
  const auto gone = connection_.QueryOnce(TakeBackPositionsSql(ledger_), KeysAndRanges(parts));
  if (!gone) return tl::unexpected(gone.error());
  std::size_t count = 0;
  for (int r = 0; r < PQntuples(gone->get()); ++r) {
    const auto ranges = PositionRanges::Parse(PgText(*gone, r, 0));
    FENCEPOST_CHECK(ranges.has_value(), "an int8multirange of another form");
    count += static_cast<std::size_t>(ranges->CountOffsets());
  }
  return count;
}

PgPositions::Maybe<bool> PgPositions::KnowsTopic(const std::string& topic) {
  const auto found = connection_.Query(
      fmt::format("SELECT 1 FROM {} WHERE pipeline = $1 AND topic = $2 AND NOT isempty(done)"
                  " LIMIT 1",
                  ledger_)
          .c_str(),
      {pipeline_, topic});
  if (!found) return tl::unexpected(found.error());
  return PQntuples(found->get()) > 0;
}

}  // namespace fencepost::consumer
