// What is to be sent to one node, until it goes out or fails. A value of LockCore, on its thread:
// it knows neither locks nor time.
//
// Invariant: every operation that Push takes leaves once, by Take, Stall or Clear. A batch has
// extensions first, then what frees or completes a name, then what takes one, then questions; of
// one kind, the order of Push. While the node is stalled, nothing waits here that must not come
// late, and Push takes nothing once kMostWhileStalled wait.
#pragma once

#include <cstddef>
#include <vector>

#include "locking/core/ops.h"

namespace fencepost::locking {

class NodeQueue {
 public:
  static constexpr std::size_t kMostWhileStalled = 65'536;

  // False: not taken; the operation fails.
  [[nodiscard]] bool Push(const Op& op);
  // Moves at most kMaxBatch operations to the end of `out`, none while stalled. Returns how many.
  std::size_t Take(std::vector<Op>& out);
  // The node stopped answering. Returns what fails by it: that which must not come late.
  [[nodiscard]] std::vector<Op> Stall();
  void Resume() { stalled_ = false; }
  // Empties the queue, and returns what was in it.
  [[nodiscard]] std::vector<Op> Clear();

  [[nodiscard]] bool Empty() const { return extensions_.empty() && head_ == others_.size(); }
  [[nodiscard]] bool stalled() const { return stalled_; }

 private:
  std::vector<Op> extensions_;
  std::vector<Op> others_;
  std::size_t head_ = 0;  // of others_: those before it were taken
  bool stalled_ = false;
};

}  // namespace fencepost::locking
