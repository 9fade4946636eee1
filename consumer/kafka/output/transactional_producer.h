// A producer with a transactional.id: librdkafka's transaction calls, with what each error means
// for the caller. One thread. Every call blocks at most about its limit.
//
// A call that ends in kAgain is still under way inside librdkafka: the same call is made again
// until it ends otherwise, and no other one meanwhile (but for SendOffsets, which starts again).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/kafka/client/producer.h"
#include "consumer/kafka/client/rdkafka_holders.h"
#include "consumer/kafka/client/settings.h"
#include "consumer/outputs/output.h"
#include "consumer/pipeline/options.h"
#include "consumer/record/record.h"
#include "locking/base/error.h"

namespace fencepost::consumer {

struct TransactionStep {
  enum class Kind : std::uint8_t {
    kDone,
    kAgain,   // not known yet: call again
    kAbort,   // the transaction must be aborted
    kFailed,  // refused, and no call again would help
    kFatal,   // the producer is at its end (fenced, …): it makes no call any more
  };
  Kind kind = Kind::kDone;
  rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
  std::string text;  // librdkafka's

  [[nodiscard]] bool done() const { return kind == Kind::kDone; }
};

// How records go into batches: refused ones are found by sending each alone, or less at a time.
struct Batches {
  bool one_by_one = false;
  int bytes = 1'000'000;  // at most; librdkafka's default
};
KafkaSettings TransactionSettings(const KafkaOptions& kafka, const KafkaOutputOptions& options,
                                  const std::string& transactional_id, const Batches& batches);

class TransactionalProducer {
 public:
  // A record of the current transaction that was not delivered.
  struct Failure {
    std::uint32_t item = 0;
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
    std::string why{};  // OfARecord: WhyRefused
    std::string topic{};
  };

  // Error: "bad_config".
  static tl::expected<std::unique_ptr<TransactionalProducer>, Error> Make(
      const KafkaSettings& settings);
  ~TransactionalProducer();
  TransactionalProducer(const TransactionalProducer&) = delete;
  TransactionalProducer& operator=(const TransactionalProducer&) = delete;

  // nullptr only where the name is not a topic's.
  [[nodiscard]] rdkafka::Topic TopicOf(const std::string& name);
  // What the brokers say of the topic.
  rd_kafka_resp_err_t Ask(rd_kafka_topic_t* topic, std::chrono::milliseconds limit);

  TransactionStep Init(std::chrono::milliseconds limit);
  TransactionStep Begin();
  // Queues a copy. `item` comes back in failures(). __QUEUE_FULL: Poll, and again.
  rd_kafka_resp_err_t Produce(rd_kafka_topic_t* topic, const OutgoingRecord& record,
                              std::uint32_t item);
  void Poll(std::chrono::milliseconds wait);
  // Waits for what is queued and in flight; false: some still is.
  bool Flush(std::chrono::milliseconds limit);
  [[nodiscard]] int Unsent() const { return rd_kafka_outq_len(handle_.get()); }
  TransactionStep SendOffsets(const rd_kafka_topic_partition_list_t* offsets,
                              const rd_kafka_consumer_group_metadata_t* metadata,
                              std::chrono::milliseconds limit);
  TransactionStep Commit(std::chrono::milliseconds limit);
  TransactionStep Abort(std::chrono::milliseconds limit);  // Flush before

  [[nodiscard]] const std::vector<Failure>& failures() const { return failures_; }

 private:
  TransactionalProducer() = default;
  void OnReport(const rd_kafka_message_t* message);
  TransactionStep Step(rd_kafka_error_t* error);

  rdkafka::Handle handle_;
  std::uint32_t transaction_ = 0;  // counted, so that a late report is not taken for this one's
  bool open_ = false;              // a transaction whose end was not asked for
  std::vector<Failure> failures_;
};

// --- errors in words for a person ----------------------------------------------------------------

// The record was dropped here, because its transaction failed.
bool Purged(rd_kafka_resp_err_t code);

struct TransactionOwner {
  const std::string& transactional_id;
  const std::string& pipeline;
  const std::string& worker;
  const std::vector<std::string>& brokers;
  std::chrono::milliseconds timeout;
};

// A batch was refused for what is in it: its records go again at once, one by one.
OutputError ErrorOfBatch(const std::string& why, const std::string& topic);
// The dead letter of this record is refused alone, and waits: "dead_letter_failed". The rest goes
// again at once.
OutputError ErrorOfLetter(const std::string& record, const std::string& why,
                          const std::string& topic, const std::string& need);
// Transactions could not be started: retried until the operator fixes it.
Error ErrorOfInit(const TransactionOwner& who, const TransactionStep& step);
// No answer to a commit or an abort yet.
Error ErrorOfSilence(const TransactionOwner& who, std::string_view doing);
// The producer is at its end. Fatal: "producer_fenced". Else a new one is needed; `outlived`: it
// was fenced by the brokers, as its transaction had outlived its timeout.
OutputError ErrorOfTheEnd(const TransactionOwner& who, const TransactionStep& step, bool outlived);

}  // namespace fencepost::consumer
