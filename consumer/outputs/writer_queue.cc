#include "consumer/outputs/writer_queue.h"

#include <algorithm>
#include <numeric>

#include "locking/base/planted.h"

namespace fencepost::consumer {

WriterQueue::Turn WriterQueue::Take() {
  Turn turn;
  const bool turn_of_lookups = !looked_ || Planted("look_ups_go_first");
  const bool look = !lookups_.empty() && (batches_.empty() || turn_of_lookups);
  if (look) {
    turn.lookup = std::move(lookups_.front());
    lookups_.pop_front();
  } else if (!batches_.empty()) {
    turn.batch = std::move(batches_.front());
    batches_.pop_front();
  }
  looked_ = look;
  return turn;
}

void WriterQueue::LeaveOut(const WriteBatch& batch, locking::Instant until) {
  for (const WriteItem& item : batch.request.items) left_out_[*item.where] = until;
}

bool WriterQueue::HasWork(locking::Instant now) const {
  const auto left_out = [&](const WriteItem& item) {
    const auto found = left_out_.find(*item.where);
    return found != left_out_.end() && now < found->second;
  };
  const auto has_other = [&](const std::unique_ptr<WriteBatch>& batch) {
    return !std::ranges::all_of(batch->request.items, left_out);
  };
  return !lookups_.empty() || std::ranges::any_of(batches_, has_other);
}

LookupTry::LookupTry(const LookupBatch& batch) : ids_(batch.ids), places_(batch.ids.size()) {
  std::iota(places_.begin(), places_.end(), 0);
}

void LookupTry::LeaveOut(const std::vector<std::size_t>& places) {
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    ids_.erase(ids_.begin() + static_cast<std::ptrdiff_t>(*place));
    places_.erase(places_.begin() + static_cast<std::ptrdiff_t>(*place));
  }
}

std::vector<std::optional<LedgerEntry>> LookupTry::Answer(
    LookupBatch& batch, std::vector<std::optional<LedgerEntry>> entries) const {
  std::vector<std::optional<LedgerEntry>> all(batch.ids.size());
  for (std::size_t i = 0, at = 0; i < all.size(); ++i) {
    if (at < places_.size() && places_[at] == i) {
      all[i] = std::move(entries[at++]);
    } else {
      batch.unread.push_back(i);
    }
  }
  return all;
}

}  // namespace fencepost::consumer
