#include "locking/core/timers.h"

namespace fencepost::locking {

// The lane that ends latest of those that end before it, so that the sequences stay apart.
void Timers::Push(const Timer& timer) {
  ++size_;
  Lane* fitting = nullptr;
  for (Lane& lane : lanes_) {
    if (lane.Empty()) {
      if (fitting == nullptr) fitting = &lane;
      continue;
    }
    const Instant end = lane.timers.back().at;
    if (end > timer.at) continue;
    if (fitting == nullptr || fitting->Empty() || fitting->timers.back().at < end) fitting = &lane;
  }
  fitting == nullptr ? heap_.push(timer) : fitting->timers.push_back(timer);
}

std::size_t Timers::FirstLane() const {
  std::size_t first = kLanes;
  for (std::size_t i = 0; i < kLanes; ++i) {
    const Lane& lane = lanes_[i];
    if (lane.Empty()) continue;
    const bool earlier =
        first == kLanes ? heap_.empty() || lane.timers[lane.head].at < heap_.top().at
                        : lane.timers[lane.head].at < lanes_[first].timers[lanes_[first].head].at;
    if (earlier) first = i;
  }
  return first;
}

const Timers::Timer& Timers::First() const {
  const std::size_t first = FirstLane();
  return first == kLanes ? heap_.top() : lanes_[first].timers[lanes_[first].head];
}

void Timers::Pop() {
  --size_;
  const std::size_t first = FirstLane();
  if (first == kLanes) {
    heap_.pop();
    return;
  }
  Lane& lane = lanes_[first];
  ++lane.head;
  if (lane.Empty() || lane.head > lane.timers.size() / 2 + 1024) {
    lane.timers.erase(lane.timers.begin(),
                      lane.timers.begin() + static_cast<std::ptrdiff_t>(lane.head));
    lane.head = 0;
  }
}

}  // namespace fencepost::locking
