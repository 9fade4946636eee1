// The life of every record of one pipeline, sans-IO: from delivery to the effect and back to the
// offset. flow.cc is the loop; the way of a record is in admit.cc, locks.cc, handling.cc,
// dead_letters.cc, writing.cc and finish.cc; what concerns whole partitions in
// partitions.cc, commits.cc and report.cc. What it knows: state/.
//
//   delivered → identified → queued → locking → leased (or found DONE)
//     → [looked up in the ledger → handled, tried again] → ready → writing → finished
//     ↘ dead letter: looked up → published ↗
//
// A host (consumer/worker/worker_impl.h, the simulator, `fencepost test`) hands in what happened
// (records, lock events, answers, time) on one thread, then takes actions() and carries them out.
// The LockGroups beside it is driven by the same host.
//
// Invariants (PROTOCOL.md): leases are held only as a prefix of an order chain; the watermark never
// passes a delivered record that is not finished; a record is finished only after its effect is
// final (Finality: the ledger's transaction, the write, or the Kafka transaction), a dead
// letter only after its publish was acknowledged; DONE is sent, and a lease is left behind, only
// after an effect; a record of an assignment that is over changes nothing any more; a record has at
// most one handler call out.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "consumer/flow/ports/ports.h"
#include "consumer/flow/ports/run_of_refusals.h"
#include "consumer/flow/state/assignment.h"
#include "consumer/flow/state/backpressure.h"
#include "consumer/flow/state/handler_circuit.h"
#include "consumer/flow/state/in_flight.h"
#include "consumer/flow/state/lock_unit.h"
#include "consumer/flow/state/next.h"
#include "consumer/flow/state/order_chains.h"
#include "consumer/flow/state/rate_limit.h"
#include "consumer/flow/state/work_list.h"
#include "consumer/pipeline/observer.h"
#include "consumer/pipeline/options.h"
#include "consumer/pipeline/status.h"
#include "consumer/record/dead_letter.h"
#include "consumer/record/identity.h"
#include "locking/core/groups/lock_groups.h"

namespace fencepost::consumer {

using locking::Instant;
using locking::Now;

struct FlowOptions {
  std::string pipeline;
  IdentityRule identity;
  Order order = Order::kKey;
  OnBad on_id_conflict = OnBad::kStop;
  OnBad on_bad_record = OnBad::kStop;
  Finality finality = Finality::kLedger;
  HandlerOptions handler;
  Tuning tuning;
  int circuit_failures = 5;  // retryable ones in a row that open the handler's circuit; 0: never
  Millis handler_timeout{5000};
  bool dead_letters = false;                        // there is a topic for them
  std::size_t max_consecutive = kMostInARow;        // bad ones, while nothing takes effect; 0: any
  std::size_t max_in_flight = 4096;                 // unfinished records
  std::uint64_t max_in_flight_bytes = 64ull << 20;  // held by them: records, values, dead letters
  std::size_t max_finished_behind = 100'000;        // an unfinished record, in one partition
  Millis hold_after{500};  // a partition that holds more than its share for so long is paused
  Millis lock_wait{30'000};
  Millis remember_done{300'000};  // without a ledger: how long a DONE mark is kept
  std::int64_t block = 1;         // offsets that share a lock unit (LockBlock)
  // No ledger row that another worker writes meanwhile is pruned for so long: what was found out
  // without a lease holds until then (ProceedUnlocked), and what the group has confirmed
  // (SurelyOurs) for half of it. nullopt: for ever.
  std::optional<Millis> rows_stay;
  // A transaction that was sent and not answered begins within this time, or never. (One that has
  // begun holds its ledger rows: another of the same records waits for it.)
  Millis transaction_lasts{30'000};
  Millis commit_interval{1000};
  Millis stall_after{300'000};
  std::size_t write_batch = 500;  // records a transaction
  std::size_t writes_out = 2;     // transactions handed to the output at a time
  Millis linger{0};  // a Kafka transaction waits so long for more records, unless it is full
};
FlowOptions FlowOptionsOf(const PipelineOptions& options);

struct FlowActions {
  std::vector<PartitionIndex> pause;
  std::vector<PartitionIndex> resume;
  std::vector<PartitionOffset> commit;
  std::vector<std::unique_ptr<LookupBatch>> lookups;
  std::vector<HandlerCall> calls;
  std::vector<std::uint64_t> cancels;  // of calls; each is still answered
  std::vector<std::unique_ptr<WriteBatch>> writes;
  std::vector<DeadLetter> dead_letters;
  std::vector<std::uint64_t> dropped_letters;  // by id: handed out, and now another worker's
  std::optional<std::vector<PartitionOffset>> drained;  // the answer to OnRevoked
  // Partitions that have caught up with the end they had when they were assigned, and how far the
  // group has committed them: of these the ledger may be pruned (PruneScope::committed).
  std::optional<std::vector<SourceOffset>> prunable;
  std::optional<Error> stop;  // drain and end the worker with this error (exit 1)
};

class Flow {
 public:
  Flow(FlowOptions options, locking::LockGroups* locks, locking::LockCore::Random random,
       ConsumerObserver* observer);
  ~Flow();
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  // --- Kafka ---------------------------------------------------------------------------------
  void OnClusterId(std::string cluster_id);
  // `late`: so many more of this assignment are told later; room is kept for them.
  void OnAssigned(const std::vector<AssignedPartition>& partitions, Now now, std::size_t late = 0);
  // Finishes what holds a lease, gives back the rest; `drained` follows at the latest at `deadline`
  // (at once when lost, with nothing to commit).
  void OnRevoked(const std::vector<PartitionIndex>& partitions, bool lost, Instant deadline,
                 Now now);
  void OnRecords(std::vector<Record> records, Now now);
  void OnPartitionEnd(const std::vector<PartitionEnd>& ends, Now now);
  void OnHighWatermark(const std::vector<PartitionEnd>& ends);
  // `sent`: the group took them, in a request that was sent no sooner. nullopt: it did not.
  void OnCommitted(const std::vector<PartitionOffset>& offsets, std::optional<Instant> sent,
                   Now now);

  // --- locks, ledger, handler, output, dead letters, time ---------------------------------------
  void OnLockEvents(Now now);  // drains those of all groups
  void OnLookedUp(const LookupBatch& batch, const std::vector<std::optional<LedgerEntry>>& entries,
                  Now now);
  void OnHandled(HandlerAnswer answer, Now now);
  void OnWritten(std::unique_ptr<WriteBatch> batch, const std::vector<WriteOutcome>& outcomes,
                 Now now);
  void OnDeadLettered(const std::vector<std::uint64_t>& ids, Now now);
  // Their topic refuses them as they are; they wait. No drain waits for them, nor for what is
  // behind them in its chain.
  void OnDeadLettersRefused(const std::vector<std::uint64_t>& ids, Now now);
  void OnDeadLetterState(bool up, Now now);  // while they cannot be published, the pipeline pauses
  void OnTime(Now now);
  [[nodiscard]] Instant NextTime() const;
  // From now on; a retry that waits already comes when it was to come.
  void Tune(const Tuning& tuning, Now now);
  // Nothing new is locked from now on; what holds a lease is finished.
  void StopTaking();
  // The same, until it is taken back.
  void SetPaused(bool paused, Now now);
  [[nodiscard]] bool paused() const { return paused_; }
  // While true nothing of this group of lock nodes is locked: its records go on without a lease,
  // and the ledger decides. Those that are waiting for their lock go on now. Only with
  // Finality::kLedger.
  void SetUnlocked(int group, bool unlocked, Now now);
  // A drain that is under way ends now.
  void HurryDrain(Now now);
  // The output answers no more. The leases of what it has in its hands are given back: whether that
  // was written is for the next owner to find out, as after the end of their TTL.
  void OnOutputEnded(Now now);

  FlowActions& actions() { return actions_; }

  // --- looking -------------------------------------------------------------------------------
  [[nodiscard]] std::size_t in_flight() const { return backpressure_.records(); }
  // Records that were not finished when their partition went, since the beginning.
  [[nodiscard]] std::size_t given_back() const { return given_back_; }
  // How much room there is for more.
  [[nodiscard]] const Backpressure& backpressure() const { return backpressure_; }
  // The oldest record of some partition has not moved for stall_after: which one, and what it waits
  // for. Empty when none.
  [[nodiscard]] const std::string& Stalled() const { return stalled_; }
  // Bad records wait for any other to take effect (DeadLetterLimiter), and none of those that are
  // here can: why they are bad, and what to do. It holds nothing of any record. Empty while there
  // is hope.
  [[nodiscard]] const std::string& Refused() const { return refused_; }
  void FillStatus(WorkerStatus& status, Now now) const;
  // How often a record was asked what it does next: a measure of work, for tests.
  [[nodiscard]] std::uint64_t advanced() const { return advanced_; }
  // Why the handler is not called but by one probe at a time: what its service answered last. Empty
  // while the circuit is closed (state/handler_circuit.h).
  [[nodiscard]] const std::string& HandlerUnavailable() const { return handler_unavailable_; }
  // Every record in flight, in no particular order.
  template <typename Visit>
  void ForEachRecord(Visit visit) const {
    for (const InFlight& in : pool_) {
      if (in.stage() != Stage::kUnused) visit(in);
    }
  }

 private:
  // A place in a queue or a timer; stale when the ticket differs from the record's.
  struct Entry {
    InFlight* record = nullptr;
    std::uint32_t ticket = 0;
    Instant at;
    bool operator>(const Entry& other) const { return at > other.at; }
  };
  static Entry EntryOf(InFlight& record, Instant at) { return {&record, record.ticket, at}; }
  struct Look {
    Entry entry;
    Nanos contended{0};  // LookupBatch
  };

  // flow.cc: what is next for each record.
  void Step(Now now);  // after every input
  void Advance(Now now);
  void UpdateBackpressure(Now now);
  [[nodiscard]] Place PlaceOf(const InFlight& record) const;
  void Do(InFlight& record, Move move, Now now);
  void EnterLeasedPrefix(InFlight& record, Move move, Now now);
  InFlight* NewInFlight();
  InFlight* FindReference(std::uint64_t reference);
  void Recycle(InFlight& record);

  // admit.cc: delivered, identified, in its chain.
  void Admit(Assignment& partition, Record record, Now now);
  void JoinChain(InFlight& record);

  // locks.cc: locking, by lock units.
  bool Lock(InFlight& record, Now now);
  LockUnit& JoinUnit(InFlight& record);
  void GoOn(InFlight& record, Now now);
  void LockAlone(InFlight& record, Now now);
  void Acquire(LockUnit& unit, Now now);
  void ProceedUnlocked(LockUnit& unit, Now now);
  [[nodiscard]] bool Unlocked(const LockUnit& unit) const {
    return unlocked_ != 0 && ((unlocked_ >> locks_->GroupOfName(unit.name())) & 1U) != 0;
  }
  void OnLockEvent(LockUnit& unit, const locking::LockEvent& event, Now now);
  bool UpdateUnit(LockUnit& unit, const locking::LockEvent& event, Now now);
  void ContinueAfter(const locking::LockEvent& event, InFlight& record, Now now);
  void OnFoundDone(InFlight& record);
  void SkipDone(InFlight& record, Now now);
  void MarkDone(InFlight& record, Now now);
  static void LeavePrefix(InFlight& record);
  void LeaveInvalid(InFlight& record, Now now);
  void BackToQueue(InFlight& record, Now now);
  void GiveBackBehind(InFlight& record, Now now);
  void GiveBackFrom(InFlight& record, Now now);
  void LeaveUnit(InFlight& record, Now now);
  [[nodiscard]] bool HandsOn(const InFlight& record, Now now);
  void EndLease(LockUnit& unit, Now now);
  void OnContended(InFlight& record, Nanos took);
  void JudgeContention(InFlight* record, const std::optional<LedgerEntry>& entry, Nanos took,
                       Now now);
  void KeepAcquiring(InFlight& record, Now now);
  void SetPhase(const InFlight& record, locking::Phase phase);
  void NoteViolation(const InFlight& record, const locking::LockEvent& event);
  [[nodiscard]] bool EndedBefore(const InFlight& record, Instant began) const;
  [[nodiscard]] bool LeaseIsValid(const InFlight& record, Now now) const;

  // handling.cc: looked up, handled, tried again.
  void AskLedger(InFlight& record);
  void AskLedgerAfterDoubt(InFlight& record, Now now);
  void SendLookups();
  void OnLookup(InFlight& record, const std::optional<LedgerEntry>& entry, Now now);
  void WaitForTurn(InFlight& record);
  void StartCalls(Now now);
  [[nodiscard]] bool MayCall() const;
  InFlight* NextToCall(Now now);
  void CancelCall(InFlight& record);
  void OnSucceeded(InFlight& record, HandlerValues values);
  // Whose fault a failed call may be.
  enum class Blame : std::uint8_t { kRecord, kService, kEither };
  void OnFailed(InFlight& record, HandlerFailure failure, std::uint64_t call, bool probe, Now now);
  Blame BlameFor(const HandlerFailure& failure);
  bool MayTryAgain(const InFlight& record, const HandlerFailure& failure, Blame blame, Now now);
  void TellCircuit(InFlight& record, const HandlerFailure& failure, std::uint64_t call, bool probe,
                   Now now);
  void OnHandlerWorks(std::uint64_t call, Now now);
  void CloseIdleCircuit(Now now);

  // dead_letters.cc: what cannot be processed.
  // `shown`: the same as `detail` and `text` without anything of the record (DeadLetter::shown).
  void OnConflict(InFlight& record, const std::string& detail, const std::string& shown, Now now);
  struct Refusal {
    DeadLetterReason reason = DeadLetterReason::kBadRecord;
    std::string error_class, text, shown;
    std::optional<LetterCause> cause{};  // nullopt: it counts in no row
  };
  void DeadLetterOrStop(InFlight& record, Refusal refusal, Now now);
  bool KeepsItsTurn(InFlight& record, Now now);
  void StartDeadLetter(InFlight& record, Now now);
  [[nodiscard]] bool PassesOffset(const InFlight& record) const;
  bool MayGoOut(InFlight& record);
  void Withhold(InFlight& record, Now now);
  void ReleaseWithheld(Now now);
  void ReleaseOldest(Assignment& partition);
  void Publish(InFlight& record, Now now);
  void OnDeadLetterPublished(InFlight& record, Now now);
  static std::string ClassAndText(const std::string& error_class, const std::string& shown);

  // writing.cc: written.
  void SendWrites(Now now);
  [[nodiscard]] bool WriteDue(Now now) const;
  void FillBatch(WriteBatch& batch, Now now);
  void FillOffsets(WriteBatch& batch);
  void OnOutcome(InFlight& record, const WriteOutcome& outcome, Instant began, Now now);
  void UpdateDeadLetterLimiter(const InFlight& record, const WriteOutcome& outcome);
  void OnEffect(InFlight& record, Instant began, Now now);
  void ReportMoved(const WriteBatch& batch, const std::vector<WriteOutcome>& outcomes);
  void WriteAgain(InFlight& record, Now now);
  void OnSkipped(InFlight& record, DedupeSource source, Now now);
  void Skip(InFlight& record, DedupeSource source, Now now);
  // It remembers what is done: no DONE mark is sent, and leases are left behind.
  [[nodiscard]] bool HasLedger() const { return options_.finality == Finality::kLedger; }
  [[nodiscard]] bool WriteDecides() const {
    return consumer::WriteDecides(options_.finality, options_.identity);
  }

  // finish.cc.
  void Finish(InFlight& record, Now now);
  void Block(InFlight& record, Error error, Now now);
  void LeaveChain(InFlight& record);
  void AdvanceWatermark(Assignment& partition, Now now);
  void UpdateBytes(InFlight& record);  // what it holds in memory, after that has changed

  // partitions.cc, commits.cc.
  struct Drain {
    std::vector<PartitionIndex> partitions;
    bool lost = false;
    Instant deadline;
    bool offsets_sent = false;  // Kafka transactions: those that moved without a record to write
  };
  void CheckDrained(Now now);
  void LeavePartition(std::unique_ptr<Assignment> partition, Now now);
  void Abandon(Assignment& partition, Now now);
  void Drop(InFlight& record, Now now);
  void Sweep();
  Assignment* Find(PartitionIndex index, AssignmentEpoch epoch);
  void Commit(Now now);
  // Ledger rows may go: what is known of them, and of whose a partition is, does not hold for ever.
  [[nodiscard]] bool RowsArePruned() const { return options_.rows_stay && HasLedger(); }
  // Whoever else had the partition since it was confirmed has written no row that can be pruned by
  // now, nor by the end of a batch that is filled now (WriteBatch::until). A worker that was
  // frozen, or cut off from Kafka, does not know yet whose it is.
  [[nodiscard]] bool SurelyOurs(const Assignment& partition, Now now) const;
  // Asks the group, by a commit. What waits for it goes on once it is answered.
  void Confirm(Assignment& partition, Now now);

  // report.cc.
  void Report(Now now);
  void TellPrunable(Now now);
  void LookForStall(Assignment& partition, Now now);
  void LookForRefusal(Now now);
  [[nodiscard]] bool MayTakeEffect() const;
  void Note(locking::Severity severity, std::string_view event, std::string_view text,
            const InFlight& record);

  const FlowOptions options_;  // but for what tuning_ has
  Tuning tuning_;
  const PipelineTraits traits_;
  locking::LockGroups* const locks_;
  const locking::LockCore::Random random_;
  ConsumerObserver* const observer_;
  std::unique_ptr<Identifier> identifier_;
  FlowActions actions_;

  std::map<PartitionIndex, std::unique_ptr<Assignment>> partitions_;
  std::vector<std::unique_ptr<Assignment>> leaving_;  // revoked, with writes still out
  std::deque<InFlight> pool_;                         // stable addresses
  std::vector<std::uint32_t> unused_;
  OrderChains chains_;  // order: key
  LockUnits units_;
  std::vector<InFlight*> affected_;  // OnLockEvent
  WorkList work_;
  std::uint64_t advanced_ = 0;
  std::deque<Look> lookups_;
  std::deque<Entry> waiting_;  // for a handler call
  HandlerCircuit circuit_;
  RunOfRefusals caller_refused_;  // answers that say that the caller is wrong (CallerIsWrong)
  RateLimit rate_limit_;
  Instant call_at_ = Instant::max();  // when a handler call that waits may go out
  std::string handler_unavailable_;   // why the circuit is open
  std::deque<Entry> ready_;
  DeadLetterLimiter dead_letter_limiter_;
  Backpressure backpressure_;
  std::deque<Entry> withheld_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> timers_;  // retries, doubts
  std::unordered_map<std::uint64_t, std::uint32_t> calls_;                 // out: id → pool index

  std::size_t lookups_out_ = 0;
  std::size_t writes_out_ = 0;
  std::uint64_t next_write_ = 1;
  std::uint64_t next_call_ = 1;
  std::uint64_t next_chain_ = 1;
  std::uint64_t answered_ = 0;         // the newest batch that the output has answered
  std::uint64_t expected_values_ = 0;  // bytes that a handler call is expected to make
  bool offsets_due_ = false;  // Kafka transactions: offsets moved without a record to write
  bool dead_letters_up_ = true;
  bool taking_ = true;
  bool paused_ = false;
  std::uint32_t unlocked_ = 0;  // a bit for each group of lock nodes
  std::optional<Drain> drain_;
  Instant commit_at_ = Instant::max();
  Instant report_at_;  // at once
  std::size_t given_back_ = 0;
  std::string stalled_;
  std::string refused_;
};

}  // namespace fencepost::consumer
