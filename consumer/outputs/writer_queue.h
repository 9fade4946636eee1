// What an output is still to do: writes and look-ups, each in the order in which they came, and
// where there are both, one of each in turn, so that neither waits for more than one of the other.
// A value; one thread at a time.
#pragma once

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "consumer/flow/ports/ports.h"

namespace fencepost::consumer {

class WriterQueue {
 public:
  struct Turn {  // one of them; neither: the queue is empty
    std::unique_ptr<WriteBatch> batch;
    std::unique_ptr<LookupBatch> lookup;
  };

  void Push(std::unique_ptr<WriteBatch> batch) { batches_.push_back(std::move(batch)); }
  void Push(std::unique_ptr<LookupBatch> lookup) { lookups_.push_back(std::move(lookup)); }
  [[nodiscard]] bool Empty() const { return batches_.empty() && lookups_.empty(); }
  Turn Take();
  // These ids of a look-up come again with Resume.
  void PutOff(LookupBatch& lookup, const std::vector<std::size_t>& places);
  [[nodiscard]] bool PutsOff() const { return !later_.empty(); }
  void Resume();

 private:
  std::deque<std::unique_ptr<WriteBatch>> batches_;
  std::deque<std::unique_ptr<LookupBatch>> lookups_;
  std::vector<std::unique_ptr<LookupBatch>> later_;
  bool looked_ = false;  // in the last turn
};

}  // namespace fencepost::consumer
