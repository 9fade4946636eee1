// How much may be in flight: what counts, what does not, and which partitions are paused for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/flow/flow_bench.h"

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const HandlerFailure kBusy{.error_class = "503", .text = "busy", .retry_after = Millis(3'600'000)};

WorkerStatus StatusOf(const FlowBench& worker) {
  WorkerStatus status;
  worker.flow.FillStatus(status, worker.world.now);
  return status;
}

class RoomInFlight : public ::testing::Test {
 protected:
  FlowBench& Worker(const FlowOptions& options, int partitions = 1) {
    worker = std::make_unique<FlowBench>(world, options);
    for (int p = 0; p < partitions; ++p) worker->Assign(static_cast<PartitionIndex>(p));
    return *worker;
  }
  // "a", "b", … of this partition.
  static std::vector<std::string> Names(const std::string& prefix, int count) {
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) names.push_back(prefix + std::to_string(i));
    return names;
  }
  SharedWorld world;
  std::unique_ptr<FlowBench> worker;
};

FlowOptions Handling(Order order, std::size_t most) {
  FlowOptions options = FlowBench::Handling(order);
  options.max_in_flight = most;
  return options;
}

TEST_F(RoomInFlight, IsNotTakenByRecordsThatAreFinishedBehindAWaitingOne) {
  FlowBench& w = Worker(Handling(Order::kKey, 8));
  w.Deliver(0, {"waits@k"});
  w.Fail("waits", kBusy);
  for (int round = 0; round < 10; ++round) {
    w.Deliver(0, Names("r" + std::to_string(round) + "-", 5));
    w.HandleAll();
    w.WriteAll();
    ASSERT_EQ(w.flow.in_flight(), 1u) << "round " << round;
  }
  EXPECT_EQ(w.Watermark(0), 0);
  EXPECT_THAT(w.paused, IsEmpty());
  EXPECT_EQ(StatusOf(w).partitions.at(0).finished_behind, 50u);
  w.End(0, 61);
  EXPECT_EQ(StatusOf(w).partitions.at(0).lag, 1) << "no worker would help with what is done, or"
                                                    " with offsets that hold no record";
  EXPECT_EQ(StatusOf(w).partitions.at(0).oldest_stage, "waiting for the next attempt");
}

TEST_F(RoomInFlight, OfAPartitionThatIsStuckLeavesRoomForTheOthers) {
  FlowBench& w = Worker(Handling(Order::kPartition, 8), 2);
  w.Deliver(0, Names("a", 6));
  w.Fail("a0", kBusy);
  EXPECT_THAT(w.paused, ElementsAre(0, 1)) << "for a moment, to see whether it goes on";
  w.paused.clear();
  w.Wait(Millis(600));
  EXPECT_THAT(w.resumed, ElementsAre(1));
  EXPECT_FALSE(StatusOf(w).partitions.at(1).paused);
  EXPECT_TRUE(StatusOf(w).partitions.at(0).paused);
  for (int round = 0; round < 10; ++round) {
    w.Deliver(1, {"b" + std::to_string(round)});
    w.HandleAll();
    w.WriteAll();
  }
  EXPECT_EQ(w.Watermark(1), 10);
  EXPECT_THAT(w.paused, IsEmpty()) << "the other one was never paused again";
}

TEST_F(RoomInFlight, IsNotTakenFromABusyPartitionThatGoesOn) {
  FlowOptions options = FlowBench::Options(Order::kPartition);
  options.max_in_flight = 8;
  FlowBench& w = Worker(options, 2);
  for (int round = 0; round < 5; ++round) {
    w.Deliver(0, Names("a" + std::to_string(round) + "-", 7));
    w.Wait(Millis(100));
    w.WriteAll();
    w.Wait(Millis(10));
    EXPECT_EQ(w.paused.size(), w.resumed.size()) << "both are paused, and both go on";
  }
}

TEST_F(RoomInFlight, MayBeTakenByOnePartitionAsAWholeWhereItIsTheOnlyOne) {
  FlowBench& w = Worker(Handling(Order::kPartition, 8));
  w.Deliver(0, Names("a", 7));
  w.Wait(Millis(2000));
  EXPECT_THAT(w.paused, IsEmpty());
}

TEST_F(RoomInFlight, IsKeptForAPartitionOfTheAssignmentThatIsStillToCome) {
  FlowBench& w = Worker(Handling(Order::kPartition, 8), 0);
  w.Assign(0, 0, 1, 1);
  EXPECT_EQ(w.flow.backpressure().Room(), 6u);
}

TEST_F(RoomInFlight, EndsForAPartitionBehindTooManyFinishedRecords) {
  FlowOptions options = Handling(Order::kKey, 8);
  options.max_finished_behind = 10;
  FlowBench& w = Worker(options, 2);
  w.Deliver(0, {"waits@k"});
  w.Fail("waits", {.error_class = "503", .text = "busy", .retry_after = Millis(2000)});
  for (int i = 0; i < 12; ++i) {
    w.Deliver(0, {"r" + std::to_string(i)});
    w.HandleAll();
    w.WriteAll();
  }
  EXPECT_THAT(w.paused, ElementsAre(0)) << "and no other";
  w.Wait(Millis(2100));
  w.HandleAll();
  w.WriteAll();
  EXPECT_THAT(w.resumed, ElementsAre(0));
  EXPECT_EQ(w.Watermark(0), 13);
}

TEST_F(RoomInFlight, CountsWhatAHandlerMadeUntilItIsWritten) {
  FlowBench& w = Worker(Handling(Order::kNone, 100));
  w.Deliver(0, {"a", "b"});
  const std::size_t before = StatusOf(w).in_flight_bytes;
  w.Handle("b", {std::string(10'000, 'x')});
  EXPECT_GE(StatusOf(w).in_flight_bytes, before + 10'000);
  w.WriteAll();
  EXPECT_EQ(w.Watermark(0), 0) << "a is not finished";
  EXPECT_LT(StatusOf(w).in_flight_bytes, before);
}

TEST_F(RoomInFlight, CountsTheErrorOfADeadLetterUntilItIsPublished) {
  FlowBench& w = Worker(Handling(Order::kNone, 100));
  w.Deliver(0, {"a", "b"});
  const std::size_t before = StatusOf(w).in_flight_bytes;
  w.Fail("b", {.error_class = "422", .text = std::string(5000, 'x'), .retry = false});
  EXPECT_GE(StatusOf(w).in_flight_bytes, before + 5000);
  ASSERT_TRUE(w.Acknowledge());
  EXPECT_LT(StatusOf(w).in_flight_bytes, before);
}

FlowOptions SmallMemory(Order order) {
  FlowOptions options = FlowBench::Handling(order);
  options.max_in_flight_bytes = 10'000;
  return options;
}

TEST_F(RoomInFlight, OfBytesHoldsBackHandlerCallsWhileWritesCanMakeRoom) {
  FlowOptions options = SmallMemory(Order::kNone);
  options.tuning.concurrency = 1;
  FlowBench& w = Worker(options);
  w.Deliver(0, {"a", "b", "c"});
  w.Handle("a", {std::string(6000, 'x')});
  EXPECT_EQ(w.Calls(), "") << "the next one is expected to make as much";
  ASSERT_TRUE(w.Write());
  EXPECT_EQ(w.Calls(), "b");
}

TEST_F(RoomInFlight, OfBytesNeverHoldsBackTheCallThatAllOthersWaitFor) {
  FlowOptions options = SmallMemory(Order::kPartition);
  options.handler.kind = JqHandlerOptions{};  // calls of one chain may overlap
  options.tuning.concurrency = 3;
  FlowBench& w = Worker(options);
  w.Deliver(0, {"a", "b", "c", "d"});
  ASSERT_EQ(w.Calls(), "a b c");
  w.Handle("b", {std::string(20'000, 'x')});
  w.Fail("a", {.error_class = "exec", .text = "died"});
  w.Handle("c", {std::string(20'000, 'x')});
  EXPECT_EQ(w.Calls(), "") << "d comes after all of them, and memory is full";
  w.Wait(Millis(200));
  ASSERT_EQ(w.Calls(), "a");
  w.Handle("a");
  EXPECT_EQ(w.Writes(), "a b c");
  w.WriteAll();
  EXPECT_EQ(w.Calls(), "d");
}

TEST_F(RoomInFlight, IsFoundInLinearTimeForVeryManyRecordsOfOneId) {
  FlowOptions options = FlowBench::Options(Order::kNone);
  options.max_in_flight = 400'000;
  FlowBench& w = Worker(options);
  w.settles = false;
  const std::vector<std::string> same(1000, "same");
  for (int i = 0; i < 200; ++i) w.Deliver(0, same);
  EXPECT_EQ(w.flow.in_flight(), 200'000u);
  w.Revoke(0, true);
  EXPECT_EQ(w.flow.in_flight(), 0u);
}

TEST_F(RoomInFlight, IsToldWithTheOldestRecordAndForHowLongItHasBeenThat) {
  FlowBench& w = Worker(Handling(Order::kKey, 8));
  w.Deliver(0, {"a@k", "b@j"});
  w.HandleAll();
  w.WriteAll();
  w.Deliver(0, {"c@i"});
  w.Fail("c", kBusy);
  w.Wait(Millis(3000));
  const auto& [offset, time] = w.told.oldest.at({"t", 0});
  EXPECT_EQ(offset, 2);
  EXPECT_GE(time, Millis(1900));
  EXPECT_LE(time, Millis(3100));
}

}  // namespace
}  // namespace fencepost::consumer
