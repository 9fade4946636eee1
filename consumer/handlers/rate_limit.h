// At most so many calls a second, evenly: the generic cell rate algorithm (ITU-T I.371), with a
// burst of a tenth of a second's calls. Sans-IO, a value; one thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "locking/base/types.h"

namespace fencepost::consumer {

class RateLimit {
 public:
  explicit RateLimit(double per_second) { Set(per_second); }
  void Set(double per_second) {  // 0: no limit
    const double interval = per_second > 0 ? 1e9 / per_second : 0;
    interval_ = locking::Nanos(static_cast<std::int64_t>(interval));
    next_ = {};  // what the old one made to wait waits no longer
  }

  // When the next call may go out.
  [[nodiscard]] locking::Instant NextCall() const {
    if (interval_ == locking::Nanos(0)) return {};
    return next_ - std::max(locking::Nanos(0), kBurst - interval_);
  }
  void OnCall(locking::Instant now) { next_ = std::max(next_, now) + interval_; }

 private:
  static constexpr locking::Nanos kBurst = locking::Millis(100);

  locking::Nanos interval_{0};
  locking::Instant next_{};  // of a call that comes evenly
};

}  // namespace fencepost::consumer
