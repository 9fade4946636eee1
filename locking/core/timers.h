// When slots are to be looked at, the earliest first. Most instants come in a few ascending
// sequences, one for each constant delay (a third of the ttl, the usual wait of a round): those
// cost O(1), each in a lane of its own, where a heap over a ttl's worth of locks would miss the
// cache at each level. What fits no lane goes to a heap. A value; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "locking/base/types.h"

namespace fencepost::locking {

class Timers {
 public:
  struct Timer {
    Instant at;
    std::uint32_t slot = 0;
    bool operator>(const Timer& other) const { return at > other.at; }
  };

  void Push(const Timer& timer);
  [[nodiscard]] bool Empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  // The earliest; of several at one instant, any. Not of none.
  [[nodiscard]] const Timer& First() const;
  void Pop();

 private:
  static constexpr std::size_t kLanes = 4;

  // Invariant: ascending from head on; those before head are gone.
  struct Lane {
    std::vector<Timer> timers;
    std::size_t head = 0;
    [[nodiscard]] bool Empty() const { return head == timers.size(); }
  };

  [[nodiscard]] std::size_t FirstLane() const;  // kLanes: the heap

  std::array<Lane, kLanes> lanes_;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> heap_;
  std::size_t size_ = 0;
};

}  // namespace fencepost::locking
