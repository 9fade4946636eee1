#include "consumer/kafka/output/transactional_producer.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "consumer/kafka/client/admin.h"

namespace fencepost::consumer {
namespace {

constexpr int kLastAbortMs = 500;
static_assert(sizeof(void*) == 8, "a report carries the transaction and the item in one pointer");

}  // namespace

KafkaSettings TransactionSettings(const KafkaOptions& kafka, const KafkaOutputOptions& options,
                                  const std::string& transactional_id, const Batches& batches) {
  KafkaSettings all = ProducerSettings(kafka);
  all["transactional.id"] = transactional_id;
  all["transaction.timeout.ms"] = std::to_string(options.transaction_timeout.count());
  // Right after a commit the coordinator is still busy with it and asks to come again.
  all.try_emplace("retry.backoff.ms", "5");
  const auto batch_size = all.find("batch.size");
  if (batch_size == all.end() || std::atoi(batch_size->second.c_str()) > batches.bytes) {
    all["batch.size"] = std::to_string(batches.bytes);
  }
  if (batches.one_by_one) SetSingles(all, kafka);
  all["queue.buffering.max.messages"] =
      std::to_string(std::clamp(options.max_records, 50'000, 5'000'000) * 2);
  all["log_level"] = "0";  // what matters comes back as an error
  return all;
}

tl::expected<std::unique_ptr<TransactionalProducer>, Error> TransactionalProducer::Make(
    const KafkaSettings& settings) {
  auto conf = MakeConf(settings);
  if (!conf) return tl::unexpected(conf.error());
  auto made = std::unique_ptr<TransactionalProducer>(new TransactionalProducer());
  rd_kafka_conf_set_opaque(conf->get(), made.get());
  rd_kafka_conf_set_dr_msg_cb(conf->get(),
                              [](rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
                                if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) return;
                                static_cast<TransactionalProducer*>(opaque)->OnReport(message);
                              });
  auto handle = MakeHandle(RD_KAFKA_PRODUCER, *conf);
  if (!handle) return tl::unexpected(handle.error());
  made->handle_ = std::move(*handle);
  return made;
}

// What is open is given back, so that readers need not wait for its timeout.
TransactionalProducer::~TransactionalProducer() {
  if (open_) {
    const rdkafka::Failure error(rd_kafka_abort_transaction(handle_.get(), kLastAbortMs));
  }
  rd_kafka_purge(handle_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
  rd_kafka_flush(handle_.get(), kLastAbortMs);
}

rdkafka::Topic TransactionalProducer::TopicOf(const std::string& name) {
  return rdkafka::Topic(rd_kafka_topic_new(handle_.get(), name.c_str(), nullptr));
}

rd_kafka_resp_err_t TransactionalProducer::Ask(rd_kafka_topic_t* topic,
                                               std::chrono::milliseconds limit) {
  const auto count = AskPartitionCount(handle_.get(), rd_kafka_topic_name(topic), limit);
  return count ? RD_KAFKA_RESP_ERR_NO_ERROR : count.error();
}

TransactionStep TransactionalProducer::Step(rd_kafka_error_t* error) {
  using Kind = TransactionStep::Kind;
  if (error == nullptr) return {};
  const rdkafka::Failure held(error);
  TransactionStep step{Kind::kFailed, rd_kafka_error_code(error), rd_kafka_error_string(error)};
  char why[512];
  const auto fatal = rd_kafka_fatal_error(handle_.get(), why, sizeof(why));
  if (fatal != RD_KAFKA_RESP_ERR_NO_ERROR) {
    step = {Kind::kFatal, fatal, why};
  } else if (rd_kafka_error_is_fatal(error) != 0) {
    step.kind = Kind::kFatal;
  } else if (rd_kafka_error_txn_requires_abort(error) != 0) {
    step.kind = Kind::kAbort;
  } else if (rd_kafka_error_is_retriable(error) != 0) {
    step.kind = Kind::kAgain;
  }
  return step;
}

TransactionStep TransactionalProducer::Init(std::chrono::milliseconds limit) {
  return Step(rd_kafka_init_transactions(handle_.get(), Ms(limit)));
}

TransactionStep TransactionalProducer::Begin() {
  auto step = Step(rd_kafka_begin_transaction(handle_.get()));
  failures_.clear();
  ++transaction_;
  open_ = step.done();
  return step;
}

rd_kafka_resp_err_t TransactionalProducer::Produce(rd_kafka_topic_t* topic,
                                                   const OutgoingRecord& record,
                                                   std::uint32_t item) {
  const std::uint64_t tag = std::uint64_t{transaction_} << 32 | item;
  const auto error = Enqueue(handle_.get(), record, reinterpret_cast<void*>(tag), topic);
  return error ? rd_kafka_error_code(error.get()) : RD_KAFKA_RESP_ERR_NO_ERROR;
}

void TransactionalProducer::OnReport(const rd_kafka_message_t* message) {
  const auto tag = reinterpret_cast<std::uint64_t>(message->_private);
  if (tag >> 32 != transaction_) return;
  failures_.push_back(Failure{static_cast<std::uint32_t>(tag), message->err,
                              OfARecord(message->err) ? WhyRefused(message) : "",
                              rd_kafka_topic_name(message->rkt)});
}

void TransactionalProducer::Poll(std::chrono::milliseconds wait) {
  rd_kafka_poll(handle_.get(), Ms(wait));
}

bool TransactionalProducer::Flush(std::chrono::milliseconds limit) {
  return rd_kafka_flush(handle_.get(), Ms(limit)) == RD_KAFKA_RESP_ERR_NO_ERROR;
}

TransactionStep TransactionalProducer::SendOffsets(
    const rd_kafka_topic_partition_list_t* offsets,
    const rd_kafka_consumer_group_metadata_t* metadata, std::chrono::milliseconds limit) {
  return Step(rd_kafka_send_offsets_to_transaction(handle_.get(), offsets, metadata, Ms(limit)));
}

TransactionStep TransactionalProducer::Commit(std::chrono::milliseconds limit) {
  auto step = Step(rd_kafka_commit_transaction(handle_.get(), Ms(limit)));
  open_ = step.kind == TransactionStep::Kind::kAbort;
  return step;
}

TransactionStep TransactionalProducer::Abort(std::chrono::milliseconds limit) {
  auto step = Step(rd_kafka_abort_transaction(handle_.get(), Ms(limit)));
  open_ = step.kind == TransactionStep::Kind::kAgain;
  return step;
}

// --- errors in words for a person ----------------------------------------------------------------

bool Purged(rd_kafka_resp_err_t code) {
  return code == RD_KAFKA_RESP_ERR__PURGE_QUEUE || code == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT;
}

OutputError ErrorOfBatch(const std::string& why, const std::string& topic) {
  return {
      .error = {"kafka_output",
                fmt::format("a batch was refused ({}); its records are written one by one", why),
                topic, ""},
      .retry_at_once = true};
}

OutputError ErrorOfLetter(const std::string& record, const std::string& why,
                          const std::string& topic, const std::string& need) {
  return {
      .error = {"dead_letter_failed",
                fmt::format("the dead letter of {} is refused ({}), and its partition waits for "
                            "it",
                            record, why),
                topic, need},
      .retry_at_once = true};
}

Error ErrorOfInit(const TransactionOwner& who, const TransactionStep& step) {
  std::string hint;
  switch (step.code) {
    case RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
      hint = fmt::format("grant WRITE on transactional.id '{}' (or the prefix '{}.')",
                         who.transactional_id, who.pipeline);
      break;
    case RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT:
      hint = fmt::format(
          "transaction_timeout ({} ms) is above the brokers' transaction.max.timeout.ms",
          who.timeout.count());
      break;
    default:
      break;
  }
  return {"kafka_output", fmt::format("transactions cannot be started: {}", step.text),
          fmt::format("{}", fmt::join(who.brokers, ",")), std::move(hint)};
}

Error ErrorOfSilence(const TransactionOwner& who, std::string_view doing) {
  return {"kafka_output",
          fmt::format("the brokers have not answered the {} of a transaction", doing),
          fmt::format("{}", fmt::join(who.brokers, ",")), ""};
}

OutputError ErrorOfTheEnd(const TransactionOwner& who, const TransactionStep& step, bool outlived) {
  const bool fenced = step.code == RD_KAFKA_RESP_ERR__FENCED ||
                      step.code == RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH ||
                      step.code == RD_KAFKA_RESP_ERR_PRODUCER_FENCED;
  if (fenced && !outlived) {
    return {.error = {"producer_fenced",
                      fmt::format("another worker took over transactional.id {}: two workers run "
                                  "under the name {}",
                                  who.transactional_id, who.worker),
                      "output.kafka", "give each worker a name of its own (--worker)"},
            .fatal = true};
  }
  const std::string why =
      fenced ? fmt::format(
                   "a transaction of transactional.id {} outlived its timeout of {} ms, so "
                   "the brokers aborted it (the worker was stalled, or they were away)",
                   who.transactional_id, who.timeout.count())
             : step.text;
  return {.error = {"kafka_output", why + "; a new producer resumes", "output.kafka", ""}};
}

}  // namespace fencepost::consumer
