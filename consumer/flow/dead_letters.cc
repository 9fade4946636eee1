// The way of a record that cannot be processed: refused, withheld or published as a dead letter,
// acknowledged. It ends in finish.cc.
#include <utility>

#include <fmt/format.h>

#include "consumer/flow/flow.h"
#include "consumer/flow/ports/retry.h"
#include "consumer/record/done_mark.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {

void Flow::OnConflict(InFlight& in, const std::string& detail, const std::string& shown, Now now) {
  const bool position = options_.identity.ByPosition();
  const bool skip = options_.on_id_conflict == OnBad::kSkip && !position;
  const bool letter =
      options_.on_id_conflict == OnBad::kDeadLetter && options_.dead_letters && !position;
  // The other's row may be pruned before a transaction comes that was not answered.
  const bool in_doubt = RowsArePruned() && in.in_doubt_until != Instant();
  if ((skip || letter) && in_doubt) {
    if (in.stage() == Stage::kLocking) {  // the next look is asked for later than this answer
      if (now.boot >= in.in_doubt_until) in.in_doubt_until = Instant();
      return locks_.KeepAcquiring(in, now);
    }
    if (KeepsItsTurn(in, now)) AskLedgerAfterDoubt(in, now);
    return;
  }
  observer_->OnIdConflict();
  const std::string what = "the id was processed with other content: ";
  Note(locking::Severity::kWarn, "id_conflict",
       fmt::format("{}{}{}", what, shown, skip ? "; it is skipped (on_id_conflict: skip)" : ""),
       in);
  if (skip) {
    // Without a DONE mark: it would say that the id is done with this record's content.
    return Skip(in, HasLedger() ? DedupeSource::kLedger : DedupeSource::kLock, now, true);
  }
  if (letter) {
    return DeadLetterOrStop(in,
                            {.reason = DeadLetterReason::kIdConflict,
                             .error_class = "id_conflict",
                             .text = what + detail,
                             .shown = what + shown,
                             .cause = LetterCause::kConflict},
                            now);
  }
  Block(in,
        {"id_conflict", what + shown, "",
         position ? "was the topic recreated? then use another pipeline name"
                  : "compare the two with `fencepost explain`, then fix the producer, or set "
                    "id_content or on_id_conflict"},
        now);
}

// The record cannot be processed: a dead letter, where there is a topic for them; else the end.
void Flow::DeadLetterOrStop(InFlight& in, Refusal refusal, Now now) {
  if (refusal.shown.empty()) refusal.shown = refusal.error_class;
  const bool bad =
      refusal.reason == DeadLetterReason::kBadRecord || refusal.reason == DeadLetterReason::kOutput;
  if (!options_.dead_letters || (bad && options_.on_bad_record != OnBad::kDeadLetter)) {
    const char* hint = bad ? kBadRecordHint
                           : "fix what the handler calls, give dead_letter, or move the group's "
                             "offset past it";
    return Block(in, {bad ? "bad_record" : "handler_failed", std::move(refusal.shown), "", hint},
                 now);
  }
  const bool again = in.letter != nullptr && in.cause == refusal.cause;
  in.letter = std::make_unique<DeadLetter>();
  *in.letter = {.id = 0,
                .record = in.record,
                .where = *in.where,
                .origin = in.identity.origin,
                .record_id = in.identity.id,
                .reason = refusal.reason,
                .error = std::move(refusal.text),
                .shown = std::move(refusal.shown),
                .error_class = std::move(refusal.error_class),
                .attempts = in.attempts,
                .failed_at = now.wall.time_since_epoch(),
                .traceparent = in.trace ? TraceparentText(in.trace->context()) : ""};
  in.Tell("refused", ClassAndText(in.letter->error_class, in.letter->shown));
  in.cause = refusal.cause;
  if (in.cause && !again) in.turn = dead_letter_limiter_.Now(*in.cause);
  if (in.cause == LetterCause::kOutput) dead_letter_limiter_.OnOutputRefuses();
  in.values = HandlerValues();  // it is published as it came
  in.handled = false;
  UpdateBytes(in);
  if (in.stage() == Stage::kQueued) return work_.Push(&in);  // it was never leased (no id)
  if (KeepsItsTurn(in, now)) StartDeadLetter(in, now);
}

// The write does not decide. A mark is written only after the effect is final (PROTOCOL.md, 10), so
// what it says is believed at once. One of other content is no conflict with a record that makes no
// row: a handler without effects is called to find out.
void Flow::SkipDone(InFlight& in, Now now) {
  if (!MarkIsOfOtherContent(in.unit->done_crc(), in.identity.crc)) {
    return OnSkipped(in, DedupeSource::kLock, now);
  }
  if (traits_.handler && !traits_.outside && in.letter == nullptr) {
    if (!in.handled) return WaitForTurn(in);
    if (in.values.empty()) return JoinWrites(in);
  }
  const std::string what = "its DONE mark is of other content";
  OnConflict(in, what, what, now);
}

// It is the first of its chain, under a valid lease. If not, it is locked again.
bool Flow::KeepsItsTurn(InFlight& in, Now now) {
  if (NotLeasedBefore(in) == nullptr && locks_.LeaseIsValid(in, now)) return true;
  locks_.GiveBackFrom(in, now);
  work_.Push(&in);
  return false;
}

// A Kafka transaction on its cluster takes it up. Otherwise the ledger is asked once more whether
// the effect is there after all, and then it is published. Not after a conflict, whose row was
// read.
void Flow::StartDeadLetter(InFlight& in, Now now) {
  ++in.ticket;
  if (in.letter_out) return JoinWrites(in);
  if (LettersInTransaction()) {
    if (!MayGoOut(in)) return Withhold(in, now);
    return JoinWrites(in);
  }
  const bool row_was_read = in.letter->reason == DeadLetterReason::kIdConflict;
  if (!HasLedger() || in.without_id || row_was_read) return Publish(in, now);
  AskLedgerAfterDoubt(in, now);
}

void Flow::JoinWrites(InFlight& in) {
  in.BecomeHandled();
  work_.Push(&in);
}

void Flow::Publish(InFlight& in, Now now) {
  if (!locks_.LeaseIsValid(in, now)) return locks_.LeaveInvalid(in, now);
  if (!MayGoOut(in)) return Withhold(in, now);
  in.BecomePublishing();
  locks_.SetPhase(in, locking::Phase::kWriting);
  DeadLetter letter = *in.letter;
  letter.id = in.Reference();
  letter.token = TokenOf(in).value();
  if (in.trace != nullptr) letter.traceparent = TraceparentText(in.trace->OfNow());
  actions_.dead_letters.push_back(std::move(letter));
}

// (A Kafka transaction that holds it moves the offset past it by itself.)
bool Flow::PassesOffset(const InFlight& in) const {
  return in.assignment->Oldest() == &in || LettersInTransaction() ||
         Planted("dead_letters_out_of_order");
}

// Asked when nothing else is in its way: of a record that the ledger knows after all there is no
// dead letter to count.
bool Flow::MayGoOut(InFlight& in) {
  if (in.cause && !in.passed_limiter)
    in.passed_limiter = dead_letter_limiter_.Pass(*in.cause, in.turn, PassesOffset(in));
  return !in.cause || in.passed_limiter || Planted("dead_letters_without_a_limit");
}

// Without a lease, so that nobody waits for it but what is behind it in its chain.
void Flow::Withhold(InFlight& in, Now now) {
  locks_.GiveBackFrom(in, now);
  in.BecomeWithheld();
  withheld_.push_back(EntryOf(in, now.boot));
  if (withheld_again_at_ == Instant::max() && VerdictMayChange(in)) TryWithheldLater(now);
}

// They are more than are believed: the verdict on each is in doubt.
bool Flow::ManyWithheld() const {
  return dead_letter_limiter_.Full() || withheld_.size() > options_.max_consecutive;
}

bool Flow::VerdictMayChange(const InFlight& in) const {
  return in.cause == LetterCause::kOutput &&
         (options_.handler.outside() || in.letter->reason != DeadLetterReason::kBadRecord);
}

void Flow::TryAgain(InFlight& in) {
  in.letter.reset();
  in.cause.reset();
  in.tried_again = true;
  UpdateBytes(in);
  in.BecomeQueued();
  work_.Push(&in);
}

void Flow::TryWithheldLater(Now now) {
  withheld_again_at_ = now.boot + RetryBackoff(tuning_.retry, ++withheld_tried_, random_());
}

// Nothing takes effect, and nothing else may come that could: the record that has waited longest is
// tried again. If it is refused once more, it waits behind the others.
void Flow::TryWithheld(Now now) {
  withheld_again_at_ = Instant::max();
  const auto next = std::ranges::find_if(withheld_, [this](const QueueEntry& entry) {
    return !entry.Stale() && entry.record->stage() == Stage::kWithheld &&
           VerdictMayChange(*entry.record);
  });
  if (next == withheld_.end()) return;
  TryWithheldLater(now);
  if (!ManyWithheld()) return;
  InFlight& in = *next->record;
  withheld_.erase(next);
  TryAgain(in);
}

// Something took effect, or was a duplicate: the records that waited for that are locked again.
void Flow::ReleaseWithheld(Now now) {
  const bool in_doubt = ManyWithheld();
  if (dead_letter_limiter_.EndMoment()) {
    for (const QueueEntry& entry : std::exchange(withheld_, {})) {
      InFlight& in = *entry.record;
      if (in.stage() != Stage::kWithheld || entry.Stale()) continue;
      if (!dead_letter_limiter_.MayPass(*in.cause, in.turn, PassesOffset(in))) {
        withheld_.push_back(entry);
        continue;
      }
      withheld_tried_ = 0;
      const bool judges =
          in_doubt && VerdictMayChange(in) && dead_letter_limiter_.Free(*in.cause, in.turn);
      if (judges && !std::exchange(in.rejudged, true)) {
        TryAgain(in);
        continue;
      }
      in.BecomeQueued();  // it is counted once nothing else is in its way
      work_.Push(&in);
    }
  }
  if (withheld_.empty()) ForgetRefusal();
  Advance(now);
}

// The watermark has come to a record that is withheld: it may go out now, if not too many have.
void Flow::ReleaseOldest(Assignment& partition) {
  InFlight* const oldest = partition.slots.empty() ? nullptr : partition.slots.front().record;
  if (oldest == nullptr || oldest->stage() != Stage::kWithheld) return;
  if (!dead_letter_limiter_.MayPass(*oldest->cause, oldest->turn, true)) return;
  std::erase_if(withheld_, [oldest](const QueueEntry& entry) { return entry.record == oldest; });
  oldest->BecomeQueued();
  work_.Push(oldest);
}

// Acknowledged: the lock is released, without a DONE mark. By position its offset is done before
// the group's passes it: the ledger keeps no hole for it, and where a record has no trace there, it
// is lost.
void Flow::OnDeadLettered(const std::vector<std::uint64_t>& ids, Now now) {
  tracer_.At(now);
  for (const std::uint64_t id : ids) {
    InFlight* in = FindReference(id);
    if (in == nullptr || in->stage() != Stage::kPublishingDeadLetter) continue;
    OnDeadLetterPublished(*in, now);
    Advance(now);
  }
  if (!ids.empty()) observer_->OnProgress(now.wall.time_since_epoch());
  Step(now);
}

void Flow::OnDeadLettersRefused(const std::vector<std::uint64_t>& ids, Now now) {
  tracer_.At(now);
  for (const std::uint64_t id : ids) {
    InFlight* in = FindReference(id);
    if (in == nullptr || in->stage() != Stage::kPublishingDeadLetter) continue;
    in->letter_refused = true;
    if (in->assignment->revoking) locks_.GiveBackBehind(*in, now);
  }
  Advance(now);
}

void Flow::OnDeadLetterPublished(InFlight& in, Now now) {
  observer_->OnDeadLetter(in.letter->reason);
  Note(locking::Severity::kWarn, "dead_lettered",
       "published as a dead letter: " + ClassAndText(in.letter->error_class, in.letter->shown), in);
  Tell(ProcessedResult::kDeadLettered, in);
  in.letter_out = HasLedger() && options_.identity.ByPosition() && !in.without_id;
  if (!in.letter_out || Planted("dead_letter_leaves_a_hole")) return Finish(in, now);
  if (!KeepsItsTurn(in, now)) return;
  ++in.ticket;
  JoinWrites(in);
}

void Flow::OnDeadLetterState(bool up, Now now) {
  tracer_.At(now);
  dead_letters_up_ = up;
  UpdateBackpressure(now);
}

}  // namespace fencepost::consumer
