// Two workers of one name and a Kafka output: the transactional id is the name's.
#include <gmock/gmock.h>

#include "tests/support/pipeline_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FencedProducer : public PipelineTest {};

TEST_F(FencedProducer, EndsTheFirstOfTwoWorkersThatShareAName) {
  PipelineText text = Text(2);
  const std::string out = name_ + ".out";
  Kafka().CreateTopic(out, 2);
  text.output = fmt::format("output: {{kafka: {{topic: {}}}}}\n", out);
  Orders orders(Kafka().bootstrap(), name_, 2);
  const auto written = [&](std::size_t least) {
    return WaitUntil(seconds(20), fmt::format("{} records in {}", least, out),
                     [&] { return ReadTopic(Kafka().bootstrap(), out).size() >= least; });
  };
  WorkerProcess first(Worker(text));
  orders.Produce(200);
  ASSERT_TRUE(written(200)) << first.Log();
  WorkerProcess second(Worker(text));
  ASSERT_TRUE(WaitUntil(seconds(20), "the second worker to have a partition", [&] {
    return second.Now("fencepost_partitions_assigned") == 1;
  })) << second.Log();
  orders.Produce(200);
  EXPECT_EQ(first.Wait(seconds(15)), 1) << first.Log();
  EXPECT_THAT(first.ErrorLines(),
              ElementsAre(AllOf(HasSubstr("another worker took over transactional.id"),
                                HasSubstr("two workers run under the name worker-1"),
                                HasSubstr("give each worker a name of its own (--worker)"))));
  EXPECT_THAT(first.Log(), HasSubstr("producer_fenced"));
  EXPECT_TRUE(AllCommitted()) << second.Log();
  EXPECT_EQ(second.Now("fencepost_lock_takeovers_total"), 0) << "the first gave its leases back";
  ExpectAllDone(second);
  std::map<std::string, int> effects;
  for (const TestRecord& record : ReadTopic(Kafka().bootstrap(), out)) ++effects[*record.value];
  EXPECT_EQ(effects.size(), 400u);
  for (const auto& [value, count] : effects) EXPECT_EQ(count, 1) << value;
}

}  // namespace
}  // namespace fencepost::testing
