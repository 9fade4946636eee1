// One assignment of one partition: its delivered records in order, and how far they are finished.
#pragma once

#include <algorithm>
#include <deque>
#include <map>

#include "consumer/flow/flow.h"

namespace fencepost::consumer {

struct Flow::Partition {
  PartitionIndex index = 0;
  TopicPartition where;
  AssignmentEpoch epoch = 0;
  bool revoking = false;
  bool gone = false;  // no longer ours; only what the output has in its hands is still here
  std::map<Offset, Error> blocked;  // what the pipeline cannot go past, and why
  std::deque<InFlight*> records;    // delivered, from the watermark on, finished ones included
  InFlight* chain_tail = nullptr;   // order: partition
  std::size_t fallen = 0;           // records that were secured, and are not any more
  Offset position = 0;              // everything before it was delivered, or is not there
  Offset watermark = 0;             // everything before it is finished
  Offset committing = 0;            // the highest offset handed to Kafka
  Offset committed = 0;             // the highest offset that Kafka took
  Offset end = 0;                   // as last heard from the broker
  std::size_t writing = 0;
  Offset oldest = -1;  // the oldest unfinished record, and since when it has been that
  Instant oldest_since;
  Instant stall_told;

  // What holds a lease (or a hint) and may still be finished before the partition goes.
  [[nodiscard]] bool Busy() const {
    return std::any_of(records.begin(), records.end(), [](const InFlight* r) {
      return r->stage != Stage::kFinished && r->stage != Stage::kRetrying && Secured(r->stage);
    });
  }
};

}  // namespace fencepost::consumer
