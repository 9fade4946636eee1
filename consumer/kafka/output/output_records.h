// What a record becomes in the output topic: its selectors evaluated, one record a value of the
// handler. Buffers are used again from record to record. One thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/kafka/client/producer.h"
#include "consumer/kafka/output/transactional_producer.h"
#include "consumer/outputs/item_values.h"
#include "consumer/outputs/output.h"
#include "consumer/pipeline/options.h"
#include "consumer/record/selector.h"

namespace fencepost::consumer {

class OutputRecords {
 public:
  // The options and the worker's name must outlive it.
  OutputRecords(const KafkaOutputOptions& options, std::string_view worker);

  // Begin, then Next until AtEnd. What the item points at stays good meanwhile.
  void Begin(const WriteItem& item, rd_kafka_topic_t* topic);
  [[nodiscard]] bool AtEnd() const { return next_ >= count_; }
  // Good until the next call. Error: one line, the item is bad.
  tl::expected<const ProducedRecord*, std::string> Next();

  // The same for a record that needs no selectors (a dead letter). Good until the next call, and as
  // long as what `record` points at.
  const ProducedRecord& Of(const OutgoingRecord& record, rd_kafka_topic_t* topic);

 private:
  using Bytes = std::optional<std::string_view>;
  tl::expected<Bytes, std::string> Select(const Selector& selector, const char* what,
                                          std::string& buffer);

  const KafkaOutputOptions& options_;
  const std::string_view worker_;
  Evaluator evaluator_;
  const WriteItem* item_ = nullptr;
  std::size_t next_ = 0;
  std::size_t count_ = 0;
  ItemValue current_;  // the handler's value, or the record's own
  ProducedRecord produced_;
  std::string key_, value_;
  std::vector<std::string> headers_;
};

}  // namespace fencepost::consumer
