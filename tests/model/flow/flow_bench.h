// Flows with their LockCores over the nodes of one store, in one process and without delay: the
// test delivers records, answers lookups and handler calls, says when a transaction happens and
// when a dead letter is acknowledged, and lets time pass.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "consumer/flow/flow.h"
#include "tests/model/simulator/ledger.h"
#include "tests/support/node_model.h"

namespace fencepost::consumer {

// What every worker of a test shares.
struct SharedWorld {
  explicit SharedWorld(int nodes = 3);
  locking::Now now{Instant(std::chrono::seconds(1000)),
                   locking::WallTime(Millis(1'800'000'000'000))};
  std::vector<locking::NodeModel> nodes;
  locking::LockOptions lock;
  simulator::Ledger ledger;
  // On every node the name is another's from now on.
  void Steal(const std::string& name);
  // The name of this id is marked DONE for a minute at the first so many nodes, by another.
  void MarkDone(const std::string& id, locking::ContentCrc crc = 0, std::size_t at = 3);
  // The ledger holds the row of this record alone, as another worker wrote it whose lease has
  // ended.
  void WriteRow(const std::string& record);
  void WriteRow(const std::string& record, const FlowOptions& options);
};

struct Told : ConsumerObserver {
  int conflicts = 0;
  int takeovers = 0;
  int done_late = 0;
  int unlocked = 0;
  std::vector<locking::RoundResult> rounds;
  int skips_by_hint = 0;
  int without_output = 0;
  int filtered = 0;
  int skips_by_ledger = 0;
  int handler_retries = 0;
  Nanos pressed{0};  // backpressure
  std::vector<DeadLetterReason> buried;
  std::vector<locking::Invariant> broken;
  std::vector<std::string> notes;  // "EVENT: TEXT"
  std::map<TopicPartition, std::pair<Offset, Nanos>> oldest;
  std::vector<Span> spans;
  void OnSpans(std::vector<Span> ended) override {
    for (Span& span : ended) spans.push_back(std::move(span));
  }
  void OnOldest(const TopicPartition& where, Offset offset, Nanos time) override {
    oldest[where] = {offset, time};
  }
  void OnRetry(RetryStage stage) override { handler_retries += stage == RetryStage::kHandler; }
  void OnBackpressure(Nanos paused) override { pressed += paused; }
  void OnDeadLetter(DeadLetterReason reason) override { buried.push_back(reason); }
  void OnNote(locking::Severity, std::string_view event, std::string_view text) override {
    notes.push_back(std::string(event) + ": " + std::string(text));
  }
  void OnIdConflict() override { ++conflicts; }
  void OnRound(locking::RoundResult result, Nanos) override { rounds.push_back(result); }
  void OnTakeover() override { ++takeovers; }
  void OnCompletedAfterExpiry() override { ++done_late; }
  void OnUnlocked() override { ++unlocked; }
  void OnProcessed(ProcessedResult result, const WriteItem&, bool) override {
    without_output += result == ProcessedResult::kNoOutput ? 1 : 0;
    filtered += result == ProcessedResult::kFiltered ? 1 : 0;
  }
  void OnDedupeSkip(DedupeSource source) override {
    ++(source == DedupeSource::kLock ? skips_by_hint : skips_by_ledger);
  }
  void OnInvariant(locking::Invariant invariant) override { broken.push_back(invariant); }
};

class FlowBench {
 public:
  explicit FlowBench(SharedWorld& world, const FlowOptions& options = Options(),
                     std::uint64_t seed = 1);
  static FlowOptions Options() { return Options(Order::kPartition); }
  static FlowOptions Options(Order order);
  // With a handler that may have effects of its own, and a topic for dead letters.
  static FlowOptions Handling(Order order = Order::kPartition);

  void Connect(int node);
  void Assign(PartitionIndex partition, Offset start = 0, AssignmentEpoch epoch = 1,
              std::size_t late = 0, std::vector<FailedRecord> failed = {});
  // "id", "id@key" or "id=value"; "" has no id; "!…" is filtered, and "?…" cannot be. Offsets go on
  // from the last one.
  void Deliver(PartitionIndex partition, const std::vector<std::string>& records);
  // A dead letter that was replayed, with the id of its original.
  void DeliverReplay(PartitionIndex partition, const std::string& id);
  void End(PartitionIndex partition, Offset end);
  void Revoke(PartitionIndex partition, bool lost = false);
  // Lock operations go to the nodes and back, and look-ups are answered, until there are none: so
  // ends each input below, too.
  void Settle();
  // … once. False when there were none.
  bool Round();
  // What is to be sent to the nodes, is: it is in outbox() until the next Round. Probes are
  // answered at once: true, where there were any.
  bool Post();
  // The oldest transaction happens, by the ledger where there is one. False when none waits.
  bool Write();
  void WriteAll();
  // The oldest transaction is answered so.
  void Answer(const std::vector<WriteOutcome>& outcomes);
  void Abort();  // … nothing of it was written
  // The oldest lookup is answered from the ledger, or all, as they come: for tests that hold them.
  void LookUp();
  void LookUpAll();
  // The call of this record succeeds, fails, or ends as a cancelled one does.
  void Handle(const std::string& id, HandlerValues values = {"made"});
  void Fail(const std::string& id, HandlerFailure failure);
  // Every call that is out succeeds, and those that come of it.
  void HandleAll();
  // The oldest dead letter is acknowledged. False when none waits.
  bool Acknowledge();
  void RefuseLetters();  // … are not acknowledged, and go again by themselves
  void CanPublish(bool up);
  void Tune(const Tuning& tuning);
  void SetPaused(bool pause);
  void Pass(Millis time);
  // Lets the core's next timers come, without records or transactions, for this long.
  void Wait(Millis time);

  // The ids with a lease, in the order of delivery: "a b".
  [[nodiscard]] std::string Leased() const;
  // The ids of the transactions that wait: "a b | c".
  [[nodiscard]] std::string Writes() const;
  // The offsets of the oldest transaction, by partition: "0:3 1:7".
  [[nodiscard]] std::string Offsets() const;
  // The ids of the calls that are out: "a b"; "a!": it was cancelled.
  [[nodiscard]] std::string Calls() const;
  [[nodiscard]] std::string Lookups() const;
  // What was sent to all nodes together, in the order of OpKind: "acquire 3 release 3".
  [[nodiscard]] std::string Operations() const;
  // The dead letters that wait: "a:422 :bad_record".
  [[nodiscard]] std::string Letters() const;
  [[nodiscard]] locking::NodeModel::State StateOf(const std::string& id, int node = 0) const;
  [[nodiscard]] std::string StageOf(const std::string& id) const;
  [[nodiscard]] Offset Watermark(PartitionIndex partition) const;
  std::vector<PartitionOffset> Commits();
  // The timers of core and flow come that are due.
  void Tick();
  // What the flow asks for is taken, as each of these does.
  void Act();
  // The group has taken what was committed.
  void Confirm() { Committed(TickCommits()); }
  void Committed(const std::vector<PartitionOffset>& offsets) {
    Committed(offsets, world.now.boot);
  }
  // … that was sent then; nullopt: it has refused it.
  void Committed(const std::vector<PartitionOffset>& offsets, std::optional<Instant> sent) {
    flow.OnCommitted(offsets, sent, world.now);
    Act();
  }
  std::vector<PartitionOffset> TickCommits() {
    Tick();
    return TakeCommits();
  }
  // What is to be committed, since the last time.
  std::vector<PartitionOffset> TakeCommits() { return std::exchange(commits_, {}); }
  [[nodiscard]] const std::vector<std::vector<locking::Op>>& outbox() const { return outbox_; }

  SharedWorld& world;
  bool settles = true;  // false: Settle does nothing; the test says when there is a Round
  bool answers_lookups = true;
  std::set<std::string> unread;  // ids whose logs cannot be compared
  std::string traceparent;       // of what is delivered; empty: none
  Told told;
  std::uint64_t random;  // the state of the core's source
  locking::LockCore core;
  Flow flow;
  std::vector<PartitionIndex> paused, resumed;
  std::optional<std::vector<PartitionOffset>> drained;
  std::optional<std::vector<SourceOffset>> prunable;
  std::optional<Error> stop;
  std::deque<std::unique_ptr<WriteBatch>> writes;
  std::deque<std::unique_ptr<LookupBatch>> lookups;
  std::vector<HandlerCall> calls;  // out
  std::vector<std::uint64_t> cancels;
  std::deque<DeadLetter> letters;
  std::vector<std::uint64_t> dropped_letters;

 private:
  struct Source {
    AssignmentEpoch epoch = 0;
    Offset next = 0;
  };
  void Take();
  bool Exchange(int node);
  bool AnswerLookup();
  HandlerCall TakeCall(const std::string& id);

  const Finality finality_;

  std::vector<std::vector<locking::Op>> outbox_;  // by node
  std::map<locking::OpKind, int> operations_;
  std::map<PartitionIndex, Source> sources_;
  std::vector<PartitionOffset> commits_;
  std::deque<std::string> texts_;  // behind the records' views
};

// One worker, which has partition 0.
class OneWorker : public ::testing::Test {
 protected:
  explicit OneWorker(const FlowOptions& options = FlowBench::Options()) : worker(world, options) {
    worker.Assign(0);
  }
  // Another worker takes the lock of `id`, and this one finds out when it extends its lease.
  void LoseLease(const std::string& id) {
    world.Steal(LockName("p", id));
    worker.Wait(world.lock.ttl / 2);
  }
  // Another worker completes `id`, and this one finds out in the same way.
  void HearDone(const std::string& id) {
    world.MarkDone(id);
    worker.Wait(world.lock.ttl / 2);
  }
  SharedWorld world;
  FlowBench worker;
};

// … with the options of this function.
template <FlowOptions (*options)()>
class WorkerWith : public OneWorker {
 protected:
  WorkerWith() : OneWorker(options()) {}
};

}  // namespace fencepost::consumer
