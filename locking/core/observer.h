// What the lock reports to metrics and log. Called on the thread that drives the core, between
// steps; implementations must not call back into the core. Every method has an empty default.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "locking/core/ops.h"

namespace fencepost::locking {

enum class RoundResult : std::uint8_t {
  kAcquired,
  kContended,
  kDone,
  kStale,
  kRefused,
  kNoQuorum,
  kTimeout,
  kError
};
enum class ExtensionResult : std::uint8_t { kExtended, kLost, kError };
enum class LossReason : std::uint8_t { kExpired, kStolen, kNodeWiped, kClock };
enum class ReleaseOutcome : std::uint8_t { kReleased, kExpired, kStolen, kUnknown };
enum class QuorumFailure : std::uint8_t { kUnreachable, kTimeout, kQuarantined, kPolicy, kClock };
enum class CommandError : std::uint8_t {
  kTimeout,
  kConnection,
  kAuth,
  kOom,
  kReadonly,
  kNoscript,
  kOther
};
// How far the work under a lease is; the user of the lock tells the core (LockCore::SetPhase).
enum class Phase : std::uint8_t { kWaiting, kHandling, kWriting, kReleasing };
// Promises that were seen broken. By which faults each is to be expected: PROTOCOL.md, Windows.
enum class Invariant : std::uint8_t {
  kTokenRegressed,  // a lease whose token is not above that of an earlier holder
  kCommitPastHole,  // an offset was to be committed past an unfinished record
  kLeaseAfterLoss,  // no ledger: an effect whose write began after its lease had ended
  kDoubleGrant      // another held a quorum while an own lease was valid by its own clock
};
enum class Severity : std::uint8_t { kDebug, kInfo, kWarn, kError };

class LockObserver {
 public:
  virtual ~LockObserver() = default;
  virtual void OnRound(RoundResult, Nanos /*took; 0: it could not begin, for want of nodes*/) {}
  virtual void OnTakeover() {}  // a granted acquire found a passed deadline
  virtual void OnTokenIssued() {}
  virtual void OnLeased(Nanos /*waited, first try to lease*/) {}
  virtual void OnExtension(ExtensionResult) {}
  virtual void OnExpired(Phase) {}    // own clock ended an own lease
  virtual void OnLoss(LossReason) {}  // every loss, the expired ones too
  virtual void OnLeaseEnded(Nanos /*held*/, Nanos /*validity left, negative when none*/) {}
  virtual void OnReleased(ReleaseOutcome) {}
  virtual void OnCompletedAfterExpiry() {}
  virtual void OnFencingRejection() {}            // a node refused our token as stale
  virtual void OnQuorumFailure(QuorumFailure) {}  // a round ended for want of nodes
  virtual void OnHeld(std::int64_t /*more leases held than before; negative: fewer*/) {}
  virtual void OnQuorum(bool /*available*/) {}
  virtual void OnInvariant(Invariant) {}
  virtual void OnNode(NodeIndex, bool /*up*/, bool /*quarantined*/) {}
  virtual void OnClockOffset(NodeIndex, Nanos /*node wall - client wall*/) {}
  virtual void OnRestartDetected(NodeIndex) {}
  // Drivers:
  virtual void OnCall(NodeIndex, OpKind, std::size_t /*keys*/, Nanos /*took*/) {}
  virtual void OnCommandError(NodeIndex, CommandError) {}
  virtual void OnReconnect(NodeIndex) {}
  // One event for the log: a stable event name and one line of text.
  virtual void OnNote(Severity, std::string_view /*event*/, std::string_view /*text*/) {}
};
// `observer`, or one that does nothing where there is none.
inline LockObserver* ObserverOrNone(LockObserver* observer) {
  static LockObserver none;
  return observer != nullptr ? observer : &none;
}

// How often a trouble is noted in the log: a new reason after a second at the earliest, the same
// again after a minute. A value; one thread.
template <typename Reason>
class NoteLimit {
 public:
  // Whether `reason` is noted now; if so, it counts as noted.
  bool Allows(const Reason& reason, Instant now) {
    const Nanos wait = std::chrono::seconds(reason == noted_ ? 60 : 1);
    if (noted_at_ != Instant() && now - noted_at_ < wait) return false;
    noted_ = reason;
    noted_at_ = now;
    return true;
  }
  // The failure is over: the same reason counts as new next time. Returns whether it was noted.
  bool End() { return std::exchange(noted_, std::nullopt).has_value(); }

 private:
  std::optional<Reason> noted_;
  Instant noted_at_{};
};

}  // namespace fencepost::locking
