// The life of every record of one pipeline, sans-IO: from delivery to the effect and back to the
// offset. Read flow.cc from top to bottom: it is the way of a record.
//
//   delivered → identified → queued → locking → leased (or hinted: the name is DONE) → writing →
//   finished
//
// A host (consumer/worker.cc, the simulator) hands in what happened (records, lock events, written
// batches, time) on one thread, then takes actions() and carries them out. The LockCore beside it
// is driven by the same host.
//
// Invariants (PROTOCOL.md): leases are held only as a prefix of an order chain; the watermark never
// passes a delivered record that is not finished; with a ledger a record is finished only after its
// transaction is known to be committed, and DONE is sent only then; a record of an assignment that
// is over changes nothing any more.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "consumer/flow/identity.h"
#include "consumer/flow/in_flight.h"
#include "consumer/kafka/source.h"
#include "consumer/observer.h"
#include "consumer/options.h"
#include "consumer/outputs/output.h"
#include "consumer/status.h"
#include "locking/core/lock_core.h"

namespace fencepost::consumer {

using locking::Instant;
using locking::Now;

struct FlowOptions {
  std::string pipeline;
  Selector record_id;
  Order order = Order::kKey;
  OnBad on_id_conflict = OnBad::kStop;
  std::size_t max_in_flight = 4096;
  std::uint64_t max_in_flight_bytes = 64ull << 20;
  Millis lock_wait{30'000};
  Millis remember_done{300'000};
  Millis commit_interval{1000};
  std::size_t write_batch = 500;  // records a transaction
  std::size_t writes_out = 2;     // transactions handed to the output at a time
};
FlowOptions FlowOptionsOf(const PipelineOptions& options);

struct WriteBatch {
  std::uint64_t id = 0;
  std::vector<InFlight*> records;  // not touched by the flow until OnWritten
  WriteRequest request;            // the same, for the output
};

struct FlowActions {
  std::vector<PartitionIndex> pause;
  std::vector<PartitionIndex> resume;
  std::vector<PartitionOffset> commit;
  std::vector<std::unique_ptr<WriteBatch>> writes;
  std::optional<std::vector<PartitionOffset>> drained;  // the answer to OnRevoked
  std::optional<Error> stop;  // drain and end the worker with this error (exit 1)
};

class Flow {
 public:
  Flow(FlowOptions options, locking::LockCore* locks, ConsumerObserver* observer);
  ~Flow();
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  // --- Kafka ---------------------------------------------------------------------------------
  void OnClusterId(std::string cluster_id);
  void OnAssigned(const std::vector<AssignedPartition>& partitions, Now now);
  // Finishes what holds a lease, gives back the rest; `drained` follows at the latest at `deadline`
  // (at once when lost, with nothing to commit).
  void OnRevoked(const std::vector<PartitionIndex>& partitions, bool lost, Instant deadline,
                 Now now);
  void OnRecords(std::vector<Record> records, Now now);
  void OnPartitionEnd(const std::vector<PartitionEnd>& ends, Now now);
  void OnHighWatermark(const std::vector<PartitionEnd>& ends);
  void OnCommitted(const std::vector<PartitionOffset>& offsets, bool ok);

  // --- locks, output, time -------------------------------------------------------------------
  void OnLockEvents(Now now);  // drains locks->events()
  void OnWritten(std::unique_ptr<WriteBatch> batch, const std::vector<WriteOutcome>& outcomes,
                 Now now);
  void OnTime(Now now);
  [[nodiscard]] Instant NextTime() const;
  // Nothing new is locked from now on; what holds a lease is finished.
  void StopTaking();
  // A drain that is under way ends now.
  void HurryDrain(Now now);

  FlowActions& actions() { return actions_; }

  // --- looking -------------------------------------------------------------------------------
  [[nodiscard]] std::size_t in_flight() const { return in_flight_; }
  [[nodiscard]] std::size_t Room() const;  // how many more records may be delivered now
  void FillStatus(WorkerStatus& status, Now now) const;
  // Every record in flight, in no particular order.
  template <typename Visit>
  void ForEachRecord(Visit visit) const {
    for (const InFlight& in : pool_) {
      if (in.stage != Stage::kUnused) visit(in);
    }
  }

 private:
  struct Partition;

  // The way of a record:
  void Admit(Partition& partition, Record record, Now now);
  bool Identify(InFlight& record, Now now);
  void JoinChain(InFlight& record);
  bool TryLock(InFlight& record, Now now);
  void LockAhead(InFlight& first, Now now);
  void OnLeased(InFlight& record, const locking::LockEvent& event, Now now);
  void OnHinted(InFlight& record, Now now);
  void Secure(InFlight& record, Now now);
  void OnRoundFailed(InFlight& record, Now now);
  void OnGaveUp(InFlight& record, Now now);
  void OnLost(InFlight& record, Now now);
  void SendWrites(Now now);
  void OnOutcome(InFlight& record, const WriteOutcome& outcome, Now now);
  void MarkDone(InFlight& record, Now now);
  void Finish(InFlight& record, Now now);
  void AdvanceWatermark(Partition& partition);

  void BackToQueue(InFlight& record, Now now);
  void GiveBackBehind(InFlight& record, Now now);
  void LeaveChain(InFlight& record, Now now);
  void TakeOwnership(InFlight& record);
  void LeaveOwnership(InFlight& record, Now now);
  void Block(InFlight& record, Error error, Now now);
  void Abandon(Partition& partition, Now now);
  void Drop(InFlight& record, Now now);
  void CheckDrained(Now now);
  void Commit(Now now, bool all);
  void Regulate(Now now);
  void Report(Now now);
  Partition* Find(PartitionIndex index, AssignmentEpoch epoch);
  InFlight* NewInFlight();
  void Recycle(InFlight& record);
  void Sweep();

  const FlowOptions options_;
  locking::LockCore* const locks_;
  ConsumerObserver* const observer_;
  std::unique_ptr<Identifier> identifier_;
  FlowActions actions_;

  std::map<PartitionIndex, std::unique_ptr<Partition>> partitions_;
  std::vector<std::unique_ptr<Partition>> leaving_;  // revoked, with writes still out
  std::deque<InFlight> pool_;                        // stable addresses; cookie = index
  std::vector<std::uint32_t> unused_;
  std::unordered_map<std::string, InFlight*> chain_tails_;
  std::unordered_map<std::string_view, InFlight*> owners_;  // id → the record here that works on it
  std::deque<ReadyEntry> ready_;
  std::string scratch_;

  std::size_t in_flight_ = 0;
  std::uint64_t in_flight_bytes_ = 0;
  std::size_t writes_out_ = 0;
  std::uint64_t next_write_ = 1;
  bool paused_ = false;
  bool taking_ = true;
  Instant paused_since_;
  bool draining_ = false;
  bool drain_lost_ = false;
  Instant drain_deadline_ = Instant::max();
  std::vector<PartitionIndex> drain_partitions_;
  Instant commit_at_ = Instant::max();
  Instant report_at_;  // at once
};

}  // namespace fencepost::consumer
