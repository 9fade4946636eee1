// What an output is still to do: writes and look-ups, each in the order in which they came, and
// where there are both, one of each in turn, so that neither waits for more than one of the other.
// A value; one thread at a time.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
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

  // Nothing can be written of this batch's partitions before `until`.
  void LeaveOut(const WriteBatch& batch, locking::Instant until);
  // Whether there is anything but batches of such partitions alone.
  [[nodiscard]] bool HasWork(locking::Instant now) const;

 private:
  std::deque<std::unique_ptr<WriteBatch>> batches_;
  std::deque<std::unique_ptr<LookupBatch>> lookups_;
  bool looked_ = false;  // in the last turn
  std::map<TopicPartition, locking::Instant> left_out_;
};

// A look-up, which is answered at once for the ids that can be: those whose logs cannot be compared
// yet are left out of the next try, and are `unread` in the answer.
class LookupTry {
 public:
  explicit LookupTry(const LookupBatch& batch);
  [[nodiscard]] const std::vector<std::string>& ids() const { return ids_; }
  void LeaveOut(const std::vector<std::size_t>& places);  // of ids(), ascending
  // `entries`: one each of ids(). Returns one each of the batch's.
  std::vector<std::optional<LedgerEntry>> Answer(
      LookupBatch& batch, std::vector<std::optional<LedgerEntry>> entries) const;

 private:
  std::vector<std::string> ids_;
  std::vector<std::size_t> places_;  // in the batch; ascending
};

}  // namespace fencepost::consumer
