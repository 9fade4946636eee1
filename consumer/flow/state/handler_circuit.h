// Whether the service behind a handler is at fault, rather than a record: a circuit breaker
// (Nygard, "Release It!", 2007). Sans-IO, a value; one thread.
//
// Closed, calls go out freely. It opens after so many retryable failures in a row with no success
// in between, of two records at least: one alone may be bad, unless the service is not reached, or
// says that it serves nobody and has served no other record since that one failed first. Open, one
// call goes out at a time, a probe, after waits that the caller draws; the first success of any
// call closes it.
//
// A failure counts in the row unless the service is known to work for others: a call succeeded that
// began after the record's failure before this one (after this call, if it is its first). So a bad
// record among good ones never counts twice, and records that failed before an outage count in it.
//
// A record is given up by its own clock (Failing::alone). That counts the time between two of its
// failures only if it fails alone: others succeeded meanwhile, or none but it has failed. No more
// of it counts than it had to wait: without its lock it could not be tried. Once a record was given
// up, no other one counts as alone until a call succeeds: an outage that leaves one record to try
// at a time costs one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "locking/base/types.h"

namespace fencepost::consumer {

// What a failure says of the service.
enum class Says : std::uint8_t {
  kNothing,       // the record may be to blame as well
  kServesNobody,  // in the service's own words
  kIsAway,        // it was not reached
  kRefusesAll,    // so did the ones before it, and more than are believed
};

class HandlerCircuit {
 public:
  using Call = std::uint64_t;     // grows with each call; 0: none
  using RecordKey = std::size_t;  // a hash of its id

  // What a record remembers of its failures.
  struct Failing {
    int failures = 0;         // calls that failed, those of earlier owners too
    int shared = 0;           // … with all others of their request, in whatever way they counted
    Call last = 0;            // of them; 0: none here
    Call begun = 0;           // the newest call of any record when the first of them failed
    locking::Instant at;      // when the last one failed
    locking::Nanos wait{0};   // how long after that the next call may take until it fails; 0: none
    locking::Nanos alone{0};  // how long it has failed by itself
    std::string why;          // the last failure, without anything of the record
  };

  explicit HandlerCircuit(int failures_to_open) : failures_to_open_(failures_to_open) {}

  void SetFailuresToOpen(int failures) { failures_to_open_ = failures; }
  [[nodiscard]] bool open() const { return open_; }
  [[nodiscard]] int failures() const { return failures_; }  // in a row
  [[nodiscard]] int probes() const { return probes_; }      // that failed, since it opened
  [[nodiscard]] locking::Nanos OpenFor(locking::Instant now) const {
    return open_ ? now - opened_at_ : locking::Nanos(0);
  }

  // Others have succeeded since the record failed first.
  [[nodiscard]] bool ServedOthersSince(const Failing& failing) const {
    return last_success_ > failing.begun;
  }

  // When the next call may go out; max(): after an answer to the probe, or a success.
  [[nodiscard]] locking::Instant NextCall() const {
    if (!open_) return locking::Instant();
    return probe_ ? locking::Instant::max() : probe_at_;
  }
  void OnCall(Call call) {
    newest_ = call;
    if (open_) probe_ = call;
  }
  // The call ended, in whatever way. True: it was the probe.
  bool OnEnd(Call call) {
    if (probe_ != call) return false;
    probe_.reset();
    return true;
  }

  // A failure after which the record is to be tried again.
  void OnFailure(RecordKey record, Failing& failing, Call call, Says says, locking::Instant now) {
    const Call before = std::exchange(failing.last, call);
    ++failing.failures;
    if (before == 0) failing.begun = std::max(newest_, call);
    const locking::Nanos since = std::min(now - std::exchange(failing.at, now), failing.wait);
    const bool nobody = says == Says::kServesNobody && !ServedOthersSince(failing);
    const bool shared_by_all = nobody || says == Says::kIsAway || says == Says::kRefusesAll;
    if (says != Says::kRefusesAll && last_success_ > (before == 0 ? call : before)) {
      failing.alone += since;
      return;
    }
    if (failures_++ == 0) first_ = record;
    several_ = several_ || given_up_ || record != first_;
    const bool shared = several_ || shared_by_all;
    if (!shared) failing.alone += since;
    const bool opens = failures_ >= failures_to_open_ || says == Says::kRefusesAll;
    if (!shared) {
      Close();
    } else if (opens) {
      Open(now);
    }
  }
  // Whatever the row is: more records than are believed have failed, each by itself.
  void Open(locking::Instant now) {
    if (std::exchange(open_, true)) return;
    opened_at_ = now;
    probes_ = 0;
  }
  // While open, after the failure that opened it and after each failed probe.
  void WaitUntil(locking::Instant at) {
    ++probes_;
    probe_at_ = at;
  }
  // The service did what it was asked, or said why not.
  void OnSuccess(Call call) {
    last_success_ = std::max(last_success_, call);
    given_up_ = false;
    EndRow();
  }
  // The record that failed last is tried no more.
  void OnGivenUp() { given_up_ = true; }
  // Nothing is left to probe with.
  void OnIdle() { EndRow(); }
  // No other record is left to probe with: its next failure decides.
  void OnAlone(RecordKey record) {
    if (given_up_) return;
    first_ = record;
    several_ = false;
  }

 private:
  void EndRow() {
    failures_ = 0;
    several_ = false;
    Close();
  }
  void Close() {
    if (std::exchange(open_, false)) probe_.reset();
  }

  int failures_to_open_;
  int failures_ = 0;
  int probes_ = 0;
  RecordKey first_ = 0;    // of the failures in a row
  bool several_ = false;   // records among them
  bool given_up_ = false;  // a record, since the last success
  bool open_ = false;
  Call newest_ = 0;            // call
  Call last_success_ = 0;      // the newest call that succeeded
  std::optional<Call> probe_;  // out
  locking::Instant probe_at_{};
  locking::Instant opened_at_{};
};

}  // namespace fencepost::consumer
