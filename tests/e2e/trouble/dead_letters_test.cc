// Records that cannot be processed, and a dead letter topic that does not take them.
#include <gmock/gmock.h>

#include <random>

#include "tests/e2e/trouble/trouble_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DeadLetterTopic : public TroubleTest {};

TEST_F(DeadLetterTopic, TakesBadRecordsRefusedRowsAndConflicts) {
  PipelineText text = Text(1);
  text.more = DeadLetters();
  SendOrder(0, "o-1", "k");
  Send(0, R"({"amount":4711})");
  SendOrder(0, "o-2", "k", "-1");
  SendOrder(0, "o-1", "k", "9");
  SendOrder(0, "o-3", "k");
  WorkerProcess worker(Worker(text));
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_TRUE(Shows(worker, "fencepost_records_processed_total", {{"result", "dead_lettered"}}, 3));
  for (const char* reason : {"bad_record", "output", "id_conflict"}) {
    EXPECT_EQ(worker.Last("fencepost_dead_letters_total", {{"reason", reason}}), 1) << reason;
  }
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  std::map<std::string, TestRecord> by_offset;
  for (const TestRecord& letter : Letters()) {
    by_offset[letter.Header("fencepost-offset").value()] = letter;
  }
  ASSERT_EQ(by_offset.size(), 3u);
  EXPECT_EQ(by_offset["1"].Header("fencepost-error-class"), "bad_record");
  EXPECT_EQ(by_offset["1"].Header("fencepost-record-id"), std::nullopt);
  EXPECT_EQ(by_offset["1"].Header("fencepost-attempts"), "0");
  EXPECT_THAT(*by_offset["1"].Header("fencepost-error"), HasSubstr("order_id"));
  EXPECT_EQ(by_offset["2"].Header("fencepost-error-class"), "output");
  EXPECT_EQ(by_offset["2"].Header("fencepost-record-id"), "o-2");
  EXPECT_THAT(*by_offset["2"].Header("fencepost-error"), HasSubstr("effects_amount_check"));
  EXPECT_EQ(by_offset["3"].Header("fencepost-error-class"), "id_conflict");
  EXPECT_THAT(*by_offset["3"].Header("fencepost-error"),
              HasSubstr("the id was processed with other content"));
  EXPECT_EQ(by_offset["3"].value, R"({"order_id":"o-1","amount":9})");
  EXPECT_EQ(table_->Value("SELECT string_agg(order_id || '=' || amount, ' ' ORDER BY order_id)"
                          " FROM effects"),
            "o-1=5 o-3=5");
}

TEST_F(DeadLetterTopic, TakesRecordsThatAreAsLargeAsTheirOwnTopicLetsThemBe) {
  PipelineText text = Text(1);
  text.more = DeadLetters();
  SendOrder(0, "o-1", "k");
  // Of the refused amount the database's error quotes every byte.
  SendOrder(0, "o-2", "k", "\"" + std::string(530'000, 'x') + "\"");
  {
    TestProducer producer(Kafka().bootstrap(), "",
                          {{"compression.type", "gzip"}, {"message.max.bytes", "10000000"}});
    producer.Send(
        name_, 0, "k",
        R"({"order_id":"o-3","amount":"much","pad":")" + std::string(1'500'000, 'x') + "\"}");
    producer.Flush();
  }
  SendOrder(0, "o-4", "k");
  WorkerProcess worker(Worker(text));
  ExpectAllDone(worker);
  const auto letters = Letters();
  ASSERT_EQ(letters.size(), 2u);
  EXPECT_THAT(letters[0].Header("fencepost-error")->size(), ::testing::Le(1000));
  EXPECT_EQ(letters[1].Header("fencepost-record-id"), "o-3");
  EXPECT_EQ(table_->Value("SELECT string_agg(order_id, ' ' ORDER BY order_id) FROM effects"),
            "o-1 o-4");
}

TEST_F(DeadLetterTopic, ThatRefusesOneLetterIsNamedByAWorkerThatIsReadyAllTheSame) {
  PipelineText text = Text(2);
  text.more = fmt::format("dead_letter: {{topic: {}}}\n", DeadTopic());
  Kafka().admin().CreateTopic(DeadTopic(), 1, {{"max.message.bytes", "2000"}});
  // Base 64 of what cannot be compressed.
  std::string noise;
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) noise += static_cast<char>('0' + random() % 75);
  std::erase_if(noise, [](char c) { return c == '\\'; });
  Send(0, R"({"amount":4711,"pad":")" + noise + "\"}");
  SendOrder(1, "o-1", "k");
  WorkerProcess worker(Worker(text));
  EXPECT_TRUE(Effects(1)) << worker.Log();
  EXPECT_TRUE(WaitUntil(seconds(20), "the letter to be named", [&] {
    const auto ready = worker.Get("/ready");
    return ready.status == 200 && ready.body.find("dead letters: ") != std::string::npos;
  })) << worker.Readiness();
  EXPECT_THAT(worker.Get("/ready").body,
              AllOf(HasSubstr(name_ + "/0/0 waits: raise max.message.bytes of " + DeadTopic())));
  EXPECT_EQ(Committed()[0], 0);
  Kafka().admin().SetTopicConfig(DeadTopic(), "max.message.bytes", "100000");
  ExpectAllDone(worker);
}

TEST_F(DeadLetterTopic, OfAKafkaOutputNamesTheLetterThatItRefusesAndTakesOneWithoutItsTime) {
  PipelineText text = Text(2);
  const std::string out = name_ + ".out";
  Kafka().CreateTopic(out, 1);
  Kafka().admin().CreateTopic(DeadTopic(), 1, {{"cleanup.policy", "compact"}});
  Kafka().admin().SetTopicConfig(name_, "message.timestamp.after.max.ms", "9223372036854775807");
  text.record_id = "position";
  text.output = fmt::format("output: {{kafka: {{topic: {}, value: json:/order_id}}}}\n", out);
  text.more = fmt::format("dead_letter: {{topic: {}}}\n", DeadTopic());
  {
    TestProducer producer(Kafka().bootstrap());
    producer.Send(name_, 0, std::nullopt, R"({"amount":4711})");
    // The broker has the topic's new setting a moment after it was told.
    ASSERT_TRUE(WaitUntil(seconds(30), "the topic to take the time", [&] {
      TestProducer one(Kafka().bootstrap());
      one.Send({.topic = name_,
                .partition = 1,
                .key = "k",
                .value = R"({"order_id":"o-1"})",
                .timestamp_ms = 1716804532123456});
      try {
        one.Flush();
        return true;
      } catch (const std::runtime_error&) {
        return false;
      }
    }));
    producer.Send(name_, 1, "k", R"({"order_id":"o-2"})");
    producer.Flush();
  }
  WorkerProcess worker(Worker(text));
  ASSERT_TRUE(WaitUntil(seconds(30), "the letter to be named, and the others to go", [&] {
    const auto ready = worker.Get("/ready");
    return ready.status == 200 && Letters().size() == 1 &&
           ready.body.find("dead letters: " + name_ + "/0/0 waits: let " + DeadTopic() +
                           " take it (Broker: Broker failed to validate record: it has no key") !=
               std::string::npos;
  })) << worker.Log();
  EXPECT_EQ(Letters()[0].Header("fencepost-timestamp"), "1716804532123456");
  EXPECT_THAT(*Letters()[0].Header("fencepost-error"),
              HasSubstr("message.timestamp.after.max.ms of " + out));
  Kafka().admin().SetTopicConfig(DeadTopic(), "cleanup.policy", "delete");
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_TRUE(WaitUntil(seconds(20), "nothing more to be named", [&] {
    return worker.Get("/ready").body.find("dead letters") == std::string::npos;
  }));
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  EXPECT_EQ(Letters().size(), 2u);
}

TEST_F(DeadLetterTopic, ThatIsMissingPausesThePipelineUntilItIsCreated) {
  PipelineText text = Text(2);
  text.more = fmt::format("dead_letter: {{topic: {}}}\n", DeadTopic());
  WorkerProcess worker(Worker(text));
  ExpectSays(worker, "dead letters");
  EXPECT_THAT(worker.Readiness(),
              AllOf(HasSubstr("not ready: "), HasSubstr("topic '" + DeadTopic() +
                                                        "' does not exist (yet); create it, "
                                                        "workers do not")))
      << "before there is a letter";
  Send(0, R"({"amount":4711})");
  EXPECT_TRUE(Shows(worker, "fencepost_partitions_paused", {}, 2));
  EXPECT_EQ(worker.Last("fencepost_ready"), 0);
  EXPECT_EQ(worker.Get("/live").status, 200);
  Orders orders = Produced(100, 2);
  EXPECT_EQ(table_->Value("SELECT count(*) FROM effects"), "0");
  EXPECT_FALSE(Kafka().admin().Exists(DeadTopic()));
  Kafka().CreateTopic(DeadTopic(), 1);
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  ExpectReady(worker);
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  EXPECT_THAT(worker.Log(), HasSubstr("topic_missing"));
  EXPECT_EQ(Letters().size(), 1u);
  EXPECT_EQ(table_->Audit(name_, 100), "");
}

}  // namespace
}  // namespace fencepost::testing
