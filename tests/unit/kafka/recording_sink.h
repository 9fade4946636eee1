// A sink that writes down what it is told, for tests of KafkaSource. Thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "consumer/kafka/source/source.h"
#include "tests/support/process.h"

namespace fencepost::consumer::testing {

using fencepost::testing::WaitUntil;
using namespace std::chrono_literals;

struct Seen {
  AssignmentEpoch epoch = 0;
  Offset offset = 0;
  std::string key;
  std::string value;
};

class RecordingSink : public SourceSink, public ConsumerObserver {
 public:
  // What a revoke answers; by default nothing. Called without the lock.
  std::function<std::vector<PartitionOffset>(const std::vector<PartitionIndex>&, bool lost)>
      on_revoked;
  // What its last drain does, before it answers; it calls what it is given until it is done.
  std::function<void(const std::function<void()>& meanwhile)> while_leaving;
  std::function<void()> on_cluster_id;  // inside the first assignment's callback, as the next one
  // Asked at each assignment, on the Kafka thread.
  std::function<void(const std::vector<AssignedPartition>&)> on_assigned;
  std::function<void()> on_records;  // on the Kafka thread, after they are written down
  std::function<void(const std::string&)> on_note;  // likewise
  bool keep_records = false;

  template <typename F>
  auto Locked(F&& f) const {
    const std::lock_guard lock(mutex_);
    return f();
  }

  void OnClusterId(std::string id) override {
    if (on_cluster_id) on_cluster_id();
    Locked([&] { cluster_id = std::move(id); });
  }
  void OnAssigned(std::vector<AssignedPartition> partitions, std::size_t) override {
    if (on_assigned) on_assigned(partitions);
    Locked([&] {
      cluster_id_was_first = cluster_id_was_first && !cluster_id.empty();
      for (const auto& p : partitions) {
        where[p.partition] = p.where;
        if (p.epoch != epoch) {  // else it is a part of this one that comes later
          unrevoked = unrevoked || !assigned.empty();
          assigned.clear();
        }
        epoch = p.epoch;
        assigned.push_back(p);
      }
      ++assignments;
    });
  }
  std::vector<PartitionOffset> OnRevoked(std::vector<PartitionIndex> partitions, bool lost,
                                         const std::function<void()>& meanwhile) override {
    std::vector<PartitionOffset> answer;
    if (meanwhile && while_leaving) while_leaving(meanwhile);
    if (on_revoked) answer = on_revoked(partitions, lost);
    Locked([&] {
      assigned.clear();
      ++revokes;
      losses += lost ? 1 : 0;
    });
    return answer;
  }
  void OnDrainAwaited(bool lost) override {
    Locked([&] { ++(lost ? lost_in_drain : awaited_in_drain); });
  }
  std::size_t Room() override { return 1000; }
  std::uint64_t RoomBytes() override { return room_bytes; }
  std::atomic<std::uint64_t> room_bytes = std::uint64_t{1} << 30;
  void OnRecords(std::vector<Record> records) override {
    Locked([&] {
      ++batches;
      for (Record& r : records) {
        early = early || r.epoch != epoch || assigned.empty();
        seen[where.at(r.partition)].push_back(Seen{
            r.epoch, r.offset, std::string(r.key.value_or("")), std::string(r.value.value_or(""))});
        if (keep_records) kept.push_back(std::move(r));
      }
    });
    if (on_records) on_records();
  }
  void OnPartitionEnd(std::vector<PartitionEnd> told) override {
    Locked([&] {
      for (const auto& end : told) ends[where.at(end.partition)] = end.end;
    });
  }
  void OnHighWatermark(std::vector<PartitionEnd> told) override {
    Locked([&] {
      for (const auto& end : told) high[where.at(end.partition)] = end.end;
    });
  }
  void OnCommitted(std::vector<PartitionOffset> offsets,
                   std::optional<locking::Instant> sent) override {
    const bool ok = sent.has_value();
    Locked([&] {
      for (const auto& o : offsets) {
        (ok ? committed : refused)[where.at(o.partition)] = o.next;
        if (ok) commit_history[where.at(o.partition)].push_back(o.next);
      }
    });
  }
  void OnKafkaState(PartState state) override {
    Locked([&] {
      up = state.up();
      reasons.push_back(std::move(state.reason));
    });
  }
  void OnFatal(Error error) override {
    Locked([&] { fatal = std::move(error); });
  }
  void OnCommit(CommitResult result, Nanos) override {
    Locked([&] { ++results[result]; });
  }
  void OnNote(locking::Severity, std::string_view event, std::string_view text) override {
    const std::string note = std::string(event) + ": " + std::string(text);
    Locked([&] { notes.push_back(note); });
    if (on_note) on_note(note);
  }

  [[nodiscard]] std::size_t Count() const {
    return Locked([&] { return CountNow(); });
  }
  [[nodiscard]] std::size_t CountNow() const {
    std::size_t count = 0;
    for (const auto& [p, records] : seen) count += records.size();
    return count;
  }
  [[nodiscard]] std::size_t AssignedCount() const {
    return Locked([&] { return assigned.size(); });
  }
  [[nodiscard]] std::vector<PartitionIndex> AssignedIndices() const {
    return Locked([&] {
      std::vector<PartitionIndex> indices;
      for (const auto& p : assigned) indices.push_back(p.partition);
      return indices;
    });
  }
  [[nodiscard]] std::vector<Offset> Offsets(const TopicPartition& p) const {
    return Locked([&] {
      std::vector<Offset> offsets;
      if (const auto at = seen.find(p); at != seen.end()) {
        for (const Seen& one : at->second) offsets.push_back(one.offset);
      }
      return offsets;
    });
  }
  // What to commit: one past the last record seen of each partition of this assignment.
  [[nodiscard]] std::vector<PartitionOffset> Positions() const {
    return Locked([&] { return PositionsNow(); });
  }
  [[nodiscard]] std::vector<PartitionOffset> PositionsNow() const {
    std::vector<PartitionOffset> positions;
    for (const auto& p : assigned) {
      Offset next = p.start;
      if (const auto at = seen.find(p.where); at != seen.end() && !at->second.empty()) {
        next = std::max(next, at->second.back().offset + 1);
      }
      positions.push_back(PartitionOffset{p.partition, p.epoch, next});
    }
    return positions;
  }
  [[nodiscard]] std::string Trace() const {
    return Locked([&] {
      std::string text = "states:";
      for (const auto& r : reasons) text += " [" + r + "]";
      for (const auto& n : notes) text += "\n  " + n;
      return text;
    });
  }

  std::string cluster_id;
  bool cluster_id_was_first = true;
  bool early = false;      // a record outside its assignment
  bool unrevoked = false;  // assigned again without a revoke
  std::vector<AssignedPartition> assigned;
  std::map<PartitionIndex, TopicPartition> where;
  AssignmentEpoch epoch = 0;
  int assignments = 0;
  int revokes = 0;
  int losses = 0;
  int awaited_in_drain = 0;
  int lost_in_drain = 0;
  std::size_t batches = 0;
  std::map<TopicPartition, std::vector<Seen>> seen;
  std::vector<Record> kept;
  std::map<TopicPartition, Offset> ends, high, committed, refused;
  std::map<TopicPartition, std::vector<Offset>> commit_history;
  std::map<CommitResult, int> results;
  bool up = false;
  std::vector<std::string> reasons;
  std::vector<std::string> notes;
  std::optional<Error> fatal;

 private:
  mutable std::mutex mutex_;
};

}  // namespace fencepost::consumer::testing
