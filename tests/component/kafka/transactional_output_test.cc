// The Kafka output where brokers refuse, or are late. (What a transaction holds, only real ones
// tell: tests/e2e/kafka.)
#include "consumer/kafka/output/transactional_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "consumer/kafka/client/rdkafka_holders.h"
#include "tests/component/kafka/mock_faults.h"
#include "tests/component/kafka/orders_on_mock.h"
#include "tests/support/process.h"

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;
using fencepost::testing::WaitUntil;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using enum WriteResult;

constexpr std::int16_t kProduceRequest = 0;
constexpr std::int16_t kInitProducerIdRequest = 22;
constexpr std::int16_t kAddPartitionsToTxnRequest = 24;
constexpr std::int16_t kAddOffsetsToTxnRequest = 25;
constexpr std::int16_t kEndTxnRequest = 26;
constexpr std::int16_t kTxnOffsetCommitRequest = 28;
constexpr int kIllegalGeneration = 22;
constexpr int kInvalidProducerEpoch = 47;

class KafkaOutputOnMock : public OrdersOnMock {
 protected:
  KafkaOutputOnMock() {
    options.librdkafka.clear();
    EXPECT_TRUE(cluster->CreateTopic("out", 1));
    out.topic = "out";
    MakeOutput();
  }
  void MakeOutput() {
    output = MakeKafkaOutput(options, out, "", "p", "w", [](AssignmentEpoch) {
      auto metadata = std::make_shared<GroupMetadata>();
      metadata->held.reset(rd_kafka_consumer_group_metadata_new("g"));
      return metadata;
    });
  }
  void Add(std::string value) {
    Record& record = records.emplace_back();
    record.offset = static_cast<Offset>(records.size()) - 1;
    record.value = texts.emplace_back(std::move(value));
    WriteItem& item = request.items.emplace_back();
    item.record = &record;
    item.where = &where;
    request.offsets = {{where, record.offset + 1}};
    request.epoch = 1;
  }
  // As the writer does it: the same request until its outcome is known.
  std::vector<WriteResult> Write() {
    tl::expected<std::vector<WriteOutcome>, OutputError> outcomes;
    EXPECT_TRUE(WaitUntil(20s, [&] {
      outcomes = output->Write(request);
      return outcomes || outcomes.error().fatal;
    }));
    std::vector<WriteResult> results;
    if (!outcomes) return results;
    for (const WriteOutcome& one : *outcomes) results.push_back(one.result);
    return results;
  }

  KafkaOutputOptions out;
  std::deque<std::string> texts;
  std::deque<Record> records;
  const TopicPartition where{"orders", 0};
  WriteRequest request;
  std::unique_ptr<Output> output;
};

TEST_F(KafkaOutputOnMock, WritesNothingWhereTheGroupRefusesTheOffsets) {  // 20
  Add("a");
  Add("b");
  ASSERT_THAT(Write(), Each(kCommitted));
  for (const std::int16_t kind : {kAddOffsetsToTxnRequest, kTxnOffsetCommitRequest}) {
    FailRequests(*cluster, kind, kIllegalGeneration, 1);
    EXPECT_THAT(Write(), ElementsAre(kNotWritten, kNotWritten)) << kind;
  }
  EXPECT_THAT(Write(), Each(kCommitted));
}

TEST_F(KafkaOutputOnMock, WritesNothingOfATransactionWithARecordThatIsBad) {  // 20
  out.value = *Selector::Parse("json:/v");
  MakeOutput();
  Add(R"({"v":1})");
  Add("{}");
  Add(R"({"v":3})");
  EXPECT_THAT(Write(), ElementsAre(kNotWritten, kBadRecord, kNotWritten));
}

TEST_F(KafkaOutputOnMock, WritesAllRecordsOfAValueOrNone) {  // 20
  EXPECT_TRUE(cluster->CreateTopic("more", 1));
  const Selector value = *Selector::Parse("json:/v");
  out.topic = "";
  out.records = {
      {.topic = "out", .route = {}, .program = "", .when = {}},
      {.topic = "more", .route = {}, .value = value, .program = "", .when = {}},
  };
  MakeOutput();
  Add(R"({"v":1})");
  ASSERT_THAT(Write(), Each(kCommitted));
  Add("{}");
  EXPECT_THAT(Write(), ElementsAre(kNotWritten, kBadRecord));
}

// Whatever a coordinator or a leader answers, that is away, comes back or has forgotten the
// producer: the output goes on, with a new producer where it has to. (The mock stores no offsets of
// transactions: a commit in doubt counts as aborted.)
TEST_F(KafkaOutputOnMock, GoesOnAfterWhateverBrokersAnswerThatWereAway) {
  struct Answer {
    std::int16_t request;
    int code;
  };
  constexpr Answer kAnswers[] = {
      {kInitProducerIdRequest, RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE},
      {kInitProducerIdRequest, RD_KAFKA_RESP_ERR_NOT_COORDINATOR},
      {kInitProducerIdRequest, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS},
      {kInitProducerIdRequest, RD_KAFKA_RESP_ERR_CONCURRENT_TRANSACTIONS},
      {kInitProducerIdRequest, RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH},
      {kInitProducerIdRequest, RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED},
      {kAddPartitionsToTxnRequest, RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE},
      {kAddPartitionsToTxnRequest, RD_KAFKA_RESP_ERR_NOT_COORDINATOR},
      {kAddPartitionsToTxnRequest, RD_KAFKA_RESP_ERR_CONCURRENT_TRANSACTIONS},
      {kAddPartitionsToTxnRequest, RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING},
      {kAddPartitionsToTxnRequest, RD_KAFKA_RESP_ERR_INVALID_TXN_STATE},
      {kAddPartitionsToTxnRequest, RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED},
      {kProduceRequest, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION},
      {kProduceRequest, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS},
      {kProduceRequest, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER},
      {kProduceRequest, RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID},
      {kProduceRequest, RD_KAFKA_RESP_ERR_INVALID_TXN_STATE},
      {kAddOffsetsToTxnRequest, RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE},
      {kAddOffsetsToTxnRequest, RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING},
      {kAddOffsetsToTxnRequest, RD_KAFKA_RESP_ERR_INVALID_TXN_STATE},
      {kTxnOffsetCommitRequest, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS},
      {kTxnOffsetCommitRequest, RD_KAFKA_RESP_ERR_NOT_COORDINATOR},
      {kEndTxnRequest, RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE},
      {kEndTxnRequest, RD_KAFKA_RESP_ERR_NOT_COORDINATOR},
      {kEndTxnRequest, RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING},
      {kEndTxnRequest, RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID},
      {kEndTxnRequest, RD_KAFKA_RESP_ERR_INVALID_TXN_STATE},
      {kEndTxnRequest, RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED},
      {kEndTxnRequest, RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED},
  };
  Add("a");
  ASSERT_THAT(Write(), Each(kCommitted));
  for (const auto& [kind, code] : kAnswers) {
    if (kind == kInitProducerIdRequest) MakeOutput();
    FailRequests(*cluster, kind, code, 1);
    auto results = Write();
    if (results == std::vector{kNotWritten}) results = Write();
    EXPECT_THAT(results, ElementsAre(kCommitted)) << "request " << kind << ", code " << code;
  }
}

TEST_F(KafkaOutputOnMock, EndsOnlyWhereAnotherHasTakenItsName) {
  for (const int code : {kInvalidProducerEpoch, int{RD_KAFKA_RESP_ERR_PRODUCER_FENCED}}) {
    for (const auto kind : {kAddPartitionsToTxnRequest, kEndTxnRequest}) {
      MakeOutput();
      Add("a");
      ASSERT_TRUE(output->Prepare());
      FailRequests(*cluster, kind, code, 1);
      EXPECT_THAT(Write(), IsEmpty()) << kind;
      const auto outcomes = output->Write(request);
      ASSERT_FALSE(outcomes) << kind;
      EXPECT_EQ(outcomes.error().error.code, "producer_fenced") << kind << " " << code;
    }
  }
}

TEST_F(KafkaOutputOnMock, TakesACommitForDoneOnlyOnceItIsAnswered) {  // 16
  Add("a");
  ASSERT_THAT(Write(), Each(kCommitted));
  FailRequestLate(*cluster, kEndTxnRequest, kInvalidProducerEpoch, 1000ms);
  const auto outcomes = output->Write(request);
  ASSERT_FALSE(outcomes) << "it was refused";
  EXPECT_TRUE(outcomes.error().fatal) << outcomes.error().error.Line();
}

TEST_F(KafkaOutputOnMock, WritesAgainWhereNoOffsetsTellWhatBecameOfACommit) {
  Add("a");
  request.offsets.clear();  // they are on another cluster
  ASSERT_THAT(Write(), Each(kCommitted));
  FailRequests(*cluster, kEndTxnRequest, RD_KAFKA_RESP_ERR_INVALID_TXN_STATE, 1);
  EXPECT_THAT(Write(), ElementsAre(kNotWritten));
  EXPECT_THAT(Write(), ElementsAre(kCommitted));
}

}  // namespace
}  // namespace fencepost::consumer
