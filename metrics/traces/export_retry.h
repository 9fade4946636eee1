// When a batch that a collector did not take is sent again, as OTLP's specification says: after a
// pause that doubles, or after what Retry-After asks for. One thread; reads no clock.
#pragma once

#include <chrono>
#include <optional>

#include "consumer/pipeline/options.h"

namespace fencepost::metrics {

class ExportRetry {
 public:
  using Moment = std::chrono::steady_clock::time_point;
  using Millis = consumer::Millis;
  static constexpr std::chrono::seconds kPatience{60};  // with one batch, beside what was asked for
  static constexpr std::chrono::seconds kLongestPause{30};
  static constexpr std::chrono::minutes kLongestRetryAfter{10};

  enum class Verdict { kTaken, kRefused, kAgain };
  // Of an answer's status; 0: there was none.
  static Verdict Judge(int status);

  explicit ExportRetry(Millis initial) : initial_(initial) {}

  void Begin(Moment now);  // of a batch
  // A try has failed. `random` is in [0, 1). Whether there is another one, at not_before(): not of
  // a batch that the collector wants later than kLongestRetryAfter.
  bool Again(Moment now, std::optional<Millis> retry_after, double random);
  // Also of the next batch: the collector has asked for it.
  [[nodiscard]] Moment not_before() const { return not_before_; }

 private:
  const Millis initial_;
  Moment begun_{};
  Moment not_before_{};
  Millis pause_{};
};

}  // namespace fencepost::metrics
