// The way of a record through the handler: looked up in the ledger, its turn, handled, tried again.
// A successful one goes on in writing.cc, one that cannot be processed in dead_letters.cc.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "consumer/flow/flow.h"
#include "consumer/flow/ports/ledger_duplicate.h"
#include "consumer/flow/ports/retry.h"
#include "locking/base/check.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {

using locking::Phase;

namespace {

constexpr std::size_t kLookupBatch = 500;
constexpr std::size_t kLookupsOut = 2;

// It is still to be handled, or tried again.
bool NeedsHandler(const InFlight& in) {
  switch (in.stage()) {
    case Stage::kUnused:
    case Stage::kBlocked:
    case Stage::kFinished:
      return false;
    default:
      return !in.handled && in.letter == nullptr;
  }
}

}  // namespace

void Flow::AskLedger(InFlight& in) {
  in.BecomeLookup();
  lookups_.push_back({EntryOf(in, Instant())});
}

// A transaction with it was not answered, and may still be committed: the ledger is asked once that
// can no longer be.
void Flow::AskLedgerAfterDoubt(InFlight& in, Now now) {
  ++in.ticket;
  if (now.boot < in.in_doubt_until && !Planted("dead_letter_while_in_doubt")) {
    if (in.assignment->revoking) return GiveBackFrom(in, now);  // the next owner's
    in.BecomeInDoubt();
    SetPhase(in, locking::Phase::kWaiting);
    timers_.push(EntryOf(in, in.in_doubt_until));
    return;
  }
  in.in_doubt_until = Instant();
  AskLedger(in);
}

void Flow::SendLookups() {
  while (!lookups_.empty() && lookups_out_ < kLookupsOut) {
    auto batch = std::make_unique<LookupBatch>();
    while (!lookups_.empty() && batch->ids.size() < kLookupBatch) {
      const auto [entry, contended] = lookups_.front();
      lookups_.pop_front();
      InFlight& in = *entry.record;
      const bool asks = contended > Nanos(0) || in.stage() == Stage::kLookup;
      if (!asks || in.ticket != entry.ticket) continue;
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
  --lookups_out_;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    InFlight* in = FindReference(batch.references[i]);
    if (batch.contended[i] > Nanos(0)) {
      JudgeContention(in, entries[i], batch.contended[i], now);
    } else if (in != nullptr && in->stage() == Stage::kLookup) {
      OnLookup(*in, entries[i], now);
    }
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
    const WriteOutcome duplicate = DuplicateOrConflict(
        {.token = entry->token.value(), .source = entry->source, .crc = entry->crc}, item, source);
    if (duplicate.result == WriteResult::kIdConflict)
      return OnConflict(in, duplicate.detail, duplicate.shown, now);
    in.letter.reset();
    UpdateBytes(in);
    return OnSkipped(in, DedupeSource::kLedger, now);
  }
  if (in.letter != nullptr) return Publish(in, now);
  if (traits_.handler && !in.handled) return WaitForTurn(in);
  in.BecomeHandled();
  work_.Push(&in);
}

void Flow::WaitForTurn(InFlight& in) {
  in.BecomeWaiting();
  waiting_.push_back(EntryOf(in, Instant()));
}

// What calls will make has no size yet: each is expected to make about what the largest of the last
// ones did. While memory is full, only what comes next in its chain is handled, one at a time, and
// only when no write is under way or possible that would give room.
bool Flow::MayCall() const {
  if (calls_.size() >= static_cast<std::size_t>(tuning_.concurrency)) return false;
  const std::uint64_t expected = backpressure_.bytes() + (calls_.size() + 1) * expected_values_;
  if (expected <= options_.max_in_flight_bytes) return true;
  return calls_.empty() && ready_.empty() && writes_out_ == 0;
}

// The next record that may be handled, taken from the queue; nullptr: none may now.
InFlight* Flow::NextToCall(Now now) {
  const bool full = backpressure_.bytes() >= options_.max_in_flight_bytes;
  for (auto at = waiting_.begin(); at != waiting_.end() && MayCall();) {
    InFlight& in = *at->record;
    // `call`: its former call is still out.
    const bool stale = in.stage() != Stage::kWaiting || in.ticket != at->ticket || in.call != 0;
    // Calls of one chain never overlap where they may have effects. Move::kTakeTurn queues it.
    const bool early = !BeforeIsHandled(in);
    if (!stale && early && full && !options_.handler.outside()) {
      ++at;
      continue;
    }
    at = waiting_.erase(at);
    const bool overlaps = early && options_.handler.outside();
    if (stale || (overlaps && !Planted("calls_of_a_key_overlap"))) continue;
    if (LeaseIsValid(in, now)) return &in;
    LeaveInvalid(in, now);
  }
  return nullptr;
}

void Flow::StartCalls(Now now) {
  call_at_ = Instant::max();
  while (!waiting_.empty()) {
    const Instant may = std::max(circuit_.NextCall(), rate_limit_.NextCall());
    if (now.boot < may) {
      call_at_ = may;
      return;
    }
    InFlight* next = NextToCall(now);
    if (next == nullptr) return;
    InFlight& in = *next;
    in.BecomeHandling(next_call_++);
    calls_.emplace(in.call, in.index);
    circuit_.OnCall(in.call);
    rate_limit_.OnCall(now.boot);
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

// It is still answered, and until then the record has no other call, nor has its order chain; one
// that has not gone out yet is none. As an attempt it does not count: the record is not to blame.
void Flow::CancelCall(InFlight& in) {
  if (in.stage() != Stage::kHandling || in.call == 0) return;
  --in.attempts;
  const auto unsent = std::ranges::find(actions_.calls, in.call, &HandlerCall::id);
  if (unsent == actions_.calls.end()) return actions_.cancels.push_back(in.call);
  actions_.calls.erase(unsent);
  calls_.erase(in.call);
  circuit_.OnEnd(in.call);
  in.call = 0;
}

void Flow::OnHandled(HandlerAnswer answer, Now now) {
  const auto call = calls_.find(answer.id);
  FENCEPOST_CHECK(call != calls_.end(), "an answer to no call");
  InFlight& in = pool_[call->second];
  calls_.erase(call);
  const bool probe = circuit_.OnEnd(answer.id);
  if (answer.result) {
    caller_refused_.End();
    OnHandlerWorks(answer.id, now);
  }
  if (in.call == answer.id) {  // else the record has gone, and its place has another
    in.call = 0;
    if (in.stage() == Stage::kWaiting) {
      LeavePrefix(in);
      work_.Push(&in);
    } else if (in.stage() == Stage::kHandling && !LeaseIsValid(in, now)) {
      LeaveInvalid(in, now);  // what it answered does not count
      --in.attempts;
    } else if (in.stage() == Stage::kHandling && answer.result) {
      OnSucceeded(in, std::move(*answer.result));
    } else if (in.stage() == Stage::kHandling) {
      OnFailed(in, std::move(answer.result.error()), answer.id, probe, now);
    }
  }
  Step(now);
}

void Flow::OnSucceeded(InFlight& in, HandlerValues values) {
  in.values = std::move(values);
  in.handled = true;
  const std::uint64_t before = in.bytes;
  UpdateBytes(in);
  expected_values_ =
      std::max(in.bytes - std::min(before, in.bytes), expected_values_ - expected_values_ / 16);
  in.BecomeHandled();
  work_.Push(&in);
}

void Flow::OnFailed(InFlight& in, HandlerFailure failure, std::uint64_t call, bool probe, Now now) {
  const Blame blame = BlameFor(failure);
  if (blame == Blame::kRecord) {
    OnHandlerWorks(call, now);  // it did answer
  } else {
    TellCircuit(in, failure, call, probe, now);
  }
  const bool again = MayTryAgain(in, failure, blame, now);
  Note(
      locking::Severity::kWarn, "handler_failed",
      fmt::format("attempt {}: {}{}", in.attempts, ClassAndText(failure.error_class, failure.shown),
                  !again            ? "; not tried again"
                  : failure.reached ? ""
                                    : "; waiting for it to come back"),
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
  observer_->OnRetry(RetryStage::kHandler);
  if (in.assignment->revoking) return GiveBackFrom(in, now);  // the next owner tries again
  in.BecomeRetrying();
  const Millis drawn = RetryBackoff(tuning_.retry, std::max(1, in.failing.failures), random_());
  const Millis wait = std::max(drawn, failure.retry_after.value_or(Millis(0)));
  timers_.push(EntryOf(in, now.boot + wait));
}

// A status that is a record's own, such as 400, shows that the service looked at it. One that says
// that the caller is wrong may be the answer to everything.
Flow::Blame Flow::BlameFor(const HandlerFailure& failure) {
  if (!MayRetry(options_.handler, tuning_.retry, failure)) {
    const bool caller = CallerIsWrong(failure.error_class);
    if (!caller) caller_refused_.End();
    if (!caller || !options_.dead_letters) return Blame::kRecord;
    const bool believed = caller_refused_.Believes();
    caller_refused_.Count();
    return believed ? Blame::kRecord : Blame::kService;
  }
  return SaysUnavailable(failure) ? Blame::kService : Blame::kEither;
}

// A record is given up after so many attempts and so long, while the service works for others.
// While it works for none, hardly any, and none where the service itself says that it is not there.
bool Flow::MayTryAgain(const InFlight& in, const HandlerFailure& failure, Blame blame, Now now) {
  if (blame == Blame::kRecord) return false;
  if (!failure.reached || in.attempts < tuning_.retry.attempts) return true;
  if (CallerIsWrong(failure.error_class) && blame == Blame::kService) return true;
  const Nanos after = tuning_.retry.give_up_after;
  if (!circuit_.open()) return circuit_.ClosedTime(now.boot) - in.failing.closed < after;
  return blame == Blame::kService || !circuit_.MayGiveUp(in.failing, after, now.boot);
}

void Flow::TellCircuit(InFlight& in, const HandlerFailure& failure, std::uint64_t call, bool probe,
                       Now now) {
  const bool opened = circuit_.OnFailure(std::hash<std::string>()(in.identity.id), in.failing, call,
                                         SaysUnavailable(failure), now.boot);
  if (!opened && !probe) return;
  const Millis drawn = RetryBackoff(tuning_.retry, circuit_.probes() + 1, random_());
  // What the service asks of one caller is no reason to try no other record for hours.
  const Millis most = std::max<Millis>(tuning_.retry.max, std::chrono::minutes(1));
  const Millis asked = std::min(failure.retry_after.value_or(Millis(0)), most);
  circuit_.WaitUntil(now.boot + std::max(drawn, asked));
  handler_unavailable_ = ClassAndText(failure.error_class, failure.shown);
  if (caller_refused_.count() != 0 && CallerIsWrong(failure.error_class)) {
    handler_unavailable_ += fmt::format(
        "; {} records in a row were refused so: check handler.http's url and credentials; if the "
        "records are at fault, raise dead_letter.max_consecutive",
        caller_refused_.count());
  }
  if (!opened) return;
  observer_->OnNote(locking::Severity::kWarn, "handler_unavailable",
                    fmt::format("{} calls failed in a row: {}; from now on one call at a "
                                "time, until one succeeds",
                                circuit_.failures(), handler_unavailable_));
}

void Flow::OnHandlerWorks(std::uint64_t call, Now now) {
  const auto open = std::chrono::duration_cast<std::chrono::seconds>(circuit_.OpenFor(now.boot));
  if (!circuit_.OnSuccess(call, now.boot)) return;
  handler_unavailable_.clear();
  observer_->OnNote(locking::Severity::kInfo, "handler_available",
                    fmt::format("the handler answers again, after {} s", open.count()));
}

// Without a record that needs the handler it would be open for ever, and the worker not ready.
void Flow::CloseIdleCircuit(Now now) {
  if (!circuit_.open() || std::ranges::any_of(pool_, NeedsHandler)) return;
  if (!circuit_.OnIdle(now.boot)) return;
  handler_unavailable_.clear();
  observer_->OnNote(locking::Severity::kInfo, "handler_available",
                    "no record waits for the handler any more");
}

}  // namespace fencepost::consumer
