#include "consumer/outputs/ledger/position_changes.h"

#include <utility>

#include "locking/base/planted.h"

namespace fencepost::consumer {

std::optional<WriteOutcome> PositionChanges::DoneBefore(std::size_t record,
                                                        const WriteItem& item) const {
  const std::optional<PositionRow>& row = before_[batch_.part(record)];
  if (!row || !row->done.Contains(batch_.offset(record))) return std::nullopt;
  return memory_.DoneBefore(*row, item);
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
