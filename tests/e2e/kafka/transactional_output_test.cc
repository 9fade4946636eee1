// The Kafka output against a real broker: transactions, what is refused, who is fenced.
#include "consumer/kafka/output/transactional_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <future>
#include <random>

#include <fmt/format.h>

#include "consumer/kafka/client/rdkafka_holders.h"
#include "consumer/kafka/log_identity/log_samples.h"
#include "tests/component/kafka/reader.h"
#include "tests/e2e/kafka/broker_fixture.h"

namespace fencepost::consumer::testing {
namespace {

using fencepost::testing::ReadTopic;
using fencepost::testing::TestProducer;
using fencepost::testing::TestRecord;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;
using enum WriteResult;

using Outcomes = tl::expected<std::vector<WriteOutcome>, OutputError>;

// Input records and the request that writes them. Addresses stay what they are.
struct Input {
  std::deque<std::string> text;
  std::deque<Record> records;
  std::deque<HandlerValues> values;
  std::deque<DeadLetter> letters;
  TopicPartition where;
  WriteRequest request;

  WriteItem& Add(std::string key, std::string value) {
    Record& record = records.emplace_back();
    record.offset = static_cast<Offset>(records.size()) - 1;
    record.key = text.emplace_back(std::move(key));
    record.value = text.emplace_back(std::move(value));
    record.timestamp = std::chrono::milliseconds(1'700'000'000'000 + record.offset);
    WriteItem& item = request.items.emplace_back();
    item.record = &record;
    item.where = &where;
    return item;
  }
  void MoveTo(Offset next, AssignmentEpoch epoch = 1) {
    request.offsets = {{where, next}};
    request.epoch = epoch;
  }
};

std::vector<WriteResult> Results(const Outcomes& outcomes) {
  std::vector<WriteResult> results;
  for (const WriteOutcome& one : outcomes.value()) results.push_back(one.result);
  return results;
}

// As the writer does it: the same request until its outcome is known.
Outcomes WriteUntilKnown(Output& output, const WriteRequest& request) {
  Outcomes outcomes;
  EXPECT_TRUE(WaitUntil(30s, [&] {
    outcomes = output.Write(request);
    return outcomes || outcomes.error().fatal;
  })) << outcomes.error().error.Line();
  return outcomes;
}

std::vector<std::string> Values(const std::vector<TestRecord>& records) {
  std::vector<std::string> values;
  for (const TestRecord& record : records) values.push_back(record.value.value_or("null"));
  return values;
}

class KafkaOutputOnBroker : public OnBroker {
 protected:
  void SetUp() override {
    kafka.brokers = {broker->bootstrap()};
    kafka.topics = {name + "-in"};
    kafka.group = name + "-group";
    options.topic = name;
    input.where = {name + "-in", 0};
  }
  void MakeTopics(const fencepost::testing::KafkaConfig& config = {}) {
    broker->CreateTopic(name + "-in", 2);
    broker->admin().CreateTopic(name, 1, config);
  }
  // Without a group of its own: as a member of nothing, which a broker lets commit for an empty
  // group.
  GroupMetadataOf Anyone() const {
    return [group = kafka.group](AssignmentEpoch) {
      auto metadata = std::make_shared<GroupMetadata>();
      metadata->held.reset(rd_kafka_consumer_group_metadata_new(group.c_str()));
      return metadata;
    };
  }
  std::unique_ptr<Output> MakeOutput(GroupMetadataOf metadata, const std::string& worker = "w") {
    return MakeKafkaOutput(kafka, options, dead_letter_topic, "p", worker, std::move(metadata));
  }
  // `expected`: so many are waited for. The answer to a commit comes before its markers are in all
  // partitions, and until then readers do not see the records.
  std::vector<TestRecord> Committed(std::size_t expected = 0) const {
    std::vector<TestRecord> read;
    WaitUntil(30s, [&] {
      read = ReadTopic(broker->bootstrap(), name);
      return read.size() >= expected;
    });
    return read;
  }
  Offset GroupOffset() const {
    return broker->admin().CommittedOffsets(kafka.group, name + "-in")[0];
  }

  const std::string name = topic;
  KafkaOptions kafka;
  KafkaOutputOptions options;
  std::string dead_letter_topic;
  Input input;
};

TEST_F(KafkaOutputOnBroker, WritesRecordsAndOffsetsInOne) {
  MakeTopics();
  options.value = *Selector::Parse("json:/v");
  options.headers.set = {{"from", *Selector::Parse("offset")},
                         {"none", *Selector::Parse("header:absent?")}};
  input.Add("a", R"({"v":1.50})");
  input.Add("b", R"({"v":"two"})");
  input.MoveTo(17);
  const auto output = MakeOutput(Anyone());
  ASSERT_TRUE(output->Prepare());
  const auto outcomes = output->Write(input.request);
  ASSERT_TRUE(outcomes) << outcomes.error().error.Line();
  EXPECT_THAT(Results(outcomes), ElementsAre(kCommitted, kCommitted));
  const auto written = Committed(2);
  ASSERT_THAT(Values(written), ElementsAre("1.50", "two"));
  EXPECT_EQ(written[1].key, "b");
  EXPECT_EQ(written[1].Header("from"), "1");
  ASSERT_EQ(written[1].headers.size(), 2u);
  EXPECT_EQ(written[1].headers[1].second, std::nullopt);
  EXPECT_EQ(written[1].timestamp_ms, 1'700'000'000'001);
  EXPECT_EQ(GroupOffset(), 17);
}

TEST_F(KafkaOutputOnBroker, PassesHeadersOnInTheirOrderTwiceAndWithoutAValue) {
  MakeTopics();
  options.headers.set = {{"b", *Selector::Parse("=new")}};
  input.Add("k", "v");
  input.records.back().headers = {
      {"a", "1"}, {"none", std::nullopt}, {"b", "old"}, {"a", ""}, {"fencepost-record-id", "o-1"}};
  input.MoveTo(1);
  const auto output = MakeOutput(Anyone());
  ASSERT_THAT(Results(WriteUntilKnown(*output, input.request)), ElementsAre(kCommitted));
  const auto written = Committed(1);
  ASSERT_EQ(written.size(), 1u);
  EXPECT_THAT(
      written[0].headers,
      ElementsAre(Pair("a", Optional(std::string("1"))), Pair("none", std::nullopt),
                  Pair("a", Optional(std::string())), Pair("b", Optional(std::string("new")))));
}

// A record that one topic refuses is in none, and what it shared a transaction with goes again.
TEST_F(KafkaOutputOnBroker, WritesAllRecordsOfAValueOrNone) {
  MakeTopics();
  const std::string narrow = name + "-narrow";
  broker->admin().CreateTopic(narrow, 1, {{"max.message.bytes", "1000"}});
  const std::string chosen = name + "-chosen";
  broker->CreateTopic(chosen, 1);
  options.records = {
      {.topic = name, .route = {}, .program = "", .when = {}},
      {.topic = "",
       .route = Route{.by = *Selector::Parse("key"),
                      .of = {{"n", narrow}, {"c", chosen}},
                      .otherwise = Route::Otherwise::kSkip,
                      .name = ""},
       .program = "",
       .when = {}},
  };
  options.topic = "";
  std::mt19937 random(7);
  std::string large;  // also compressed
  while (large.size() < 5000) large += static_cast<char>('a' + random() % 26);
  input.Add("n", "small");
  input.Add("n", large);
  input.Add("c", large);
  input.Add("other", "alone");
  input.MoveTo(4);
  const auto output = MakeOutput(Anyone());
  const auto refused = WriteUntilKnown(*output, input.request);
  ASSERT_THAT(Results(refused), ElementsAre(kNotWritten, kBadRecord, kNotWritten, kNotWritten));
  EXPECT_THAT((*refused)[1].shown, HasSubstr(narrow));
  EXPECT_THAT(Committed(), IsEmpty());
  input.request.items.erase(input.request.items.begin() + 1);
  ASSERT_THAT(Results(WriteUntilKnown(*output, input.request)),
              ElementsAre(kCommitted, kCommitted, kCommitted));
  EXPECT_THAT(Values(Committed(3)), ElementsAre("small", large, "alone"));
  EXPECT_THAT(Values(ReadTopic(broker->bootstrap(), narrow)), ElementsAre("small"));
  EXPECT_THAT(Values(ReadTopic(broker->bootstrap(), chosen)), ElementsAre(large));
  EXPECT_EQ(GroupOffset(), 4);
}

// Each topic refuses the second of three records for itself, and says why.
TEST_F(KafkaOutputOnBroker, NamesTheOneRecordThatItsTopicRefusesAndTheSettingOnce) {
  struct Row {
    const char* setting;
    const char* value;
    void (*spoil)(Input& input);
    std::string why;
  };
  const std::string time =
      "Broker: Invalid timestamp: see message.timestamp.before.max.ms and "
      "message.timestamp.after.max.ms of {}";
  const Row rows[] = {
      {"message.timestamp.before.max.ms", "315360000000",
       [](Input& in) { in.records.back().timestamp = std::chrono::milliseconds(86'400'000); },
       time},
      {"message.timestamp.after.max.ms", "3600000",
       [](Input& in) {
         in.records.back().timestamp = std::chrono::milliseconds(1'716'804'532'123'456);
       },
       time},
      {"cleanup.policy", "compact", [](Input& in) { in.records.back().key.reset(); },
       "Broker: Broker failed to validate record: it has no key, and where cleanup.policy of {} is "
       "compact, it takes none without"},
  };
  int number = 0;
  broker->CreateTopic(name + "-in", 2);
  for (const Row& row : rows) {
    options.topic = fmt::format("{}-{}", name, ++number);
    broker->admin().CreateTopic(options.topic, 1, {{row.setting, row.value}});
    Input three;
    three.where = {name + "-in", 0};
    three.Add("k", "a");
    three.Add("k", "b");
    row.spoil(three);
    three.Add("k", "c");
    const auto output = MakeOutput(Anyone(), fmt::format("w{}", number));
    const auto refused = WriteUntilKnown(*output, three.request);
    ASSERT_THAT(Results(refused), ElementsAre(kNotWritten, kBadRecord, kNotWritten));
    EXPECT_EQ((*refused)[1].shown, fmt::format(fmt::runtime(row.why), options.topic));
    EXPECT_EQ((*refused)[1].reason, DeadLetterReason::kOutput);
    three.request.items.erase(three.request.items.begin() + 1);
    ASSERT_THAT(Results(WriteUntilKnown(*output, three.request)),
                ElementsAre(kCommitted, kCommitted));
  }
}

TEST_F(KafkaOutputOnBroker, CommitsASampleOfTheInputWithItsOffsets) {
  MakeTopics();
  const auto samples = std::make_shared<LogSamples>();
  samples->Begin(input.where, LogSample{11, 1'700'000'000'000, 0xabc});
  input.Add("a", "b");
  input.MoveTo(17);
  const auto output = MakeOutput([&](AssignmentEpoch) {
    auto metadata = std::make_shared<GroupMetadata>();
    metadata->held.reset(rd_kafka_consumer_group_metadata_new(kafka.group.c_str()));
    metadata->samples = samples;
    return metadata;
  });
  ASSERT_TRUE(WriteUntilKnown(*output, input.request));
  EXPECT_EQ(GroupOffset(), 17);
  EXPECT_EQ(broker->admin().CommittedMetadata(kafka.group, name + "-in")[0],
            "fencepost1 17 11 1700000000000 00000abc");
}

TEST_F(KafkaOutputOnBroker, WritesOneRecordForEachValueOfTheHandler) {
  MakeTopics();
  input.Add("a", "in").values = &input.values.emplace_back(HandlerValues{"x", std::nullopt, "y"});
  input.Add("b", "in").values = &input.values.emplace_back();
  const auto output = MakeOutput(Anyone());
  ASSERT_THAT(Results(WriteUntilKnown(*output, input.request)),
              ElementsAre(kCommitted, WriteResult::kNoOutput));
  EXPECT_THAT(Values(Committed(3)), ElementsAre("x", "null", "y"));
}

TEST_F(KafkaOutputOnBroker, SendsEqualKeysWhereTheJavaClientsDo) {
  broker->CreateTopic(name + "-in", 1);
  broker->CreateTopic(name, 10);
  input.Add("order-17", "v");
  const auto output = MakeOutput(Anyone());
  ASSERT_TRUE(WriteUntilKnown(*output, input.request));
  const auto written = Committed(1);
  ASSERT_EQ(written.size(), 1u);
  TestProducer producer(broker->bootstrap(), "", {{"partitioner", "murmur2"}});
  TestRecord same;
  same.topic = name;
  same.partition = -1;
  same.key = "order-17";
  producer.Send(same);
  producer.Flush();
  EXPECT_EQ(Committed(2).back().partition, written[0].partition);
}

TEST_F(KafkaOutputOnBroker, TellsEveryBadRecordAndLeavesNothingOfTheirRequest) {
  MakeTopics();
  options.value = *Selector::Parse("json:/v");
  for (const char* text : {R"({"v":"a"})", R"({"w":1})", R"({"v":"b"})", "no json"}) {
    input.Add("k", text);
  }
  input.MoveTo(4);
  const auto output = MakeOutput(Anyone());
  const auto outcomes = WriteUntilKnown(*output, input.request);
  EXPECT_THAT(Results(outcomes), ElementsAre(kNotWritten, kBadRecord, kNotWritten, kBadRecord));
  EXPECT_THAT((*outcomes)[1].detail, HasSubstr("value from json:/v: json:/v finds nothing"));
  EXPECT_THAT(Committed(), IsEmpty());
  EXPECT_EQ(GroupOffset(), -1);
  // The rest can be written again.
  input.request.items = {input.request.items[0], input.request.items[2]};
  EXPECT_THAT(Results(WriteUntilKnown(*output, input.request)),
              ElementsAre(kCommitted, kCommitted));
  EXPECT_THAT(Values(Committed(2)), ElementsAre("a", "b"));
  EXPECT_EQ(GroupOffset(), 4);
}

TEST_F(KafkaOutputOnBroker, NamesTheOneRecordThatTheTopicRefusesAsTooLarge) {
  MakeTopics({{"max.message.bytes", "20000"}});
  kafka.librdkafka["compression.type"] = "none";
  for (int i = 0; i < 50; ++i) input.Add("k", i == 20 ? std::string(30'000, 'x') : "small");
  input.MoveTo(50);
  const auto output = MakeOutput(Anyone());
  const auto outcomes = WriteUntilKnown(*output, input.request);
  ASSERT_TRUE(outcomes);
  for (std::size_t i = 0; i < outcomes->size(); ++i) {
    EXPECT_EQ((*outcomes)[i].result, i == 20 ? kBadRecord : kNotWritten);
  }
  EXPECT_THAT((*outcomes)[20].detail, HasSubstr("Message size too large"));
  EXPECT_THAT(Committed(), IsEmpty());
  input.request.items.erase(input.request.items.begin() + 20);
  ASSERT_TRUE(WriteUntilKnown(*output, input.request));
  EXPECT_EQ(Committed(49).size(), 49u);
}

TEST_F(KafkaOutputOnBroker, WritesRecordsThatAreTooLargeOnlyTogether) {
  MakeTopics({{"max.message.bytes", "20000"}});
  kafka.librdkafka["compression.type"] = "none";
  for (int i = 0; i < 100; ++i) input.Add("k", std::string(1000, 'x'));
  const auto output = MakeOutput(Anyone());
  for (int i = 0; i < 2; ++i) {
    const auto outcomes = WriteUntilKnown(*output, input.request);
    EXPECT_EQ(Results(outcomes), std::vector<WriteResult>(100, kCommitted));
  }
  EXPECT_EQ(Committed(200).size(), 200u);
}

TEST_F(KafkaOutputOnBroker, MovesOffsetsWithoutRecords) {
  MakeTopics();
  input.MoveTo(5);
  const auto output = MakeOutput(Anyone());
  ASSERT_TRUE(WriteUntilKnown(*output, input.request));
  EXPECT_EQ(GroupOffset(), 5);
  EXPECT_THAT(Committed(), IsEmpty());
}

TEST_F(KafkaOutputOnBroker, WritesNothingForAnAssignmentThatIsOver) {
  MakeTopics();
  input.Add("k", "v");
  input.MoveTo(1, 3);
  const auto output = MakeOutput([](AssignmentEpoch epoch) {
    EXPECT_EQ(epoch, 3u);
    return nullptr;
  });
  EXPECT_THAT(Results(WriteUntilKnown(*output, input.request)), ElementsAre(kNotWritten));
  EXPECT_THAT(Committed(), IsEmpty());
}

TEST_F(KafkaOutputOnBroker, IsRefusedTheOffsetsOfAnAssignmentThatTheGroupHasLeftBehind) {
  MakeTopics();
  kafka.librdkafka = {{"session.timeout.ms", "6000"}, {"heartbeat.interval.ms", "200"}};
  bool good_inside = false;
  Reader first(kafka);
  Reader second(kafka, "w2");
  ASSERT_TRUE(first.Owns(2));
  const AssignmentEpoch before = first.Locked([&] { return first.epoch; });
  const auto kept = first.source.MetadataOf(before);
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(first.source.MetadataOf(before + 1), nullptr);
  first.on_revoked = [&](const auto&, bool) {
    good_inside = first.source.MetadataOf(before) == kept;
    return std::vector<PartitionOffset>{};
  };
  ASSERT_TRUE(second.Start());
  ASSERT_TRUE(first.Owns(1) && second.Owns(1)) << first.Trace() << second.Trace();
  EXPECT_TRUE(good_inside);
  EXPECT_EQ(first.source.MetadataOf(before), nullptr);

  input.Add("k", "v");
  input.MoveTo(7, first.Locked([&] { return first.epoch; }));
  bool stale = true;
  const auto output = MakeOutput(
      [&](AssignmentEpoch epoch) { return stale ? kept : first.source.MetadataOf(epoch); });
  const auto refused = WriteUntilKnown(*output, input.request);
  ASSERT_THAT(Results(refused), ElementsAre(kNotWritten));
  EXPECT_THAT(Committed(), IsEmpty());
  EXPECT_LE(GroupOffset(), 0);
  stale = false;  // the producer is as good as before
  ASSERT_THAT(Results(WriteUntilKnown(*output, input.request)), ElementsAre(kCommitted));
  EXPECT_EQ(Committed(1).size(), 1u);
  EXPECT_EQ(GroupOffset(), 7);
}

TEST_F(KafkaOutputOnBroker, PutsADeadLetterIntoTheTransaction) {
  MakeTopics();
  dead_letter_topic = name + "-dead";
  broker->CreateTopic(dead_letter_topic, 1);
  WriteItem& item = input.Add("k", "as it was");
  input.records.back().headers = {{"own", "1"}, {"fencepost-error", "an earlier one"}};
  DeadLetter& letter = input.letters.emplace_back();
  letter.record = input.records.back();
  letter.where = input.where;
  letter.error = "no /v";
  letter.error_class = "bad_record";
  item.dead_letter = &letter;
  input.Add("k", "good");
  input.MoveTo(2);
  const auto output = MakeOutput(Anyone());
  ASSERT_TRUE(WriteUntilKnown(*output, input.request));
  EXPECT_THAT(Values(Committed(1)), ElementsAre("good"));
  const auto dead = ReadTopic(broker->bootstrap(), dead_letter_topic);
  ASSERT_THAT(Values(dead), ElementsAre("as it was"));
  EXPECT_EQ(dead[0].headers[0].first, "own");
  EXPECT_EQ(dead[0].headers[1],
            std::pair(std::string("fencepost-error"), std::optional<std::string>("no /v")));
  EXPECT_EQ(dead[0].Header("fencepost-pipeline"), "p");
  EXPECT_EQ(dead[0].timestamp_ms, 1'700'000'000'000);
  EXPECT_EQ(GroupOffset(), 2);
}

TEST_F(KafkaOutputOnBroker, PutsADeadLetterWhoseTimeIsRefusedIntoTheTransactionWithoutIt) {
  MakeTopics();
  dead_letter_topic = name + "-dead";
  broker->admin().CreateTopic(dead_letter_topic, 1,
                              {{"message.timestamp.before.max.ms", "3600000"}});
  for (const char* value : {"a", "b"}) {
    WriteItem& item = input.Add("k", value);
    DeadLetter& letter = input.letters.emplace_back();
    letter.record = input.records.back();
    letter.where = input.where;
    letter.error = "no /v";
    item.dead_letter = &letter;
  }
  input.Add("k", "good");
  input.MoveTo(3);
  const auto output = MakeOutput(Anyone());
  EXPECT_THAT(Results(WriteUntilKnown(*output, input.request)),
              ElementsAre(kCommitted, kCommitted, kCommitted));
  EXPECT_EQ(output->HeldBack(), "");
  const auto dead = ReadTopic(broker->bootstrap(), dead_letter_topic);
  ASSERT_THAT(Values(dead), ElementsAre("a", "b"));
  EXPECT_EQ(dead[1].Header("fencepost-timestamp"), "1700000000001");
  EXPECT_GT(dead[1].timestamp_ms, 1'764'000'000'000);
  EXPECT_EQ(GroupOffset(), 3);
}

TEST_F(KafkaOutputOnBroker, WritesARecordThatOnlyItsCompressionBringsBelowTheLimit) {
  MakeTopics();
  const std::string value(1'500'000, 'x');
  input.Add("k", "before");
  input.Add("k", value);
  const auto output = MakeOutput(Anyone());
  ASSERT_THAT(Results(WriteUntilKnown(*output, input.request)),
              ElementsAre(kCommitted, kCommitted));
  EXPECT_THAT(Values(Committed(2)), ElementsAre("before", value));
}

// The second record of partition 0 is a dead letter of 30,000 bytes, for a topic that takes 20,000.
class LargeLetterOnBroker : public KafkaOutputOnBroker {
 protected:
  void SetUp() override {
    KafkaOutputOnBroker::SetUp();
    MakeTopics();
    dead_letter_topic = name + "-dead";
    broker->admin().CreateTopic(dead_letter_topic, 1, {{"max.message.bytes", "20000"}});
    kafka.librdkafka["compression.type"] = "none";
    input.Add("k", "a-0");
    WriteItem& large = input.Add("k", std::string(30'000, 'x'));
    DeadLetter& letter = input.letters.emplace_back();
    letter.record = input.records.back();
    letter.where = input.where;
    letter.error = "no /v";
    large.dead_letter = &letter;
    input.Add("k", "a-2");
    input.MoveTo(3);
    other.where = {name + "-in", 1};
    other.Add("k", "b-0");
    input.request.items.push_back(other.request.items[0]);
    input.request.offsets.push_back({other.where, 1});
  }
  std::vector<Offset> GroupOffsets() const {
    return broker->admin().CommittedOffsets(kafka.group, name + "-in");
  }
  Input other;
};

TEST_F(LargeLetterOnBroker, HoldsBackWhatIsBehindItInItsPartitionAndNothingElse) {
  const auto output = MakeOutput(Anyone());
  std::vector<std::string> errors;
  Outcomes outcomes;
  ASSERT_TRUE(WaitUntil(30s, [&] {
    outcomes = output->Write(input.request);
    if (!outcomes && outcomes.error().error.code == "dead_letter_failed") {
      EXPECT_TRUE(outcomes.error().retry_at_once);
      errors.push_back(outcomes.error().error.Line());
    }
    return outcomes.has_value();
  }));
  EXPECT_THAT(Results(outcomes), ElementsAre(kCommitted, kNotWritten, kNotWritten, kCommitted));
  EXPECT_THAT(errors, ElementsAre(fmt::format(
                          "{0}: the dead letter of {1}-in/0/1 is refused (Broker: Message size too "
                          "large), and its partition waits for it; raise max.message.bytes of {0} "
                          "to at least {2}",
                          dead_letter_topic, name, 30'263 + name.size() + 3)));
  EXPECT_EQ(output->HeldBack(),
            fmt::format("{}-in/0/1 waits: raise max.message.bytes of {} to at least {}", name,
                        dead_letter_topic, 30'263 + name.size() + 3));
  EXPECT_THAT(Values(Committed(2)), ElementsAre("a-0", "b-0"));
  EXPECT_THAT(GroupOffsets(), ElementsAre(1, 1));
}

TEST_F(LargeLetterOnBroker, GoesOnceItsTopicTakesIt) {
  const auto output = MakeOutput(Anyone());
  ASSERT_TRUE(WriteUntilKnown(*output, input.request));
  broker->admin().SetTopicConfig(dead_letter_topic, "max.message.bytes",
                                 std::to_string(30'263 + name.size() + 3));
  input.request.items = {input.request.items[1], input.request.items[2]};
  ASSERT_TRUE(WaitUntil(60s, [&] {
    const auto outcomes = output->Write(input.request);
    return outcomes && outcomes->at(0).result == kCommitted;
  }));
  EXPECT_EQ(output->HeldBack(), "");
  EXPECT_THAT(Values(Committed(3)), ElementsAre("a-0", "b-0", "a-2"));
  const auto dead = ReadTopic(broker->bootstrap(), dead_letter_topic);
  ASSERT_EQ(dead.size(), 1u);
  EXPECT_EQ(dead[0].Header("fencepost-error"), "no /v");
  EXPECT_THAT(GroupOffsets(), ElementsAre(3, 1));
}

TEST_F(KafkaOutputOnBroker, SaysThatItsTopicIsMissingAndFindsItOnceItIsThere) {
  const auto output = MakeOutput(Anyone());
  const auto missing = output->Prepare();
  ASSERT_FALSE(missing);
  EXPECT_FALSE(missing.error().fatal);
  EXPECT_EQ(missing.error().error.Line(),
            fmt::format("output.kafka.topic: topic '{}' does not exist (yet); create it, "
                        "workers do not",
                        name));
  EXPECT_FALSE(broker->admin().Exists(name));
  MakeTopics();
  input.Add("k", "v");
  ASSERT_TRUE(WriteUntilKnown(*output, input.request));
  EXPECT_EQ(Committed(1).size(), 1u);
}

TEST_F(KafkaOutputOnBroker, GoesOnAskingForTheCommitThatTheBrokersDidNotAnswer) {
  MakeTopics();
  input.Add("k", "v");
  const auto output = MakeOutput(Anyone());
  ASSERT_TRUE(output->Prepare());
  broker->Pause();
  const auto unknown = output->Write(input.request);
  broker->Resume();
  ASSERT_FALSE(unknown);
  EXPECT_FALSE(unknown.error().fatal);
  EXPECT_THAT(unknown.error().error.Line(),
              HasSubstr("have not answered the commit of a transaction"));
  ASSERT_THAT(Results(WriteUntilKnown(*output, input.request)), ElementsAre(kCommitted));
  // The broker shows what is committed a moment after it has said so.
  EXPECT_TRUE(WaitUntil(30s, [&] { return !Committed().empty(); }));
  EXPECT_THAT(Values(Committed()), ElementsAre("v"));
}

TEST_F(KafkaOutputOnBroker, ReturnsSoonWhenItIsInterrupted) {
  MakeTopics();
  input.Add("k", "v");
  const auto output = MakeOutput(Anyone());
  ASSERT_TRUE(output->Prepare());
  broker->Pause();
  auto writing = std::async(std::launch::async, [&] { return output->Write(input.request); });
  output->Interrupt();
  const auto ended = writing.wait_for(3s);  // its own limit is 5 s
  broker->Resume();
  EXPECT_EQ(ended, std::future_status::ready);
  EXPECT_FALSE(writing.get());
}

}  // namespace
}  // namespace fencepost::consumer::testing
