#include "consumer/kafka/output/transaction_errors.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fencepost::consumer {

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
                          const std::string& topic, std::uint64_t needed) {
  return {
      .error = {"dead_letter_failed",
                fmt::format("the dead letter of {} is refused ({}), and its partition waits for "
                            "it",
                            record, why),
                topic,
                needed == 0
                    ? "let the topic take it"
                    : fmt::format("raise max.message.bytes of {} to at least {}", topic, needed)},
      .retry_at_once = true};
}

OutputError ErrorOfTopic(const std::string& topic, const char* where, rd_kafka_resp_err_t code) {
  if (code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) {
    return {.error = {"unknown_topic", fmt::format("topic '{}' does not exist (yet)", topic), where,
                      "create it, it is looked for again by itself"}};
  }
  return {.error = {"kafka_output", fmt::format("topic '{}': {}", topic, rd_kafka_err2str(code)),
                    where, ""}};
}

Error ErrorOfInit(const TransactionOwner& who, const TransactionStep& step) {
  std::string hint;
  switch (step.code) {
    case RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
      hint = fmt::format("grant WRITE and DESCRIBE on transactional.id '{}' (or the prefix '{}.')",
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

Error ErrorOfTheEnd(const TransactionOwner& who, const TransactionStep& step, bool outlived) {
  const bool fenced = step.code == RD_KAFKA_RESP_ERR__FENCED ||
                      step.code == RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH ||
                      step.code == RD_KAFKA_RESP_ERR_PRODUCER_FENCED;
  if (!fenced) return {"kafka_fatal", step.text, "output.kafka", "start the worker again"};
  if (outlived) {
    return {"transaction_timed_out",
            fmt::format("a transaction of transactional.id {} outlived its timeout of {} ms, so "
                        "the brokers aborted it (the worker was stalled, or they were away)",
                        who.transactional_id, who.timeout.count()),
            "output.kafka", "start the worker again"};
  }
  return {
      "producer_fenced",
      fmt::format("another worker took over transactional.id {}: two workers run under the name {}",
                  who.transactional_id, who.worker),
      "output.kafka", "give each worker a name of its own (--worker)"};
}

}  // namespace fencepost::consumer
