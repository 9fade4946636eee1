// The way of a record through the handler: looked up in the ledger, its turn, handled, tried again.
// A successful one goes on in writing.cc, one that cannot be processed in dead_letters.cc.
#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "consumer/flow/flow.h"
#include "consumer/flow/ports/ledger_duplicate.h"
#include "consumer/flow/ports/retry.h"
#include "consumer/record/position_id.h"
#include "locking/base/check.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {

namespace {

constexpr std::size_t kLookupBatch = 500;
constexpr std::size_t kLookupsOut = 2;
constexpr Nanos kUnreadLogAskedAgain = std::chrono::milliseconds(500);

}  // namespace

void Flow::AskLedger(InFlight& in) {
  in.BecomeLookup();
  lookups_.push_back({EntryOf(in)});
}

// A transaction with it was not answered, and may still be committed: the ledger is asked once that
// can no longer be.
void Flow::AskLedgerAfterDoubt(InFlight& in, Now now) {
  ++in.ticket;
  if (now.boot < in.in_doubt_until && !Planted("dead_letter_while_in_doubt")) {
    if (in.assignment->revoking) return locks_.GiveBackFrom(in, now);  // the next owner's
    in.BecomeInDoubt();
    locks_.SetPhase(in, locking::Phase::kWaiting);
    timers_.push(EntryOf(in, in.in_doubt_until));
    return;
  }
  in.in_doubt_until = Instant();
  AskLedger(in);
}

// Its lease is held meanwhile. As of a record in doubt, a revoke does not wait for it.
void Flow::AskLedgerOnceItsLogIsRead(InFlight& in, Now now) {
  in.in_doubt_until = std::max(in.in_doubt_until, now.boot + kUnreadLogAskedAgain);
  AskLedgerAfterDoubt(in, now);
}

void Flow::SendLookups() {
  while (!lookups_.empty() && lookups_out_ < kLookupsOut) {
    auto batch = std::make_unique<LookupBatch>();
    while (!lookups_.empty() && batch->ids.size() < kLookupBatch) {
      const auto [entry, contended] = lookups_.front();
      lookups_.pop_front();
      InFlight& in = *entry.record;
      const bool asks = contended > Nanos(0) || in.stage() == Stage::kLookup;
      if (!asks || entry.Stale()) continue;
      batch->references.push_back(in.Reference());
      batch->ids.push_back(in.identity.id);
      batch->contended.push_back(contended);
      batch->epoch = std::max(batch->epoch, in.record.epoch);
    }
    if (batch->ids.empty()) continue;
    ++lookups_out_;
    actions_.lookups.push_back(std::move(batch));
  }
}

void Flow::OnLookedUp(const LookupBatch& batch,
                      const std::vector<std::optional<LedgerEntry>>& entries, Now now) {
  FENCEPOST_CHECK(entries.size() == batch.ids.size(), "one answer an id");
  FENCEPOST_CHECK(lookups_out_ > 0, "one answer a look-up");
  --lookups_out_;
  tracer_.At(now);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    InFlight* in = FindReference(batch.references[i]);
    if (batch.contended[i] > Nanos(0)) {
      ResolveContention(in, entries[i], batch.contended[i], now);
    } else if (in != nullptr && in->stage() == Stage::kLookup) {
      const bool unread = std::ranges::binary_search(batch.unread, i);
      unread ? AskLedgerOnceItsLogIsRead(*in, now) : OnLookup(*in, entries[i], now);
    }
    Advance(now);
  }
  Step(now);
}

std::optional<WriteOutcome> Flow::Judge(const InFlight& in,
                                        const std::optional<LedgerEntry>& entry) const {
  if (!entry || IsOpen(in, *entry)) return std::nullopt;
  WriteOutcome known =
      DuplicateOrConflict(*entry, ItemOf(in), SourceText(*in.where, in.record.offset));
  if (known.result == WriteResult::kIdConflict && MayMakeNoRow(in, *entry)) return std::nullopt;
  return known;
}

// Nothing was written for the row's record, and it is not this one; by position it is the replay of
// that dead letter.
bool Flow::IsOpen(const InFlight& in, const LedgerEntry& entry) const {
  if (!options_.identity.ByPosition()) return GivesWay(entry, in.identity.crc);
  return entry.token == locking::Token() && !in.identity.in_place;
}

// Then it is in conflict with no other content, and only the write can tell. A handler with effects
// of its own is not called to find out, unless the row is of a later record of the partition: that
// one took effect after this one, which was so far done without a row.
bool Flow::MayMakeNoRow(const InFlight& in, const LedgerEntry& entry) const {
  if (in.letter != nullptr) return false;
  if (in.handled) {
    return std::ranges::none_of(in.values, [](const auto& value) { return value.has_value(); });
  }
  if (!traits_.handler) return !in.record.value;
  if (!traits_.outside) return true;
  const std::string source = "-/" + entry.source;
  const auto row = ParsePositionId(source);
  return row && row->partition == in.where->partition && row->topic == in.where->topic &&
         row->offset > in.record.offset;
}

void Flow::OnLookup(InFlight& in, const std::optional<LedgerEntry>& entry, Now now) {
  if (const auto known = Judge(in, entry)) {
    if (known->result == WriteResult::kIdConflict)
      return OnConflict(in, known->detail, known->shown, now);
    in.letter.reset();
    UpdateBytes(in);
    // Another content or a replay may come: it waits for no lease.
    if (entry->token == locking::Token()) return Skip(in, DedupeSource::kLedger, now);
    return OnSkipped(in, DedupeSource::kLedger, now);
  }
  if (in.letter != nullptr) return Publish(in, now);
  if (traits_.handler && !in.handled) return BeginHandling(in, now);
  in.BecomeHandled();
  work_.Push(&in);
}

// What the output takes from the record itself must be there before the handler has effects.
void Flow::BeginHandling(InFlight& in, Now now) {
  const RecordContext context{.record = &in.record,
                              .where = in.where,
                              .origin = in.identity.origin ? &*in.identity.origin : nullptr};
  const std::string missing = MissingPart(options_.required, context, evaluator_);
  if (missing.empty()) return WaitForTurn(in);
  DeadLetterOrStop(in,
                   {.error_class = "bad_record",
                    .text = missing,
                    .shown = missing,
                    .cause = LetterCause::kOutput},
                   now);
}

void Flow::WaitForTurn(InFlight& in) {
  in.BecomeWaiting();
  calls_.Wait(in);
}

// --- its name is held ----------------------------------------------------------------------------

// The ledger is asked once a round at most and once at a time, while the acquire continues. Until
// the first answer its lease counts as one that may come soon, so that those behind it in its chain
// keep theirs: a look waits for no lease.
void Flow::AskLedgerWhileHeld(InFlight& in, Nanos took) {
  if (std::exchange(in.looking, true)) {
    ++in.unjudged;
    return;
  }
  lookups_.push_back({EntryOf(in), took});
}

// With a row it is a duplicate, and the lock was no other's work. Without one, or with one that
// gives way, or as a conflict in doubt, it waits on. `in`: null, or it has its lease by now: only
// counted.
void Flow::ResolveContention(InFlight* in, const std::optional<LedgerEntry>& entry, Nanos took,
                             Now now) {
  const bool waits = !entry || (in != nullptr && IsOpen(*in, *entry));
  const auto result = waits ? locking::RoundResult::kContended : locking::RoundResult::kDone;
  observer_->OnRound(result, took);
  if (in == nullptr || !std::exchange(in->looking, false)) return;
  if (waits) in->Tell("contended", "another holds its name");
  for (; in->unjudged > 0; --in->unjudged) observer_->OnRound(result, Nanos(0));
  if (in->stage() != Stage::kLocking || in->unit->lease() != Lease::kAcquiring) return;
  if (waits) return locks_.KeepAcquiring(*in, now);
  if (in->call != 0) return;  // its order chain waits for the answer; it is asked again
  if (Judge(*in, entry)) return OnLookup(*in, entry, now);
  in->write_decides = true;  // it waits for nobody's lease
  locks_.GiveBackFrom(*in, now);
  work_.Push(in);
}

// --- handled -------------------------------------------------------------------------------------

void Flow::OnHandled(HandlerAnswer answer, Now now) {
  tracer_.At(now);
  const auto [record, probe] = calls_.OnAnswer(answer, now);
  if (record != nullptr && record->stage() == Stage::kWaiting) {
    RecordLocks::LeavePrefix(*record);
    work_.Push(record);
  } else if (record != nullptr && record->stage() == Stage::kHandling) {
    InFlight& in = *record;
    if (!locks_.LeaseIsValid(in, now)) {
      locks_.LeaveInvalid(in, now);  // what it answered does not count
      --in.attempts;
    } else if (answer.result) {
      OnSucceeded(in, std::move(*answer.result), now);
    } else if (!answer.result.error().made) {
      CallAgain(in, now);
    } else {
      OnFailed(in, std::move(answer.result.error()), answer.id, probe, now);
    }
  }
  Step(now);
}

// The call did not go out: it was withdrawn, or waited for so long that its lease would have ended
// (HandlerCall::valid_until), which has been extended meanwhile.
void Flow::CallAgain(InFlight& in, Now now) {
  --in.attempts;
  if (in.assignment->revoking) return locks_.GiveBackFrom(in, now);
  in.BecomeRetrying();
  WaitForTurn(in);
}

void Flow::OnSucceeded(InFlight& in, HandlerValues values, Now now) {
  in.values = std::move(values);
  in.handled = true;
  const std::uint64_t before = in.bytes;
  UpdateBytes(in);
  calls_.OnMade(in.bytes - std::min(before, in.bytes));
  if (FoundDone(in) && !traits_.write_decides) return SkipDone(in, now);
  in.BecomeHandled();
  work_.Push(&in);
}

void Flow::RememberFailure(const InFlight& in, Now now) {
  in.assignment->OnFailed({.offset = in.record.offset,
                           .attempts = in.attempts,
                           .alone = std::chrono::duration_cast<Millis>(in.failing.alone),
                           .last = std::chrono::duration_cast<Millis>(now.wall.time_since_epoch()),
                           .why = in.failing.why,
                           .unavailable = calls_.unavailable()});
}

void Flow::OnFailed(InFlight& in, HandlerFailure failure, std::uint64_t call, bool probe, Now now) {
  const bool again = calls_.OnFailed(in, failure, call, probe, now);
  if (in.trace != nullptr) in.trace->Fail(ClassAndText(failure.error_class, failure.shown));
  Note(
      locking::Severity::kWarn, "handler_failed",
      fmt::format("attempt {}: {}{}", in.attempts, ClassAndText(failure.error_class, failure.shown),
                  !again             ? "; not tried again"
                  : !failure.reached ? "; waiting for it to come back"
                  : failure.shared   ? "; so did the others of its request"
                                     : ""),
      in);
  if (!again) {
    const auto reason = failure.error_class == "timeout"      ? DeadLetterReason::kTimeout
                        : failure.error_class == "bad_record" ? DeadLetterReason::kBadRecord
                                                              : DeadLetterReason::kHandler;
    return DeadLetterOrStop(in,
                            {.reason = reason,
                             .error_class = std::move(failure.error_class),
                             .text = std::move(failure.text),
                             .shown = std::move(failure.shown)},
                            now);
  }
  if (!failure.reached) --in.attempts;  // it says nothing about the record
  RememberFailure(in, now);
  observer_->OnRetry(RetryStage::kHandler);
  if (in.assignment->revoking) return locks_.GiveBackFrom(in, now);  // the next owner tries again
  in.BecomeRetrying();
  const Millis drawn = RetryBackoff(tuning_.retry, std::max(1, in.failing.failures), random_());
  const Millis wait = std::max(drawn, failure.retry_after.value_or(Millis(0)));
  in.failing.wait = wait + options_.handler_timeout;
  timers_.push(EntryOf(in, now.boot + wait));
}

}  // namespace fencepost::consumer
