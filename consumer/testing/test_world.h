// What the workers of a test share: virtual time, the topics, the lock nodes, the output, dead
// letters, and the faults that strike once. One thread.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "consumer/pipeline/options.h"
#include "consumer/pipeline/pipeline_test.h"
#include "consumer/pipeline/record_filter.h"
#include "consumer/record/dead_letter.h"
#include "consumer/testing/test_handler.h"
#include "consumer/testing/test_output.h"
#include "consumer/testing/timeline.h"
#include "consumer/worker/memory_node.h"
#include "locking/core/lock/lock_core.h"

namespace fencepost::consumer {

struct StoredRecord {
  std::optional<std::string> key;
  std::optional<std::string> value;
  std::vector<std::pair<std::string, std::string>> headers;
  Millis timestamp{0};
};

struct TestPartition {
  TopicPartition where;
  std::deque<StoredRecord> log;  // stable addresses: records view into it
  Offset committed = 0;
  std::vector<FailedRecord> failed;  // … with it
};

struct TestDeadLetter {
  DeadLetter letter;
  std::optional<std::string> key;
  std::optional<std::string> value;
};

struct TestWorld : ConsumerObserver {
  TestWorld(const PipelineOptions& pipeline, const PipelineTest& test);

  // Topics.
  std::vector<TestPartition> partitions;  // PartitionIndex is the place
  [[nodiscard]] bool AllCommitted() const;
  [[nodiscard]] Record RecordAt(PartitionIndex partition, Offset offset, AssignmentEpoch epoch);

  // Lock nodes.
  std::vector<MemoryNode> nodes;
  std::vector<bool> node_up;
  void Connect(int node, locking::LockCore& locks) const;
  // Operations go to the nodes and back; true if there were any.
  bool Exchange(int node, locking::LockCore& locks);
  void Steal(const std::string& name);  // on every node the name is another's from now on

  // Faults. True once, at the stage that the test names.
  bool KillAfter(LifeStage stage);
  bool LoseDuring(LifeStage stage);
  // The faults that the test names and that had no occasion.
  [[nodiscard]] std::vector<std::string> NotStruck() const;

  [[nodiscard]] Millis UnixNow() const;  // virtual

  std::uint64_t Random() { return random_ += 0x9e3779b97f4a7c15ULL; }

  // Counts.
  void OnProcessed(ProcessedResult result, const WriteItem& item, bool lost) override;
  void OnDedupeSkip(DedupeSource /*source*/) override { ++skips; }
  void OnInvariant(locking::Invariant invariant) override;
  // Keeps the last of what handlers said and how they failed, for a test that fails. Any thread.
  void OnNote(locking::Severity severity, std::string_view event, std::string_view text) override;
  [[nodiscard]] std::vector<std::string> Notes() const;

  const PipelineOptions& options;
  const PipelineTest& test;
  Timeline time;
  std::unique_ptr<TestOutput> output;
  std::unique_ptr<TestHandler> handler;
  std::unique_ptr<RecordFilter> filter;  // nullptr: none
  std::vector<TestDeadLetter> dead_letters;
  std::optional<Error> stopped;
  std::vector<std::string> broken;  // invariants
  int skips = 0;
  std::set<std::string> filtered;  // topic/partition/offset: again after a kill
  int handler_calls = 0;

 private:
  void Produce();

  TestFaults faults_;
  std::uint64_t random_ = 0;
  mutable std::mutex notes_mutex_;
  std::deque<std::string> notes_;  // guarded by notes_mutex_
};

}  // namespace fencepost::consumer
