// How much may be in flight, and which partitions are paused for it.
#include <algorithm>

#include "consumer/flow/flow.h"

namespace fencepost::consumer {

namespace {

// Dynamic thresholds (Choudhury and Hahne 1998): a partition may hold up to three times the room
// that is left. Whatever some of them hold, there is room for the next one.
constexpr double kGreedy = 3;
constexpr double kModest = 2;

std::uint64_t Part(std::uint64_t left, double share, std::uint64_t most) {
  const auto part = static_cast<std::uint64_t>(std::max(0.0, share) * static_cast<double>(most));
  return std::min(left, std::max<std::uint64_t>(1, part));
}

}  // namespace

// So much that no partition becomes greedy by it, should it all be of one.
double Flow::NextShare() const {
  if (partitions_.size() + late_ < 2) return 1;
  return (kGreedy * (1 - Used()) - largest_) / (kGreedy + 1);
}

std::size_t Flow::Room() const {
  if (in_flight_bytes_ >= options_.max_in_flight_bytes) return 0;
  const std::size_t left = options_.max_in_flight - std::min(in_flight_, options_.max_in_flight);
  return Part(left, NextShare(), options_.max_in_flight);
}

std::uint64_t Flow::RoomBytes() const {
  const std::uint64_t left =
      options_.max_in_flight_bytes - std::min(in_flight_bytes_, options_.max_in_flight_bytes);
  return Part(left, NextShare(), options_.max_in_flight_bytes);
}

double Flow::Used() const {
  return std::max(
      static_cast<double>(in_flight_) / static_cast<double>(options_.max_in_flight),
      static_cast<double>(in_flight_bytes_) / static_cast<double>(options_.max_in_flight_bytes));
}

double Flow::Share(const Assignment& partition) const {
  return std::max(
      static_cast<double>(partition.unfinished) / static_cast<double>(options_.max_in_flight),
      static_cast<double>(partition.bytes) / static_cast<double>(options_.max_in_flight_bytes));
}

// Everything is paused while too much is in flight, or while nothing can be done with it. Apart
// from that a partition is paused by itself when one of its records holds up so much behind it that
// there would soon be no room for the other partitions.
void Flow::UpdateBackpressure(Now now) {
  const bool usable = locks_->Available() && dead_letters_up_ && taking_;
  const bool waits = WeighShares(now);
  const bool full = Room() == 0;
  // Of the room that is not taken by partitions that are paused by themselves.
  const bool low = !full && Used() - held_ <= 0.75 * (1 - held_);
  const bool before = paused_;
  if (!paused_ && (full || waits || !usable)) {
    paused_ = true;
  } else if (paused_ && low && !waits && usable) {
    paused_ = false;
  }
  if (paused_ != before || uneven_ || greedy_ + crowded_ > 0) TellPaused(now);
  CountBackpressure(paused_ && usable, now);
}

void Flow::TellPaused(Now now) {
  uneven_ = false;
  for (const auto& [index, partition] : partitions_) {
    const std::optional<Instant>& greedy = partition->greedy_since;
    const bool held = partition->crowded || (greedy && now.boot - *greedy >= options_.hold_after);
    uneven_ = uneven_ || (held && !paused_);
    if (partition->paused == (paused_ || held)) continue;
    partition->paused = paused_ || held;
    (partition->paused ? actions_.pause : actions_.resume).push_back(index);
  }
}

// A partition is greedy from three times the room that is left on, and until it holds less than
// twice that. A busy one goes back below that within moments, in which nothing is read; one that
// does not is paused by itself, and the others go on. True while such a moment lasts.
bool Flow::WeighShares(Now now) {
  const double left = std::max(0.0, 1 - Used());
  const bool several = partitions_.size() + late_ > 1;
  hold_at_ = Instant::max();
  held_ = 0;
  largest_ = 1 - left;
  if (greedy_ == 0 && (left > 0.5 || !several)) return false;
  largest_ = 0;
  for (const auto& [index, partition] : partitions_) {
    const double share = Share(*partition);
    std::optional<Instant>& since = partition->greedy_since;
    if (!since && several && share > 0 && share >= kGreedy * left) {
      since = now.boot;
      ++greedy_;
    } else if (since && (!several || share == 0 || share < kModest * left)) {
      since.reset();
      --greedy_;
    }
    if (since && now.boot - *since >= options_.hold_after) {
      held_ += share;
      continue;
    }
    largest_ = std::max(largest_, share);
    if (since) hold_at_ = std::min(hold_at_, *since + options_.hold_after);
  }
  return hold_at_ != Instant::max();
}

// A pause for an outage is not counted: its own metrics tell it.
void Flow::CountBackpressure(bool pressed, Now now) {
  if (pressed_) observer_->OnBackpressure(now.boot - pressed_since_);
  pressed_ = pressed;
  pressed_since_ = now.boot;
}

}  // namespace fencepost::consumer
