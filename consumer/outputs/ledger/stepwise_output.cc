#include "consumer/outputs/ledger/stepwise_output.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "consumer/outputs/ledger/ledger.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

constexpr std::size_t kCarefulFor = 100;

}  // namespace

StepwiseOutput::Answer<void> StepwiseOutput::WriteRows(Outcomes& outcomes) {
  auto done = Steps(outcomes);
  if (!done) RollBack();
  return done;
}

StepwiseOutput::Answer<void> StepwiseOutput::Steps(Outcomes& outcomes) {
  lost_.clear();
  auto known = BeginApart();
  if (!known) return tl::unexpected(known.error());
  const Records fresh = Fresh(std::move(*known), outcomes);
  auto done = terms_.by_position ? StoreChanges() : InsertNew(fresh);
  if (done) done = WriteEffects(fresh);
  if (!done) return done;
  for (const std::size_t place : lost_) outcomes[place].lost_to_newer = true;
  return Commit();
}

StepwiseOutput::Answer<StepwiseOutput::Known> StepwiseOutput::LockRecords() {
  const auto entries = LockIds(Ids());
  if (!entries) return tl::unexpected(entries.error());
  return KnownBy(*entries);
}

StepwiseOutput::Answer<void> StepwiseOutput::InsertNew(const Records& records) {
  std::vector<std::string> replaced;
  for (const std::size_t record : records) {
    if (Replaces(record)) replaced.emplace_back(rows_.item(record).record_id);
  }
  if (!replaced.empty()) {
    if (auto gone = DeleteNothingWritten(replaced); !gone) return tl::unexpected(gone.error());
  }
  return InsertIds(records);
}

StepwiseOutput::Answer<StepwiseOutput::Known> StepwiseOutput::LockChanges() {
  auto rows = LockPositions(changes_.parts());
  if (!rows) return tl::unexpected(rows.error());
  std::vector<PositionKey> missing;
  for (std::size_t i = 0; i < rows->size(); ++i) {
    if (!(*rows)[i]) missing.push_back(changes_.parts()[i].key);
  }
  if (auto added = AddPositions(missing); !added) return tl::unexpected(added.error());
  changes_.OnLocked(std::move(*rows));
  return KnownByPosition();
}

// What is in rows_ and changes_ by now.
StepwiseOutput::Answer<void> StepwiseOutput::StoreChanges() {
  auto done = DeleteReplayed();
  if (done) done = AddLetters();
  if (done) done = StorePositions(changes_.Changed(Time()));
  return done;
}

StepwiseOutput::Answer<void> StepwiseOutput::DeleteReplayed() {
  std::vector<std::string> ids;
  for (const std::size_t record : Replays()) {
    const WriteItem& item = rows_.item(record);
    if (!changes_.DoneBefore(record, item)) ids.emplace_back(item.record_id);
  }
  if (ids.empty() || Planted("replayed_letter_stays")) return {};
  std::ranges::sort(ids);
  return DeleteNothingWritten(ids).map([](std::size_t) {});
}

// Of those that were not done before. A row of the same id can be left of what was forgotten.
StepwiseOutput::Answer<void> StepwiseOutput::AddLetters() {
  Records letters = Letters();
  std::erase_if(letters, [&](std::size_t record) {
    return changes_.DoneBefore(record, rows_.item(record)).has_value();
  });
  if (letters.empty()) return {};
  std::vector<std::string> ids;
  for (const std::size_t record : letters) ids.emplace_back(rows_.item(record).record_id);
  if (auto gone = DeleteNothingWritten(ids); !gone) return tl::unexpected(gone.error());
  return InsertIds(letters);
}

// An escaped cell has twice its size at most, with less than kAround bytes around it.
std::size_t StepwiseOutput::BytesOf(const Row& row) const {
  constexpr std::size_t kAround = 32;
  const TableRows rows = rows_.of(row.table);
  std::size_t bytes = rows.columns() * kAround;
  for (std::size_t column = 0; column < rows.columns(); ++column) {
    bytes += 2 * rows.cell(row.record, column, row.row).value_or("").size();
  }
  return bytes;
}

bool StepwiseOutput::IsUndoneAlone() const {
  if (rows_.tables() != 1 || !rows_.of(0).one_row_each() || careful_ > 0) return false;
  std::size_t bytes = 0;
  for (std::size_t record = 0; record < rows_.size(); ++record) bytes += BytesOf({0, record, 0});
  return bytes < most_bytes();
}

StepwiseOutput::Answer<void> StepwiseOutput::WriteEffects(const Records& fresh) {
  const bool careful = careful_ > 0;
  if (careful) --careful_;
  Answer<void> done;
  for (std::size_t table = 0; table < rows_.tables() && done; ++table) {
    done = WriteTable(table, fresh, careful);
    if (done && table == 0 && Planted("first_effect_stays")) done = Execute("SAVEPOINT fencepost");
  }
  return done;
}

StepwiseOutput::Answer<void> StepwiseOutput::WriteTable(std::size_t table, const Records& fresh,
                                                        bool careful) {
  const TableRows rows = rows_.of(table);
  Rows together;
  std::size_t bytes = 0;
  std::set<std::string> keys;
  const auto flush = [&]() -> Answer<void> {
    bytes = 0;
    keys.clear();
    return together.empty() ? Answer<void>() : Carry(Change::kInsert, std::exchange(together, {}));
  };
  for (const std::size_t record : fresh) {
    for (std::size_t row = 0; row < rows.rows(record); ++row) {
      const bool whole = !rows.deletes(record, row) && !rows.omits_any(record, row);
      const bool behind = whole && careful && !keys.insert(rows.key(record, row)).second;
      Answer<void> done;
      if (!whole || behind) done = flush();
      if (done && !whole) done = WriteAlone({table, record, row});
      if (!done) return done;
      if (!whole) continue;
      if (behind) keys.insert(rows.key(record, row));
      together.push_back({table, record, row});
      if (most_bytes() > 0) bytes += BytesOf(together.back());
      if (bytes < most_bytes()) continue;
      if (done = flush(); !done) return done;
    }
  }
  return flush();
}

// An INSERT would need the columns that are NOT NULL, also where a row is there to be updated.
StepwiseOutput::Answer<void> StepwiseOutput::WriteAlone(const Row& row) {
  const TableRows rows = rows_.of(row.table);
  if (rows.deletes(row.record, row.row)) return Carry(Change::kDelete, {row});
  if (!rows.shape().updates()) return Carry(Change::kInsert, {row});
  const auto found = FindsRow(row);
  if (!found) return tl::unexpected(found.error());
  return Carry(*found ? Change::kUpdate : Change::kInsert, {row});
}

// A row without effect lost where the table's has a higher fence now: it had it before.
StepwiseOutput::Answer<void> StepwiseOutput::Carry(Change change, const Rows& rows) {
  auto unchanged = ChangeRows(change, rows);
  if (!unchanged) {
    if (unchanged.error().failure == WriteFailure::kRefused)
      TellRefused(change, rows, unchanged.error());
    return tl::unexpected(std::move(unchanged.error()));
  }
  const TableRows table = rows_.of(rows.front().table);
  if (!table.shape().fence || *unchanged == 0) return {};
  std::set<std::string> keys;
  for (const Row& row : rows) keys.insert(table.key(row.record, row.row));
  if (keys.size() < rows.size()) {
    careful_ = kCarefulFor;
    return tl::unexpected(
        OutputError{.error = {.code = "output_retry",
                              .what = "a row had no effect, since the table's has a higher fence",
                              .where = Where(),
                              .hint = "the batch is written again in statements that tell which"},
                    .retry_at_once = true});
  }
  const auto newer = FindNewer(rows);
  if (!newer) return tl::unexpected(newer.error());
  for (const Row& row : *newer) lost_.push_back(rows_.index(row.record));
  return {};
}

// What was taken on the way stays: the record is refused, and all of it is undone.
std::optional<StepwiseOutput::Row> StepwiseOutput::FindRefused(Change change, Rows rows,
                                                               OutputError& error) {
  while (!rows.empty()) {
    const auto half = rows.begin() + static_cast<std::ptrdiff_t>((rows.size() + 1) / 2);
    auto written = ChangeRows(change, Rows(rows.begin(), half));
    if (written) {
      rows.erase(rows.begin(), half);
      continue;
    }
    error = std::move(written.error());
    if (error.failure != WriteFailure::kRefused) return std::nullopt;
    if (half - rows.begin() == 1) return rows.front();
    rows.erase(half, rows.end());
  }
  return std::nullopt;
}

void StepwiseOutput::TellRefused(Change change, const Rows& rows, OutputError& error) {
  const TableRows table = rows_.of(rows.front().table);
  Rows refused = rows.size() == 1 ? rows : RefusedOf(rows);
  if (refused.empty() && rows_.size() == 1) {
    if (const auto row = FindRefused(change, rows, error)) refused = {*row};
    if (error.failure != WriteFailure::kRefused) return;  // of the server: the transaction is gone
  }
  named_.clear();
  for (const Row& row : refused) named_.push_back(rows_.place(row.record));
  const std::string where =
      refused.size() == 1 ? table.Where(refused.front().record, refused.front().row)
      : rows_.size() == 1
          ? fmt::format("{}one of its {} rows: ", table.Where(), table.rows(rows.front().record))
          : table.Where();
  for (std::string* text : {&error.error.what, &error.detail}) {
    if (!text->starts_with(where)) text->insert(0, where);
  }
}

StepwiseOutput::Answer<bool> StepwiseOutput::FindsNewer() {
  for (std::size_t table = 0; table < rows_.tables(); ++table) {
    Rows rows;
    if (!rows_.of(table).shape().fence) continue;
    for (std::size_t row = 0; row < rows_.of(table).rows(0); ++row) rows.push_back({table, 0, row});
    if (rows.empty()) continue;
    const auto newer = FindNewer(rows);
    if (!newer) return tl::unexpected(newer.error());
    if (!newer->empty()) return true;
  }
  return false;
}

StepwiseOutput::Answer<StepwiseOutput::Known> StepwiseOutput::BeginApart() {
  if (auto begun = Begin(); !begun) return tl::unexpected(begun.error());
  return terms_.by_position ? LockChanges() : LockRecords();
}

StepwiseOutput::Answer<StepwiseOutput::Refusals> StepwiseOutput::WriteParts(
    const std::vector<Records>& parts) {
  Refusals refusals;
  for (const Records& part : parts) {
    rows_.Select(part);
    auto refusal = WritePart();
    if (!refusal) return tl::unexpected(refusal.error());
    refusals.push_back(std::move(*refusal));
  }
  return refusals;
}

// All of rows_, as new.
StepwiseOutput::Answer<std::optional<StepwiseOutput::PartRefusal>> StepwiseOutput::WritePart() {
  const bool undone = terms_.by_position && IsUndoneAlone();
  const auto savepoint = [&](const char* what) { return undone ? Answer<void>() : Execute(what); };
  if (auto set = savepoint("SAVEPOINT fencepost"); !set) return tl::unexpected(set.error());
  const std::size_t lost = lost_.size();
  Records records(rows_.size());
  std::iota(records.begin(), records.end(), 0);
  Answer<void> done;
  if (!terms_.by_position) done = InsertNew(records);
  if (done) done = WriteEffects(records);
  std::optional<PartRefusal> refusal;
  if (!done) {
    const OutputError& error = done.error();
    if (error.failure != WriteFailure::kRefused || error.retry_at_once) {
      return tl::unexpected(error);
    }
    refusal = {.error = error, .named = std::exchange(named_, {})};
    lost_.resize(lost);
    done = savepoint(Planted("refused_part_stays") ? "RELEASE SAVEPOINT fencepost"
                                                   : "ROLLBACK TO SAVEPOINT fencepost");
    if (!done && done.error().failure == WriteFailure::kRefused) {  // it took all of it along
      named_ = refusal->named;
      return tl::unexpected(std::move(refusal->error));
    }
  }
  if (done) done = savepoint("RELEASE SAVEPOINT fencepost");
  if (!done) return tl::unexpected(done.error());
  return refusal;
}

StepwiseOutput::Answer<void> StepwiseOutput::EndApart() {
  if (terms_.by_position) {
    if (auto stored = StoreChanges(); !stored) return stored;
  }
  return Commit();
}

StepwiseOutput::Answer<std::size_t> StepwiseOutput::TakeBack(const Parts& parts) {
  auto gone = TakeBackSteps(parts);
  if (!gone) RollBack();
  return gone;
}

StepwiseOutput::Answer<std::size_t> StepwiseOutput::TakeBackSteps(const Parts& parts) {
  if (auto begun = Begin(); !begun) return tl::unexpected(begun.error());
  auto rows = LockPositions(parts);
  if (!rows) return tl::unexpected(rows.error());
  std::size_t gone = 0;
  Changes changes;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::optional<PositionRow>& row = (*rows)[i];
    const std::size_t taken = row ? consumer::TakeBack(parts[i].ranges, *row) : 0;
    gone += taken;
    for (const PositionRange& range : parts[i].ranges.all()) {
      if (!row) break;
      if (auto done = ForgetLetters(parts[i].key, range); !done)
        return tl::unexpected(done.error());
    }
    if (taken > 0) changes.push_back({parts[i].key, std::move(*row)});
  }
  if (auto stored = StorePositions(changes); !stored) return tl::unexpected(stored.error());
  if (auto done = Commit(); !done) return tl::unexpected(done.error());
  return gone;
}

}  // namespace fencepost::consumer
