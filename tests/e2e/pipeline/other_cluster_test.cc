// An output, and dead letters, on another cluster than the input's: each record is there, whatever
// happens in between.
#include <set>

#include <gmock/gmock.h>

#include "tests/support/pipeline_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OtherCluster : public PipelineTest {
 protected:
  static KafkaBroker& Other() {
    static KafkaBroker broker;
    return broker;
  }
  // Into a topic of the input's name.
  PipelineText TextToOther(int partitions, const std::string& brokers = Other().bootstrap()) {
    PipelineText text = Text(partitions);
    text.guarantee = "at-least-once";
    text.output =
        fmt::format("output: {{kafka: {{topic: {}, brokers: [\"{}\"]}}}}\n", name_, brokers);
    return text;
  }
};

TEST_F(OtherCluster, GetsEveryRecordThoughAWorkerIsKilledAndItsBrokerToo) {
  const PipelineText text = TextToOther(2);
  Other().CreateTopic(name_, 1);
  Orders orders(Kafka().bootstrap(), name_, 2);
  orders.Produce(300);
  {
    WorkerProcess first(Worker(text));
    ASSERT_TRUE(WaitUntil(seconds(60), "records on the other cluster", [&] {
      return !ReadTopic(Other().bootstrap(), name_).empty();
    })) << first.Log();
    orders.Produce(300);
    first.Kill();
  }
  WorkerProcess second(Worker(text));
  Other().Kill();
  orders.Produce(300);
  Other().Start();
  ExpectAllDone(second);
  std::set<std::string> values;
  EXPECT_TRUE(WaitUntil(seconds(30), "the last transaction's markers", [&] {
    for (const TestRecord& record : ReadTopic(Other().bootstrap(), name_)) {
      values.insert(*record.value);
    }
    return values.size() == 900;
  })) << values.size();
  EXPECT_EQ(ReadTopic(Kafka().bootstrap(), name_).size(), 900u) << "nothing comes back";
}

TEST_F(OtherCluster, HasADeadLetterBeforeTheTransactionsOffsetPassesItsRecord) {
  PipelineText text = Text(1);
  const std::string out = name_ + ".out";
  Kafka().CreateTopic(out, 1);
  Other().CreateTopic(name_, 1);
  text.guarantee = "at-least-once";
  text.output = fmt::format("output: {{kafka: {{topic: {}}}}}\n", out);
  text.more =
      fmt::format("dead_letter: {{topic: {}, brokers: [\"{}\"]}}\n", name_, Other().bootstrap());
  WorkerProcess worker(Worker(text));
  ExpectReady(worker);
  Other().Kill();
  Send(0, Orders::Value(0));
  Send(0, "no JSON");
  Send(0, Orders::Value(1));
  ASSERT_TRUE(WaitUntil(seconds(60), "the letter to be refused", [&] {
    return worker.Log().find("dead_letter_failed") != std::string::npos;
  })) << worker.Log();
  EXPECT_THAT(Committed(), ElementsAre(1));
  Other().Start();
  ExpectAllDone(worker);
  EXPECT_EQ(ReadTopic(Kafka().bootstrap(), out).size(), 2u);
  const auto letters = ReadTopic(Other().bootstrap(), name_);
  ASSERT_FALSE(letters.empty());
  EXPECT_EQ(letters.front().value, "no JSON");
  const std::string file = folder_.Write("tool.yaml", text.Yaml());
  EXPECT_THAT(RunFencepost({"dlq", "list", file}).output, HasSubstr("dead letter"));
  EXPECT_EQ(RunFencepost({"dlq", "purge", file, "--all", "--execute"}).exit_code, 0);
  EXPECT_TRUE(ReadTopic(Other().bootstrap(), name_).empty());
  EXPECT_EQ(ReadTopic(Kafka().bootstrap(), name_).size(), 3u) << "its namesake is left alone";
}

TEST_F(OtherCluster, IsFoundToBeTheSameByLintOnline) {
  const PipelineText text = TextToOther(1, fmt::format("localhost:{}", Kafka().port()));
  const std::string file = folder_.Write("tool.yaml", text.Yaml());
  const Finished done = RunFencepost({"lint", "--online", file});
  EXPECT_EQ(done.exit_code, 1) << done.output;
  EXPECT_THAT(done.output,
              HasSubstr("output.kafka.brokers are the same cluster as kafka.brokers: leave them"));
}

}  // namespace
}  // namespace fencepost::testing
