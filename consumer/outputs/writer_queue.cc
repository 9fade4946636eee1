#include "consumer/outputs/writer_queue.h"

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

}  // namespace fencepost::consumer
