// How the records of a flow are locked: each asks for the lease of its lock unit (lock_unit.h),
// goes ahead under it or without one (found DONE, unlocked), and gives it back. Sans-IO; the engine
// thread's.
//
// Invariants (PROTOCOL.md): what gives a lease back, or loses it, takes along those behind it in
// its chain, but for what is pinned (15); a lease is left behind, and DONE is sent, only after an
// effect (10, 11); a unit's lease ends with the last record that needs it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "consumer/flow/flow_options.h"
#include "consumer/flow/state/lock_unit.h"
#include "consumer/flow/state/next.h"
#include "consumer/flow/state/work_list.h"
#include "consumer/pipeline/observer.h"
#include "consumer/record/done_mark.h"
#include "locking/core/lock/lock_core.h"

namespace fencepost::consumer {

using locking::Now;

class RecordLocks {
 public:
  // The flow, as far as the locks need it.
  class User {
   public:
    virtual ~User() = default;
    // The next step of this queued record is to ask for its lock.
    [[nodiscard]] virtual bool MayLock(const InFlight& record) const = 0;
    // The record goes back: its handler call, if one is out, is called off.
    virtual void CancelCall(InFlight& record) = 0;
    // Its name is held, perhaps by a lease that was left behind; the round that found it took so
    // long.
    virtual void AskLedgerWhileHeld(InFlight& record, Nanos took) = 0;
    virtual void Note(locking::Severity severity, std::string_view event, std::string_view text,
                      const InFlight& record) = 0;
  };

  // All of them outlive it. What may continue is pushed on `work`.
  RecordLocks(const FlowOptions& options, const PipelineTraits& traits, locking::LockCore* core,
              ConsumerObserver* observer, WorkList* work, User* user)
      : options_(options),
        traits_(traits),
        core_(core),
        observer_(observer),
        work_(work),
        user_(user) {}

  // Before the first record: whose marks count.
  void SetCluster(ClusterTag cluster) { cluster_ = cluster; }
  // Asks for its lock. False: it waits for another record here with the same id.
  bool Lock(InFlight& record, Now now);
  // Its name is held: when a later round finds that, too, the ledger is asked again.
  void KeepAcquiring(InFlight& record, Now now);
  // To which unit the core's event belongs; null: it is over here.
  [[nodiscard]] LockUnit* Find(const locking::LockEvent& event) {
    return units_.Find(event.cookie, event.lock);
  }
  void OnEvent(LockUnit& unit, const locking::LockEvent& event, Now now);
  // Flow::SetUnlocked. False: nothing has changed.
  bool SetUnlocked(bool unlocked, Now now);
  [[nodiscard]] bool unlocked() const { return unlocked_; }
  void OnOutputEnded(Now now);

  // Of its lease; min(): it has none, max(): it needs none.
  [[nodiscard]] Instant ValidUntil(const InFlight& record) const;
  [[nodiscard]] bool LeaseIsValid(const InFlight& record, Now now) const {
    return now.boot < ValidUntil(record);
  }
  // What was done under its lease began only after the lease had ended.
  [[nodiscard]] bool EndedBefore(const InFlight& record, Instant began) const;
  void SetPhase(const InFlight& record, locking::Phase phase);
  // Only after the effect is final. Where there is a ledger it remembers that, and the lease is
  // left behind; else a mark is sent, and not awaited.
  void MarkDone(InFlight& record, Now now);

  // Back to granted. If the lease has expired by our own clock, kLost follows, and queues this
  // record and those behind it again.
  static void LeavePrefix(InFlight& record);
  // Its lease is not valid any more.
  void LeaveInvalid(InFlight& record, Now now);
  // Not leased, not asking, in no unit.
  void BackToQueue(InFlight& record, Now now);
  // Everything behind it that holds or asks for a lease gives it back. What is pinned (stage.h)
  // ends without waiting for any lock.
  void GiveBackBehind(InFlight& record, Now now);
  void GiveBackFrom(InFlight& record, Now now);  // it and everything behind it
  // It leaves its unit, and the next record with its id takes its turn.
  void Leave(InFlight& record, Now now);

 private:
  LockUnit& JoinUnit(InFlight& record);
  void ProceedPastLock(InFlight& record, Now now);
  void LockAlone(InFlight& record, Now now);
  void Acquire(LockUnit& unit, Now now);
  void ProceedUnlocked(LockUnit& unit, Now now);
  bool UpdateUnit(LockUnit& unit, const locking::LockEvent& event, Now now);
  void ContinueAfter(const locking::LockEvent& event, InFlight& record, Now now);
  void TellContended(const locking::LockEvent& event, const InFlight& record) const;
  void OnFoundDone(InFlight& record);
  void NoteDoneElsewhere(const InFlight& record, Now now);
  void NoteViolation(const InFlight& record, const locking::LockEvent& event);
  [[nodiscard]] bool HandsOn(const InFlight& record, Now now);
  void EndLease(LockUnit& unit, Now now);

  const FlowOptions& options_;
  const PipelineTraits& traits_;
  locking::LockCore* const core_;
  ConsumerObserver* const observer_;
  WorkList* const work_;
  User* const user_;
  LockUnits units_;
  std::vector<InFlight*> affected_;  // OnEvent
  bool unlocked_ = false;
  ClusterTag cluster_ = 0;
  Instant next_elsewhere_note_;
};

}  // namespace fencepost::consumer
