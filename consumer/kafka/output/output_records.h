// What a record becomes in the output topic: its selectors evaluated, and encoded where that was
// asked for; one record a value of the handler. Buffers are used again from record to record. One
// thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/encode/record_encoder.h"
#include "consumer/kafka/client/producer.h"
#include "consumer/outputs/output.h"
#include "consumer/outputs/rows/item_values.h"
#include "consumer/pipeline/options.h"
#include "consumer/record/selector.h"

namespace fencepost::consumer {

class OutputRecords {
 public:
  // The options, the worker's name and the encoder must outlive it. `encoder`: nullptr: nothing is
  // encoded; else prepared before Next. `key_is_json`: kafka.decode makes the keys JSON.
  OutputRecords(const KafkaOutputOptions& options, std::string_view worker, RecordEncoder* encoder,
                bool key_is_json);

  // Begin, then Next until AtEnd. What the item points at stays good meanwhile.
  void Begin(const WriteItem& item);
  [[nodiscard]] bool AtEnd() const { return next_ >= count_; }
  // Good until the next call. Error: the item is bad.
  tl::expected<const OutgoingRecord*, EncodeProblem> Next();

 private:
  using Bytes = tl::expected<std::optional<std::string_view>, EncodeProblem>;
  Bytes Select(const Selector& selector, const char* what, std::string& buffer);
  Bytes Key();
  Bytes Value();
  // What the selector finds as one JSON value, in `json_`; false: null.
  tl::expected<bool, EncodeProblem> SelectJson(const Selector& selector, const char* what);

  const KafkaOutputOptions& options_;
  const std::string_view worker_;
  RecordEncoder* const encoder_;
  const bool key_is_json_;
  Evaluator evaluator_;
  const WriteItem* item_ = nullptr;
  std::size_t next_ = 0;
  std::size_t count_ = 0;
  ItemValue current_;  // the handler's value, or the record's own
  OutgoingRecord produced_;
  std::string key_, value_, json_;
  std::vector<std::string> headers_;
};

}  // namespace fencepost::consumer
