#include "consumer/outputs/writer_queue.h"

#include <algorithm>

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

void WriterQueue::PutOff(LookupBatch& lookup, const std::vector<std::size_t>& places) {
  LookupBatch stay{.epoch = lookup.epoch};
  auto later = std::make_unique<LookupBatch>(LookupBatch{.epoch = lookup.epoch});
  for (std::size_t i = 0; i < lookup.ids.size(); ++i) {
    LookupBatch& to = std::ranges::find(places, i) == places.end() ? stay : *later;
    to.references.push_back(lookup.references[i]);
    to.ids.push_back(std::move(lookup.ids[i]));
    to.contended.push_back(lookup.contended[i]);
  }
  lookup = std::move(stay);
  later_.push_back(std::move(later));
}

void WriterQueue::Resume() {
  for (auto& lookup : later_) Push(std::move(lookup));
  later_.clear();
}

}  // namespace fencepost::consumer
