// What librdkafka's codes say about a transaction, and the same in words for a person. Pure; any
// thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "consumer/kafka/transactional_producer.h"
#include "locking/error.h"

namespace fencepost::consumer {

// They speak of a record, not of the brokers. They come for a whole batch of records, of which one
// may be to blame.
bool OfARecord(rd_kafka_resp_err_t code);
// The record was dropped here, because its transaction failed.
bool Purged(rd_kafka_resp_err_t code);
// The group has gone on without this assignment.
bool OfTheGroup(rd_kafka_resp_err_t code);

struct TransactionOwner {
  const std::string& transactional_id;
  const std::string& pipeline;
  const std::string& worker;
  const std::vector<std::string>& brokers;
  std::chrono::milliseconds timeout;
};

// Transactions could not be started: patience, the operator mends it.
Error ErrorOfInit(const TransactionOwner& who, const TransactionStep& step);
// No answer to a commit or an abort yet.
Error ErrorOfSilence(const TransactionOwner& who, std::string_view doing);
// The producer is at its end: "producer_fenced", "transaction_timed_out" (it was fenced, and the
// transaction had outlived its timeout), "kafka_fatal".
Error ErrorOfTheEnd(const TransactionOwner& who, const TransactionStep& step, bool outlived);

}  // namespace fencepost::consumer
