// The example `cdc` as it is printed, with nothing but the addresses replaced: Debezium's envelopes
// of a table's changes become a copy that equals the table.
#include <map>
#include <optional>
#include <random>

#include "tests/support/kafka_group.h"
#include "tests/support/paths.h"
#include "tests/support/pipeline_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;

constexpr int kChanges = 6000;
constexpr int kRows = 150;
constexpr int kPartitions = 4;

// A table with changes at random, and what Debezium's JSON converter writes of them.
class Source {
 public:
  Source(TestProducer& producer, std::string topic)
      : producer_(producer), topic_(std::move(topic)) {}

  void Change(int times) {
    for (; times > 0; --times) {
      const int id = static_cast<int>(random_() % kRows);
      std::optional<std::string>& row = rows_[id];
      const bool deletes = row && random_() % 4 == 0;
      ++changes_;
      const std::string before = row.value_or("null");
      const std::string after =
          deletes
              ? "null"
              : fmt::format(R"({{"id":{},"name":"n {}","email":{},"updated_at":{}}})", id, changes_,
                            changes_ % 3 == 0 ? "null" : "\"e@x\"", 1735689600000000 + changes_);
      Send(id, fmt::format(R"({{"before":{},"after":{},"source":{{"table":"customers"}},"op":"{}",)"
                           R"("ts_ms":{}}})",
                           before, after, deletes ? "d" : (row ? "u" : "c"), 1735689600000));
      if (deletes) Send(id, std::nullopt);
      row = deletes ? std::nullopt : std::optional(after);
    }
    producer_.Flush();
  }
  // "id name email time" a row, as the copy is asked for.
  [[nodiscard]] std::string Expected() const {
    std::string all;
    for (const auto& [id, row] : rows_) {
      if (row) all += *row + "\n";
    }
    return all;
  }

 private:
  void Send(int id, std::optional<std::string> value) {
    producer_.Send(topic_, id % kPartitions, fmt::format(R"({{"id":{}}})", id), std::move(value));
  }

  TestProducer& producer_;
  const std::string topic_;
  std::mt19937_64 random_{7};
  std::map<int, std::optional<std::string>> rows_;
  int changes_ = 0;
};

void Replace(std::string& text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  ASSERT_NE(at, std::string::npos) << what << " is not in the example";
  text.replace(at, what.size(), with);
}

class Cdc : public PipelineTest {
 protected:
  // The example as it is printed, over this test's topic and table.
  std::string File(int partitions) {
    Kafka().CreateTopic(name_, partitions);
    Kafka().CreateTopic(name_ + ".dead", 1);
    table_->Exec("DROP TABLE IF EXISTS customers");
    table_->Exec(
        "CREATE TABLE customers (id bigint PRIMARY KEY, name text, email text,"
        " updated_at timestamptz)");
    std::string text = ReadFile(SourcePath("config/examples/cdc.yaml"));
    Replace(text, "name: customers-cdc", "name: " + name_);
    Replace(text, "[shop.public.customers]", "[" + name_ + "]");
    Replace(text, "topic: shop.public.customers.dead", "topic: " + name_ + ".dead");
    Replace(text, "127.0.0.1:9092", Kafka().bootstrap());
    Replace(text, "[127.0.0.1:7001, 127.0.0.1:7002, 127.0.0.1:7003]", "[" + Nodes().list() + "]");
    Replace(text, "lock:\n", "lock:\n  ttl: 3s\n  min_validity: 1s\n  max_skew: 2s\n");
    Replace(text, "${COPY_DSN:-postgresql://app@127.0.0.1/copy}", table_->dsn());
    Replace(text, "record_id: position",
            "  librdkafka: {session.timeout.ms: 4000, heartbeat.interval.ms: 500,"
            " topic.metadata.refresh.interval.ms: 1000}\n"
            "record_id: position");
    return folder_.Write("cdc.yaml", text);
  }
  // A change of each of the ids 0 to 19.
  void ChangeAll(const std::string& name, int partitions) {
    TestProducer producer(Kafka().bootstrap());
    for (int id = 0; id < 20; ++id) {
      producer.Send(name_, id % partitions, fmt::format(R"({{"id":{}}})", id),
                    fmt::format(R"({{"before":null,"after":{{"id":{},"name":"{}","updated_at":0}},)"
                                R"("op":"u"}})",
                                id, name));
    }
    producer.Flush();
  }
  ::testing::AssertionResult AllAre(const std::string& name) {
    return WaitUntil(seconds(60), "20 rows to be " + name, [&] {
      return table_->Value("SELECT count(*) FROM customers WHERE name = '" + name + "'") == "20";
    });
  }
};

TEST_F(Cdc, ChangesBehindAddedPartitionsAreNotTakenForOldOnes) {
  WorkerTeam team({.files = {File(2)}});
  team.Start(1);
  for (const char* name : {"v0", "v1", "v2", "v3", "v4"}) ChangeAll(name, 2);
  ASSERT_TRUE(AllAre("v4")) << team.Tails();
  Kafka().admin().AddPartitions(name_, 5);
  ChangeAll("NEW", 5);
  EXPECT_TRUE(AllAre("NEW")) << table_->Value("SELECT string_agg(name, ' ') FROM customers")
                             << team.Tails();
  EXPECT_EQ(team.StopAll(), "");
}

TEST_F(Cdc, ChangesInATopicThatWasMadeAgainAreNotTakenForOldOnes) {
  const std::string file = File(2);
  {
    WorkerTeam team({.files = {file}});
    team.Start(1);
    for (const char* name : {"v0", "v1", "v2"}) ChangeAll(name, 2);
    ASSERT_TRUE(AllAre("v2")) << team.Tails();
    ASSERT_TRUE(WaitUntil(seconds(30), "all to be committed",
                          [&] { return CommittedToTheEnd(Kafka(), name_, name_); }));
    EXPECT_EQ(team.StopAll(), "");
  }
  DeleteGroup(Kafka().bootstrap(), name_);
  Kafka().admin().DeleteTopic(name_);
  Kafka().CreateTopic(name_, 2);
  for (const char* partition : {"0", "1"}) {
    const Finished forgotten = RunFencepost({"forget", file, "--topic", name_, "--partition",
                                             partition, "--from", "0", "--to", "29", "--execute"});
    EXPECT_EQ(forgotten.exit_code, 0) << forgotten.error_output;
  }
  ChangeAll("RECREATED", 2);
  WorkerTeam team({.files = {file}});
  team.Start(1);
  EXPECT_TRUE(AllAre("RECREATED")) << team.Tails();
  EXPECT_EQ(team.StopAll(), "");
}

TEST_F(Cdc, ACopyMadeOfDebeziumsEnvelopesEqualsTheTableThroughAKill) {
  const std::string file = File(kPartitions);
  TestProducer producer(Kafka().bootstrap());
  Source source(producer, name_);
  source.Change(kChanges / 2);
  WorkerTeam team({.files = {file}});
  team.Start(2);
  ASSERT_TRUE(WaitUntil(seconds(60), "the copy to begin", [&] {
    return table_->Value("SELECT count(*) > 20 FROM customers") == "t";
  })) << team.Tails();
  source.Change(kChanges / 2);
  team[0].Kill();
  ASSERT_TRUE(WaitUntil(seconds(90), "all offsets to be committed", [&] {
    return CommittedToTheEnd(Kafka(), name_, name_);
  })) << team.Tails();
  EXPECT_EQ(table_->Value("SELECT string_agg(format('{\"id\":%s,\"name\":%s,\"email\":%s,"
                          "\"updated_at\":%s}', id, to_json(name), coalesce(to_json(email)::text,"
                          " 'null'), (extract(epoch from updated_at) * 1000000)::bigint) || E'\\n',"
                          " '' ORDER BY id) FROM customers"),
            source.Expected());
  EXPECT_TRUE(ReadTopic(Kafka().bootstrap(), name_ + ".dead").empty());
  EXPECT_EQ(team.StopAll(), "");
}

}  // namespace
}  // namespace fencepost::testing
