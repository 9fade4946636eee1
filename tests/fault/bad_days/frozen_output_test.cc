// A worker with a Kafka output that is stalled while its transaction is open.
#include <map>

#include <gmock/gmock.h>

#include "tests/support/pipeline_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class FrozenOutput : public PipelineTest {
 protected:
  FrozenOutput() : out_(name_ + ".out") { Kafka().CreateTopic(out_, 1); }

  PipelineText KafkaText(const char* transaction_timeout) {
    PipelineText text = Text(1);
    text.output =
        fmt::format("output: {{kafka: {{topic: {}, transaction_timeout: {}, linger: 1ms}}}}\n",
                    out_, transaction_timeout);
    return text;
  }
  [[nodiscard]] std::vector<TestRecord> Out(bool read_committed) const {
    auto records = ReadTopic(Kafka().bootstrap(), out_, read_committed);
    std::erase_if(records, [](const TestRecord& record) { return record.key == "mark"; });
    return records;
  }
  // A record of nobody's is seen by readers of committed ones when all before it are decided.
  void AwaitTheEndOfTransactions(const std::string& mark) const {
    TestProducer producer(Kafka().bootstrap());
    producer.Send(out_, 0, "mark", mark);
    producer.Flush();
    const auto seen = [&] {
      const auto records = ReadTopic(Kafka().bootstrap(), out_);
      return !records.empty() && records.back().value == mark;
    };
    RequireWithin(seconds(60), "the brokers to end the transaction of a worker that stands", seen);
  }
  // Stops the worker in its work and lets it go again, until a transaction that it had not asked to
  // commit was aborted behind its back: at other moments a freeze costs nothing.
  bool OutlivesATransaction(WorkerProcess& worker, Orders& orders) const {
    for (int round = 0; round < 60; ++round) {
      orders.Produce(2000);
      RequireWithin(
          seconds(30), "the worker to hold leases, as it does until its transaction is committed",
          [&] { return worker.Now("fencepost_locks_held") > 0 || AllCommitted(Deadline(0)); });
      worker.Pause();
      // Twice: what it had sent before it stopped may have arrived behind the first mark.
      AwaitTheEndOfTransactions(fmt::format("{} a", round));
      AwaitTheEndOfTransactions(fmt::format("{} b", round));
      worker.Resume();
      RequireWithin(seconds(60), "the worker to have done all",
                    [&] { return AllCommitted(Deadline(0)); });
      if (worker.Log().find("outlived its timeout of 1000 ms") != std::string::npos) return true;
    }
    return false;
  }

  std::string out_;
};

TEST_F(FrozenOutput, GoesOnWhenItsTransactionOutlivedItsTimeoutAndLosesAndRepeatsNothing) {
  Orders orders(Kafka().bootstrap(), name_, 1);
  WorkerProcess worker(Worker(KafkaText("1s")));
  EXPECT_TRUE(OutlivesATransaction(worker, orders)) << worker.Log();
  ExpectAllDone(worker);
  std::map<std::string, int> effects;
  for (const TestRecord& record : Out(true)) ++effects[*record.value];
  EXPECT_EQ(effects.size(), static_cast<std::size_t>(orders.produced()));
  for (const auto& [value, count] : effects) EXPECT_EQ(count, 1) << value;
}

}  // namespace
}  // namespace fencepost::testing
