// The life of every record of one pipeline, sans-IO: from delivery to the effect and back to the
// offset. flow.cc is the loop; the way of a record is in admit.cc, record_locks.h, handling.cc
// (with handler_calls.h), dead_letters.cc, writing.cc and finish.cc; what concerns whole partitions
// in partitions.cc, commits.cc and report.cc. What it knows: state/.
//
//   delivered → identified → queued → locking → leased (or found DONE)
//     → [looked up in the ledger → handled, tried again] → ready → writing → finished
//     ↘ dead letter: looked up → published ↗
//
// A host (consumer/worker/worker_impl.h, the simulator, `fencepost test`) hands in what happened
// (records, lock events, answers, time) on one thread, then takes actions() and carries them out.
// The LockCore beside it is driven by the same host.
//
// Invariants (PROTOCOL.md): leases are held only as a prefix of an order chain; the watermark never
// passes a delivered record that is not finished; a record is finished only after its effect is
// final (Finality: the ledger's transaction, the write, or the Kafka transaction), a dead
// letter only after its publish was acknowledged; DONE is sent, and a lease is left behind, only
// after an effect; a record of an assignment that is over changes nothing any more; a record has at
// most one handler call out; what is known of its failures (FailedRecord) goes with the commits of
// its partition, to each further owner.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "consumer/flow/flow_options.h"
#include "consumer/flow/handler_calls.h"
#include "consumer/flow/ports/ports.h"
#include "consumer/flow/record_locks.h"
#include "consumer/flow/state/assignment.h"
#include "consumer/flow/state/backpressure.h"
#include "consumer/flow/state/in_flight.h"
#include "consumer/flow/state/next.h"
#include "consumer/flow/state/order_chains.h"
#include "consumer/flow/state/work_list.h"
#include "consumer/flow/tracer.h"
#include "consumer/pipeline/observer.h"
#include "consumer/pipeline/options.h"
#include "consumer/pipeline/status.h"
#include "consumer/record/identity.h"
#include "locking/core/lock/lock_core.h"

namespace fencepost::consumer {

class Flow : private RecordLocks::User {
 public:
  Flow(FlowOptions options, locking::LockCore* locks, locking::LockCore::Random random,
       ConsumerObserver* observer);
  ~Flow() override;
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
  void OnLockEvents(Now now);  // drains them
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
  // While true nothing is locked: records proceed without a lease, and the ledger decides. Those
  // that are waiting for their lock proceed now. Only with Finality::kLedger.
  void SetUnlocked(bool unlocked, Now now);
  // A drain that is under way ends no later than then.
  void HurryDrain(Instant deadline, Now now);
  // The output answers no more. The leases of what it has in its hands are given back: whether that
  // was written is for the next owner to find out, as after the end of their TTL.
  void OnOutputEnded(Now now) {
    tracer_.At(now);
    locks_.OnOutputEnded(now);
  }

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
  // Why the handler is not called but by one probe at a time, with what it answered last. Empty
  // while the circuit is closed (state/handler_circuit.h).
  [[nodiscard]] const std::string& HandlerUnavailable() const {
    return calls_.unclear() && !only_tried_.empty() ? only_tried_ : calls_.WhyUnavailable();
  }
  // The record, or how many, that the handler fails for while the circuit is closed. May be empty.
  [[nodiscard]] const std::string& Failing() const { return failing_; }
  // Which records the output refuses for a rule between rows, and tries again; may be empty.
  [[nodiscard]] const std::string& WrittenAgain() const { return written_again_; }
  // Every record in flight, in no particular order.
  template <typename Visit>
  void ForEachRecord(Visit visit) const {
    for (const InFlight& in : pool_) {
      if (in.stage() != Stage::kUnused) visit(in);
    }
  }

 private:
  struct Look {
    QueueEntry entry;
    Nanos contended{0};  // LookupBatch
  };

  // flow.cc: what is next for each record.
  void Step(Now now);  // after every input
  void Advance(Now now);
  void UpdateBackpressure(Now now);
  [[nodiscard]] ChainPosition PositionOf(const InFlight& record) const;
  void Do(InFlight& record, Move move, Now now);
  void EnterLeasedPrefix(InFlight& record, Move move, Now now);
  InFlight* NewInFlight();
  InFlight* FindReference(std::uint64_t reference);
  void Recycle(InFlight& record);

  // admit.cc: delivered, identified, in its chain; or filtered.
  void PassBy(Assignment& partition, const Record& record, Now now);
  void Admit(Assignment& partition, Record record, Now now);
  [[nodiscard]] bool IsOfAnotherLog(const InFlight& in) const;
  void JoinChain(InFlight& record);
  void TakeOver(InFlight& record, const FailedRecord& failed, Now now);

  // What the locks ask (RecordLocks::User).
  [[nodiscard]] bool MayLock(const InFlight& record) const override {
    return Next(record, PositionOf(record), traits_) == Move::kLock;
  }
  void CancelCall(InFlight& record) override { calls_.Cancel(record); }
  void AskLedgerWhileHeld(InFlight& record, Nanos took) override;
  void OnRowLost(const InFlight& in, Now now);
  void Note(locking::Severity severity, std::string_view event, std::string_view text,
            const InFlight& record) override;

  // handling.cc: looked up, handled, tried again.
  void AskLedger(InFlight& record);
  void AskLedgerOnceItsLogIsRead(InFlight& record, Now now);
  void AskLedgerAfterDoubt(InFlight& record, Now now);
  void SendLookups();
  // What the ledger's row says of it; nullopt: it is still to be processed.
  [[nodiscard]] std::optional<WriteOutcome> Judge(const InFlight& record,
                                                  const std::optional<LedgerEntry>& entry) const;
  [[nodiscard]] bool IsOpen(const InFlight& record, const LedgerEntry& entry) const;
  [[nodiscard]] bool MayMakeNoRow(const InFlight& record, const LedgerEntry& entry) const;
  void OnLookup(InFlight& record, const std::optional<LedgerEntry>& entry, Now now);
  void BeginHandling(InFlight& record, Now now);
  void WaitForTurn(InFlight& record);
  void ResolveContention(InFlight* record, const std::optional<LedgerEntry>& entry, Nanos took,
                         Now now);
  void CallAgain(InFlight& record, Now now);
  void OnSucceeded(InFlight& record, HandlerValues values, Now now);
  void RememberFailure(const InFlight& record, Now now);
  void OnFailed(InFlight& record, HandlerFailure failure, std::uint64_t call, bool probe, Now now);

  // dead_letters.cc: what cannot be processed.
  // `shown`: the same as `detail` and `text` without anything of the record (DeadLetter::shown).
  void OnConflict(InFlight& record, const std::string& detail, const std::string& shown, Now now);
  struct Refusal {
    DeadLetterReason reason = DeadLetterReason::kBadRecord;
    std::string error_class, text, shown;
    std::optional<LetterCause> cause{};  // nullopt: it counts in no row
  };
  void DeadLetterOrStop(InFlight& record, Refusal refusal, Now now);
  void SkipDone(InFlight& record, Now now);
  bool KeepsItsTurn(InFlight& record, Now now);
  void StartDeadLetter(InFlight& record, Now now);
  [[nodiscard]] bool LettersInTransaction() const {
    return options_.finality == Finality::kTransaction && !options_.letters_apart;
  }
  [[nodiscard]] bool PassesOffset(const InFlight& record) const;
  bool MayGoOut(InFlight& record);
  void Withhold(InFlight& record, Now now);
  void ReleaseWithheld(Now now);
  void ReleaseOldest(Assignment& partition);
  // Found bad by what may judge otherwise later: the service behind the handler, or the database.
  [[nodiscard]] bool VerdictMayChange(const InFlight& record) const;
  [[nodiscard]] bool ManyWithheld() const;
  void TryAgain(InFlight& record);
  void TryWithheldLater(Now now);
  void TryWithheld(Now now);
  void JoinWrites(InFlight& record);
  void Publish(InFlight& record, Now now);
  void OnDeadLetterPublished(InFlight& record, Now now);

  // writing.cc: written.
  void SendWrites(Now now);
  [[nodiscard]] bool WriteDue(Now now) const;
  void FillBatch(WriteBatch& batch, Now now);
  [[nodiscard]] WriteItem ItemOf(const InFlight& record) const;
  void FillOffsets(WriteBatch& batch, Now now);
  void OnOutcome(InFlight& record, const WriteOutcome& outcome, Instant began, Now now);
  void UpdateDeadLetterLimiter(const InFlight& record, const WriteOutcome& outcome);
  void OnEffect(InFlight& record, const WriteOutcome& outcome, Instant began, Now now);
  void OnNoOutput(InFlight& record, Now now);
  void ReportMoved(const WriteBatch& batch, const std::vector<WriteOutcome>& outcomes);
  void WriteAgain(InFlight& record, Now now);
  bool WriteAgainLater(InFlight& record, const std::string& why, Now now);
  void TellRefusal(InFlight& record, const std::string& why, Now now);
  void OnSkipped(InFlight& record, DedupeSource source, Now now);
  void Skip(InFlight& record, DedupeSource source, Now now, bool conflict = false);
  // It remembers what is done: no DONE mark is sent, and leases are left behind.
  [[nodiscard]] bool HasLedger() const { return traits_.HasLedger(); }

  // finish.cc.
  // It is at its end here, with this result: told to the observer and to its trace. `lost`: as
  // ConsumerObserver::OnProcessed.
  void Tell(ProcessedResult result, InFlight& record, bool lost = false,
            std::string_view error = "");
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
  void FinishPublished(Assignment& partition, Now now);
  void LeavePartition(std::unique_ptr<Assignment> partition, Now now);
  void Abandon(Assignment& partition, Now now);
  void Drop(InFlight& record, Now now);
  void Sweep();
  Assignment* Find(PartitionIndex index, AssignmentEpoch epoch);
  void Commit(Now now);
  // Ledger rows may go: what is known of them, and of whose a partition is, does not hold for ever.
  [[nodiscard]] bool RowsArePruned() const { return options_.ledger_row_lifetime && HasLedger(); }
  // Whoever else had the partition since it was confirmed has written no row that can be pruned by
  // now, nor by the end of a batch that is filled now (WriteBatch::until). A worker that was
  // frozen, or cut off from Kafka, does not know yet whose it is.
  [[nodiscard]] bool OwnershipIsFresh(const Assignment& partition, Now now) const;
  // Asks the group, by a commit. What waits for it goes on once it is answered.
  void Confirm(Assignment& partition, Now now);

  // report.cc.
  void Report(Now now);
  void TellPrunable(Now now);
  void LookForStall(Assignment& partition, Now now);
  void LookForRefusal(Now now);
  void ForgetRefusal();
  void LookForProbes(Now now);
  void NameProbes(const std::vector<const InFlight*>& probes);
  void LookForFailing();
  void LookForWrittenAgain();
  [[nodiscard]] bool MayTakeEffect() const;

  const FlowOptions options_;  // but for what tuning_ has
  Tuning tuning_;
  const PipelineTraits traits_;
  locking::LockCore* const core_;
  const locking::LockCore::Random random_;
  ConsumerObserver* const observer_;
  std::unique_ptr<Identifier> identifier_;
  Evaluator evaluator_;
  FlowActions actions_;
  Tracer tracer_;

  std::map<PartitionIndex, std::unique_ptr<Assignment>> partitions_;
  std::vector<std::unique_ptr<Assignment>> leaving_;  // revoked, with writes still out
  std::deque<InFlight> pool_;                         // stable addresses
  std::vector<std::uint32_t> unused_;
  OrderChains chains_;  // order: key
  WorkList work_;
  std::uint64_t advanced_ = 0;
  std::deque<Look> lookups_;
  std::deque<QueueEntry> ready_;
  DeadLetterLimiter dead_letter_limiter_;
  Backpressure backpressure_;
  RecordLocks locks_;
  HandlerCalls calls_;
  std::string only_tried_;  // the records that fail while all others wait behind them
  std::deque<QueueEntry> withheld_;
  std::priority_queue<QueueEntry, std::vector<QueueEntry>, std::greater<>>
      timers_;  // retries, doubts

  std::size_t lookups_out_ = 0;
  std::size_t writes_out_ = 0;
  std::uint64_t next_write_ = 1;
  std::uint64_t next_chain_ = 1;
  std::uint64_t answered_ = 0;  // the newest batch that the output has answered
  bool offsets_due_ = false;    // Kafka transactions: offsets moved without a record to write
  bool dead_letters_up_ = true;
  bool taking_ = true;
  bool paused_ = false;
  std::optional<Drain> drain_;
  Instant commit_at_ = Instant::max();
  Instant report_at_;  // at once
  Instant next_row_lost_note_;
  Instant next_refusal_note_;
  Instant withheld_again_at_ = Instant::max();
  int withheld_tried_ = 0;  // again, since something took effect
  std::size_t given_back_ = 0;
  std::string stalled_;
  std::string refused_;
  std::string failing_;
  std::string written_again_;
};

}  // namespace fencepost::consumer
