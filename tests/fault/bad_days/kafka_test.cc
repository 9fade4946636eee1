// Bad days of Kafka.
#include <map>

#include <gmock/gmock.h>

#include "tests/support/kafka_group.h"
#include "tests/support/pipeline_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class KafkaBadDay : public PipelineTest {};

TEST_F(KafkaBadDay, AWorkerWaitsForABrokerThatIsNotThereYet) {
  const PipelineText text = Text(4);
  Orders orders = Produced(200, 4);
  Kafka().Stop();
  WorkerProcess worker(Worker(text));
  ExpectSays(worker, "no broker");
  EXPECT_EQ(worker.Get("/live").status, 200);
  Kafka().Start();
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  ExpectReady(worker);
  ExpectAllDone(worker, orders.unique());
}

// Records took effect and were not committed; then Kafka is away for so long that their ledger rows
// are older than `ledger.keep`, and no mark of them is left.
TEST_F(KafkaBadDay, ThatOutlastsTheLedgersKeepDoublesNothingThatWasNotCommitted) {
  RedisServers nodes(3);
  InitLocks(nodes);
  PipelineText text = Text(4);
  text.nodes = nodes.list();
  text.more = "ledger: {keep: 20m}\n";
  text.session_ms = 100'000;  // it keeps its partitions over all of it
  WorkerTeam team(Worker(text));
  WorkerProcess& first = team.Add();
  Orders orders = Produced(200, 4);
  ASSERT_TRUE(AllCommitted()) << first.Log();
  const auto committed = Committed();
  const auto an_hour_goes_by = [&] {
    table_->Exec("UPDATE fencepost_ledger SET completed_at = now() - interval '1 hour'");
  };
  const auto rows = [&] { return table_->Value("SELECT count(*) FROM fencepost_ledger"); };
  an_hour_goes_by();
  ASSERT_TRUE(WaitUntil(seconds(120), "what was committed to be forgotten", [&] {
    return rows() == "0";
  })) << first.Log();

  std::optional<TableLock> lock(*table_);
  orders.Produce(300);
  ASSERT_TRUE(WaitUntil(seconds(30), "all records to be with the worker", [&] {
    return first.Now("fencepost_records_consumed_total") == orders.produced();
  }));
  Kafka().Kill();
  lock.reset();
  ASSERT_TRUE(Effects(orders.unique())) << first.Log();
  an_hour_goes_by();
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    nodes[node].Command({"EVAL",
                         "for _, key in ipairs(redis.call('KEYS', 'fencepost:{*')) do "
                         "redis.call('DEL', key) end",
                         "0"});
  }
  // A row that may go, of a topic that is read no more, tells that the worker has looked. Twice:
  // the first look may be by what it knew before the effects.
  for (int look = 0; look < 2; ++look) {
    table_->Exec("INSERT INTO fencepost_ledger VALUES ('" + name_ +
                 "', 'gone', 1, 'w', 'former/0/1', 1, now() - interval '1 hour')");
    EXPECT_TRUE(WaitUntil(seconds(40), "the worker to look for rows to forget", [&] {
      return table_->Value("SELECT 1 FROM fencepost_ledger WHERE record_id = 'gone'").empty();
    })) << first.Log();
  }
  EXPECT_EQ(rows(), "300");

  first.Kill();
  Kafka().Start();
  const auto still = [&] {
    try {
      return Committed() == committed;
    } catch (const std::runtime_error&) {
      return false;  // the coordinator is not back yet
    }
  };
  EXPECT_TRUE(WaitUntil(seconds(20), "the broker to say where the gap begins", still));
  // A coordinator that is just back lists a group's members a moment after it tells its offsets.
  EXPECT_TRUE(WaitUntil(seconds(20), "the coordinator to know the worker that was killed",
                        [&] { return RemoveMembers(Kafka().bootstrap(), name_) == 1; }));
  team.Add();
  EXPECT_TRUE(AllCommitted()) << team.Tails();
  EXPECT_EQ(team.StopAll(), "");
  EXPECT_EQ(table_->Value("SELECT count(*) FROM effects"), std::to_string(orders.unique()));
  EXPECT_EQ(table_->Value("SELECT count(DISTINCT order_id) FROM effects"),
            std::to_string(orders.unique()));
}

// The broker is away for longer than transactions last, and sessions.
TEST_F(KafkaBadDay, EndsNoWorkerWithAKafkaOutputAndLosesAndRepeatsNothing) {
  PipelineText text = Text(4);
  const std::string out = name_ + ".out";
  Kafka().CreateTopic(out, 1);
  text.output = fmt::format(
      "output: {{kafka: {{topic: {}, transaction_timeout: 2s, linger: 1ms, max_records: 20}}}}\n",
      out);
  Orders orders(Kafka().bootstrap(), name_, 4);
  WorkerTeam team(Worker(text));
  team.Start(2);
  for (int round = 0; round < 3; ++round) {
    const auto before = ReadTopic(Kafka().bootstrap(), out).size();
    orders.Produce(2000);
    RequireWithin(seconds(30), "the workers to be in the midst of it",
                  [&] { return ReadTopic(Kafka().bootstrap(), out).size() > before; });
    Kafka().Kill();
    const auto back_at = std::chrono::steady_clock::now() + seconds(6);
    RequireWithin(seconds(30), "time to pass",
                  [&] { return std::chrono::steady_clock::now() > back_at; });
    Kafka().Start();
  }
  EXPECT_TRUE(AllCommitted()) << team.Tails();
  EXPECT_EQ(team.StopAll(), "");
  std::map<std::string, int> effects;
  for (const TestRecord& record : ReadTopic(Kafka().bootstrap(), out)) ++effects[*record.value];
  EXPECT_EQ(effects.size(), static_cast<std::size_t>(orders.produced()));
  for (const auto& [value, count] : effects) EXPECT_EQ(count, 1) << value;
}

TEST_F(KafkaBadDay, ATopicThatIsCreatedLaterIsFound) {
  PipelineText text = Text(1);
  Kafka().admin().DeleteTopic(name_);
  text.more = "";
  WorkerProcess worker(Worker(text));
  ExpectSays(worker, "does not exist");
  EXPECT_THAT(worker.Readiness(), HasSubstr(name_));
  EXPECT_FALSE(Kafka().admin().Exists(name_));
  Kafka().CreateTopic(name_, 1);
  Orders orders = Produced(20, 1);
  ExpectAllDone(worker, 20);
}

}  // namespace
}  // namespace fencepost::testing
