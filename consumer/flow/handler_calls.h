// The calls of a flow's handler: whose turn it is, which are out, and whether the service behind it
// is at fault (HandlerCircuit, DeadLetterLimiter). Sans-IO; the engine thread's.
//
// Invariants (PROTOCOL.md, 18): a record has at most one call out; calls of one order chain never
// overlap where the handler may have effects; a call starts only under a valid lease, or under a
// hint that the ledger did not confirm.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "consumer/flow/flow_options.h"
#include "consumer/flow/record_locks.h"
#include "consumer/flow/state/backpressure.h"
#include "consumer/flow/state/dead_letter_limiter.h"
#include "consumer/flow/state/handler_circuit.h"
#include "consumer/flow/state/in_flight.h"
#include "consumer/pipeline/observer.h"

namespace fencepost::consumer {

class HandlerCalls {
 public:
  // All of them outlive it. Calls, and those that are called off, are put into `actions`.
  HandlerCalls(const FlowOptions& options, const Tuning& tuning, RecordLocks* locks,
               const Backpressure* backpressure, DeadLetterLimiter* limiter,
               const locking::LockCore::Random& random, ConsumerObserver* observer,
               FlowActions* actions);
  void OnTuned();

  // The record waits for its turn.
  void Wait(InFlight& record) { waiting_.push_back(EntryOf(record)); }
  // Calls that may go out now. `writes_idle`: no write is under way or possible that would give
  // room.
  void Start(bool writes_idle, Now now);
  // It is still answered, and until then the record has no other call, nor has its order chain; one
  // that has not gone out yet is none. As an attempt it does not count: the record is not to blame.
  void Cancel(InFlight& record);

  // Its call, where it has not gone out yet, is answered, and made again in its turn.
  void Withdraw(const InFlight& record);

  struct Ended {
    InFlight* record = nullptr;  // null: it has gone, and its place has another
    bool probe = false;
  };
  Ended OnAnswer(const HandlerAnswer& answer, Now now);
  // A call made values of so many bytes.
  void OnMade(std::uint64_t bytes);
  // Its call failed: whether it is tried again. It is not where it is refused, or has failed so
  // often and by itself for so long (HandlerCircuit::Failing); nor are more than so many in a row
  // given up (DeadLetterLimiter). Until the service has done one record, a status by which it
  // refuses is no record's own (MayBeOfAll): such a record is tried again.
  bool OnFailed(InFlight& record, const HandlerFailure& failure, std::uint64_t call, bool probe,
                Now now);

  // No record but this one needs the handler, or none (nullptr): without one that does the circuit
  // would be open for ever, and the worker not ready.
  void OnOthersGone(const InFlight* left, Now now);
  [[nodiscard]] bool unavailable() const { return circuit_.open(); }
  // … and the last probe does not tell whether the service or its record is to blame.
  [[nodiscard]] bool unclear() const { return unavailable() && unclear_ && !refuses_all_; }
  // Why calls go out one at a time; empty while the circuit is closed.
  [[nodiscard]] const std::string& WhyUnavailable() const { return why_; }
  // When a call that waits may go out; max(): none does.
  [[nodiscard]] Instant NextTime() const { return call_at_; }

 private:
  // No further one may become a dead letter.
  [[nodiscard]] bool Full() const;
  // One more may become a dead letter, and is counted.
  bool Believed();
  // It has failed so often and by itself for so long that it is given up.
  [[nodiscard]] bool LongEnough(const InFlight& record) const;
  // Its failure is that of a request with others: it is tried again, and is not blamed.
  static bool GoesAlone(InFlight& record, const HandlerFailure& failure);
  void WaitForProbe(const HandlerFailure& failure, Says says, bool was_open, Now now);
  // The circuit has opened: what is about to go out is for the probe to find out.
  void WithdrawAll();
  // The circuit, which was open for so long, is closed.
  void TellClosed(Nanos open, std::string_view why);
  void OnHandlerWorks(std::uint64_t call, Now now);
  [[nodiscard]] bool MayCall(bool writes_idle) const;
  InFlight* NextToCall(bool writes_idle, Now now);

  const FlowOptions& options_;
  const Tuning& tuning_;
  RecordLocks* const locks_;
  const Backpressure* const backpressure_;
  DeadLetterLimiter* const limiter_;
  const locking::LockCore::Random& random_;
  ConsumerObserver* const observer_;
  FlowActions* const actions_;
  std::deque<QueueEntry> waiting_;
  std::unordered_map<std::uint64_t, InFlight*> out_;  // by the call's id
  std::uint64_t next_call_ = 1;
  std::uint64_t expected_values_ = 0;  // bytes that a call is expected to make
  HandlerCircuit circuit_;
  Instant call_at_ = Instant::max();
  std::string why_;
  bool served_;  // the service has done a record
  bool unclear_ = false;
  bool refuses_all_ = false;  // it is open since more were refused than are believed
};

// "CLASS: TEXT", without anything of the record.
std::string ClassAndText(const std::string& error_class, const std::string& shown);

}  // namespace fencepost::consumer
