// The way of a record through the handler: looked up in the ledger, its turn, handled, tried again;
// and the way of one that cannot be processed to the dead letters. Successful ones go on in
// flow_writing.cc.
#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "consumer/flow/flow.h"
#include "consumer/flow/ports/duplicate.h"
#include "consumer/flow/ports/retry.h"
#include "locking/base/check.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {

using locking::Phase;

namespace {

constexpr std::size_t kLookupBatch = 500;
constexpr std::size_t kLookupsOut = 2;

// Draws the wait after this many failures.
Millis Backoff(const RetryOptions& retry, int failures, std::uint64_t random) {
  const double grown =
      static_cast<double>(retry.initial.count()) * std::pow(retry.multiplier, failures - 1);
  const double most = std::min(static_cast<double>(retry.max.count()), grown);
  const double share =
      retry.jitter == Jitter::kFull ? static_cast<double>(random >> 11) * 0x1p-53 : 1.0;
  return Millis(static_cast<std::int64_t>(most * share));
}

std::string ClassAndText(const std::string& error_class, const std::string& shown) {
  return shown.empty() || shown == error_class ? error_class : error_class + ": " + shown;
}

}  // namespace

// --- looked up ---------------------------------------------------------------------------------

void Flow::AskLedger(InFlight& in) {
  in.BecomeLookup();
  lookups_.push_back(EntryOf(in, Instant()));
}

void Flow::SendLookups() {
  while (!lookups_.empty() && lookups_out_ < kLookupsOut) {
    auto batch = std::make_unique<LookupBatch>();
    while (!lookups_.empty() && batch->ids.size() < kLookupBatch) {
      const Entry entry = lookups_.front();
      lookups_.pop_front();
      InFlight& in = *entry.record;
      if (in.stage() != Stage::kLookup || in.ticket != entry.ticket) continue;
      batch->references.push_back(in.Reference());
      batch->ids.push_back(in.identity.id);
    }
    if (batch->ids.empty()) continue;
    ++lookups_out_;
    actions_.lookups.push_back(std::move(batch));
  }
}

void Flow::OnLookedUp(const LookupBatch& batch,
                      const std::vector<std::optional<LedgerEntry>>& entries, Now now) {
  FENCEPOST_CHECK(entries.size() == batch.ids.size(), "one answer an id");
  --lookups_out_;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    InFlight* in = FindReference(batch.references[i]);
    if (in == nullptr || in->stage() != Stage::kLookup) continue;
    OnLookup(*in, entries[i], now);
    Advance(now);
  }
  Step(now);
}

void Flow::OnLookup(InFlight& in, const std::optional<LedgerEntry>& entry, Now now) {
  if (entry) {
    const std::string source = SourceText(*in.where, in.record.offset);
    const WriteItem item{.record = &in.record,
                         .where = in.where,
                         .record_id = in.identity.id,
                         .token = TokenOf(in),
                         .crc = in.identity.crc};
    const WriteOutcome stands = Classify({.token = entry->token.value(),
                                          .source = entry->source,
                                          .content_crc = static_cast<std::int64_t>(entry->crc)},
                                         item, source);
    if (stands.result == WriteResult::kIdConflict)
      return OnConflict(in, stands.detail, stands.shown, now);
    in.letter.reset();
    Count(in);
    return OnSkipped(in, Hinted(in) ? DedupeSource::kLock : DedupeSource::kLedger, now);
  }
  if (in.letter != nullptr) return Publish(in, now);
  if (!in.handled) return WaitForTurn(in);
  in.BecomeHandled();
  work_.Push(&in);
}

// --- handled -----------------------------------------------------------------------------------

void Flow::WaitForTurn(InFlight& in) {
  in.BecomeWaiting();
  waiting_.push_back(EntryOf(in, Instant()));
}

// What calls will make has no size yet: each is expected to make about what the largest of the last
// ones did. While memory is full, only what comes next in its chain is handled, one at a time, and
// only when no write is under way or possible that would give room.
bool Flow::MayCall() const {
  if (calls_.size() >= options_.concurrency) return false;
  const std::uint64_t expected = in_flight_bytes_ + (calls_.size() + 1) * expected_values_;
  if (expected <= options_.max_in_flight_bytes) return true;
  return calls_.empty() && ready_.empty() && writes_out_ == 0;
}

// The next record that may be handled, taken from the queue; nullptr: none may now.
InFlight* Flow::NextToCall(Now now) {
  const bool full = in_flight_bytes_ >= options_.max_in_flight_bytes;
  for (auto at = waiting_.begin(); at != waiting_.end() && MayCall();) {
    InFlight& in = *at->record;
    // `call`: its former call is still out.
    const bool stale = in.stage() != Stage::kWaiting || in.ticket != at->ticket || in.call != 0;
    // Calls of one chain never overlap where they may have effects. Move::kTakeTurn queues it.
    const bool early = in.chain_before != nullptr && !Handled(*in.chain_before);
    if (!stale && early && full && !options_.handler.outside()) {
      ++at;
      continue;
    }
    at = waiting_.erase(at);
    const bool overlaps = early && options_.handler.outside();
    if (stale || (overlaps && !Planted("calls_of_a_key_overlap"))) continue;
    if (LeaseStands(in, now)) return &in;
    LeavePrefix(in);
  }
  return nullptr;
}

void Flow::StartCalls(Now now) {
  while (InFlight* next = NextToCall(now)) {
    InFlight& in = *next;
    in.BecomeHandling(next_call_++);
    calls_.emplace(in.call, in.index);
    SetPhase(in, Phase::kHandling);
    actions_.calls.push_back({.id = in.call,
                              .record = in.record,
                              .where = *in.where,
                              .record_id = in.identity.id,
                              .token = TokenOf(in).value(),
                              .attempt = in.attempts,
                              .timeout = options_.handler_timeout});
  }
}

// It is still answered, and until then the record has no other call, nor has its order chain. As
// an attempt it does not count: the record is not to blame.
void Flow::CancelCall(InFlight& in) {
  if (in.stage() != Stage::kHandling || in.call == 0) return;
  actions_.cancels.push_back(in.call);
  --in.attempts;
}

void Flow::OnHandled(HandlerAnswer answer, Now now) {
  const auto call = calls_.find(answer.id);
  FENCEPOST_CHECK(call != calls_.end(), "an answer to no call");
  InFlight& in = pool_[call->second];
  calls_.erase(call);
  if (in.call == answer.id) {  // else the record has gone, and its place has another
    in.call = 0;
    if (in.stage() == Stage::kWaiting) {
      LeavePrefix(in);
      work_.Push(&in);
    } else if (in.stage() == Stage::kHandling && !LeaseStands(in, now)) {
      LeavePrefix(in);  // what it answered does not count
      --in.attempts;
    } else if (in.stage() == Stage::kHandling) {
      if (answer.result) {
        in.values = std::move(*answer.result);
        in.handled = true;
        const std::uint64_t before = in.bytes;
        Count(in);
        expected_values_ = std::max(in.bytes - std::min(before, in.bytes),
                                    expected_values_ - expected_values_ / 16);
        in.BecomeHandled();
        work_.Push(&in);
      } else {
        OnFailed(in, std::move(answer.result.error()), now);
      }
    }
  }
  Step(now);
}

void Flow::OnFailed(InFlight& in, HandlerFailure failure, Now now) {
  ++in.failures;
  const bool again = !failure.reached || (in.attempts < options_.retry.attempts &&
                                          MayRetry(options_.handler, options_.retry, failure));
  Note(locking::Severity::kWarn, "handler_failed",
       fmt::format("attempt {} of {}: {}{}", in.attempts, options_.retry.attempts,
                   ClassAndText(failure.error_class, failure.shown),
                   !again            ? "; not tried again"
                   : failure.reached ? ""
                                     : "; waiting for it to come back"),
       in);
  if (!again) {
    const auto reason = failure.error_class == "timeout"      ? DeadLetterReason::kTimeout
                        : failure.error_class == "bad_record" ? DeadLetterReason::kBadRecord
                                                              : DeadLetterReason::kHandler;
    return Refuse(in,
                  {.reason = reason,
                   .error_class = std::move(failure.error_class),
                   .text = std::move(failure.text),
                   .shown = std::move(failure.shown)},
                  now);
  }
  if (!failure.reached) --in.attempts;  // it says nothing about the record
  observer_->OnRetry(RetryStage::kHandler);
  if (in.assignment->revoking) {  // the next owner tries again
    BackToQueue(in, now);
    return GiveBackBehind(in, now);
  }
  in.BecomeRetrying();
  const Millis drawn = Backoff(options_.retry, in.failures, random_());
  const Millis wait = std::max(drawn, failure.retry_after.value_or(Millis(0)));
  timers_.push(EntryOf(in, now.boot + wait));
}

// --- dead letters ------------------------------------------------------------------------------

void Flow::OnConflict(InFlight& in, const std::string& detail, const std::string& shown, Now now) {
  observer_->OnIdConflict();
  Note(locking::Severity::kWarn, "id_conflict", "the id was processed with other content", in);
  const bool position = options_.record_id.kind == Selector::Kind::kPosition;
  if (options_.on_id_conflict == OnBad::kSkip && !position) {
    // Without a DONE mark: it would say that the id is done with this record's content.
    return Skip(in, Hinted(in) ? DedupeSource::kLock : DedupeSource::kLedger, now);
  }
  const std::string what = "the id was processed with other content: ";
  if (options_.on_id_conflict == OnBad::kDeadLetter && options_.dead_letters && !position) {
    return Refuse(in,
                  {.reason = DeadLetterReason::kIdConflict,
                   .error_class = "id_conflict",
                   .text = what + detail,
                   .shown = what + shown},
                  now);
  }
  Block(in,
        {"id_conflict", what + shown, "",
         position ? "was the topic recreated? then use another pipeline name"
                  : "mend the producer, or set on_id_conflict"},
        now);
}

// The record cannot be processed: a dead letter, where there is a topic for them; else the end.
void Flow::Refuse(InFlight& in, Refusal refusal, Now now) {
  if (refusal.shown.empty()) refusal.shown = refusal.error_class;
  const bool bad =
      refusal.reason == DeadLetterReason::kBadRecord || refusal.reason == DeadLetterReason::kOutput;
  if (!options_.dead_letters || (bad && options_.on_bad_record != OnBad::kDeadLetter)) {
    const char* hint = bad ? "mend the producer, the columns or the table, give dead_letter, or "
                             "move the group's offset past it"
                           : "mend what the handler calls, give dead_letter, or move the group's "
                             "offset past it";
    return Block(in, {bad ? "bad_record" : "handler_failed", std::move(refusal.shown), "", hint},
                 now);
  }
  in.letter = std::make_unique<DeadLetter>();
  *in.letter = {.id = 0,
                .record = in.record,
                .where = *in.where,
                .record_id = in.identity.id,
                .reason = refusal.reason,
                .error = std::move(refusal.text),
                .shown = std::move(refusal.shown),
                .error_class = std::move(refusal.error_class),
                .attempts = in.attempts,
                .failed_at = now.wall.time_since_epoch()};
  in.cause = refusal.cause;
  if (in.cause) in.turn = gate_.Now(*in.cause);
  in.values = HandlerValues();  // it is published as it came
  in.handled = false;
  Count(in);
  const bool first = NotLeasedBefore(in) == nullptr;
  if (in.stage() == Stage::kQueued) {  // it never was in the leased prefix (no id)
    work_.Push(&in);
  } else if (first && LeaseStands(in, now)) {
    StartDeadLetter(in, now);
  } else {
    BackToQueue(in, now);
    GiveBackBehind(in, now);
    work_.Push(&in);
  }
}

// A Kafka output takes it into its transaction. Else the ledger is asked once more whether the
// effect stands after all (a conflict knows what stands there), and then it is published.
void Flow::StartDeadLetter(InFlight& in, Now now) {
  ++in.ticket;
  if (options_.finality == Finality::kTransaction) {
    if (!MayGoOut(in)) return Withhold(in, now);
    in.BecomeHandled();
    return work_.Push(&in);
  }
  const bool ask = options_.finality == Finality::kLedger && !in.nameless &&
                   in.letter->reason != DeadLetterReason::kIdConflict;
  if (ask) return AskLedger(in);
  Publish(in, now);
}

void Flow::Publish(InFlight& in, Now now) {
  if (!LeaseStands(in, now)) {
    LeavePrefix(in);
    return;
  }
  if (!MayGoOut(in)) return Withhold(in, now);
  in.BecomePublishing();
  SetPhase(in, Phase::kWriting);
  DeadLetter letter = *in.letter;
  letter.id = in.Reference();
  letter.token = TokenOf(in).value();
  actions_.dead_letters.push_back(std::move(letter));
}

// --- more bad records in a row than are believed -------------------------------------------------

// Asked when nothing else is in its way: of a record that the ledger knows after all there is no
// dead letter to count.
bool Flow::MayGoOut(InFlight& in) {
  if (in.cause && !in.let_out) in.let_out = gate_.Pass(*in.cause, in.turn);
  return !in.cause || in.let_out || Planted("dead_letters_without_a_limit");
}

// Without a lease, so that nobody waits for it but what stands behind it in its chain.
void Flow::Withhold(InFlight& in, Now now) {
  BackToQueue(in, now);
  GiveBackBehind(in, now);
  in.BecomeWithheld();
  withheld_.push_back(EntryOf(in, now.boot));
}

// Something took effect, or was a duplicate: those that waited for just that go on, from their lock
// anew.
void Flow::LetOut(Now now) {
  if (gate_.EndMoment()) {
    for (const Entry& entry : std::exchange(withheld_, {})) {
      InFlight& in = *entry.record;
      if (in.stage() != Stage::kWithheld || in.ticket != entry.ticket) continue;
      if (!MayGoOut(in)) {
        withheld_.push_back(entry);
        continue;
      }
      in.BecomeQueued();
      work_.Push(&in);
    }
  }
  if (withheld_.empty()) refused_.clear();
  Advance(now);
}

// --- published -----------------------------------------------------------------------------------

// Acknowledged: the lock is released, without a DONE mark and without a ledger row.
void Flow::OnDeadLettered(const std::vector<std::uint64_t>& ids, Now now) {
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
  for (const std::uint64_t id : ids) {
    InFlight* in = FindReference(id);
    if (in == nullptr || in->stage() != Stage::kPublishingDeadLetter) continue;
    in->letter_refused = true;
    if (in->assignment->revoking) GiveBackBehind(*in, now);
  }
  Advance(now);
}

void Flow::OnDeadLetterPublished(InFlight& in, Now now) {
  observer_->OnDeadLetter(in.letter->reason);
  Note(locking::Severity::kWarn, "dead_lettered",
       "published as a dead letter: " + ClassAndText(in.letter->error_class, in.letter->shown), in);
  observer_->OnProcessed(ProcessedResult::kDeadLettered, 1);
  Finish(in, now);
}

void Flow::OnDeadLetterState(bool up, Now now) {
  dead_letters_up_ = up;
  UpdateBackpressure(now);
}

}  // namespace fencepost::consumer
