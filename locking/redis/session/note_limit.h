// How often a node's failures are noted in the log: a new reason after a second at the earliest,
// the same reason again after a minute. A value; one thread.
#pragma once

#include <chrono>
#include <optional>
#include <utility>

#include "locking/base/types.h"

namespace fencepost::locking {

template <typename Reason>
class NoteLimit {
 public:
  // Whether `reason` is noted now; if so, it counts as noted.
  bool Allows(const Reason& reason, Instant now) {
    const Nanos wait = reason == noted_ ? kBeforeRepeat : kBetweenNotes;
    if (noted_at_ != Instant() && now - noted_at_ < wait) return false;
    noted_ = reason;
    noted_at_ = now;
    return true;
  }
  // The failure is over: the same reason counts as new next time. Returns whether it was noted.
  bool End() { return std::exchange(noted_, std::nullopt).has_value(); }

 private:
  static constexpr Nanos kBetweenNotes = std::chrono::seconds(1);
  static constexpr Nanos kBeforeRepeat = std::chrono::seconds(60);

  std::optional<Reason> noted_;
  Instant noted_at_{};
};

}  // namespace fencepost::locking
