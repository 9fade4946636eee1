#include "consumer/outputs/ledger/position_memory.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

constexpr std::size_t kMostLookedAt = 8;  // offsets at either end of what is missing

OutputError LedgerBehind(std::string_view group, const PositionPart& part, Offset end) {
  const TopicPartition& where = part.key.where;
  return {.error = {.code = std::string(kLedgerBehind),
                    .what = fmt::format("the group goes on at offset {}, and in the ledger nothing "
                                        "from offset {} on is done: records between them were "
                                        "committed to Kafka and are not in this database",
                                        part.start, end),
                    .where = fmt::format("{}/{}", where.topic, where.partition),
                    .hint = fmt::format(
                        "was a standby promoted, or a backup restored? Then stop all workers of "
                        "the group, put {},{},{} into a file, and run kafka-consumer-groups "
                        "--group {} --reset-offsets --from-file FILE --execute; if the group's "
                        "offset was moved past them on purpose, there is nothing to do",
                        where.topic, where.partition, end, group.empty() ? "GROUP" : group)},
          .retry_at_once = true};
}

// The first error, with the places of all.
void PutOff(std::optional<OutputError>& all, OutputError error, std::size_t place) {
  if (!all) all = std::move(error);
  all->later.push_back(place);
}

}  // namespace

PositionMemory::Known& PositionMemory::Of(const PositionKey& key) {
  Known& known = known_[key];
  if (std::exchange(known.epoch, epoch_) == epoch_) return known;
  known.same = {};
  known.compared = known.before_write = false;
  return known;
}

void PositionMemory::OnConnected() {
  for (auto& [key, known] : known_) known.row = false;
}

bool PositionMemory::Knows(const PositionKey& key) const {
  const auto known = known_.find(key);
  return known != known_.end() && known->second.row;
}

void PositionMemory::Learn(const PositionKey& key, const PositionAnchors& anchors) {
  Known& known = Of(key);
  for (const LogSample& one : anchors.all()) {
    if (known.seen && !known.anchors.Has(one)) Doubt(known, one);
  }
  Remember(known, anchors);
}

void PositionMemory::Remember(Known& known, const PositionAnchors& anchors) {
  known.row = known.seen = true;
  known.anchors = anchors;
}

std::string PositionMemory::AnchorsWith(const PositionPart& part) const {
  if (!part.newest) return "";
  const auto known = known_.find(part.key);
  PositionAnchors anchors = known == known_.end() ? PositionAnchors() : known->second.anchors;
  anchors.Add(part.oldest, part.newest);
  return anchors.Text();
}

WriteOutcome PositionMemory::DoneBefore(const PositionRow& row, const WriteItem& item) const {
  if (row.worker == worker_) return {.result = WriteResult::kOwnEarlier};
  if (row.token > item.token) return {.result = WriteResult::kFenced};
  return {.result = WriteResult::kDuplicate};
}

void PositionMemory::OnAssignment(const std::vector<WriteItem>& items) {
  for (const WriteItem& item : items) epoch_ = std::max(epoch_, item.record->epoch);
}

PositionPart PositionMemory::Whole(const PositionPart& part) {
  PositionPart whole{.key = part.key, .epoch = part.epoch};
  whole.ranges.Add(0, std::numeric_limits<Offset>::max());
  return whole;
}

tl::expected<bool, OutputError> PositionMemory::LostBehind(const PositionPart& part,
                                                           const PositionRow& row) {
  if (terms_.filtered || row.done.empty() || row.done.end() >= part.start) return false;
  std::vector<Offset> offsets;
  for (Offset at = row.done.end(); at < part.start && offsets.size() < kMostLookedAt; ++at) {
    offsets.push_back(at);
  }
  const Offset next = offsets.back() + 1;
  for (Offset at = part.start; at > next && offsets.size() < 2 * kMostLookedAt;) {
    offsets.push_back(--at);
  }
  const auto log = terms_.read_log({part.key.cluster, part.key.where, offsets, epoch_});
  if (!log) return tl::unexpected(OutputError{.error = log.error()});
  return *log && !(*log)->records.empty();
}

tl::expected<void, OutputError> PositionMemory::BeforeWrite(const std::vector<PositionPart>& parts,
                                                            const ReadRows& read) {
  if (!terms_.read_log || Planted("first_write_is_not_compared")) return {};
  std::vector<PositionPart> asked;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    // A replay says nothing of where its partition's log is.
    const Known& known = Of(parts[i].key);
    if (!parts[i].newest || (known.before_write && known.doubted.empty())) continue;
    asked.push_back(Whole(parts[i]));
    places.push_back(i);
  }
  if (asked.empty()) return {};
  const auto rows = read(asked);
  if (!rows) return tl::unexpected(rows.error());
  std::optional<OutputError> later;
  std::optional<OutputError> behind;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const PositionPart& part = parts[places[i]];
    Known& known = Of(part.key);
    const std::optional<PositionRow>& row = (*rows)[i];
    auto lost = row ? BeforeWrite(part, *row) : tl::expected<bool, OutputError>(false);
    if (!lost && lost.error().fatal) return tl::unexpected(std::move(lost.error()));
    if (!lost) {
      PutOff(later, std::move(lost.error()), places[i]);
      continue;
    }
    if (part.epoch >= epoch_) known.before_write = true;
    if (*lost && !behind) behind = LedgerBehind(terms_.group, part, row->done.end());
  }
  if (behind) return tl::unexpected(std::move(*behind));
  if (later) return tl::unexpected(std::move(*later));
  return {};
}

// True: commits are lost (LostBehind).
tl::expected<bool, OutputError> PositionMemory::BeforeWrite(const PositionPart& part,
                                                            const PositionRow& row) {
  Known& known = Of(part.key);
  const std::vector<LogSample>& anchors = row.anchors.all();
  const Offset first =
      Planted("overlap_is_not_compared_before") ? part.ranges.end() : part.ranges.first();
  const bool reaches = !row.done.empty() && row.done.end() > first;
  // The ledger goes on where it ended, mostly: one record to read.
  const bool newest = !reaches && known.doubted.empty() && !anchors.empty();
  tl::expected<void, OutputError> same;
  if (!newest) {
    same = Compare(part.key, row);
  } else if (!known.compared || !known.same.Has(anchors.front())) {
    same = CompareWith(part.key, {anchors.front()});
  }
  if (!same) return tl::unexpected(std::move(same.error()));
  if (known.before_write || Planted("ledger_behind_goes_unsaid")) return false;
  return LostBehind(part, row);
}

tl::expected<void, OutputError> PositionMemory::CompareWith(const PositionKey& key,
                                                            const std::vector<LogSample>& known) {
  std::vector<Offset> offsets;
  for (const LogSample& one : known) offsets.push_back(one.offset);
  auto log = terms_.read_log({key.cluster, key.where, offsets, epoch_});
  if (!log && Planted("unread_log_is_written")) return {};
  if (!log) {
    Error error = std::move(log.error());
    error.what = fmt::format("whether {}/{} is still the log that its records were done in: {}",
                             key.where.topic, key.where.partition, error.what);
    return tl::unexpected(OutputError{.error = std::move(error)});
  }
  if (!*log) return {};
  const LogComparison compared = CompareLog(known, **log);
  if (compared.verdict != LogComparison::Verdict::kOther) return {};
  return tl::unexpected(
      OutputError{.error = TopicReplaced(terms_.group, key.where, compared), .fatal = true});
}

void PositionMemory::Doubt(Known& known, const LogSample& record) const {
  if (!terms_.read_log || (known.compared && known.same.Has(record))) return;
  if (std::ranges::find(known.doubted, record) == known.doubted.end()) {
    known.doubted.push_back(record);
  }
}

tl::expected<void, OutputError> PositionMemory::Compare(const PositionKey& key,
                                                        const PositionRow& row) {
  for (const LogSample& anchor : row.anchors.all()) Doubt(Of(key), anchor);
  return CompareDoubted(key, row.anchors);
}

tl::expected<void, OutputError> PositionMemory::CompareDoubted(const PositionKey& key,
                                                               const PositionAnchors& anchors) {
  Known& known = Of(key);
  if (!terms_.read_log || known.doubted.empty() || Planted("another_log_is_not_noticed")) return {};
  if (auto same = CompareWith(key, known.doubted); !same) return same;
  known.compared = true;
  known.same = anchors;
  known.doubted.clear();
  return {};
}

bool PositionMemory::AnotherHasWritten(const Known& known, const PositionPart& part,
                                       const PositionRow& before) {
  if (!known.seen || Planted("later_anchor_is_not_compared")) return false;
  return !std::ranges::all_of(before.anchors.all(), [&](const LogSample& one) {
    return known.anchors.Has(one) || part.oldest == one || part.newest == one;
  });
}

// By then the part's anchors may have taken the place of those in `before`: what is to be compared
// is kept here until it was. Where another has written, the partition may have been given away and
// be back.
tl::expected<void, OutputError> PositionMemory::OnCommitted(const PositionPart& part,
                                                            const PositionRow& before) {
  Known& known = Of(part.key);
  const PositionRanges taken = part.ranges.Minus(before.done);
  const bool all_new = taken == part.ranges;
  const bool another = AnotherHasWritten(known, part, before);
  const bool former = part.epoch < epoch_ && !Planted("former_assignment_is_not_compared");
  bool of_this_log = !former && (!another || Planted("own_anchors_are_news_to_nobody"));
  PositionAnchors after = before.anchors;
  if (!taken.empty()) after.Add(part.oldest, part.newest);
  Remember(known, after);
  Acknowledge(part, before.forgotten);
  if (!of_this_log || !all_new || !known.doubted.empty()) {
    for (const LogSample& one : before.anchors.all()) {
      const bool own = part.oldest == one || part.newest == one;
      if (!of_this_log || !own) Doubt(known, one);
    }
    if (!of_this_log && !taken.empty() && part.newest) {
      Doubt(known, *part.oldest);
      Doubt(known, *part.newest);
    }
    auto same = CompareDoubted(part.key, before.anchors);
    if (!same && (!all_new || same.error().fatal)) return same;
    // Of a partition that is another's by now, mostly: the others are not to wait for its leader.
    if (!same && Planted("not_compared_is_forgotten")) known.doubted.clear();
    of_this_log = of_this_log || same.has_value();
  }
  if (of_this_log && !taken.empty()) known.same.Add(part.oldest, part.newest);
  return {};
}

tl::expected<void, OutputError> PositionMemory::OnCommitted(const std::vector<PositionPart>& parts,
                                                            const Rows& before) {
  const PositionRow none;
  tl::expected<void, OutputError> all;
  std::optional<OutputError> later;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto same = OnCommitted(parts[i], before[i] ? *before[i] : none);
    if (same) continue;
    if (!same.error().fatal) {
      PutOff(later, std::move(same.error()), i);
    } else if (all) {
      all = std::move(same);
    }
  }
  if (!all || !later) return all;
  later->unanswered = true;  // it is committed, and not to be told of yet
  return tl::unexpected(std::move(*later));
}

void PositionMemory::Acknowledge(const PositionPart& part, std::int64_t forgotten) {
  Known& known = known_[part.key];
  known.row = true;
  if (known.forgotten != forgotten) known.acknowledged = {};
  known.forgotten = forgotten;
  known.acknowledged.Add(part.ranges);
}

std::vector<PositionPart> PositionMemory::Acknowledged() const {
  std::vector<PositionPart> parts;
  for (const auto& [key, known] : known_) {
    if (!known.acknowledged.empty()) parts.push_back({.key = key, .ranges = known.acknowledged});
  }
  return parts;
}

std::optional<LostCommits> PositionMemory::Lost(
    const std::vector<std::optional<PositionRow>>& rows) const {
  LostCommits lost{.since = complete_at_};
  std::size_t at = 0;
  for (const auto& [key, known] : known_) {
    if (known.acknowledged.empty()) continue;
    const std::optional<PositionRow>& row = rows[at++];
    if (row && row->forgotten > known.forgotten) continue;
    const PositionRanges missing = known.acknowledged.Minus(row ? row->done : PositionRanges());
    if (missing.empty()) continue;
    lost.commits += static_cast<std::size_t>(missing.CountOffsets());
    lost.back_to.push_back({key.where, missing.first()});
  }
  if (lost.back_to.empty()) return std::nullopt;
  return lost;
}

tl::expected<std::vector<std::optional<LedgerEntry>>, OutputError> PositionMemory::Answer(
    const PositionLookup& asked, const std::vector<std::optional<PositionRow>>& rows) {
  std::vector<std::optional<LedgerEntry>> entries;
  std::optional<OutputError> later;
  std::vector<bool> unread(asked.parts.size());
  for (const auto& place : asked.places) {
    auto& entry = entries.emplace_back();
    if (!place || !rows[place->part] || !rows[place->part]->done.Contains(place->offset)) continue;
    const PositionKey& key = asked.parts[place->part].key;
    if (unread[place->part]) {
      later->later.push_back(entries.size() - 1);
      continue;
    }
    if (auto same = Compare(key, *rows[place->part]); !same) {
      if (same.error().fatal) return tl::unexpected(std::move(same.error()));
      PutOff(later, std::move(same.error()), entries.size() - 1);
      unread[place->part] = true;
      continue;
    }
    const PositionRow& row = *rows[place->part];
    entry = LedgerEntry{.token = row.token,
                        .worker = row.worker,
                        .source = SourceText(key.where, place->offset),
                        .completed_at = row.updated_at};
  }
  if (later) return tl::unexpected(std::move(*later));
  return entries;
}

void PositionMemory::Forget() {
  for (auto& [key, known] : known_) known.acknowledged = {};
}

// --- of a transaction
// ------------------------------------------------------------------------------

std::optional<WriteOutcome> PositionChanges::DoneBefore(std::size_t record,
                                                        const WriteItem& item) const {
  const std::optional<PositionRow>& row = before_[batch_.part(record)];
  if (!row || !row->done.Contains(batch_.offset(record))) return std::nullopt;
  return memory_.DoneBefore(*row, item);
}

void PositionChanges::Narrow(const BatchRows& rows) {
  std::set<std::size_t> written;
  for (std::size_t record = 0; record < rows.size(); ++record) written.insert(rows.place(record));
  for (const std::size_t record : reopened_) {
    const Offset offset = batch_.offset(record);
    if (!written.contains(record)) before_[batch_.part(record)]->done.Add(offset, offset + 1);
  }
  std::map<PositionKey, std::optional<PositionRow>> before;
  for (std::size_t i = 0; i < before_.size(); ++i) before[parts()[i].key] = std::move(before_[i]);
  batch_.Fill(rows);
  before_.clear();
  for (const PositionPart& part : parts()) before_.push_back(std::move(before[part.key]));
}

void PositionChanges::Reopen(std::size_t record) {
  const Offset offset = batch_.offset(record);
  before_[batch_.part(record)]->done.Remove(offset, offset + 1);
  reopened_.push_back(record);
}

std::vector<PositionChanges::Change> PositionChanges::Changed(std::string_view now) const {
  std::vector<Change> changes;
  for (std::size_t i = 0; i < before_.size(); ++i) {
    const PositionPart& part = parts()[i];
    PositionRow row = before_[i].value_or(PositionRow());
    if (part.ranges.Minus(row.done).empty()) continue;
    row.done.Add(part.ranges);
    row.token = part.token;
    row.worker = memory_.worker();
    row.anchors.Add(part.oldest, part.newest);
    row.updated_at = now;
    changes.push_back({part.key, std::move(row)});
  }
  return changes;
}

tl::expected<void, OutputError> PositionChanges::OnCommitted() {
  return OfItems(memory_.OnCommitted(parts(), before_));
}

tl::expected<void, OutputError> PositionChanges::OfItems(tl::expected<void, OutputError> of) const {
  if (!of) of.error().later = batch_.ItemsOf(of.error().later);
  return of;
}

std::size_t TakeBack(const PositionRanges& ranges, PositionRow& row) {
  PositionRanges left = row.done.Minus(ranges);
  const std::uint64_t gone = row.done.CountOffsets() - left.CountOffsets();
  if (gone == 0) return 0;
  row.done = std::move(left);
  if (!Planted("forgotten_counts_as_lost")) ++row.forgotten;
  if (row.done.empty()) row.anchors = {};
  return static_cast<std::size_t>(gone);
}

}  // namespace fencepost::consumer
