// What a record costs in a stream that runs: allocations of the flow and of the lock core together,
// and operations that are sent to lock nodes. Counts, not times: every machine has the same.
#include <gtest/gtest.h>

#include "tests/model/flow/allocations.h"
#include "tests/model/flow/flow_bench.h"

namespace fencepost::consumer {
namespace {

using locking::Op;
using locking::OpKind;
using locking::Reply;

constexpr int kBatch = 500;
constexpr int kWarm = 4;  // batches, after which what is reused has grown
constexpr int kCounted = 20;

struct Cost {
  double allocations = 0;  // a record
  double operations = 0;   // a record, at all nodes together
};

// One worker of three nodes, asked a quorum first; batches of records come, are locked and written.
class Stream {
 public:
  explicit Stream(const FlowOptions& options)
      : by_position_(options.identity.ByPosition()), worker_(QuorumFirst(world_), options) {
    worker_.settles = false;
    worker_.Assign(0);
  }

  Cost Measure() {
    for (int i = 0; i < kWarm; ++i) TakeBatch();
    const std::size_t before = Allocations();
    operations_ = 0;
    for (int i = 0; i < kCounted; ++i) TakeBatch();
    EXPECT_EQ(worker_.flow.in_flight(), 0U);
    EXPECT_EQ(worker_.Watermark(0), next_);
    const double records = kBatch * kCounted;
    return {static_cast<double>(Allocations() - before) / records,
            static_cast<double>(operations_) / records};
  }

 private:
  static SharedWorld& QuorumFirst(SharedWorld& world) {
    world.lock.contact = locking::Contact::kQuorum;
    return world;
  }

  void TakeBatch() {
    std::deque<std::string> texts;
    std::vector<Record> records;
    for (int i = 0; i < kBatch; ++i) {
      Record& record = records.emplace_back();
      record.epoch = 1;
      record.offset = next_++;
      if (!by_position_) {
        record.headers.push_back({"id", texts.emplace_back(std::to_string(record.offset))});
      }
    }
    {
      const CountAllocations count;
      worker_.flow.OnRecords(std::move(records), world_.now);
    }
    worker_.Act();
    while (Exchange()) {
    }
    while (!worker_.writes.empty()) Write();
    while (Exchange()) {
    }
  }

  bool Exchange() {
    bool any = false;
    for (int node = 0; node < static_cast<int>(world_.nodes.size()); ++node) {
      ops_.clear();
      std::vector<Reply> replies;
      {
        const CountAllocations count;
        worker_.core.TakeBatch(node, ops_);
      }
      if (ops_.empty()) continue;
      any = true;
      operations_ += ops_.size();
      for (const Op& op : ops_) {
        world_.nodes[static_cast<std::size_t>(node)].Apply(op.kind, std::span(&op, 1), world_.lock,
                                                           world_.now.wall, world_.now.wall,
                                                           &header_, replies);
      }
      const CountAllocations count;
      worker_.core.OnReplies(node, replies, world_.now);
    }
    {
      const CountAllocations count;
      worker_.flow.OnLockEvents(world_.now);
    }
    worker_.Act();
    return any;
  }

  void Write() {
    auto batch = std::move(worker_.writes.front());
    worker_.writes.pop_front();
    batch->began = world_.now.boot;
    const std::vector<WriteOutcome> outcomes(batch->request.items.size());
    {
      const CountAllocations count;
      worker_.flow.OnWritten(std::move(batch), outcomes, world_.now);
    }
    worker_.Act();
  }

  SharedWorld world_;
  const bool by_position_;
  FlowBench worker_;
  Offset next_ = 0;
  std::size_t operations_ = 0;
  std::vector<Op> ops_;
  locking::CallHeader header_;
};

FlowOptions ByPosition(Order order) {
  FlowOptions options = FlowBench::Options(order);
  options.identity = {};
  options.block = 1024;
  return options;
}

// What is allocated a batch, not a record, is a small part of it.
constexpr double kBatchwise = 0.25;

TEST(ARecordInAStream, ByIdAllocatesOnceForTheNameOfItsLock) {
  for (const Order order : {Order::kNone, Order::kPartition}) {
    const Cost cost = Stream(FlowBench::Options(order)).Measure();
    RecordProperty("allocations", std::to_string(cost.allocations));
    EXPECT_LE(cost.allocations, 1 + kBatchwise) << "order " << static_cast<int>(order);
  }
}

TEST(ARecordInAStream, ByPositionAllocatesNothingOfItsOwn) {
  for (const Order order : {Order::kNone, Order::kPartition}) {
    const Cost cost = Stream(ByPosition(order)).Measure();
    RecordProperty("allocations", std::to_string(cost.allocations));
    EXPECT_LE(cost.allocations, kBatchwise) << "order " << static_cast<int>(order);
  }
}

// What is noted of each record takes up the place of one before it; spans are made of one in a
// hundred.
TEST(ARecordInAStream, WithTracesOfOneInAHundredAllocatesLittleMore) {
  FlowOptions options = FlowBench::Options(Order::kNone);
  const double without = Stream(options).Measure().allocations;
  options.traces.endpoint = "http://otel:4318/v1/traces";
  options.traces.sample = 0.01;
  const double with = Stream(options).Measure().allocations;
  RecordProperty("allocations", std::to_string(with - without));
  EXPECT_GT(with, without) << "no span was made";
  EXPECT_LE(with, without + 0.75);
}

// The first locks of a batch, while few are at work, are asked of the third node too.
TEST(ARecordInAStream, ByIdCostsAnAcquireAtAQuorumOfNodesAndNothingElse) {
  const double operations = Stream(FlowBench::Options(Order::kNone)).Measure().operations;
  EXPECT_GE(operations, 2.0);
  EXPECT_LE(operations, 2.2);
}

// A batch lies in two blocks at most, and these few are asked of all three nodes.
TEST(ARecordInAStream, ByPositionCostsAnAcquireAndAReleaseABlockANode) {
  EXPECT_LE(Stream(ByPosition(Order::kNone)).Measure().operations * kBatch, 2 * 2 * 3);
}

}  // namespace
}  // namespace fencepost::consumer
