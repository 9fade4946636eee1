#include "consumer/outputs/positions/position_memory.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

OutputError OtherLog(const PositionKey& key, const std::string& why, const std::string& group) {
  const TopicPartition& where = key.where;
  return {
      .error = {.code = "topic_replaced",
                .what = fmt::format("the topic was recreated or truncated: {}; what the ledger "
                                    "has as done are records of the former log",
                                    why),
                .where = fmt::format("{}/{}", where.topic, where.partition),
                .hint = fmt::format(
                    "records of the new log that came before this was found may have taken effect, "
                    "and do again by either way: stop the workers, set the group's offset "
                    "(kafka-consumer-groups --group {0} --topic {1}:{2} --reset-offsets "
                    "--to-earliest --execute), and take back all that is done of this partition "
                    "(fencepost forget FILE --topic {1} --partition {2} --from 0 --to {3} "
                    "--execute) or give the pipeline another name, so that it begins with an "
                    "empty ledger",
                    group, where.topic, where.partition, std::numeric_limits<Offset>::max())},
      .fatal = true};
}

}  // namespace

void PositionMemory::OnConnected() {
  for (auto& [key, known] : known_) known.row = false;
}

bool PositionMemory::Knows(const PositionKey& key) const {
  const auto known = known_.find(key);
  return known != known_.end() && known->second.row;
}

void PositionMemory::Learn(const PositionKey& key, const PositionAnchors& anchors) {
  Known& known = known_[key];
  known.row = true;
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

tl::expected<void, OutputError> PositionMemory::BeforeWrite(const std::vector<PositionPart>& parts,
                                                            const ReadRows& read) {
  if (!terms_.read_log || Planted("first_write_is_not_compared")) return {};
  std::vector<PositionPart> from_here;
  for (const PositionPart& part : parts) {
    // A replay says nothing of where its partition's log is.
    if (!part.newest || known_[part.key].written == epoch_) continue;
    PositionPart& asked = from_here.emplace_back(PositionPart{.key = part.key});
    const bool behind = Planted("overlap_is_not_compared_before");
    asked.ranges.Add(behind ? part.ranges.end() : part.ranges.first(),
                     std::numeric_limits<Offset>::max());
  }
  if (from_here.empty()) return {};
  const auto rows = read(from_here);
  if (!rows) return tl::unexpected(rows.error());
  for (std::size_t i = 0; i < from_here.size(); ++i) {
    if (const std::optional<PositionRow>& row = (*rows)[i]) {
      const bool reaches = !row->done.empty() && row->done.end() > from_here[i].ranges.first();
      auto same = reaches ? Compare(from_here[i].key, *row) : CompareNewest(from_here[i].key, *row);
      if (!same) return same;
    }
    known_[from_here[i].key].written = epoch_;
  }
  return {};
}

// The ledger goes on where it ended, mostly: one record to read. Where brokers do not answer, other
// partitions do not wait for this one.
tl::expected<void, OutputError> PositionMemory::CompareNewest(const PositionKey& key,
                                                              const PositionRow& row) {
  if (known_[key].compared == epoch_ || row.anchors.all().empty()) return {};
  const auto log = terms_.read_log(key.cluster, key.where, {row.anchors.all().front().offset});
  if (!log || !*log) return {};
  if (const auto why = AnotherLog(row.anchors, **log))
    return tl::unexpected(OtherLog(key, *why, terms_.group));
  return {};
}

tl::expected<void, OutputError> PositionMemory::Compare(const PositionKey& key,
                                                        const PositionRow& row,
                                                        const PositionPart* own) {
  Known& known = known_[key];
  const auto same = [&](const LogRecord& one) {
    return known.same.Has(one) || (own != nullptr && (own->oldest == one || own->newest == one));
  };
  const bool seen = known.compared == epoch_ && (std::ranges::all_of(row.anchors.all(), same) ||
                                                 Planted("later_anchor_is_not_compared"));
  if (!terms_.read_log || seen || Planted("another_log_is_not_noticed")) return {};
  std::vector<Offset> offsets;
  for (const LogRecord& anchor : row.anchors.all()) offsets.push_back(anchor.offset);
  auto log = terms_.read_log(key.cluster, key.where, offsets);
  if (!log) {
    Error error = std::move(log.error());
    error.what = fmt::format("whether {}/{} is still the log that its records were done in: {}",
                             key.where.topic, key.where.partition, error.what);
    return tl::unexpected(OutputError{.error = std::move(error)});
  }
  if (*log) {
    if (const auto why = AnotherLog(row.anchors, **log))
      return tl::unexpected(OtherLog(key, *why, terms_.group));
  }
  known.compared = epoch_;
  known.same = row.anchors;
  return {};
}

tl::expected<void, OutputError> PositionMemory::OnCommitted(const PositionPart& part,
                                                            const PositionRow& before) {
  Known& known = known_[part.key];
  const PositionRanges taken = part.ranges.Minus(before.done);
  const bool news = known.row && !Planted("later_anchor_is_not_compared") &&
                    !std::ranges::all_of(before.anchors.all(), [&](const LogRecord& one) {
                      return known.anchors.Has(one);
                    });
  const bool former = part.epoch < epoch_ && !Planted("former_assignment_is_not_compared");
  PositionRow after = before;
  if (!taken.empty()) after.anchors.Add(part.oldest, part.newest);
  if (taken != part.ranges || news || former) {
    if (auto same = Compare(part.key, former ? after : before, former ? nullptr : &part); !same)
      return same;
  }
  if (!taken.empty() && !former) known.same.Add(part.oldest, part.newest);
  Learn(part.key, after.anchors);
  Acknowledge(part, before.forgotten);
  return {};
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
  for (const auto& place : asked.places) {
    auto& entry = entries.emplace_back();
    if (!place || !rows[place->part] || !rows[place->part]->done.Contains(place->offset)) continue;
    const PositionKey& key = asked.parts[place->part].key;
    if (auto same = Compare(key, *rows[place->part]); !same) return tl::unexpected(same.error());
    const PositionRow& row = *rows[place->part];
    entry = LedgerEntry{.token = row.token,
                        .worker = row.worker,
                        .source = SourceText(key.where, place->offset),
                        .completed_at = row.updated_at};
  }
  return entries;
}

void PositionMemory::Forget() {
  for (auto& [key, known] : known_) known.acknowledged = {};
}

}  // namespace fencepost::consumer
