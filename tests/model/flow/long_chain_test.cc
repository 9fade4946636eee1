// Chains as long as max_in_flight may be, whose first lock comes last: all that is behind it
// goes on within one input, in linear time and on a constant stack. (At seven frames a record, a
// recursion overruns a stack of 8 MB between 30,000 and 100,000 records.)
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/model/flow/flow_bench.h"

namespace fencepost::consumer {
namespace {

using locking::LockEvent;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kLong = 50'000;
#else
constexpr int kLong = 1'000'000;
#endif
constexpr std::uint64_t kMovesARecord = 3;

FlowOptions Long(FlowOptions options) {
  options.max_in_flight = 2 * kLong;
  options.max_in_flight_bytes = 1ull << 40;
  options.max_consecutive = 0;
  return options;
}

void Deliver(FlowBench& worker, int count) {
  std::vector<std::string> ids;
  for (int i = 0; i < count; ++i) ids.push_back(std::to_string(i));
  worker.settles = false;
  worker.Assign(0);
  worker.Deliver(0, ids);
}

// What the core tells of every record's lock, as one input; of the first one's last.
std::uint64_t MovesWhenToldFirstLast(FlowBench& worker, const LockEvent& told) {
  std::vector<LockEvent> events;
  worker.flow.ForEachRecord([&](const InFlight& in) {
    events.push_back(told);
    events.back().lock = in.unit->lock();
    events.back().cookie = in.unit->cookie();
  });
  std::rotate(events.begin(), events.begin() + 1, events.end());
  worker.core.events() = std::move(events);
  const std::uint64_t before = worker.flow.advanced();
  worker.flow.OnLockEvents(worker.world.now);
  return worker.flow.advanced() - before;
}

int InStage(const FlowBench& worker, Stage stage) {
  int count = 0;
  worker.flow.ForEachRecord([&](const InFlight& in) { count += in.stage() == stage; });
  return count;
}

TEST(LongChain, IsLockedInLinearTime) {
  SharedWorld world;
  FlowBench worker(world, Long(FlowBench::Options()));
  Deliver(worker, kLong);
  EXPECT_EQ(InStage(worker, Stage::kLocking), kLong);
  EXPECT_LE(worker.flow.advanced(), kMovesARecord * kLong);
}

TEST(LongChain, OfMarksWithOtherContentIsSkippedInLinearTimeAndOnAConstantStack) {
  SharedWorld world;
  FlowOptions options = Long(FlowBench::Options());
  options.finality = Finality::kWrite;
  options.on_id_conflict = OnBad::kSkip;
  FlowBench worker(world, options);
  Deliver(worker, kLong);
  // Of the same rule as the records', and of other content.
  Record record;
  const TopicPartition where{"t", 0};
  record.headers = {{"id", "x"}};
  Identity identity;
  ASSERT_TRUE(Identifier(options.identity, "c").Identify(record, where, identity));
  const LockEvent done{.kind = LockEvent::Kind::kDone, .crc = identity.crc ^ 1};
  EXPECT_LE(MovesWhenToldFirstLast(worker, done), kMovesARecord * kLong);
  EXPECT_EQ(worker.Watermark(0), kLong);
  EXPECT_EQ(worker.told.conflicts, kLong);
}

TEST(LongChain, ThatIsLeasedIsLookedUpInLinearTimeAndOnAConstantStack) {
  SharedWorld world;
  FlowBench worker(world, Long(FlowBench::Handling()));
  Deliver(worker, kLong);
  const LockEvent leased{.kind = LockEvent::Kind::kLeased, .token = locking::Token(1000)};
  EXPECT_LE(MovesWhenToldFirstLast(worker, leased), kMovesARecord * kLong);
  EXPECT_EQ(InStage(worker, Stage::kLookup), kLong);
}

// From the lock to the effect, over real nodes.
TEST(LongChain, IsFinishedInLinearTime) {
  constexpr int kCount = 20'000;
  SharedWorld world;
  FlowBench worker(world, Long(FlowBench::Options()));
  Deliver(worker, kCount);
  worker.settles = true;
  worker.WriteAll();
  EXPECT_EQ(worker.Watermark(0), kCount);
  EXPECT_LE(worker.flow.advanced(), 6ull * kCount);
}

}  // namespace
}  // namespace fencepost::consumer
