// How much may be in flight, and which partitions are paused for it. A value of the flow; the
// engine thread's.
//
// All partitions are paused while too much is in flight, or while nothing can be done with it; they
// resume below three quarters. Apart from that a partition is paused by itself while one of its
// records holds up so much behind it that there would soon be no room for the others: too many
// finished ones, or for hold_after more than its share, which is three shares of the room that is
// left (dynamic thresholds: Choudhury and Hahne 1998).
//
// Invariant: room is at most what puts a partition at the limit of its share, should it all be of
// one; so whatever some partitions hold, there is room for the next one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "consumer/flow/state/assignment.h"
#include "locking/base/types.h"

namespace fencepost::consumer {

class Backpressure {
 public:
  using Partitions = std::map<PartitionIndex, std::unique_ptr<Assignment>>;
  struct Limits {
    std::size_t records = 0;          // unfinished ones
    std::uint64_t bytes = 0;          // held by them
    std::size_t finished_behind = 0;  // an unfinished record, in one partition
    Nanos hold_after{};
  };
  struct Changes {
    std::vector<PartitionIndex>& pause;
    std::vector<PartitionIndex>& resume;
  };

  explicit Backpressure(Limits limits) : limits_(limits) {}

  // `late`: so many more partitions of this assignment are told later; room is kept for them.
  void OnAssigned(std::size_t late);
  void OnDelivered(const Assignment& partition);  // after Assignment::Deliver
  void OnFinished() { --records_; }
  void OnBytes(Assignment& partition, std::uint64_t before, std::uint64_t after);

  // After every input. `usable`: something can be done with what is in flight. Appends what is to
  // be paused and resumed; returns for how long all was paused, since the last call, for nothing
  // but too much in flight. (An outage has metrics of its own.)
  Nanos Update(const Partitions& partitions, bool usable, Instant now, Changes changes);

  [[nodiscard]] std::size_t records() const { return records_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  // Records that may be delivered now, and bytes. None while all is paused, which Kafka's thread
  // hears of some moments later: else a partition that is over its share takes what is left.
  [[nodiscard]] std::size_t Room() const { return paused_ ? 0 : Left(); }
  [[nodiscard]] std::uint64_t RoomBytes() const;
  [[nodiscard]] Instant NextTime() const { return hold_at_; }  // max(): none

 private:
  [[nodiscard]] double Used() const { return Share(records_, bytes_); }
  [[nodiscard]] double NextShare() const;
  [[nodiscard]] std::size_t Left() const;
  [[nodiscard]] double Share(std::size_t records, std::uint64_t bytes) const;
  bool WeighShares(const Partitions& partitions, Instant now);
  void TellPaused(const Partitions& partitions, Instant now, Changes changes);

  Limits limits_;
  std::size_t records_ = 0;
  std::uint64_t bytes_ = 0;
  std::size_t late_ = 0;
  bool several_ = false;  // partitions
  bool recheck_partitions_ =
      false;  // at each partition: one is new, has too much, or is paused by itself
  bool paused_ = false;
  bool pressed_ = false;  // paused, and for nothing but too much in flight
  Instant pressed_since_{};
  Instant hold_at_ = Instant::max();  // when the next one over its share is to be paused
  double held_ = 0;                   // shares of those that are paused by themselves
  double largest_ = 0;                // share of any other, at most
};

}  // namespace fencepost::consumer
