// A record that fails while its partition moves from worker to worker: its attempts and its time go
// on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <ranges>

#include "tests/model/flow/flow_bench.h"

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Millis kGiveUpAfter{60'000};

HandlerFailure Broken() {
  return {.error_class = "500", .text = "it failed", .shown = "HTTP 500", .retry_after = {}};
}

FlowOptions GivingUp(Order order = Order::kKey) {
  FlowOptions options = FlowBench::Handling(order);
  options.tuning.retry.attempts = 3;
  options.tuning.retry.give_up_after = kGiveUpAfter;
  options.tuning.retry.initial = Millis(100);
  options.tuning.retry.max = Millis(2000);
  options.tuning.retry.jitter = Jitter::kNone;
  return options;
}

// One partition, and its owner of now.
class TakeOver : public ::testing::Test {
 protected:
  void Start(const std::vector<std::string>& records = {"a@1"},
             const FlowOptions& options = GivingUp()) {
    worker = std::make_unique<FlowBench>(world, options, ++epoch);
    worker->Assign(0, committed.next, epoch, 0, committed.failed);
    worker->Deliver(0, records);
  }
  // The group gives the partition to another.
  void Revoke() {
    worker->Revoke(0);
    while (!worker->calls.empty()) worker->Fail(worker->calls[0].record_id, Broken());
    ASSERT_TRUE(worker->drained);
    if (!worker->drained->empty()) committed = worker->drained->front();
  }
  // The timers come, and what is committed is taken.
  void Pass(Millis time) {
    worker->Wait(time);
    for (const PartitionOffset& offset : worker->TakeCommits()) {
      committed = offset;
      worker->Committed({offset});
      ++commits;
    }
  }
  // The next call of `a` fails so often.
  void Fail(int times) {
    for (int i = 0; i < times; ++i) {
      for (int waited = 0; worker->Calls() != "a" && waited < 5000; ++waited) Pass(Millis(10));
      ASSERT_EQ(worker->Calls(), "a");
      worker->Fail("a", Broken());
    }
  }
  SharedWorld world;
  PartitionOffset committed;
  AssignmentEpoch epoch = 0;
  int commits = 0;
  std::unique_ptr<FlowBench> worker;
};

TEST_F(TakeOver, AttemptsGoOnWhereThePartitionIsGivenToAnother) {
  Start();
  Fail(7);
  Revoke();
  ASSERT_THAT(committed.failed, SizeIs(1));
  EXPECT_EQ(committed.failed[0].offset, 0);
  EXPECT_EQ(committed.failed[0].attempts, 7);
  EXPECT_EQ(committed.failed[0].why, "500");
  EXPECT_EQ(committed.next, 0) << "it is not finished";
  Start();
  ASSERT_EQ(worker->Calls(), "a");
  EXPECT_EQ(worker->calls[0].attempt, 8);
  EXPECT_TRUE(worker->flow.Failing().empty()) << "it has not failed here yet";
}

TEST_F(TakeOver, ARecordIsGivenUpAfterItsTimeHoweverOftenItsPartitionMoves) {
  Start();
  const Instant since = world.now.boot;
  int owners = 1;
  while (worker->Letters().empty() && world.now.boot - since < 5 * kGiveUpAfter) {
    const Instant until = world.now.boot + Millis(9'000);
    while (worker->Letters().empty() && world.now.boot < until) {
      if (worker->Calls() == "a") worker->Fail("a", Broken());
      Pass(Millis(10));
    }
    if (!worker->Letters().empty()) break;
    Revoke();
    Start();
    ++owners;
  }
  ASSERT_EQ(worker->Letters(), "a:500");
  EXPECT_GE(owners, 4);
  EXPECT_GE(world.now.boot - since, kGiveUpAfter - Millis(1000));
  EXPECT_LT(world.now.boot - since, kGiveUpAfter * 3 / 2);
  EXPECT_GT(worker->letters[0].attempts, 30) << "all owners' calls";
}

// For `explain`; it says nothing of the record.
TEST_F(TakeOver, AnOutageIsCommittedTooAndCountsNoAttempt) {
  Start();
  for (int failed = 0; failed < 4;) {
    Pass(Millis(10));
    if (worker->Calls() != "a") continue;
    worker->Fail("a", {.error_class = "connection", .text = "refused", .reached = false});
    ++failed;
  }
  Pass(Millis(6000));
  ASSERT_THAT(committed.failed, SizeIs(1));
  EXPECT_EQ(committed.failed[0].attempts, 0);
  EXPECT_EQ(committed.failed[0].why, "connection");
  EXPECT_TRUE(committed.failed[0].unavailable);
  worker.reset();
  Start();
  worker->Wait(world.lock.ttl * 2);
  ASSERT_EQ(worker->Calls(), "a");
  EXPECT_EQ(worker->calls[0].attempt, 1);
}

TEST_F(TakeOver, AfterAKillGoesOnFromTheLastCommit) {
  Start();
  Fail(3);
  Pass(Millis(1000));
  EXPECT_GE(commits, 1);
  const int known = committed.failed.at(0).attempts;
  Fail(1);
  worker.reset();  // killed
  Start();
  worker->Wait(world.lock.ttl * 2);  // until its leases have ended
  ASSERT_EQ(worker->Calls(), "a");
  EXPECT_EQ(worker->calls[0].attempt, known + 1);
}

TEST_F(TakeOver, FailuresAreCommittedAgainWithTheSameOffsetAtMostEachFiveSeconds) {
  Start();
  Fail(1);
  Pass(Millis(1000));
  EXPECT_EQ(commits, 1) << "the first at once";
  commits = 0;
  const Instant since = world.now.boot;
  while (world.now.boot - since < Millis(30'000)) {
    Pass(Millis(100));
    if (worker->Calls() == "a") worker->Fail("a", Broken());
  }
  EXPECT_GE(commits, 4);
  EXPECT_LE(commits, 6);
  EXPECT_EQ(committed.next, 0);
  Pass(Millis(3000));
  worker->Handle("a");
  worker->WriteAll();
  Pass(Millis(1000));
  commits = 0;
  Pass(Millis(30'000));
  EXPECT_EQ(commits, 0) << "nothing has changed";
  EXPECT_EQ(committed.next, 1);
  EXPECT_THAT(committed.failed, IsEmpty());
}

TEST_F(TakeOver, ACommitThatIsRefusedIsMadeAgain) {
  Start();
  Fail(1);
  worker->Wait(Millis(1000));
  const std::vector<PartitionOffset> asked = worker->TakeCommits();
  ASSERT_THAT(asked, SizeIs(1));
  worker->Committed(asked, std::nullopt);
  worker->Fail("a", Broken());
  Pass(Millis(6000));
  EXPECT_GE(commits, 1);
  EXPECT_THAT(committed.failed, SizeIs(1));
}

TEST_F(TakeOver, AnOwnerTellsOfRecordsThatItHasNotReadYet) {
  committed.failed = {{.offset = 5, .attempts = 9, .alone = Millis(100), .last = Millis(1)}};
  const auto told = committed.failed;
  Start({"a@1"});
  Fail(1);
  Revoke();
  ASSERT_THAT(committed.failed, SizeIs(2));
  EXPECT_EQ(committed.failed[1], told[0]);
}

TEST_F(TakeOver, ARecordThatIsNotThereAnyMoreIsForgottenOnceTheOffsetHasPassedIt) {
  committed.failed = {{.offset = 0, .attempts = 9, .alone = Millis(100), .last = Millis(1)},
                      {.offset = 3, .attempts = 9, .alone = Millis(100), .last = Millis(1)}};
  Start({});
  worker->End(0, 4);
  worker->Deliver(0, {"a@1"});
  Fail(1);
  Revoke();
  EXPECT_EQ(committed.next, 4);
  ASSERT_THAT(committed.failed, SizeIs(1));
  EXPECT_EQ(committed.failed[0].offset, 4);
}

TEST_F(TakeOver, TheOldestRecordsAreToldOfWhereManyFail) {
  std::vector<std::string> records;
  for (std::size_t i = 0; i < kMostFailed + 9; ++i) records.push_back(fmt::format("r{}@{}", i, i));
  FlowOptions options = GivingUp();
  options.tuning.concurrency = 100;
  options.tuning.retry.attempts = 1000;
  Start(records, options);
  ASSERT_THAT(worker->calls, SizeIs(records.size()));
  while (!worker->calls.empty()) worker->Fail(worker->calls.back().record_id, Broken());
  Revoke();
  ASSERT_THAT(committed.failed, SizeIs(kMostFailed));
  EXPECT_EQ(committed.failed.front().offset, 0);
  EXPECT_EQ(committed.failed.back().offset, static_cast<Offset>(kMostFailed) - 1);
}

TEST_F(TakeOver, AnOutageTakesNoPlaceOfRecordsWithAttemptsAndItsNewestAreToldOf) {
  const auto most = static_cast<Offset>(kMostFailed);
  for (Offset offset = 1; offset <= most; ++offset) {
    const bool reached = offset > most - 2;
    committed.failed.push_back(
        {.offset = offset, .attempts = reached ? 9 : 0, .last = Millis(1000 + offset)});
  }
  const auto told = committed.failed;
  Start();
  Fail(1);
  Revoke();
  ASSERT_THAT(committed.failed, SizeIs(kMostFailed));
  EXPECT_EQ(committed.failed[0].attempts, 1);
  EXPECT_TRUE(
      std::ranges::equal(committed.failed | std::views::drop(1), told | std::views::drop(1)))
      << "by offset, without the oldest one that was not reached";
}

// Clocks of hosts differ. And nobody could try it while all workers were stopped.
TEST_F(TakeOver, TheTimeBetweenTwoOwnersCountsAsFarAsARetryMayHaveWaited) {
  const auto alone_after = [this](Millis last) {
    committed = {};
    committed.failed = {
        {.offset = 0,
         .attempts = 9,
         .alone = Millis(10'000),
         .last = std::chrono::duration_cast<Millis>(world.now.wall.time_since_epoch()) + last}};
    Start();
    Fail(1);
    Revoke();
    return committed.failed.at(0).alone;
  };
  const Millis most = GivingUp().tuning.retry.max + GivingUp().handler_timeout;
  const Millis ahead = alone_after(std::chrono::hours(9));
  EXPECT_GE(ahead, Millis(10'000));
  EXPECT_LE(ahead, Millis(10'000) + most);
  EXPECT_EQ(alone_after(-std::chrono::hours(24 * 3)), Millis(10'000) + most);
}

TEST_F(TakeOver, ALongTimeBeforeGivesUpNoRecordThatDoesNotFailByItselfHere) {
  for (Offset offset = 0; offset < 3; ++offset) {
    committed.failed.push_back({.offset = offset,
                                .attempts = 99,
                                .alone = kGiveUpAfter * 10,
                                .last = Millis(1'700'000'000'000)});
  }
  Start({"a@1", "b@2", "c@3"});
  for (int i = 0; i < 100; ++i) {
    while (!worker->calls.empty()) worker->Fail(worker->calls[0].record_id, Broken());
    Pass(Millis(1000));
  }
  EXPECT_LE(worker->letters.size(), 1u) << "an outage costs at most one record";
}

TEST_F(TakeOver, WhatEndedThePipelineBeginsAnewOnceItIsStartedAgain) {
  FlowOptions options = GivingUp();
  options.dead_letters = false;
  options.tuning.retry.give_up_after = Millis(0);
  Start({"a@1"}, options);
  Fail(3);
  ASSERT_TRUE(worker->stop);
  Revoke();
  EXPECT_THAT(committed.failed, IsEmpty());
}

TEST_F(TakeOver, OfAKafkaTransactionGoesInOneOfTheOffsetsAlone) {
  FlowOptions options = GivingUp(Order::kPartition);
  options.finality = Finality::kTransaction;
  options.writes_out = 1;
  Start({"a@1"}, options);
  Fail(1);
  worker->Wait(Millis(1000));
  ASSERT_EQ(worker->Offsets(), "0:0");
  EXPECT_THAT(worker->writes.front()->request.items, IsEmpty());
  EXPECT_THAT(worker->writes.front()->request.offsets.front().failed, SizeIs(1));
  worker->Answer({{.result = WriteResult::kNotWritten}});
  worker->Wait(Millis(6000));
  EXPECT_EQ(worker->Offsets(), "0:0") << "what was aborted comes again";
  worker->Answer({{.result = WriteResult::kCommitted}});
  worker->Fail("a", Broken());
  worker->Revoke(0);
  ASSERT_EQ(worker->Offsets(), "0:0") << "at the end without a wait";
  EXPECT_EQ(worker->writes.front()->request.offsets.front().failed.at(0).attempts, 2);
}

}  // namespace
}  // namespace fencepost::consumer
