#include "consumer/flow/handler_calls.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "consumer/flow/ports/retry.h"
#include "consumer/flow/state/order_chain.h"
#include "consumer/pipeline/batch_of.h"
#include "locking/base/check.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {

namespace {

// A call of a record behind it in its chain is out, or called off and not answered yet.
bool CallIsOutBehind(const InFlight& in) {
  const InFlight* at = in.chain_after;
  while (at != nullptr && at->call == 0) at = at->chain_after;
  return at != nullptr;
}

}  // namespace

HandlerCalls::HandlerCalls(const FlowOptions& options, const Tuning& tuning, RecordLocks* locks,
                           const Backpressure* backpressure, DeadLetterLimiter* limiter,
                           const locking::LockCore::Random& random, ConsumerObserver* observer,
                           FlowActions* actions)
    : options_(options),
      tuning_(tuning),
      locks_(locks),
      backpressure_(backpressure),
      limiter_(limiter),
      random_(random),
      observer_(observer),
      actions_(actions),
      circuit_(tuning.retry.attempts),
      served_(options.served) {}

void HandlerCalls::OnTuned() { circuit_.SetFailuresToOpen(tuning_.retry.attempts); }

// What calls will make has no size yet: each is expected to make about what the largest of the last
// ones did. While memory is full, only what comes next in its chain is handled, one at a time, and
// only when no write is under way or possible that would give room.
bool HandlerCalls::MayCall(bool writes_idle) const {
  // The runner makes so many requests at a time, each with as many of the calls.
  const int records = std::max(BatchOf(options_.handler).max_records, 1);
  if (out_.size() >= static_cast<std::size_t>(tuning_.concurrency) * records) return false;
  const std::uint64_t expected = backpressure_->bytes() + (out_.size() + 1) * expected_values_;
  return expected <= options_.max_in_flight_bytes || (out_.empty() && writes_idle);
}

// Taken from the queue; nullptr: none may be handled now.
InFlight* HandlerCalls::NextToCall(bool writes_idle, Now now) {
  const bool full = backpressure_->bytes() >= options_.max_in_flight_bytes;
  for (auto at = waiting_.begin(); at != waiting_.end() && MayCall(writes_idle);) {
    InFlight& in = *at->record;
    // `call`: its former call is still out.
    const bool stale = in.stage() != Stage::kWaiting || at->Stale() || in.call != 0;
    // Calls of one chain never overlap where they may have effects. Move::kTakeTurn queues it.
    const bool early = !BeforeIsHandled(in);
    const bool behind = !stale && in.tried_again && options_.handler.outside() &&
                        CallIsOutBehind(in) && !Planted("calls_of_a_key_overlap");
    if (behind || (!stale && early && full && !options_.handler.outside())) {
      ++at;
      continue;
    }
    at = waiting_.erase(at);
    const bool overlaps = early && options_.handler.outside();
    if (stale || (overlaps && !Planted("calls_of_a_key_overlap"))) continue;
    if (locks_->LeaseIsValid(in, now)) return &in;
    locks_->LeaveInvalid(in, now);
  }
  return nullptr;
}

void HandlerCalls::Start(bool writes_idle, Now now) {
  call_at_ = Instant::max();
  while (!waiting_.empty()) {
    if (now.boot < circuit_.NextCall()) {
      call_at_ = circuit_.NextCall();
      return;
    }
    InFlight* next = NextToCall(writes_idle, now);
    if (next == nullptr) return;
    InFlight& in = *next;
    in.BecomeHandling(next_call_++);
    out_.emplace(in.call, &in);
    circuit_.OnCall(in.call);
    locks_->SetPhase(in, locking::Phase::kHandling);
    actions_->calls.push_back({.id = in.call,
                               .record = in.record,
                               .where = *in.where,
                               .record_id = in.identity.id,
                               .token = TokenOf(in).value(),
                               .attempt = in.attempts,
                               .timeout = options_.handler_timeout,
                               .valid_until = locks_->ValidUntil(in),
                               .alone = in.call_alone || circuit_.open(),
                               .trace = in.trace ? in.trace->OfNow() : TraceContext()});
  }
}

void HandlerCalls::Cancel(InFlight& in) {
  if (in.stage() != Stage::kHandling || in.call == 0) return;
  --in.attempts;
  const auto unsent = std::ranges::find(actions_->calls, in.call, &HandlerCall::id);
  if (unsent == actions_->calls.end()) return actions_->cancels.push_back(in.call);
  actions_->calls.erase(unsent);
  out_.erase(in.call);
  circuit_.OnEnd(in.call);
  in.call = 0;
}

void HandlerCalls::Withdraw(const InFlight& in) {
  if (in.stage() == Stage::kHandling && in.call != 0) actions_->withdraws.push_back(in.call);
}

void HandlerCalls::WithdrawAll() {
  const auto first = static_cast<std::ptrdiff_t>(actions_->withdraws.size());
  for (const auto& [call, record] : out_) actions_->withdraws.push_back(call);
  std::sort(actions_->withdraws.begin() + first, actions_->withdraws.end());
}

HandlerCalls::Ended HandlerCalls::OnAnswer(const HandlerAnswer& answer, Now now) {
  const auto call = out_.find(answer.id);
  FENCEPOST_CHECK(call != out_.end(), "an answer to no call");
  InFlight* const in = call->second;
  out_.erase(call);
  const bool probe = circuit_.OnEnd(answer.id);
  if (answer.result) {
    served_ = true;
    limiter_->OnAnswer();
    OnHandlerWorks(answer.id, now);
  }
  if (in->call != answer.id) return {};
  in->call = 0;
  return {in, probe};
}

void HandlerCalls::OnMade(std::uint64_t bytes) {
  expected_values_ = std::max(bytes, expected_values_ - expected_values_ / 16);
}

// Without a topic for dead letters the first one ends the worker.
bool HandlerCalls::Full() const { return options_.dead_letters && limiter_->Full(); }

bool HandlerCalls::Believed() {
  constexpr LetterCause kCause = LetterCause::kHandler;
  return !options_.dead_letters || limiter_->Pass(kCause, limiter_->Now(kCause), true);
}

bool HandlerCalls::LongEnough(const InFlight& in) const {
  const int own = in.attempts - in.failing.shared;
  return own >= tuning_.retry.attempts && in.failing.alone >= tuning_.retry.give_up_after;
}

// One of the others of the request may be to blame: from now on it goes alone, and what fails then
// is its own.
bool HandlerCalls::GoesAlone(InFlight& in, const HandlerFailure& failure) {
  if (!failure.shared || Planted("batch_blames_its_records")) return false;
  in.failing.why = failure.error_class;
  ++in.failing.shared;
  const bool of_service = !failure.reached || SaysUnavailable(failure);
  return !of_service && !std::exchange(in.call_alone, true);
}

bool HandlerCalls::OnFailed(InFlight& in, const HandlerFailure& failure, std::uint64_t call,
                            bool probe, Now now) {
  if (GoesAlone(in, failure) && !probe) return true;
  const bool of_all = !served_ && MayBeOfAll(options_.handler, tuning_.retry, failure) &&
                      !Planted("first_refusals_are_believed");
  const bool refused =
      !failure.shared && !of_all && !MayRetry(options_.handler, tuning_.retry, failure);
  if (refused && Believed()) {
    if (failure.asked) OnHandlerWorks(call, now);  // it did answer
    return false;
  }
  const bool was_open = circuit_.open();
  const Nanos open = circuit_.OpenFor(now.boot);
  const bool nobody = failure.shared || SaysUnavailable(failure);
  Says says = refused                    ? Says::kRefusesAll
              : !failure.reached         ? Says::kIsAway
              : nobody                   ? Says::kServesNobody
              : LongEnough(in) && Full() ? Says::kRefusesAll
                                         : Says::kNothing;
  in.failing.why = failure.error_class;
  circuit_.OnFailure(std::hash<std::string>()(in.identity.id), in.failing, call, says, now.boot);
  const bool blames =
      failure.reached && !failure.shared &&
      (!IsAboutTheCaller(failure.error_class) || circuit_.ServedOthersSince(in.failing));
  const bool long_enough = blames && !circuit_.open() && LongEnough(in);
  const bool given_up = long_enough && Believed();
  if (given_up) circuit_.OnGivenUp();
  if (long_enough && !given_up) {
    circuit_.Open(now.boot);
    says = Says::kRefusesAll;
  }
  if (was_open && !circuit_.open()) TellClosed(open, "only one record fails");
  if (!circuit_.open() || (was_open && !probe)) return !given_up;
  WaitForProbe(failure, says, was_open, now);
  return true;
}

// The circuit is open by this failure, or still. Why it is open changes only by what the service
// says of itself.
void HandlerCalls::WaitForProbe(const HandlerFailure& failure, Says says, bool was_open, Now now) {
  const Millis drawn = RetryBackoff(tuning_.retry, circuit_.probes() + 1, random_());
  // What the service asks of one caller is no reason to try no other record for hours.
  const Millis most = std::max<Millis>(tuning_.retry.max, std::chrono::minutes(1));
  const Millis asked = std::min(failure.retry_after.value_or(Millis(0)), most);
  circuit_.WaitUntil(now.boot + std::max(drawn, asked));
  unclear_ = says == Says::kNothing;
  const bool refused = says == Says::kRefusesAll;
  if (was_open && refused && !refuses_all_) return;
  if (!was_open || (!refused && says != Says::kNothing)) refuses_all_ = refused;
  const std::string what = ClassAndText(failure.error_class, failure.shown);
  why_ = refuses_all_ ? fmt::format(
                            "every record is refused ({} in a row): {}; check the handler, "
                            "its service and the records; if they are bad, raise "
                            "dead_letter.max_consecutive",
                            limiter_->in_a_row(), what)
                      : "its service is unavailable: " + what;
  if (IsAboutTheCaller(failure.error_class) || (!refuses_all_ && !failure.retry)) {
    why_ += "; check handler.http's url and credentials";
  }
  if (was_open) return;
  WithdrawAll();
  observer_->OnNote(locking::Severity::kWarn, "handler_unavailable",
                    fmt::format("{} calls failed in a row: {}; from now on one call at a "
                                "time, until one succeeds",
                                circuit_.failures(), why_));
}

void HandlerCalls::TellClosed(Nanos open, std::string_view why) {
  why_.clear();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(open).count();
  observer_->OnNote(locking::Severity::kInfo, "handler_available",
                    fmt::format("{}, after {} s", why, seconds));
}

void HandlerCalls::OnHandlerWorks(std::uint64_t call, Now now) {
  const bool was_open = circuit_.open();
  const Nanos open = circuit_.OpenFor(now.boot);
  circuit_.OnSuccess(call);
  if (was_open) TellClosed(open, "the handler answers again");
}

void HandlerCalls::OnOthersGone(const InFlight* left, Now now) {
  if (left != nullptr) return circuit_.OnAlone(std::hash<std::string>()(left->identity.id));
  const Nanos open = circuit_.OpenFor(now.boot);
  circuit_.OnIdle();
  TellClosed(open, "no record waits for the handler any more");
}

std::string ClassAndText(const std::string& error_class, const std::string& shown) {
  return shown.empty() || shown == error_class ? error_class : error_class + ": " + shown;
}

}  // namespace fencepost::consumer
