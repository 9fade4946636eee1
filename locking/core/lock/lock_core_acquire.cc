// LockCore: acquire rounds, from the first try to a lease or the end of the wait.
#include "locking/core/lock/lock_core.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "locking/base/planted.h"

namespace fencepost::locking {
namespace {

constexpr Millis kMostBetweenRepeats{1000};  // of an even split
constexpr Nanos kLeastRoundTrip{100'000};
constexpr Nanos kMostRoundTrip{Millis(100)};
constexpr int kBackoffRoundTrips = 10;
constexpr int kLastRoundTrips = 2;  // before the end of the wait its last round begins
constexpr int kMaxDoublings = 16;
constexpr std::uint16_t kMaxBackoff = UINT16_MAX;

WaitReason ReasonOf(const AcquireRound& round, RoundResult result) {
  if (round.Foreign()) return WaitReason::kForeign;
  switch (result) {
    case RoundResult::kStale:
      return WaitReason::kStale;
    case RoundResult::kRefused:
      return WaitReason::kRefused;
    case RoundResult::kTimeout:
      return WaitReason::kTimeout;
    case RoundResult::kNoQuorum:
    case RoundResult::kError:
      return WaitReason::kUnavailable;
    default:
      return WaitReason::kContended;
  }
}

}  // namespace

void LockCore::TryRound(std::uint32_t index, Now now) {
  Slot& slot = slots_[index];
  auto& attempt = std::get<LockAttempt>(slot.stage);
  const bool told = std::exchange(attempt.awaiting_quorum, false);
  if (Available()) return BeginRound(index, now);
  slot.state = State::kWaiting;
  if (!told) {  // a round that could not even begin
    observer_->OnRound(RoundResult::kNoQuorum, Nanos(0));
    observer_->OnQuorumFailure(clock_refused_ ? QuorumFailure::kClock : store_.WhyUnavailable());
  }
  if (!attempt.waits_for_quorum) {
    ++attempt.rounds;
    WaitForRound(index, WaitReason::kUnavailable, now);
    return;
  }
  if (now.boot >= attempt.give_up_at) return GiveUp(index, WaitReason::kUnavailable);
  attempt.awaiting_quorum = true;
  if (quorum_waiters_.size() > 2 * slots_.size()) {  // most have given up, or wait a second time
    std::sort(quorum_waiters_.begin(), quorum_waiters_.end());
    quorum_waiters_.erase(std::unique(quorum_waiters_.begin(), quorum_waiters_.end()),
                          quorum_waiters_.end());
  }
  quorum_waiters_.push_back(index);
  Schedule(index, attempt.give_up_at);
}

void LockCore::BeginRound(std::uint32_t index, Now now) {
  Slot& slot = slots_[index];
  auto& attempt = std::get<LockAttempt>(slot.stage);
  if (slot.creating != 0) {
    // An acquire of the round before is unanswered: its nonce is still needed to free it.
    slot.state = State::kWaiting;
    Schedule(index, now.boot + round_trip_);
    return;
  }
  slot.state = State::kAsking;
  attempt.asking_again = attempt.takeover = false;
  slot.due = Instant::max();
  attempt.freed_at = 0;
  attempt.repeats = 0;
  ++attempt.rounds;
  slot.started = now.boot;
  slot.token = IssueToken(now);
  slot.nonce = DrawNonce();
  ++slot.round;
  slot.granted = slot.may_hold = slot.free_after = slot.creating = 0;
  const NodeSet candidates = Without(OpenNodes(), attempt.left_out);
  attempt.left_out = 0;
  const NodeSet first = AskedFirst(slot, candidates);
  attempt.round = AcquireRound(nodes_, candidates, first, slot.token);
  SendToAll(index, first, OpKind::kAcquire);
  if (candidates == 0) {
    OnVerdict(index, Verdict::kLost, now);
  } else if (first != candidates) {
    fast_.OnQuorumAsked();
    Schedule(index, now.boot + fast_.Patience(first));
  }
}

// Enough for a lease, if all goes well. Where that is not to be expected, or the nodes have little
// to do, all at once.
NodeSet LockCore::AskedFirst(const Slot& slot, NodeSet candidates) const {
  if (options_.contact == Contact::kAll || slots_.used() <= options_.few_locks) return candidates;
  NodeSet good = candidates;
  std::array<std::uint8_t, kMaxNodes> place{};
  for (NodeIndex node = 0; node < nodes_; ++node) {
    const auto i = static_cast<std::size_t>(node);
    if (store_.Quarantined(node) || queues_[i].stalled()) good = Without(good, Bit(node));
    place[i] = store_.IndexInStore(node);
  }
  return IsMajority(good, nodes_) ? fast_.First(slot.name, good, place) : candidates;
}

// Those that were asked first have not decided it in the usual time. Where the others may not be
// asked, they are all the same once one that was asked has timed out.
void LockCore::OnLate(std::uint32_t index, Now now) {
  const NodeSet silent = std::get<LockAttempt>(slots_[index].stage).round.pending();
  const bool heard = std::get<LockAttempt>(slots_[index].stage).round.Heard();
  fast_.OnLate(silent, heard, now);
  if (fast_.MayAskOthers(silent)) return AskTheRest(index, now);
  const Nanos again = std::max<Nanos>(fast_.Patience(silent), options_.node_timeout / 8);
  Schedule(index, now.boot + again);
}

// In the same round: one token, one nonce, and the validity from before the token was drawn.
void LockCore::AskTheRest(std::uint32_t index, Now now) {
  Slot& slot = slots_[index];
  slot.due = Instant::max();
  if (Planted("late_asked_counts_from_its_sending")) slot.started = now.boot;
  const NodeSet rest = std::get<LockAttempt>(slot.stage).round.AskTheRest();
  AskMore(index, rest, now);
  if (Planted("abort_forgets_the_late_asked")) {
    slot.may_hold = Without(slot.may_hold, rest);
    slot.creating = Without(slot.creating, rest);
  }
}

void LockCore::AskMore(std::uint32_t index, NodeSet nodes, Now now) {
  Slot& slot = slots_[index];
  for (NodeIndex node = 0; node < nodes_; ++node) {
    if ((nodes & Bit(node)) == 0) continue;
    if (store_.Open(node)) {
      Send(index, node, OpKind::kAcquire);
    } else {
      ++slot.outstanding;
      const Op op = OpOf(index, OpKind::kAcquire);
      Fail(node, {&op, 1}, ReplyCode::kConnection, now);
    }
  }
}

void LockCore::OnAcquireReply(std::uint32_t index, NodeIndex node, const Reply& reply, Now now) {
  Slot& slot = slots_[index];
  const bool granted =
      reply.code == ReplyCode::kGranted || reply.code == ReplyCode::kGrantedTakeover;
  // Once, whichever of the nodes tells: the first that grants may never have had the other's lease.
  auto* const attempt = std::get_if<LockAttempt>(&slot.stage);
  if (reply.code == ReplyCode::kGrantedTakeover && attempt != nullptr && !attempt->takeover) {
    attempt->takeover = true;
    if (!attempt->counts_contention) observer_->OnTakeover();
  }
  if (granted) slot.granted |= Bit(node);
  if (!granted && NodeAnswered(reply.code)) slot.may_hold = Without(slot.may_hold, Bit(node));
  if (reply.code == ReplyCode::kStale) observer_->OnFencingRejection();
  if (slot.state != State::kAsking) {
    if (granted && slot.state == State::kHeld)
      std::get<HeldLease>(slot.stage).round.OnGranted(node);
    OnLateAcquireReply(index, node, reply, now);
    return;
  }
  AcquireRound& round = std::get<LockAttempt>(slot.stage).round;
  const Verdict verdict = round.OnReply(node, reply);
  if (verdict != Verdict::kPending) {
    OnVerdict(index, verdict, now);
  } else if (round.NeedsTheRest()) {
    AskTheRest(index, now);
  }
}

// The round was decided before this node answered.
void LockCore::OnLateAcquireReply(std::uint32_t index, NodeIndex node, const Reply& reply,
                                  Now now) {
  Slot& slot = slots_[index];
  if ((slot.free_after & Bit(node)) != 0) {
    slot.free_after = Without(slot.free_after, Bit(node));
    if ((slot.may_hold & Bit(node)) != 0 && store_.Open(node)) {
      const OpKind kind = slot.state == State::kFreeing ? OpKind::kRelease : OpKind::kAbort;
      Send(index, node, kind);
      return;
    }
    DeferAbort(index, node, now);
    if (slot.state == State::kFreeing) {
      std::get<ReleaseRound>(slot.stage).OnUnreachable(node);
      TellFreed(index, now);
    }
    return;
  }
  if (reply.code == ReplyCode::kDone && slot.state == State::kHeld) DropForDone(index, reply, now);
}

void LockCore::OnVerdict(std::uint32_t index, Verdict verdict, Now now) {
  Slot& slot = slots_[index];
  auto& attempt = std::get<LockAttempt>(slot.stage);
  if (verdict == Verdict::kWon) {
    const Instant from = Planted("validity_from_the_answer") ? now.boot : slot.started;
    slot.valid_until = EndOfValidity(slot, from);
    if (slot.valid_until - now.boot >= attempt.min_validity) {
      OnWon(index, now);
    } else {
      OnRoundLost(index, RoundResult::kTimeout, WaitReason::kTooLate, now);
    }
    return;
  }
  if (verdict == Verdict::kDone) {
    LearnRoundTrip(slot, now);
    observer_->OnRound(RoundResult::kDone, now.boot - slot.started);
    EndAsDone(index, attempt.round.done(), now);
    return;
  }
  const Instant validity_end = EndOfValidity(slot, slot.started);
  // The caller's wait ends this too, but a single round is given the time of a slow call.
  const bool in_time =
      now.boot < std::max(attempt.give_up_at, slot.started + options_.node_timeout) &&
      validity_end - now.boot > attempt.min_validity;
  if (attempt.round.WorthAskingAgain() && in_time) {
    attempt.asking_again = true;
    // However long it has waited: what it keeps meanwhile keeps all others out.
    const int doublings = std::min<int>(attempt.repeats++, kMaxDoublings);
    Nanos wait = round_trip_;
    for (int i = 0; i < doublings && wait < kMostBetweenRepeats; ++i) wait *= 2;
    Schedule(index, now.boot + std::min<Nanos>(wait, kMostBetweenRepeats));
    return;
  }
  const RoundResult result = attempt.round.Result(verdict);
  OnRoundLost(index, result, ReasonOf(attempt.round, result), now);
}

void LockCore::LearnRoundTrip(const Slot& slot, Now now) {
  const Nanos took = std::clamp<Nanos>(now.boot - slot.started, kLeastRoundTrip, kMostRoundTrip);
  round_trip_ = (round_trip_ * 7 + took) / 8;
}

void LockCore::AskAgain(std::uint32_t index, Now now) {
  Slot& slot = slots_[index];
  auto& attempt = std::get<LockAttempt>(slot.stage);
  attempt.asking_again = false;
  slot.due = Instant::max();
  const NodeSet again = attempt.round.AskAgain();
  AskMore(index, again, now);
  if (again == 0) OnRoundLost(index, RoundResult::kContended, WaitReason::kContended, now);
}

void LockCore::OnWon(std::uint32_t index, Now now) {
  Slot& slot = slots_[index];
  auto& attempt = std::get<LockAttempt>(slot.stage);
  LearnRoundTrip(slot, now);
  slot.state = State::kHeld;
  Unwatch(index);
  slot.leased_at = now.boot;
  slot.phase = Phase::kWaiting;
  ++held_;
  observer_->OnRound(RoundResult::kAcquired, now.boot - slot.started);
  observer_->OnLeased(now.boot - attempt.first_try);
  observer_->OnHeld(1);
  LockEvent& event = Emit(index, LockEvent::Kind::kLeased);
  event.takeover = attempt.takeover;
  if (slot.token <= attempt.rival_seen && options_.quarantine) {  // 2: the nodes forgot a floor
    event.broken = Invariant::kTokenRegressed;
    event.rival = attempt.rival_seen;
    observer_->OnInvariant(Invariant::kTokenRegressed);
  }
  slot.stage = HeldLease{.round = ExtendRound(nodes_, slot.granted)};  // the attempt is over
  ScheduleExtension(index, slot.started);
}

void LockCore::OnRoundLost(std::uint32_t index, RoundResult result, WaitReason reason, Now now) {
  Slot& slot = slots_[index];
  auto& attempt = std::get<LockAttempt>(slot.stage);
  const Nanos took = now.boot - slot.started;
  const bool callers = attempt.counts_contention && result == RoundResult::kContended;
  if (!callers) observer_->OnRound(result, took);
  if (reason == WaitReason::kUnavailable || reason == WaitReason::kTimeout) {
    observer_->OnQuorumFailure(attempt.round.Failure());
  }
  if (reason == WaitReason::kForeign) TellForeign(slot.name, now);
  if (result == RoundResult::kContended) LearnRoundTrip(slot, now);
  attempt.rival_seen = std::max(attempt.rival_seen, attempt.round.MajorityRival());
  LearnFromLostRound(slot, now);
  for (NodeIndex node = 0; node < nodes_; ++node) {
    if (attempt.round.floor_at(node) > Token::AtWall(now.wall + options_.max_skew)) {
      attempt.left_out |= Bit(node);
    }
  }
  FreeNodes(index, OpKind::kAbort, now);
  WaitForRound(index, reason, now);
  if (callers) events_.back().contended = std::max(took, Nanos(1));
}

// Not once a round: a caller that waits asks again and again.
void LockCore::TellForeign(const std::string& name, Now now) {
  if (!foreign_notes_.Allows(name, now.boot)) return;
  observer_->OnNote(Severity::kWarn, "foreign_value",
                    "the key " + name +
                        " holds something that is no lock; DEL it on the lock nodes if nobody "
                        "needs it; until then the name cannot be locked");
}

void LockCore::LearnFromLostRound(const Slot& slot, Now now) {
  const auto& attempt = std::get<LockAttempt>(slot.stage);
  if (const Token floor = attempt.round.NeededFloor()) {
    clock_.AdvancePast(floor, now.wall, options_.max_skew);
  }
  const bool own_clock_is_off =
      attempt.round.RefusedForClock() && !TokenClock::Lifted(slot.token, now.wall);
  if (!own_clock_is_off || clock_refused_) return;
  clock_refused_ = true;
  clock_check_at_ = now.boot + kClockCheckInterval;
  observer_->OnQuorumFailure(QuorumFailure::kClock);
  observer_->OnNote(Severity::kError, "clock_refused",
                    "a majority of the lock nodes refuses this worker's clock; fix the clock (NTP) "
                    "of this host or of the nodes; nothing is locked until then");
}

Nanos LockCore::DrawDelay(LockAttempt& attempt) {
  const DelayPolicy& delay = attempt.delay;
  const Nanos first = delay.first > Millis(0) ? delay.first : round_trip_ * kBackoffRoundTrips;
  const auto most = static_cast<double>(Nanos(delay.most).count());
  const double grown =
      static_cast<double>(first.count()) * std::pow(delay.multiplier, attempt.backoff);
  if (attempt.backoff < kMaxBackoff) ++attempt.backoff;
  const auto longest = static_cast<std::uint64_t>(std::min(grown, most));
  const std::uint64_t drawn = delay.jitter ? random_() % (longest + 1) : longest;
  return Nanos(static_cast<std::int64_t>(drawn));
}

void LockCore::WaitForRound(std::uint32_t index, WaitReason reason, Now now) {
  Slot& slot = slots_[index];
  auto& attempt = std::get<LockAttempt>(slot.stage);
  // One round without an answer (the nodes or this process stalled for a moment) is no outage yet:
  // should it be the last one, what the nodes said in the round before it is told.
  const bool said_before = reason == WaitReason::kTimeout && attempt.backoff > 0 &&
                           attempt.reason == WaitReason::kContended;
  const WaitReason told = said_before ? WaitReason::kContended : reason;
  attempt.reason = reason;
  // After the first stale round the clock was lifted over the floor: no reason to wait, and the
  // same try goes on.
  const bool at_once = reason == WaitReason::kStale && attempt.backoff == 0;
  Nanos wait = DrawDelay(attempt);
  if (at_once) {
    wait = Nanos(0);
    --attempt.rounds;
  } else if (attempt.tries > 0 && attempt.rounds >= attempt.tries) {
    GiveUp(index, told);
    return;
  }
  const bool wakes = options_.wake_up && reason == WaitReason::kContended;
  if (wakes && FreedOnMajority(slot)) wait = std::min(wait, DrawWakeDelay(slot));
  if (!at_once && wait >= attempt.give_up_at - now.boot) {
    // The rest of the wait is used, too: one more round, in time for its answer.
    wait = attempt.give_up_at - now.boot - kLastRoundTrips * round_trip_;
    if (attempt.last_round || wait <= Nanos(0)) return GiveUp(index, told);
    attempt.last_round = true;
  }
  slot.state = State::kWaiting;
  Emit(index, LockEvent::Kind::kRoundFailed).reason = reason;
  if (wakes) Watch(index);
  Schedule(index, now.boot + wait);
}

void LockCore::GiveUp(std::uint32_t index, WaitReason reason) {
  Emit(index, LockEvent::Kind::kGaveUp).reason = reason;
  End(index);
}

}  // namespace fencepost::locking
