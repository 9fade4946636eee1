// What librdkafka's codes say about a transaction, and the same in words for a person. Pure; any
// thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "consumer/kafka/output/transactional_producer.h"
#include "consumer/outputs/output.h"
#include "locking/base/error.h"

namespace fencepost::consumer {

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
// The dead letter of this record is refused alone, and waits: "dead_letter_failed". `needed`: bytes
// that the topic must allow; 0: it is not too large. The rest goes again at once.
OutputError ErrorOfLetter(const std::string& record, const std::string& why,
                          const std::string& topic, std::uint64_t needed);
// The topic is not there, or not to be written: asked for again by itself. `where`: its key.
OutputError ErrorOfTopic(const std::string& topic, const char* where, rd_kafka_resp_err_t code);
// Transactions could not be started: retried until the operator fixes it.
Error ErrorOfInit(const TransactionOwner& who, const TransactionStep& step);
// No answer to a commit or an abort yet.
Error ErrorOfSilence(const TransactionOwner& who, std::string_view doing);
// The producer is at its end: "producer_fenced", "transaction_timed_out" (it was fenced, and the
// transaction had outlived its timeout), "kafka_fatal".
Error ErrorOfTheEnd(const TransactionOwner& who, const TransactionStep& step, bool outlived);

}  // namespace fencepost::consumer
