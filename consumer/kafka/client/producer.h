// Records into Kafka: for the demo, the bench and dead letters. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/kafka/client/settings.h"
#include "consumer/pipeline/options.h"
#include "consumer/record/record.h"
#include "locking/base/error.h"

namespace fencepost::consumer {

// What is to be sent. Views need to stay good during Send only.
struct OutgoingRecord {
  std::string_view topic;
  std::optional<std::int32_t> partition;  // nullopt: by the key, as librdkafka's default says
  std::optional<std::string_view> key;
  std::optional<std::string_view> value;
  std::vector<HeaderView> headers;
  std::optional<std::chrono::milliseconds> timestamp;  // nullopt: now
};

// Whom an error of producing is about. What is about a record comes for its whole batch, of which
// one may be to blame.
enum class Blame : std::uint8_t {
  kNoRecord,   // the brokers, the topic, rights: the same record is sent until it is taken
  kItsSize,    // the record is too large for its topic
  kItsTime,    // the topic does not take its timestamp
  kItsContent  // the topic does not take it for anything else
};
Blame BlameOf(rd_kafka_resp_err_t code);
inline bool OfARecord(rd_kafka_resp_err_t code) { return BlameOf(code) != Blame::kNoRecord; }

// Of a record that was not delivered: what the brokers say, and which of its topic's settings may
// be meant.
std::string WhyRefused(const rd_kafka_message_t* message);

// For a person: what an error of producing asks for; empty where it says all there is to say.
std::string_view WhatToDoAbout(rd_kafka_resp_err_t error);

// The topic is not there, or not to be written: looked for again until it is. `where`: its key.
// `section` has brokers of the cluster that is read, and names a topic that is.
Error ErrorOfLoop(std::string_view section);
Error ErrorOfTopic(const std::string& topic, const char* where, rd_kafka_resp_err_t code);

// Queues a copy of it, for `topic` where that is given. `opaque` comes back in the delivery report.
// Failure: it was not taken; __QUEUE_FULL passes. Null: it was.
rdkafka::Failure Enqueue(rd_kafka_t* handle, const OutgoingRecord& record, void* opaque,
                         rd_kafka_topic_t* topic = nullptr);

class Producer {
 public:
  // Codes of the errors that a delivery ends with: of the brokers, or of the record (OfARecord).
  static constexpr const char* kFailed = "kafka_produce";
  static constexpr const char* kRefused = "kafka_record_refused";
  static constexpr const char* kTooLarge = "kafka_record_too_large";
  static constexpr const char* kTimeRefused = "kafka_timestamp_refused";

  // How one record ended; called once, inside Poll, Send or Flush, on the thread that calls them.
  using OnDelivery = std::function<void(tl::expected<Offset, Error>)>;

  // Brokers, TLS and SASL as in `options`; `settings` come on top (linger.ms, …).
  // Idempotent, acknowledged by all replicas, unless the settings say otherwise.
  static tl::expected<std::unique_ptr<Producer>, Error> Make(const KafkaOptions& options,
                                                             const KafkaSettings& settings = {});
  ~Producer();  // what is still queued is dropped: Flush before
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  // Queues a copy. While the queue is full it waits, serving deliveries, at most `limit`.
  // Error: "kafka_queue_full", or as a delivery's: the record is refused at once.
  tl::expected<void, Error> Send(const OutgoingRecord& record, OnDelivery done = nullptr,
                                 Millis limit = std::chrono::seconds(30));
  void Poll(Millis wait);  // serves deliveries
  // Waits until every record was delivered or refused. Error: some are still out, or failed since
  // the last Flush (the first reason).
  tl::expected<void, Error> Flush(Millis limit);

  // Asks the brokers for the topic now: one that was made meanwhile is written to at once.
  rd_kafka_resp_err_t LookFor(const std::string& topic, Millis limit);
  // Nothing is sent any more: another producer is needed.
  [[nodiscard]] bool failed_for_good() const;

 private:
  Producer() = default;
  void OnReport(const rd_kafka_message_t* message);

  rdkafka::Handle handle_;
  std::mutex mutex_;
  std::optional<Error> first_failure_;  // since the last Flush; guarded by mutex_
};

}  // namespace fencepost::consumer
