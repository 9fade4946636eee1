// The loop of the flow: after each input every record for which something has changed does what is
// next for it, until nothing changes any more; and time. The phases are in files of their own.
#include <algorithm>
#include <utility>

#include "consumer/flow/flow.h"
#include "locking/base/check.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {

Flow::Flow(FlowOptions options, locking::LockCore* locks, locking::LockCore::Random random,
           ConsumerObserver* observer)
    : options_(std::move(options)),
      tuning_(options_.tuning),
      traits_{options_.finality, options_.handler.any(), options_.handler.outside(),
              WriteDecides(options_.finality, options_.identity)},
      core_(locks),
      random_(std::move(random)),
      observer_(observer),
      tracer_(options_, random_, observer_),
      dead_letter_limiter_(options_.max_consecutive),
      backpressure_({.records = options_.max_in_flight,
                     .bytes = options_.max_in_flight_bytes,
                     .finished_behind = options_.max_finished_behind,
                     .hold_after = options_.hold_after}),
      locks_(options_, traits_, core_, observer_, &work_, this),
      calls_(options_, tuning_, &locks_, &backpressure_, &dead_letter_limiter_, random_, observer_,
             &actions_) {
  FENCEPOST_CHECK(options_.block == 1 || (options_.identity.ByPosition() && traits_.write_decides),
                  "a lock of several records is never DONE: their writes must decide");
}

Flow::~Flow() = default;

void Flow::OnClusterId(std::string cluster_id) {
  locks_.SetCluster(TagOf(cluster_id));
  identifier_ = std::make_unique<Identifier>(options_.identity, std::move(cluster_id));
}

// After every input: what has become possible is asked for, except for partitions that were given
// back.
void Flow::Step(Now now) {
  Advance(now);
  ReleaseWithheld(now);
  CheckDrained(now);
  if (backpressure_.records() == 0) LookForProbes(now);
  SendLookups();
  calls_.Start(ready_.empty() && writes_out_ == 0, now);
  SendWrites(now);
  if (!work_.Empty()) return Step(now);  // some were not valid any more (LeaveInvalid)
  UpdateBackpressure(now);
}

// Asks each record for which something has changed what it does next, and does it, until nothing
// changes any more. Phases only do; what becomes possible by that they push on the work list.
void Flow::Advance(Now now) {
  while (InFlight* in = work_.Pop()) {
    if (in->stage() == Stage::kUnused) continue;  // finished meanwhile
    ++advanced_;
    Do(*in, Next(*in, PositionOf(*in), traits_), now);
  }
}

ChainPosition Flow::PositionOf(const InFlight& in) const {
  const InFlight* const gap = WaitsForPrefix(in.stage()) ? NotLeasedBefore(in) : nullptr;
  return {.before = gap == nullptr             ? Before::kInPrefix
                    : LeaseMayArriveSoon(*gap) ? Before::kMaySoon
                                               : Before::kNotSoon,
          .before_handled = BeforeIsHandled(in),
          .may_lock = taking_ && !paused_ && !in.assignment->revoking};
}

void Flow::Do(InFlight& in, Move move, Now now) {
  switch (move) {
    case Move::kStay:
      break;
    case Move::kLock:
      if (locks_.Lock(in, now)) work_.Push(in.chain_after);
      break;
    case Move::kAwaitPrefix:
      in.BecomeGranted();
      if (in.without_id) work_.Push(in.chain_after);
      break;
    case Move::kGiveBack:
      locks_.BackToQueue(in, now);
      break;
    case Move::kTakeTurn:
      calls_.Wait(in);
      break;
    case Move::kJoinWrites:
      if (!OwnershipIsFresh(*in.assignment, now)) return Confirm(*in.assignment, now);
      in.BecomeReady();
      ready_.push_back(EntryOf(in, now.boot));
      work_.Push(in.chain_after);
      break;
    default:
      EnterLeasedPrefix(in, move, now);
      break;
  }
}

// A lease counts only as part of the leased prefix of its chain. Those behind it may be locked, or
// enter it too.
void Flow::EnterLeasedPrefix(InFlight& in, Move move, Now now) {
  MarkOutOfPrefix(in, false);
  work_.Push(in.chain_after);
  switch (move) {
    case Move::kAwaitFormerCall:  // OnHandled puts it on the work list again
      in.BecomeWaiting();
      break;
    case Move::kSkipDone:
      SkipDone(in, now);
      break;
    case Move::kStartDeadLetter:
      StartDeadLetter(in, now);
      break;
    case Move::kLookUp:
      AskLedger(in);
      break;
    case Move::kAwaitTurn:
      BeginHandling(in, now);
      break;
    default:
      in.BecomeHandled();
      work_.Push(&in);
      break;
  }
}

void Flow::OnTime(Now now) {
  tracer_.At(now);
  if (now.boot >= commit_at_) Commit(now);
  if (now.boot >= report_at_) Report(now);
  if (now.boot >= withheld_again_at_) TryWithheld(now);
  if (Planted("dead_letter_without_its_acknowledgement")) {
    for (InFlight& in : pool_) {
      if (in.stage() == Stage::kPublishingDeadLetter) OnDeadLetterPublished(in, now);
    }
  }
  while (!timers_.empty() && timers_.top().at <= now.boot) {
    const QueueEntry entry = timers_.top();
    timers_.pop();
    InFlight& in = *entry.record;
    if (entry.Stale()) continue;
    const bool written = in.handled || !traits_.handler;  // and refused
    if (in.stage() == Stage::kRetrying) written ? JoinWrites(in) : WaitForTurn(in);
    if (in.stage() == Stage::kInDoubt) AskLedgerAfterDoubt(in, now);
  }
  Step(now);
}

Instant Flow::NextTime() const {
  Instant next = std::min(
      {commit_at_, report_at_, withheld_again_at_, calls_.NextTime(), backpressure_.NextTime()});
  if (drain_) next = std::min(next, drain_->deadline);
  if (!timers_.empty()) next = std::min(next, timers_.top().at);
  if (options_.linger > Millis(0) && !ready_.empty() && writes_out_ == 0) {
    next = std::min(next, ready_.front().at + options_.linger);
  }
  return next;
}

void Flow::UpdateBackpressure(Now now) {
  const bool usable =
      (core_->Available() || locks_.unlocked()) && dead_letters_up_ && taking_ && !paused_;
  const Nanos pressed =
      backpressure_.Update(partitions_, usable, now.boot, {actions_.pause, actions_.resume});
  if (pressed > Nanos(0)) observer_->OnBackpressure(pressed);
}

void Flow::Tune(const Tuning& tuning, Now now) {
  tracer_.At(now);
  tuning_ = tuning;
  calls_.OnTuned();
  Step(now);
}

void Flow::SetPaused(bool paused, Now now) {
  tracer_.At(now);
  if (paused_ && !paused) {
    for (const auto& [index, partition] : partitions_) partition->oldest_since = now.boot;
  }
  paused_ = paused;
  for (InFlight& in : pool_) {
    if (in.stage() == Stage::kQueued) work_.Push(&in);
  }
  Step(now);
}

void Flow::StopTaking() { taking_ = false; }

void Flow::SetUnlocked(bool unlocked, Now now) {
  tracer_.At(now);
  if (locks_.SetUnlocked(unlocked, now) && unlocked) Step(now);
}

void Flow::OnLockEvents(Now now) {
  tracer_.At(now);
  std::vector<locking::LockEvent> events;
  while (!core_->events().empty()) {
    events.clear();
    events.swap(core_->events());
    for (const locking::LockEvent& event : events) {
      LockUnit* const unit = locks_.Find(event);
      if (unit == nullptr) continue;
      locks_.OnEvent(*unit, event, now);
      Advance(now);
    }
  }
  Step(now);
}

InFlight* Flow::NewInFlight() {
  if (unused_.empty()) {
    InFlight& in = pool_.emplace_back();
    in.index = static_cast<std::uint32_t>(pool_.size() - 1);
    return &in;
  }
  InFlight& in = pool_[unused_.back()];
  unused_.pop_back();
  FENCEPOST_CHECK(!in.to_advance, "an index is used again while it is in the work list");
  return &in;
}

InFlight* Flow::FindReference(std::uint64_t reference) {
  const auto index = static_cast<std::uint32_t>(reference);
  if (index >= pool_.size() || pool_[index].Reference() != reference) return nullptr;
  return &pool_[index];
}

void Flow::Recycle(InFlight& in) {
  backpressure_.OnFinished();
  backpressure_.OnBytes(*in.assignment, in.bytes, 0);
  in.BecomeUnused();
  unused_.push_back(in.index);
}

}  // namespace fencepost::consumer
