// The Kafka output and what it remembers from one call to the next. Only for
// transactional_output.cc.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "consumer/kafka/client/rdkafka_holders.h"
#include "consumer/kafka/output/dead_letter_record.h"
#include "consumer/kafka/output/output_records.h"
#include "consumer/kafka/output/transactional_output.h"
#include "consumer/kafka/output/transactional_producer.h"

namespace fencepost::consumer {

// What a record was refused with.
struct Refusal {
  std::string text;
  rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
  DeadLetterReason reason = DeadLetterReason::kOutput;
  std::string detail = {};  // with parts of the record; empty: as text
};
// Why a transaction is not committed.
struct Trouble {
  enum class Of : std::uint8_t { kNothing, kRecords, kGroup, kBrokers, kProducer } of{};
  TransactionStep step{};

  explicit operator bool() const { return of != Of::kNothing; }
};

class KafkaOutput final : public Output {
 public:
  using Clock = std::chrono::steady_clock;
  using Outcomes = tl::expected<std::vector<WriteOutcome>, OutputError>;

  KafkaOutput(const KafkaOptions& kafka, const KafkaOutputOptions& options,
              std::string dead_letter_topic, std::string pipeline, std::string worker,
              GroupMetadataOf group_metadata, const JqMakers& jq,
              std::optional<KafkaOptions> source)
      : kafka_(kafka),
        source_(std::move(source)),
        options_(options),
        dead_letter_topic_(std::move(dead_letter_topic)),
        pipeline_(std::move(pipeline)),
        worker_(std::move(worker)),
        id_(pipeline_ + "." + worker_),
        group_metadata_(std::move(group_metadata)),
        encoder_(Encoding(options_) ? std::make_unique<RecordEncoder>(options_.encode) : nullptr),
        records_(options_, worker_, encoder_.get(), DecodeOptions::IsWireFormat(kafka_.decode.key),
                 jq) {}

  tl::expected<void, OutputError> Prepare() override;
  Outcomes Write(const WriteRequest& request) override;
  [[nodiscard]] bool OutcomePending() const override {
    return pending_ == Pending::kCommit || pending_ == Pending::kUnknown;
  }
  [[nodiscard]] std::string HeldBack() const override { return held_.Reason(); }
  void Interrupt() override {
    interrupted_ = true;
    if (encoder_ != nullptr) encoder_->Cancel();
  }

 private:
  enum class Pending : std::uint8_t {
    kNothing,
    kCommit,
    kAbort,
    kUnknown,  // its producer was lost after the commit was asked for
  };
  struct Live {
    std::unique_ptr<TransactionalProducer> producer;
    // Must go before the producer does.
    std::vector<rdkafka::Topic> topics;  // as OutputRecords::topics
    rdkafka::Topic dead_letters;
    bool started = false;  // transactions are
    bool ready = false;    // and the topics and schemas are there

    void Drop() {
      started = ready = false;
      topics.clear();
      dead_letters.reset();
      producer.reset();
    }
  };

  static bool Encoding(const KafkaOutputOptions& options) {
    return options.encode.key.Needed() || options.encode.value.Needed();
  }
  tl::expected<void, OutputError> Make();
  tl::expected<void, OutputError> CheckTopic(rd_kafka_topic_t* topic, const char* where);

  Trouble ProduceAll(const WriteRequest& request);
  Trouble ProduceItem(const WriteItem& item, std::uint32_t index);
  Trouble ProduceOne(rd_kafka_topic_t* topic, const OutgoingRecord& record, std::uint32_t index);
  Trouble SendOffsets(const WriteRequest& request, const GroupMetadata& metadata);
  Outcomes EndByCommit(const WriteRequest& request);
  Outcomes ResolveByOffsets(const WriteRequest& request);
  [[nodiscard]] Offset NextOf(const SourceOffset& one) const;
  Outcomes EndByAbort(const WriteRequest& request, const Trouble& trouble);
  tl::expected<void, OutputError> Abort(bool failed_already);

  Outcomes Committed(const WriteRequest& request);
  Outcomes NotWritten(const WriteRequest& request, const std::string& why);
  std::optional<OutputError> NameTheRefused();
  std::optional<OutputError> RefusedDeadLetter(const WriteRequest& request);
  void LeaveOut(const WriteRequest& request);
  [[nodiscard]] OutputError Unavailable(const TransactionStep& step) const;
  OutputError ProducerLost(const TransactionStep& step);
  [[nodiscard]] TransactionOwner Who() const {
    return {id_, pipeline_, worker_, kafka_.brokers, options_.transaction_timeout};
  }
  [[nodiscard]] bool GiveUp(Clock::time_point since) const;

  const KafkaOptions kafka_;
  std::optional<KafkaOptions> source_;  // until it is known to be another cluster
  const KafkaOutputOptions options_;
  const std::string dead_letter_topic_, pipeline_, worker_, id_;
  const GroupMetadataOf group_metadata_;
  const std::unique_ptr<RecordEncoder> encoder_;  // nullptr: nothing is encoded
  OutputRecords records_;

  std::atomic<bool> interrupted_ = false;
  Live live_;
  std::optional<OutputError> fatal_;
  Pending pending_ = Pending::kNothing;
  locking::Instant began_;
  std::map<std::uint32_t, Refusal> bad_;  // items of this transaction that are to blame
  HeldLetters held_;
  std::vector<bool> left_out_;  // items of this transaction's request that are not in it
  std::vector<bool> wrote_;     // those that made a record
  std::map<TopicPartition, Offset> stop_at_;  // and where their partitions stop
  std::size_t largest_ = 0;                   // bytes of a record in it
  // A refused batch of several records does not say which of them was refused: the same request
  // goes once more, each record a batch of its own. If none is refused then, together they were too
  // large.
  Batches batches_;
};

}  // namespace fencepost::consumer
