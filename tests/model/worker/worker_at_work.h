// A WorkerCore on its own: one lock node, which answers at once; the output answers when the test
// says so.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/worker/worker_core.h"
#include "tests/support/node_model.h"
#include "tests/support/sentinel_node.h"

namespace fencepost::consumer {

using namespace std::chrono_literals;

struct Notes : ConsumerObserver {
  std::vector<std::string> notes;  // "EVENT: TEXT"
  std::vector<bool> ready;         // as told
  int unlocked = 0;
  void OnUnlocked() override { ++unlocked; }
  void OnNote(locking::Severity, std::string_view event, std::string_view text) override {
    notes.push_back(std::string(event) + ": " + std::string(text));
  }
  void OnReady(bool is_ready) override { ready.push_back(is_ready); }
};

class WorkerAtWork : public ::testing::Test {
 protected:
  explicit WorkerAtWork(const WorkerCoreOptions& options = Options())
      : nodes_(options.nodes),
        node_(std::string(locking::kRunIdSize, 'a')),
        core_(
            options, [this] { return random_ += 0x9e3779b97f4a7c15ULL; }, nullptr, &told_) {
    ConnectNode("noeviction");
    core_.OnClusterId("cluster");
  }

  void ConnectNode(const std::string& maxmemory_policy) {
    const auto sentinel = locking::CompleteSentinel(node_.run_id(), 0, nodes_, lock_.max_ttl);
    node_.ApplySentinelWrite({std::nullopt, sentinel.Encode(), std::nullopt}, now_.wall);
    auto info = locking::MemberInfo(node_.run_id(), node_.sentinel(), now_);
    info.maxmemory_policy = maxmemory_policy;
    Tell(info);
  }
  // It comes back without its memory, as another process.
  void RestartNode() {
    LoseNode();
    const std::string run_id(locking::kRunIdSize, 'b');
    auto sentinel = locking::CompleteSentinel(run_id, 0, nodes_, lock_.max_ttl);
    sentinel.quarantine_until = now_.wall + 30s;
    Tell(locking::MemberInfo(run_id, sentinel.Encode(), now_));
  }
  void Tell(const locking::NodeInfo& info) {
    core_.locks().store().OnConnected(0, info, now_);
    core_.locks().OnTime(now_);
  }
  void LoseNode() {
    core_.locks().store().OnDisconnected(0, now_);
    core_.OnNodeAway(0, "10.0.0.1:7001: nothing listens there");
    core_.locks().OnTime(now_);
  }

  static WorkerCoreOptions Options() {
    WorkerCoreOptions options{.nodes = 1, .revoke_drain = 10s, .shutdown_timeout = 25s};
    options.flow.pipeline = "p";
    options.flow.max_in_flight = 100;
    return options;
  }

  void Assign() {
    core_.OnAssigned({{0, {"t", 0}, 1, 0}}, 0, core_.credit().SendAssignment(), now_);
    Act();
  }
  // Records that come to the point of being written.
  void Deliver(int count) {
    std::vector<Record> records;
    for (int i = 0; i < count; ++i) {
      records.push_back({.partition = 0, .epoch = 1, .offset = next_++, .value = "v"});
    }
    const auto load = core_.credit().Send(records);
    core_.OnRecords(std::move(records), load, now_);
    Act();
  }
  void Revoke() {
    core_.OnRevoked({0}, /*lost=*/false, now_);
    Act();
  }
  void Stop() {
    core_.RequestStop(now_);
    Act();
  }
  void Pass(locking::Millis time) {
    now_.boot += time;
    now_.wall += time;
    core_.OnTime(now_);
    Act();
  }

  [[nodiscard]] std::vector<ReasonCode> Codes() const {
    std::vector<ReasonCode> codes;
    for (const Reason& reason : core_.reasons()) codes.push_back(reason.code);
    return codes;
  }

  // Until nothing more comes of it without the output.
  void Act() {
    for (bool more = true; more;) {
      WorkerActions actions = core_.TakeActions();
      for (auto& batch : actions.writes) writes_.push_back(std::move(batch));
      if (!actions.pause.empty()) paused_in_.push_back(actions.epoch);
      if (actions.drained) drained_ = std::move(actions.drained);
      if (actions.room) ++rooms_told_;
      if (actions.failure) failures_.push_back(actions.failure->code);
      EXPECT_FALSE(actions.stop);
      if (!actions.commit.empty()) core_.OnCommitted(actions.commit, now_.boot, now_);
      more = Exchange() || !actions.commit.empty();
      core_.OnLockEvents(now_);
    }
  }

  bool Exchange() {
    std::vector<locking::Op> ops;
    if (core_.locks().TakeBatch(0, ops) == 0) return false;
    std::vector<locking::Reply> replies;
    locking::CallHeader header;
    for (const locking::Op& op : ops) {
      node_.Apply(op.kind, std::span(&op, 1), lock_, now_.wall, now_.wall, &header, replies);
    }
    core_.locks().OnReplies(0, replies, now_);
    return true;
  }

  const locking::LockOptions lock_;
  locking::Now now_{Instant(1000s), locking::WallTime(locking::Millis(1'800'000'000'000))};
  const int nodes_;
  locking::NodeModel node_;
  std::uint64_t random_ = 0;
  Notes told_;
  WorkerCore core_;
  Offset next_ = 0;
  std::vector<std::unique_ptr<WriteBatch>> writes_;  // out
  std::optional<std::vector<PartitionOffset>> drained_;
  std::vector<std::string> failures_;
  std::vector<AssignmentEpoch> paused_in_;
  int rooms_told_ = 0;
};

}  // namespace fencepost::consumer
