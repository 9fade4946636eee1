// WorkerCore on its own: what it takes in, and how it ends. One lock node, which answers at once;
// the output answers when the test says so.
#include <utility>

#include "consumer/worker/worker_core.h"
#include "locking/core/store/sentinel.h"
#include "tests/support/node_model.h"

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Notes : ConsumerObserver {
  std::vector<std::string> notes;  // "EVENT: TEXT"
  void OnNote(locking::Severity, std::string_view event, std::string_view text) override {
    notes.push_back(std::string(event) + ": " + std::string(text));
  }
};

class WorkerAtWork : public ::testing::Test {
 protected:
  WorkerAtWork()
      : node_(std::string(locking::kRunIdSize, 'a')),
        core_(
            Options(), [this] { return random_ += 0x9e3779b97f4a7c15ULL; }, nullptr, &told_) {
    locking::Sentinel sentinel;
    sentinel.complete = true;
    sentinel.store_id = std::string(locking::kStoreIdSize, '1');
    sentinel.nodes = 1;
    sentinel.run_id = node_.run_id();
    sentinel.max_ttl = lock_.max_ttl;
    node_.ApplySentinelWrite({std::nullopt, sentinel.Encode(), std::nullopt}, now_.wall);
    locking::NodeInfo info;
    info.run_id = node_.run_id();
    info.maxmemory_policy = "noeviction";
    info.role = "master";
    info.sentinel = node_.sentinel();
    info.call = {now_.boot, now_.boot, now_.wall};
    core_.locks().store().OnConnected(0, info, now_);
    core_.locks().OnTime(now_);
    core_.OnClusterId("cluster");
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

  // Until nothing more comes of it without the output.
  void Act() {
    for (bool more = true; more;) {
      WorkerActions actions = core_.TakeActions();
      for (auto& batch : actions.writes) writes_.push_back(std::move(batch));
      if (actions.drained) drained_ = std::move(actions.drained);
      if (actions.failure) failures_.push_back(actions.failure->code);
      EXPECT_FALSE(actions.stop);
      more = Exchange();
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
  locking::NodeModel node_;
  std::uint64_t random_ = 0;
  Notes told_;
  WorkerCore core_;
  Offset next_ = 0;
  std::vector<std::unique_ptr<WriteBatch>> writes_;  // out
  std::optional<std::vector<PartitionOffset>> drained_;
  std::vector<std::string> failures_;
};

class Drain : public WorkerAtWork {
 protected:
  Drain() {
    Assign();
    Deliver(1);
    EXPECT_EQ(writes_.size(), 1);
  }
};

TEST_F(Drain, ForARebalanceWaitsForWhatIsBeingWrittenForRevokeDrain) {
  Revoke();
  Pass(9'999ms);
  EXPECT_FALSE(drained_);
  Pass(1ms);
  ASSERT_TRUE(drained_);
  EXPECT_THAT(*drained_, IsEmpty());
}

TEST_F(Drain, ForTheEndOfTheWorkerWaitsForShutdownTimeout) {
  Stop();
  Revoke();
  Pass(24'999ms);
  EXPECT_FALSE(drained_);
  Pass(1ms);
  EXPECT_TRUE(drained_);
}

TEST_F(Drain, EndsWithTheOffsetsOfWhatWasWrittenMeanwhile) {
  Revoke();
  core_.OnWritten(std::move(writes_[0]), {{.result = WriteResult::kCommitted}}, now_);
  Act();
  ASSERT_TRUE(drained_);
  ASSERT_EQ(drained_->size(), 1);
  EXPECT_EQ(drained_->front().next, 1);
}

TEST_F(Drain, IsAbandonedAtTheSecondRequestToStop) {
  Stop();
  Revoke();
  EXPECT_FALSE(drained_);
  Stop();
  EXPECT_TRUE(drained_);
}

TEST_F(Drain, WaitsForNothingWhenItBeginsAfterTheSecondRequestToStop) {
  Stop();
  Stop();
  Revoke();
  EXPECT_TRUE(drained_);
}

TEST_F(Drain, EndsWhenTheOutputCanNeverWriteAgain) {
  Revoke();
  core_.OnOutputFailed({.code = "output_fenced", .what = "fenced"}, now_);
  Act();
  EXPECT_TRUE(drained_);
  EXPECT_THAT(failures_, ElementsAre("output_fenced"));
}

TEST_F(Drain, WaitsForNothingAfterTheOutputHasFailed) {
  core_.OnOutputFailed({.code = "output_fenced", .what = "fenced"}, now_);
  Act();
  Revoke();
  EXPECT_TRUE(drained_);
}

TEST_F(WorkerAtWork, TellsTheFirstFailureOnlyAndTakesNothingNewFromThenOn) {
  Assign();
  core_.OnSourceFailed({.code = "topic_replaced", .what = "another topic"});
  core_.OnSourceFailed({.code = "fatal", .what = "later"});
  Act();
  Deliver(1);
  EXPECT_THAT(failures_, ElementsAre("topic_replaced"));
  EXPECT_THAT(told_.notes, ElementsAre("topic_replaced: another topic"));
  EXPECT_THAT(writes_, IsEmpty());
}

TEST_F(WorkerAtWork, TakesNothingNewOnceItWasAskedToStop) {
  Assign();
  Stop();
  Deliver(1);
  EXPECT_THAT(writes_, IsEmpty());
}

using Credit = WorkerAtWork;

TEST_F(Credit, IsWhatTheFlowHasRoomForLessWhatIsOnItsWay) {
  Assign();
  EXPECT_EQ(core_.credit().Records(), 100);
  const std::vector<Record> records(30, Record{.partition = 0, .epoch = 1, .value = "v"});
  const std::uint64_t bytes = core_.credit().Bytes();
  const auto load = core_.credit().Send(records);
  EXPECT_EQ(core_.credit().Records(), 70);
  EXPECT_EQ(core_.credit().Bytes(), bytes - 30 * records[0].Bytes());
  core_.credit().Arrived(load);
  EXPECT_EQ(core_.credit().Records(), 100);
}

TEST_F(Credit, CountsARecordOnceWhenItHasArrived) {
  Assign();
  Deliver(30);
  EXPECT_EQ(core_.credit().Records(), 70);
}

// The offer is one for the partitions before.
TEST_F(Credit, IsNoneFromTheMomentThatAnAssignmentIsSentUntilTheFlowHasIt) {
  Assign();
  const auto load = core_.credit().SendAssignment();
  EXPECT_EQ(core_.credit().Records(), 0);
  core_.OnAssigned({{1, {"t", 1}, 2, 0}}, 0, load, now_);
  EXPECT_EQ(core_.credit().Records(), core_.flow().Room());
  EXPECT_GT(core_.flow().Room(), 0);
}

}  // namespace
}  // namespace fencepost::consumer
