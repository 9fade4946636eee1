#include "metrics/traces/export_retry.h"

#include <algorithm>
#include <array>

namespace fencepost::metrics {

ExportRetry::Verdict ExportRetry::Judge(int status) {
  constexpr std::array kAgain = {0, 429, 502, 503, 504};
  if (status >= 200 && status < 300) return Verdict::kTaken;
  return std::ranges::count(kAgain, status) > 0 ? Verdict::kAgain : Verdict::kRefused;
}

void ExportRetry::Begin(Moment now) {
  begun_ = now;
  pause_ = initial_;
}

bool ExportRetry::Again(Moment now, std::optional<Millis> retry_after, double random) {
  // Of many workers whose collector restarts not all at once.
  const auto own = std::chrono::duration_cast<Millis>(pause_ * (0.5 + random / 2));
  pause_ = std::min<Millis>(pause_ * 2, kLongestPause);
  const Moment next =
      now + (retry_after ? std::min<Millis>(*retry_after, kLongestRetryAfter) : own);
  const bool asked = retry_after && *retry_after <= kLongestRetryAfter;
  const bool again = next <= begun_ + kPatience + Millis(asked ? kLongestRetryAfter : Millis(0));
  if (again || retry_after) not_before_ = next;
  return again;
}

}  // namespace fencepost::metrics
