// The DONE mark of a record: sent, and, without a ledger, awaited. It ends in finish.cc.
#include <algorithm>

#include "consumer/flow/flow.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {

namespace {

constexpr Millis kMarkBackoff{50};
constexpr Millis kMaxMarkBackoff{1000};

}  // namespace

// Only after the effect is known to be written. Sent, not awaited, where the ledger or the Kafka
// transaction decides; otherwise the offset waits for a majority of marks. Not sent where the
// ledger remembers: the lease is left behind.
void Flow::MarkDone(InFlight& in, Now now) {
  if (in.unit->shared()) return;  // its lease is that of other records too: it is never DONE
  if (LeavesLeases()) return in.unit->NoteInLedger();
  const bool await = options_.finality == Finality::kDoneMark;
  LockUnit& unit = *in.unit;
  // The lease may have ended although its kLost is still to be heard: then it cannot be marked.
  if (Leased(in) && locks_->ValidUntil(unit.lock()) == Instant::min()) {
    unit.BecomeLost(Instant::min());
  }
  locking::LockId mark = unit.lock();
  if (Leased(in)) {
    locks_->Done(mark, in.identity.crc, options_.remember_done, now);
  } else if (unit.lease() == Lease::kLost || await) {
    mark = locks_->MarkDone({.name = unit.name(),
                             .cookie = await ? unit.cookie() : 0,
                             .token = unit.token(),
                             .crc = in.identity.crc,
                             .remember = options_.remember_done,
                             .after_loss = unit.lease() == Lease::kLost},
                            now);
  }
  await ? AwaitMark(in, mark) : unit.BecomeNone();
}

void Flow::AwaitMark(InFlight& in, locking::LockId mark) {
  in.BecomeMarking();
  in.unit->BecomeMarking(mark);
}

// Without a ledger the mark decides: once a majority of the nodes has it, for the rest of its time,
// the record is complete. One that will be forgotten soon is carried to none: it could replace the
// lease of whoever has found it forgotten already. Nor is it kept for longer, or names that are
// asked for again and again would stay DONE for ever.
void Flow::CompleteFoundDone(InFlight& in, Now now) {
  const LockUnit& unit = *in.unit;
  if (locking::IsOtherContent(unit.done_crc(), in.identity.crc)) {
    const std::string what = "its DONE mark is of other content";
    return OnConflict(in, what, what, now);
  }
  const bool soon_forgotten = unit.done_rest() < locks_->ShortestMark(unit.name());
  if (soon_forgotten && !Planted("short_mark_is_carried"))
    return OnSkipped(in, DedupeSource::kLock, now);
  ++in.ticket;
  AwaitMark(in, locks_->MarkDone({.name = unit.name(),
                                  .cookie = unit.cookie(),
                                  .token = unit.token(),
                                  .crc = unit.done_crc(),
                                  .remember = unit.done_rest()},
                                 now));
}

void Flow::OnMarked(InFlight& in, bool majority, Now now) {
  if (!in.effect_done && !majority) {  // the lock nodes are asked again
    GiveBackFrom(in, now);
    return LockAlone(in, now);
  }
  if (!in.effect_done) return OnSkipped(in, DedupeSource::kLock, now);
  const bool enough =
      majority || (Planted("offset_past_a_mark_without_majority") && in.effect_done);
  if (enough) return Finish(in, now);
  in.unit->BecomeMarking({});
  const auto wait = std::min(kMaxMarkBackoff, kMarkBackoff * (1 << std::min(in.marks++, 5)));
  timers_.push(EntryOf(in, now.boot + wait));
}

// The effect is written, but no majority of the nodes has the mark yet.
void Flow::MarkAgain(InFlight& in, Now now) {
  observer_->OnRetry(RetryStage::kLock);
  LockUnit& unit = *in.unit;
  unit.BecomeMarking(locks_->MarkDone({.name = unit.name(),
                                       .cookie = unit.cookie(),
                                       .token = unit.token(),
                                       .crc = in.identity.crc,
                                       .remember = options_.remember_done,
                                       .fresh = true},
                                      now));
}

}  // namespace fencepost::consumer
