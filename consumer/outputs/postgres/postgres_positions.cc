// The ledger by position in PostgreSQL: a row a partition, whose `done` is an int8multirange.
//
// A transaction has these statements, sent in one go: rows are inserted where there are none yet;
// all rows of the batch are locked, in the order of their keys; the offsets of dead letters that
// come back are taken out of what is done, and new dead letters get their rows; then the write
// (postgres_sql.h).
// The lock is a statement of its own, so that the write's snapshot is taken with the lock in hand:
// it sees all that the writer before it committed, in every table.
#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "consumer/outputs/ledger/sql.h"
#include "consumer/outputs/postgres/postgres_output.h"
#include "consumer/outputs/postgres/postgres_sql.h"
#include "locking/base/check.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

// The places of the write's answer (LedgerByPosition in postgres_sql.cc).
enum Field : int { kNumber, kKnown, kToken, kWorker, kAnchors, kForgotten };

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

std::vector<PgParam> PostgresOutput::Params(std::size_t arrays) const {
  std::vector<PgParam> params{PgParam{.data = pipeline_.c_str()}};
  for (std::size_t i = 0; i < arrays; ++i) params.push_back(arrays_[i].Param());
  return params;
}

void PostgresOutput::FillKeys(const Parts& parts) {
  arrays_[0].Begin(kTextOid, parts.size());
  arrays_[1].Begin(kTextOid, parts.size());
  arrays_[2].Begin(kInt8Oid, parts.size());
  arrays_[3].Begin(kTextOid, parts.size());
  for (const PositionPart& part : parts) {
    arrays_[0].Add(std::string_view(part.key.cluster));
    arrays_[1].Add(std::string_view(part.key.where.topic));
    arrays_[2].Add(static_cast<std::uint64_t>(part.key.where.partition));
    arrays_[3].Add(std::string_view(part.ranges.Text()));
  }
}

PostgresOutput::Answer<void> PostgresOutput::FillPositions() {
  const Parts& parts = changes_.parts();
  Parts unknown;
  for (const PositionPart& part : parts) {
    if (!memory_.Knows(part.key)) unknown.push_back(part);
  }
  const auto read = ReadPositions(unknown);
  if (!read) return tl::unexpected(read.error());
  insert_ = false;
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    const std::optional<PositionRow>& row = (*read)[i];
    insert_ = insert_ || !row;
    if (row) memory_.Learn(unknown[i].key, row->anchors);
  }
  return {};
}

void PostgresOutput::FillArrays(Ranges ranges) {
  const Parts& parts = changes_.parts();
  FillKeys(parts);
  if (ranges == Ranges::kNone) {
    arrays_[3].Begin(kTextOid, parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) arrays_[3].Add(std::string_view("{}"));
  }
  arrays_[4].Begin(kInt8Oid, parts.size());
  arrays_[5].Begin(kTextOid, parts.size());
  for (const PositionPart& part : parts) {
    arrays_[4].Add(part.token.value());
    arrays_[5].Add(std::string_view(memory_.AnchorsWith(part)));
  }
  arrays_[6].Begin(kInt8Oid, rows_.size());
  arrays_[7].Begin(kInt8Oid, rows_.size());
  for (std::size_t record = 0; record < rows_.size(); ++record) {
    arrays_[6].Add(std::uint64_t{changes_.part(rows_.place(record)) + 1});
    arrays_[7].Add(static_cast<std::uint64_t>(changes_.offset(rows_.place(record))));
  }
}

PostgresOutput::Steps PostgresOutput::FilledPositionWrite(Ranges ranges) {
  if (ranges == Ranges::kNone && plain()) {
    PgConnection::Step effects{effects_statement_.c_str(), {}};
    AddRows(0, effects);
    written_ = {0};
    return {std::move(effects)};
  }
  FillArrays(ranges);
  Steps steps = EffectSteps(kPositionArrays);
  // Behind the effects, which leave out what is done before.
  if (several()) steps.push_back(WriteStep(ledger_statement_, kPositionArrays));
  return steps;
}

PostgresOutput::Steps PostgresOutput::LockSteps() const {
  Steps steps;
  if (insert_) steps.push_back({insert_statement_.c_str(), Params(3)});
  steps.push_back({lock_statement_.c_str(), Params(3)});
  return steps;
}

// Known: what of the ranges was done before, in the rows' order; changes_ learns the rows.
PostgresOutput::Answer<PostgresOutput::Known> PostgresOutput::LockPositions() {
  if (auto filled = FillPositions(); !filled) return tl::unexpected(filled.error());
  FillKeys(changes_.parts());
  Steps steps = LockSteps();
  steps.push_back({read_statement_.c_str(), Params(4)});
  auto answers = connection_.BeginApart(steps);
  if (!answers) return PositionsRefused(std::move(answers.error()), 0);
  const PgResult& answer = answers->back();
  FENCEPOST_CHECK(PQntuples(answer.get()) == static_cast<int>(changes_.parts().size()),
                  "a row a partition");
  PositionMemory::Rows before;
  for (int i = 0; i < PQntuples(answer.get()); ++i) before.emplace_back(RowOf(answer, i));
  changes_.OnLocked(std::move(before));
  return KnownByPosition();
}

void PostgresOutput::FillRecords(const std::vector<std::size_t>& records,
                                 RecordArrays& arrays) const {
  auto& [ids, clusters, topics, partitions, offsets, sources, checksums] = arrays;
  for (BinaryArray* texts : {&ids, &clusters, &topics, &sources}) {
    texts->Begin(kTextOid, records.size());
  }
  for (BinaryArray* numbers : {&partitions, &offsets, &checksums}) {
    numbers->Begin(kInt8Oid, records.size());
  }
  for (const std::size_t record : records) {
    const PositionKey& key = changes_.parts()[changes_.part(record)].key;
    ids.Add(rows_.item(record).record_id);
    clusters.Add(std::string_view(key.cluster));
    topics.Add(std::string_view(key.where.topic));
    partitions.Add(static_cast<std::uint64_t>(key.where.partition));
    offsets.Add(static_cast<std::uint64_t>(changes_.offset(record)));
    sources.Add(rows_.source(record));
    checksums.Add(rows_.item(record).crc);
  }
}

std::vector<PgParam> PostgresOutput::RecordParams(const RecordArrays& arrays) const {
  std::vector<PgParam> params{PgParam{.data = pipeline_.c_str()}};
  for (std::size_t i = 0; i < 5; ++i) params.push_back(arrays[i].Param());
  return params;
}

void PostgresOutput::AddReplays(Steps& steps) {
  const std::vector<std::size_t> replays = Replays();
  if (replays.empty() || Planted("replay_finds_its_letter_done")) return;
  FillRecords(replays, replays_);
  steps.push_back({reopen_statement_.c_str(), RecordParams(replays_)});
}

void PostgresOutput::AddLetters(Steps& steps) {
  const std::vector<std::size_t> letters = Letters();
  if (letters.empty()) return;
  FillRecords(letters, letters_);
  steps.push_back({letters_statement_.c_str(), RecordParams(letters_)});
  std::vector<PgParam>& params = steps.back().params;
  params.push_back(PgParam{.data = worker_.c_str()});
  params.push_back(letters_[5].Param());
  params.push_back(letters_[6].Param());
}

PostgresOutput::Answer<void> PostgresOutput::WritePositions(Outcomes& outcomes) {
  if (auto filled = FillPositions(); !filled) return filled;
  Steps write = FilledPositionWrite(Ranges::kDone);
  Steps steps = LockSteps();
  AddReplays(steps);
  AddLetters(steps);
  const std::size_t first = steps.size();
  std::ranges::move(write, std::back_inserter(steps));
  auto answers = connection_.Transact(steps);
  if (!answers) return PositionsRefused(std::move(answers.error()), first);
  const PgResult& answer = answers->back();
  const auto parts = static_cast<int>(changes_.parts().size());
  FENCEPOST_CHECK(PQntuples(answer.get()) == parts, "a row a partition");
  PositionMemory::Rows before;
  for (int i = 0; i < parts; ++i) before.emplace_back(RowOf(answer, i));
  changes_.OnLocked(std::move(before));
  TakeRows(*answers, outcomes);
  for (std::size_t record = 0; record < rows_.size(); ++record) {
    auto done = changes_.DoneBefore(record, rows_.item(record));
    if (done) outcomes[rows_.index(record)] = std::move(*done);
  }
  return {};
}

tl::unexpected<OutputError> PostgresOutput::PositionsRefused(PgFailure failure,
                                                             std::size_t before) {
  // BEGIN, the rows where they are inserted, then the lock.
  const bool at_lock =
      failure.kind == PgFailure::Kind::kServer && failure.answered == (insert_ ? 2U : 1U);
  if (at_lock && failure.sqlstate == kRowsMissingState) {
    memory_.OnConnected();
    return RowIsGone(kPositionsTable);
  }
  // It waited for the row's lock for as long as a statement may take: no record is to blame.
  if (at_lock && failure.sqlstate == "57014") failure.sqlstate = "55P03";
  if (at_lock && failure.sqlstate == "55P03") (void)connection_.Query(sql::postgres_end_frozen);
  return tl::unexpected(Refused(failure, before));
}

// A name that the database's encoding lacks is in no row.
PostgresOutput::Answer<PositionMemory::Rows> PostgresOutput::ReadPositions(const Parts& parts) {
  PositionMemory::Rows rows(parts.size());
  if (parts.empty()) return rows;
  FillKeys(parts);
  const auto found =
      connection_.QueryOnce(ForLedger(target_, sql::postgres_read_positions), Params(4));
  if (!found) {
    if (!found.error().sqlstate.starts_with("22")) return Failed(found.error());
    if (parts.size() == 1) return rows;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      auto one = ReadPositions({parts[i]});
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

PostgresOutput::Answer<std::size_t> PostgresOutput::TakeBack(const Parts& parts) {
  if (parts.empty()) return 0;
  FillKeys(parts);
  const auto gone =
      connection_.QueryOnce(ForLedger(target_, sql::postgres_take_back_positions), Params(4));
  if (!gone) return Failed(gone.error());
  std::size_t count = 0;
  for (int r = 0; r < PQntuples(gone->get()); ++r) {
    const auto ranges = PositionRanges::Parse(PgText(*gone, r, 0));
    FENCEPOST_CHECK(ranges.has_value(), "an int8multirange of another form");
    count += static_cast<std::size_t>(ranges->CountOffsets());
  }
  return count;
}

}  // namespace fencepost::consumer
