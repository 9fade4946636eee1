#include "consumer/testing/test_world.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace fencepost::consumer {

using locking::Op;
using locking::Reply;

TestWorld::TestWorld(const PipelineOptions& pipeline, const PipelineTest& the_test)
    : options(pipeline), test(the_test), faults_(the_test.faults) {
  const int count = static_cast<int>(options.lock.redis.nodes.size());
  for (int i = 0; i < count; ++i) {
    nodes.emplace_back(i, count, options.lock.lock);
    node_up.push_back(i >= faults_.redis_nodes_down);
  }
  Produce();
}

// The given records, then as many copies of each as the test wants.
void TestWorld::Produce() {
  for (const GivenRecord& given : test.given) {
    const TopicPartition where{given.topic, given.partition};
    const auto known = std::ranges::find(partitions, where, &TestPartition::where);
    if (known == partitions.end()) partitions.push_back({.where = where, .log = {}});
  }
  for (int copy = 0; copy <= faults_.duplicate; ++copy) {
    for (const GivenRecord& given : test.given) {
      const TopicPartition where{given.topic, given.partition};
      const auto partition = std::ranges::find(partitions, where, &TestPartition::where);
      partition->log.push_back(
          {given.key, given.value, given.headers, given.timestamp.value_or(Timeline::kStart)});
    }
  }
}

bool TestWorld::AllCommitted() const {
  return std::ranges::all_of(partitions, [](const TestPartition& p) {
    return p.committed == static_cast<Offset>(p.log.size());
  });
}

Record TestWorld::RecordAt(PartitionIndex partition, Offset offset, AssignmentEpoch epoch) {
  const StoredRecord& stored = partitions[partition].log[static_cast<std::size_t>(offset)];
  Record record;
  record.partition = partition;
  record.epoch = epoch;
  record.offset = offset;
  record.timestamp = stored.timestamp;
  if (stored.key) record.key = *stored.key;
  if (stored.value) record.value = *stored.value;
  for (const auto& [name, value] : stored.headers) record.headers.push_back({name, value});
  if (filter != nullptr) {
    Filter(*filter, options.identity.accept_replay_ids, partitions[partition].where, record);
  }
  return record;
}

void TestWorld::Connect(int node, locking::LockCore& locks) const {
  const locking::Now now = time.now();
  locks.store().OnConnected(node, nodes[static_cast<std::size_t>(node)].Info(now), now);
  locks.OnTime(now);
}

bool TestWorld::Exchange(int node, locking::LockCore& locks) {
  // A node that answers no probes does not stay trusted.
  const bool probed = locks.store().TakeCommand(node).has_value();
  if (probed) Connect(node, locks);
  std::vector<Op> ops;
  if (locks.TakeBatch(node, ops) == 0) return probed;
  std::vector<Reply> replies;
  for (const Op& op : ops) {
    replies.push_back(nodes[static_cast<std::size_t>(node)].Answer(op, time.now().wall));
  }
  locks.OnReplies(node, replies, time.now());
  return true;
}

void TestWorld::Steal(const std::string& name) {
  for (MemoryNode& node : nodes) node.Steal(name, time.now().wall);
}

bool TestWorld::KillAfter(LifeStage stage) {
  if (faults_.kill_worker_after != stage) return false;
  faults_.kill_worker_after.reset();
  return true;
}

bool TestWorld::LoseDuring(LifeStage stage) {
  if (faults_.lease_lost_during != stage) return false;
  faults_.lease_lost_during.reset();
  return true;
}

std::vector<std::string> TestWorld::NotStruck() const {
  std::vector<std::string> faults;
  if (faults_.kill_worker_after) faults.emplace_back("kill_worker_after");
  if (faults_.lease_lost_during) faults.emplace_back("lease_lost_during");
  return faults;
}

void TestWorld::OnProcessed(ProcessedResult result, const WriteItem& item, bool /*lost*/) {
  if (result == ProcessedResult::kFiltered)
    filtered.insert(SourceText(*item.where, item.record->offset));
}

void TestWorld::OnInvariant(locking::Invariant invariant) {
  static constexpr const char* kNames[] = {"token_regressed", "commit_past_hole",
                                           "lease_after_loss", "double_grant"};
  broken.emplace_back(kNames[static_cast<std::size_t>(invariant)]);
}

Millis TestWorld::UnixNow() const {
  return std::chrono::duration_cast<Millis>(time.now().wall.time_since_epoch());
}

void TestWorld::OnNote(locking::Severity /*severity*/, std::string_view event,
                       std::string_view text) {
  static constexpr std::array<std::string_view, 5> kShown{
      "handler_stderr", "handler_exited", "handler_killed", "handler_failed", "stalled"};
  constexpr std::size_t kFirst = 6, kLast = 4;  // of them are kept
  if (std::ranges::find(kShown, event) == kShown.end()) return;
  const std::lock_guard lock(notes_mutex_);
  notes_.push_back(fmt::format("{}: {}", event, text));
  if (notes_.size() > kFirst + kLast) notes_.erase(notes_.begin() + kFirst);
}

std::vector<std::string> TestWorld::Notes() const {
  const std::lock_guard lock(notes_mutex_);
  return {notes_.begin(), notes_.end()};
}

}  // namespace fencepost::consumer
