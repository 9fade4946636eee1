// WorkerCore on its own: what it takes in, and how it ends.
#include "tests/model/worker/worker_at_work.h"

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

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

TEST_F(WorkerAtWork, NamesTheAssignmentOfWhatIsPaused) {
  Assign();
  Deliver(100);
  EXPECT_THAT(paused_in_, ElementsAre(1));
}

TEST_F(WorkerAtWork, TellsAQuarantineOnceThoughItGetsShorter) {
  core_.OnKafkaState({PartPhase::kUp, ""}, now_);
  core_.OnOutputState({PartPhase::kUp, ""}, now_);
  EXPECT_TRUE(core_.ready());
  RestartNode();
  for (int second = 0; second < 10; ++second) Pass(1s);
  EXPECT_EQ(std::ranges::count_if(told_.notes,
                                  [](const std::string& note) {
                                    return note.find("in quarantine") != std::string::npos;
                                  }),
            1);
  EXPECT_EQ(core_.reasons()[0].code, ReasonCode::kLockQuarantine);
  EXPECT_FALSE(core_.ready());
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

TEST_F(Credit, ThatIsWaitedForIsToldOnceWhenThereIsSome) {
  Assign();
  const auto load = core_.credit().Send(std::vector<Record>(100));
  EXPECT_EQ(core_.credit().RecordsOrAwait(), 0);
  Act();
  EXPECT_EQ(rooms_told_, 0) << "all of it is on its way";
  core_.credit().Arrived(load);
  Act();
  EXPECT_EQ(rooms_told_, 1);
  EXPECT_EQ(core_.credit().RecordsOrAwait(), 100);
  Act();
  EXPECT_EQ(rooms_told_, 1) << "nobody waits";
}

// The offer is one for the partitions before.
TEST_F(Credit, IsNoneFromTheMomentThatAnAssignmentIsSentUntilTheFlowHasIt) {
  Assign();
  const auto load = core_.credit().SendAssignment();
  EXPECT_EQ(core_.credit().Records(), 0);
  core_.OnAssigned({{1, {"t", 1}, 2, 0}}, 0, load, now_);
  EXPECT_EQ(core_.credit().Records(), core_.flow().backpressure().Room());
  EXPECT_GT(core_.flow().backpressure().Room(), 0);
}

// --- readiness -----------------------------------------------------------------------------------

enum class LockNode : std::uint8_t { kThere, kNotYet, kLost };
enum class End : std::uint8_t { kNone, kAsked, kFailed };

struct ReadinessRow {
  const char* name;
  LockNode node = LockNode::kThere;
  PartState kafka{PartPhase::kUp, ""};
  PartState output{PartPhase::kUp, ""};
  PartState dead_letters{PartPhase::kUp, ""};
  End end = End::kNone;
  std::vector<ReasonCode> reasons;
};

using enum ReasonCode;
const ReadinessRow kReadiness[] = {
    {.name = "all is well"},
    {.name = "it begins",
     .node = LockNode::kNotYet,
     .kafka = {PartPhase::kConnecting, ""},
     .output = {PartPhase::kConnecting, ""},
     .reasons = {kLockConnecting, kOutputConnecting, kKafkaConnecting}},
    {.name = "it joins the group", .kafka = {PartPhase::kJoining, ""}, .reasons = {kKafkaJoining}},
    {.name = "the group is rebalancing",
     .kafka = {PartPhase::kRebalancing, ""},
     .reasons = {kKafkaRebalancing}},
    {.name = "the quorum is lost", .node = LockNode::kLost, .reasons = {kNoQuorum}},
    {.name = "the quorum is lost in a rebalance",
     .node = LockNode::kLost,
     .kafka = {PartPhase::kRebalancing, ""},
     .reasons = {kNoQuorum, kKafkaRebalancing}},
    {.name = "nothing is there",
     .node = LockNode::kLost,
     .kafka = {PartPhase::kDown, "no broker answers"},
     .output = {PartPhase::kDown, "the database is away"},
     .dead_letters = {PartPhase::kDown, "no such topic"},
     .reasons = {kNoQuorum, kOutput, kDeadLetters, kKafka}},
    {.name = "remarks",
     .kafka = {PartPhase::kUp, "waiting for a transaction on t/3"},
     .dead_letters = {PartPhase::kUp, "the last one was tried twice"},
     .reasons = {kDeadLettersRemark, kKafkaRemark}},
    {.name = "it was asked to stop, and leaves the group",
     .kafka = {PartPhase::kDown, "stopped"},
     .end = End::kAsked,
     .reasons = {kDraining}},
    {.name = "it has failed, and the quorum is lost",
     .node = LockNode::kLost,
     .end = End::kFailed,
     .reasons = {kStopping, kNoQuorum}},
};

class Readiness : public WorkerAtWork, public ::testing::WithParamInterface<ReadinessRow> {
 protected:
  void Enter(const ReadinessRow& row) {
    if (row.node != LockNode::kThere) core_.locks().store().OnDisconnected(0, now_);
    if (row.node == LockNode::kLost) core_.OnNodeAway(0, "10.0.0.1:7001: nothing listens there");
    if (row.end == End::kAsked) core_.RequestStop(now_);
    if (row.end == End::kFailed) core_.OnSourceFailed({.code = "fatal", .what = "fatal"});
    core_.OnOutputState(row.output, now_);
    core_.OnDeadLetterState(row.dead_letters, now_);
    core_.OnKafkaState(row.kafka, now_);
  }
};

TEST_P(Readiness, IsAllReasonsThatThereAreTheGravestFirst) {
  Enter(GetParam());
  EXPECT_EQ(Codes(), GetParam().reasons);
  EXPECT_EQ(core_.ready(), std::ranges::all_of(core_.reasons(), IsRemark));
}
INSTANTIATE_TEST_SUITE_P(Rows, Readiness, ::testing::ValuesIn(kReadiness), [](const auto& row) {
  std::string name = row.param.name;
  std::erase(name, ',');
  std::ranges::replace(name, ' ', '_');
  return name;
});

class ReadinessOverTime : public Readiness {};
TEST_F(ReadinessOverTime, IsStartingBeforeAnythingCameIn) {
  EXPECT_THAT(Codes(), ElementsAre(kStarting));
  EXPECT_FALSE(core_.ready());
}

// An empty row: all is well.
TEST_F(ReadinessOverTime, IsToldWhenItChangesAndNotAgain) {
  Enter({});
  Pass(1s);
  Pass(1s);
  EXPECT_THAT(told_.ready, ::testing::Not(IsEmpty()));
  EXPECT_TRUE(told_.ready.back());
  EXPECT_EQ(told_.notes.back(), "ready: the worker is ready");
  const std::size_t told = told_.notes.size();
  core_.OnKafkaState({PartPhase::kUp, "a remark"}, now_);
  EXPECT_EQ(told_.notes.size(), told);
  LoseNode();
  Pass(1s);
  Pass(1s);
  EXPECT_EQ(told_.notes.size(), told + 1);
  EXPECT_EQ(told_.notes.back(),
            "not_ready: the worker is not ready: lock: no quorum of lock nodes: 1 of 1 nodes is "
            "away (10.0.0.1:7001: nothing listens there)");
  EXPECT_FALSE(told_.ready.back());
}

// A node that is lost later was there before: nothing of the start is left to wait for.
TEST_F(ReadinessOverTime, LacksAQuorumAndDoesNotConnectOnceItWasReady) {
  Enter({});
  core_.locks().store().OnDisconnected(0, now_);
  Pass(1s);
  EXPECT_THAT(Codes(), ElementsAre(kNoQuorum));
}

class ThreeNodes : public WorkerAtWork {
 protected:
  ThreeNodes() : WorkerAtWork(Three()) {}
  static WorkerCoreOptions Three() {
    WorkerCoreOptions options = Options();
    options.nodes = 3;
    return options;
  }
};

// Who reads of the quarantine alone waits for its end, and nothing happens then.
TEST_F(ThreeNodes, AreNamedWhereOneIsAwayAndOneInQuarantine) {
  RestartNode();
  core_.OnNodeAway(1, "10.0.0.2:7001: no answer in time");
  core_.OnOutputState({PartPhase::kUp}, now_);
  core_.OnKafkaState({PartPhase::kUp}, now_);
  EXPECT_EQ(WhyNotReady(core_.reasons()),
            "lock: 1 of 3 nodes is away (10.0.0.2:7001: no answer in time), 1 in quarantine for "
            "another 30 s");
}

// They are connected, and of the store.
TEST_F(ThreeNodes, AreNoQuorumWhereTheyRefuseTheCalls) {
  for (locking::NodeIndex node = 1; node < 3; ++node) {
    const std::string run_id(locking::kRunIdSize, node == 1 ? 'b' : 'c');
    const auto sentinel = locking::CompleteSentinel(run_id, node, 3, lock_.max_ttl);
    core_.locks().store().OnConnected(node, locking::MemberInfo(run_id, sentinel.Encode(), now_),
                                      now_);
  }
  core_.locks().OnTime(now_);
  const auto reasons = [this] {
    core_.OnOutputState({PartPhase::kUp}, now_);
    core_.OnKafkaState({PartPhase::kUp}, now_);
    return WhyNotReady(core_.reasons());
  };
  core_.OnNodeRefuses(0, "10.0.0.1:7001: the lock node refuses calls: CROSSSLOT");
  EXPECT_EQ(reasons(), "") << "two of three are enough";
  core_.OnNodeRefuses(2, "10.0.0.3:7001: the lock node refuses calls: OOM");
  EXPECT_EQ(reasons(),
            "lock: no quorum of lock nodes: 2 of 3 nodes refuse (10.0.0.1:7001: the lock node "
            "refuses calls: CROSSSLOT; 10.0.0.3:7001: the lock node refuses calls: OOM)");
  core_.OnNodeRefuses(0, "");
  EXPECT_EQ(reasons(), "");
}

class LongTtl : public WorkerAtWork {
 protected:
  LongTtl() : WorkerAtWork(Long()) {}
  static WorkerCoreOptions Long() {
    WorkerCoreOptions options = Options();
    options.lock.ttl = options.lock.max_ttl + 1ms;
    return options;
  }
};

TEST_F(LongTtl, IsAReasonWithBothTimes) {
  core_.OnOutputState({PartPhase::kUp, ""}, now_);
  core_.OnKafkaState({PartPhase::kUp, ""}, now_);
  EXPECT_THAT(
      core_.reasons(),
      ElementsAre(Reason{.code = kLockTtl, .span = lock_.max_ttl + 1ms, .limit = lock_.max_ttl}));
}

}  // namespace
}  // namespace fencepost::consumer
