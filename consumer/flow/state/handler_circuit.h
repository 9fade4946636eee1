// Whether the service behind a handler is at fault, rather than a record: a circuit breaker
// (Nygard, "Release It!", 2007). Sans-IO, a value; one thread.
//
// Closed, calls go out freely. It opens after so many retryable failures in a row with no success
// in between, of two records at least: one alone may be bad, unless the service itself says that it
// is not there. Open, one call goes out at a time, a probe, after waits
// that the caller draws; the first success of any call closes it.
//
// A failure counts in the row unless the service is known to work for others: a call succeeded that
// began after the record's failure before this one (after this call, if it is its first). So a bad
// record among good ones never counts twice, and records that failed before an outage count in it.
//
// Time with an open circuit says nothing about a record that fails: ClosedTime() stands still. But
// where only bad records are left to probe with (the first of each partition, say) it would be open
// for ever: MayGiveUp() lets one record go now and then.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "locking/base/types.h"

namespace fencepost::consumer {

class HandlerCircuit {
 public:
  using Call = std::uint64_t;     // grows with each call; 0: none
  using RecordKey = std::size_t;  // a hash of its id

  // What a record remembers of its failures while they may be the service's.
  struct Failing {
    int failures = 0;         // calls that failed
    Call last = 0;            // the last of them
    locking::Instant since;   // the first of them
    locking::Nanos closed{};  // ClosedTime() then
  };

  // 0: it never opens.
  explicit HandlerCircuit(int failures_to_open) : failures_to_open_(failures_to_open) {}

  void SetFailuresToOpen(int failures) { failures_to_open_ = failures; }
  [[nodiscard]] bool open() const { return open_; }
  [[nodiscard]] int failures() const { return failures_; }  // in a row
  [[nodiscard]] int probes() const { return probes_; }      // that failed, since it opened
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

  // A retryable failure; `unavailable`: one by which the service says that it serves nobody now.
  // True: this one opened it.
  bool OnFailure(RecordKey record, Failing& failing, Call call, bool unavailable,
                 locking::Instant now) {
    if (failing.failures++ == 0) {
      failing.since = now;
      failing.closed = ClosedTime(now);
    }
    const Call before = std::exchange(failing.last, call);
    if (last_success_ > (before == 0 ? call : before)) return false;
    if (failures_++ == 0) first_ = record;
    several_ = several_ || record != first_;
    if (open_ || failures_to_open_ == 0 || failures_ < failures_to_open_) return false;
    if (!several_ && !unavailable) return false;
    open_ = true;
    opened_at_ = now;
    gave_up_at_ = now;
    probes_ = 0;
    return true;
  }
  // While open, after the failure that opened it and after each failed probe.
  void WaitUntil(locking::Instant at) {
    ++probes_;
    probe_at_ = at;
  }
  // The service did what it was asked, or said why not. True: this closed it.
  bool OnSuccess(Call call, locking::Instant now) {
    last_success_ = std::max(last_success_, call);
    return Close(now);
  }
  // Nothing is left to probe with. True: this closed it.
  bool OnIdle(locking::Instant now) { return open_ && Close(now); }

  // While open: whether this record, which has failed for four times `after` and may be to blame,
  // is given up. One in each `after`; never where that is 0.
  bool MayGiveUp(const Failing& failing, locking::Nanos after, locking::Instant now) {
    if (after == locking::Nanos(0) || now - failing.since < 4 * after) return false;
    if (now - gave_up_at_ < after) return false;
    gave_up_at_ = now;
    return true;
  }

 private:
  [[nodiscard]] locking::Nanos OpenTime(locking::Instant now) const {
    return open_time_ + OpenFor(now);
  }
  bool Close(locking::Instant now) {
    open_time_ = OpenTime(now);
    failures_ = 0;
    several_ = false;
    probe_.reset();
    return std::exchange(open_, false);
  }

  int failures_to_open_;
  int failures_ = 0;
  int probes_ = 0;
  RecordKey first_ = 0;   // of the failures in a row
  bool several_ = false;  // records among them
  bool open_ = false;
  Call last_success_ = 0;      // the newest call that succeeded
  std::optional<Call> probe_;  // out
  locking::Instant probe_at_{};
  locking::Instant opened_at_{};
  locking::Instant gave_up_at_{};  // a record last; first: when it opened
  locking::Nanos open_time_{0};    // before it opened last
};

}  // namespace fencepost::consumer
