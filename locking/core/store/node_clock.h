// One node's wall clock, watched against this machine's BOOTTIME. Every call bounds the offset
// between the two: the node read its clock between the sending and the answer. Two bounds that lie
// further apart than drift explains mean that the node's clock was stepped. A slow call only bounds
// loosely: it never looks like a step.
//
// Pure value; one thread.
#pragma once

#include <optional>

#include "locking/base/types.h"
#include "locking/core/ops.h"

namespace fencepost::locking {

class NodeClock {
 public:
  // The baseline is taken again about each `rebase`, so that slewing does not add up to a step.
  explicit NodeClock(Millis rebase) : rebase_(rebase) {}

  // Returns true when the clock was stepped since the baseline; the baseline is then `call` alone.
  bool Observe(const CallInfo& call);
  void Forget() { known_.reset(); }

  // When the node's clock has surely reached `time`; nothing before the first call.
  [[nodiscard]] std::optional<Instant> SurelyAt(WallTime time) const;
  // What the node's clock shows at `at`, give or take half a round trip.
  [[nodiscard]] std::optional<WallTime> Estimate(Instant at) const;

 private:
  struct Bounds {  // node time since the Unix epoch, less BOOTTIME
    Nanos low;
    Nanos high;
  };
  std::optional<Bounds> known_;
  Instant based_at_{};
  Millis rebase_;
};

}  // namespace fencepost::locking
