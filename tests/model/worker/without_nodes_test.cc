// A worker that goes on while no quorum of lock nodes is available.
#include "tests/model/worker/worker_at_work.h"

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using enum ReasonCode;

class WithoutNodes : public WorkerAtWork {
 protected:
  WithoutNodes() : WorkerAtWork(Proceeding()) {
    core_.OnOutputState({PartPhase::kUp, ""}, now_);
    core_.OnKafkaState({PartPhase::kUp, ""}, now_);
    Assign();
    Pass(1s);
    EXPECT_TRUE(core_.ready());
  }
  static WorkerCoreOptions Proceeding() {
    WorkerCoreOptions options = Options();
    options.on_unavailable = OnUnavailable::kProceed;
    options.flow.ledger_row_lifetime = Millis(30'000);
    return options;
  }
  void Lose() {
    LoseNode();
    Pass(1s);
  }
  void AnswerWrites(WriteResult result) {
    for (auto& batch : std::exchange(writes_, {})) {
      const std::vector<WriteOutcome> outcomes(batch->records.size(), {.result = result});
      core_.OnWritten(std::move(batch), outcomes, now_);
    }
    Act();
  }
};

TEST_F(WithoutNodes, RecordsGoOnByTheLedgerAloneAndTheWorkerIsReadyWithARemark) {
  Lose();
  Deliver(2);
  ASSERT_EQ(writes_.size(), 1);
  EXPECT_EQ(writes_[0]->records.size(), 2);
  EXPECT_TRUE(core_.ready());
  ASSERT_THAT(Codes(), ElementsAre(kUnlocked));
  EXPECT_EQ(core_.reasons()[0].detail,
            "lock: no quorum of lock nodes: 1 of 1 nodes is away (10.0.0.1:7001: nothing listens "
            "there)");
  AnswerWrites(WriteResult::kCommitted);
  EXPECT_EQ(core_.flow().in_flight(), 0);
}

TEST_F(WithoutNodes, RecordsThatAlreadyWaitForTheirLocksGoOnToo) {
  LoseNode();
  Deliver(2);
  EXPECT_TRUE(writes_.empty());
  Pass(1s);
  ASSERT_EQ(writes_.size(), 1);
  EXPECT_EQ(writes_[0]->records.size(), 2);
}

TEST_F(WithoutNodes, PartitionsAreReadOn) {
  const auto paused = [&] {
    WorkerStatus status;
    core_.flow().FillStatus(status, now_);
    return status.partitions.at(0).paused;
  };
  LoseNode();
  core_.OnLockEvents(now_);
  EXPECT_TRUE(paused()) << "nothing is known yet but that no lease can be acquired";
  Pass(1s);
  EXPECT_FALSE(paused());
}

TEST_F(WithoutNodes, ARecordWhoseLeaseEndsIsWrittenWithAFreshToken) {
  Deliver(1);
  ASSERT_EQ(writes_.size(), 1);
  const locking::Token before = writes_[0]->request.items[0].token;
  Lose();
  Pass(60s);
  core_.locks().OnTime(now_);
  Act();
  AnswerWrites(WriteResult::kNotWritten);
  Pass(0s);  // the group says that it still has the partition
  ASSERT_EQ(writes_.size(), 1);
  EXPECT_GT(writes_[0]->request.items[0].token, before);
}

// As a worker finds itself that was frozen: others may have written them, and the rows be pruned.
TEST_F(WithoutNodes, RecordsThatAreOlderThanTheLedgerPromisesToKeepAskAgainBeforeTheyAreWritten) {
  Lose();
  Deliver(1);  // is being written
  for (int i = 0; i < 2; ++i) Deliver(1);
  ASSERT_EQ(writes_.size(), 1);
  now_.boot += *Proceeding().flow.ledger_row_lifetime;
  now_.wall += *Proceeding().flow.ledger_row_lifetime;
  AnswerWrites(WriteResult::kCommitted);
  Pass(0s);  // the group says that it still has the partition
  ASSERT_EQ(writes_.size(), 1);
  EXPECT_EQ(writes_[0]->records.size(), 2);
  EXPECT_EQ(told_.unlocked, 5) << "two of them twice";
}

TEST_F(WithoutNodes, RecordsAreNotWrittenAnyMoreOnceWhatOthersWroteSinceMayBePruned) {
  const locking::Instant confirmed = now_.boot;
  now_.boot += 5s;
  Deliver(1);
  ASSERT_EQ(writes_.size(), 1);
  EXPECT_EQ(writes_[0]->until, confirmed + *Proceeding().flow.ledger_row_lifetime);
}

TEST_F(WithoutNodes, RecordsThatTheLedgerKnowsAreSkippedAndLeaveNoMark) {
  Lose();
  Deliver(1);
  AnswerWrites(WriteResult::kDuplicate);
  EXPECT_EQ(core_.flow().in_flight(), 0);
  ConnectNode("noeviction");
  Pass(1s);
  int names = 0;
  node_.ForEach(now_.wall, [&](std::string_view, const auto&) { ++names; });
  EXPECT_EQ(names, 0);
}

TEST_F(WithoutNodes, LocksAreAcquiredAgainWhenTheNodesAreBack) {
  Lose();
  ConnectNode("noeviction");
  Pass(1s);
  EXPECT_THAT(Codes(), IsEmpty());
  Deliver(1);
  EXPECT_EQ(core_.locks().held(), 1);
  const auto note = [&](std::string_view event) {
    return std::ranges::count_if(told_.notes,
                                 [&](const std::string& one) { return one.starts_with(event); });
  };
  EXPECT_EQ(note("unlocked: "), 1);
  EXPECT_EQ(note("locked_again: "), 1);
}

TEST_F(WithoutNodes, AWorkerThatStopsFinishesWhatItHas) {
  Lose();
  Deliver(1);
  Stop();
  Revoke();
  AnswerWrites(WriteResult::kCommitted);
  ASSERT_TRUE(drained_);
  EXPECT_EQ(drained_->front().next, 1);
}

}  // namespace
}  // namespace fencepost::consumer
