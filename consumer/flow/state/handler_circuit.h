// Whether the service behind a handler is at fault, rather than a record: a circuit breaker
// (Nygard, "Release It!", 2007). Sans-IO, a value; one thread.
//
// Closed, calls go out freely. It opens after so many retryable failures in a row, of two records
// at least, with no success in between: a single record that fails may be to blame itself, and so
// may one that failed before others succeeded. Open, one call goes out at a time, a probe, after
// waits that the caller draws; the first success of any call closes it.
//
// Time with an open circuit says nothing about a record that fails: ClosedTime() stands still.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "locking/base/types.h"

namespace fencepost::consumer {

class HandlerCircuit {
 public:
  using Call = std::uint64_t;
  using RecordKey = std::size_t;  // a hash of its id
  using Turn = std::uint64_t;     // successes so far

  // 0: it never opens.
  explicit HandlerCircuit(int failures_to_open) : failures_to_open_(failures_to_open) {}

  void SetFailuresToOpen(int failures) { failures_to_open_ = failures; }
  [[nodiscard]] bool open() const { return open_; }
  [[nodiscard]] int failures() const { return failures_; }  // in a row
  [[nodiscard]] int probes() const { return probes_; }      // that failed, since it opened
  [[nodiscard]] Turn turn() const { return turn_; }
  // How long it was closed until now, in all.
  [[nodiscard]] locking::Nanos ClosedTime(locking::Instant now) const {
    return now - locking::Instant() - OpenTime(now);
  }
  [[nodiscard]] locking::Nanos OpenFor(locking::Instant now) const {
    return open_ ? now - opened_at_ : locking::Nanos(0);
  }

  // When the next call may go out; max(): after an answer to the probe, or a success.
  [[nodiscard]] locking::Instant NextCall() const {
    if (!open_) return locking::Instant();
    return probe_ ? locking::Instant::max() : probe_at_;
  }
  void OnCall(Call call) {
    if (open_) probe_ = call;
  }
  // The call ended, in whatever way. True: it was the probe.
  bool OnEnd(Call call) {
    if (probe_ != call) return false;
    probe_.reset();
    return true;
  }

  // A retryable failure of a record that failed first in that turn. True: this one opened it.
  bool OnFailure(RecordKey record, Turn first_failed, locking::Instant now) {
    if (first_failed != turn_) return false;
    if (failures_++ == 0) first_ = record;
    several_ = several_ || record != first_;
    if (open_ || failures_to_open_ == 0 || failures_ < failures_to_open_ || !several_) return false;
    open_ = true;
    opened_at_ = now;
    probes_ = 0;
    return true;
  }
  // While open, after the failure that opened it and after each failed probe.
  void WaitUntil(locking::Instant at) {
    ++probes_;
    probe_at_ = at;
  }
  // The service did what it was asked, or said why not. True: this closed it.
  bool OnSuccess(locking::Instant now) {
    ++turn_;
    open_time_ = OpenTime(now);
    failures_ = 0;
    several_ = false;
    probe_.reset();
    return std::exchange(open_, false);
  }

 private:
  [[nodiscard]] locking::Nanos OpenTime(locking::Instant now) const {
    return open_time_ + OpenFor(now);
  }

  int failures_to_open_;
  int failures_ = 0;
  int probes_ = 0;
  RecordKey first_ = 0;   // of the failures in a row
  bool several_ = false;  // records among them
  bool open_ = false;
  Turn turn_ = 0;
  std::optional<Call> probe_;  // out
  locking::Instant probe_at_{};
  locking::Instant opened_at_{};
  locking::Nanos open_time_{0};  // before it opened last
};

}  // namespace fencepost::consumer
