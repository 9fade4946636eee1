#include "consumer/flow/state/backpressure.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace fencepost::consumer {
namespace {

constexpr double kPauseAbove = 3;   // shares of the room that is left
constexpr double kResumeBelow = 2;  // the same
constexpr double kLow = 0.75;

std::uint64_t Part(std::uint64_t used, std::uint64_t most, double share) {
  const std::uint64_t left = most - std::min(used, most);
  const auto part = static_cast<std::uint64_t>(std::max(0.0, share) * static_cast<double>(most));
  return std::min(left, std::max<std::uint64_t>(1, part));
}

}  // namespace

void Backpressure::OnAssigned(std::size_t late) {
  late_ = late;
  recheck_partitions_ = true;
}

void Backpressure::OnDelivered(const Assignment& partition) {
  ++records_;
  recheck_partitions_ =
      recheck_partitions_ || partition.finished_behind() >= limits_.finished_behind;
}

void Backpressure::OnBytes(Assignment& partition, std::uint64_t before, std::uint64_t after) {
  partition.bytes += after - before;
  bytes_ += after - before;
}

double Backpressure::Share(std::size_t records, std::uint64_t bytes) const {
  return std::max(static_cast<double>(records) / static_cast<double>(limits_.records),
                  static_cast<double>(bytes) / static_cast<double>(limits_.bytes));
}

double Backpressure::NextShare() const {
  return several_ ? (kPauseAbove * (1 - Used()) - largest_) / (kPauseAbove + 1) : 1;
}

std::size_t Backpressure::Left() const {
  return bytes_ >= limits_.bytes ? 0 : Part(records_, limits_.records, NextShare());
}

std::uint64_t Backpressure::RoomBytes() const {
  return paused_ ? 0 : Part(bytes_, limits_.bytes, NextShare());
}

Nanos Backpressure::Update(const Partitions& partitions, bool usable, Instant now,
                           Changes changes) {
  several_ = partitions.size() + late_ > 1;
  const bool waits = WeighShares(partitions, now);
  const bool full = Left() == 0;
  // Of the room that is not taken by partitions that are paused by themselves.
  const bool low = !full && Used() - held_ <= kLow * (1 - held_);
  const bool before = paused_;
  if (!paused_ && (full || waits || !usable)) {
    paused_ = true;
  } else if (paused_ && low && !waits && usable) {
    paused_ = false;
  }
  if (paused_ != before || recheck_partitions_) TellPaused(partitions, now, changes);
  const Nanos pressed = pressed_ ? now - pressed_since_ : Nanos(0);
  pressed_ = paused_ && usable;
  pressed_since_ = now;
  return pressed;
}

// A partition that goes back below its share within moments, in which nothing is read, is a busy
// one; one that does not is paused by itself, and the others go on. True while such a moment lasts.
bool Backpressure::WeighShares(const Partitions& partitions, Instant now) {
  const double left = std::max(0.0, 1 - Used());
  hold_at_ = Instant::max();
  held_ = 0;
  largest_ = 1 - left;
  if (!recheck_partitions_ && (left > 0.5 || !several_))
    return false;  // none can be over its share
  largest_ = 0;
  for (const auto& [index, partition] : partitions) {
    const double share = Share(partition->unfinished, partition->bytes);
    std::optional<Instant>& since = partition->over_share_since;
    if (!several_ || share == 0 || share < kResumeBelow * left) {
      since.reset();
    } else if (!since && share >= kPauseAbove * left) {
      since = now;
      recheck_partitions_ = true;
    }
    if (since && now - *since >= limits_.hold_after) {
      held_ += share;
      continue;
    }
    largest_ = std::max(largest_, share);
    if (since) hold_at_ = std::min(hold_at_, *since + limits_.hold_after);
  }
  return hold_at_ != Instant::max();
}

void Backpressure::TellPaused(const Partitions& partitions, Instant now, Changes changes) {
  recheck_partitions_ = false;
  for (const auto& [index, partition] : partitions) {
    const std::optional<Instant>& over = partition->over_share_since;
    bool& behind = partition->too_many_behind;
    behind = partition->finished_behind() >=
             (behind ? limits_.finished_behind / 2 + 1 : limits_.finished_behind);
    const bool pause = paused_ || behind || (over && now - *over >= limits_.hold_after);
    recheck_partitions_ = recheck_partitions_ || behind || over;
    if (pause == partition->paused) continue;
    partition->paused = pause;
    (pause ? changes.pause : changes.resume).push_back(index);
  }
}

}  // namespace fencepost::consumer
