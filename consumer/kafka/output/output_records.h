// What a record becomes in the output's topics: for each value of the handler the records that the
// options name, in their order, with their selectors evaluated, and encoded where that was asked
// for. Buffers are used again from record to record. One thread.
#pragma once

#include <memory>
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
#include "consumer/pipeline/record_filter.h"
#include "consumer/record/selector.h"

namespace fencepost::consumer {

class OutputRecords {
 public:
  // The options, the worker's name and the encoder must outlive it. `encoder`: nullptr: nothing is
  // encoded; else prepared before Next. `key_is_json`: kafka.decode makes the keys JSON. `jq`: of
  // options that have programs; one that does not compile makes every record bad.
  OutputRecords(const KafkaOutputOptions& options, std::string_view worker, RecordEncoder* encoder,
                bool key_is_json, const JqMakers& jq = {});

  // All that records may go to, each once.
  [[nodiscard]] const std::vector<std::string>& topics() const { return topics_; }

  // Begin, then Next until it is nullptr. What the item points at stays good meanwhile.
  void Begin(const WriteItem& item);
  // Good until the next call. Error: the item is bad.
  tl::expected<const OutgoingRecord*, EncodeProblem> Next();
  // Of what Next gave: its place in topics().
  [[nodiscard]] std::size_t topic() const { return topic_; }

 private:
  using Bytes = tl::expected<std::optional<std::string_view>, EncodeProblem>;
  struct Form {
    KafkaRecord of;
    std::string name;  // "record 2 (shipped): ", where there are several; else empty
    std::unique_ptr<RecordFilter> filter;   // nullptr: every value
    std::unique_ptr<ValueProgram> program;  // nullptr: `value`
  };
  void AddForm(KafkaRecord record, bool several, const JqMakers& jq);
  // The next form of a value has its turn. False: there is none, for this value.
  tl::expected<bool, EncodeProblem> BeginForm();
  tl::expected<const OutgoingRecord*, EncodeProblem> Fill();
  Bytes Select(const Selector& selector, const char* what, std::string& buffer);
  Bytes Key();
  Bytes Value();
  // What the selector finds as one JSON value, in `json_`; false: null.
  tl::expected<bool, EncodeProblem> SelectJson(const Selector& selector, const char* what);

  const KafkaOutputOptions& options_;
  const std::string_view worker_;
  RecordEncoder* const encoder_;
  const bool key_is_json_;
  std::vector<Form> forms_;
  const std::vector<std::string> topics_;
  std::string problem_;  // why no record can be made
  Evaluator evaluator_;
  const WriteItem* item_ = nullptr;
  std::size_t value_at_ = 0;   // of the item's values
  std::size_t form_ = 0;       // its next one
  ItemValue current_;          // the handler's value, or the record's own
  ValueProgram::Values made_;  // by the form's program
  std::size_t next_made_ = 0;
  std::size_t topic_ = 0;
  OutgoingRecord produced_;
  std::string key_, value_, json_, chosen_;
  std::string traceparent_;
  std::vector<std::string> headers_;
};

}  // namespace fencepost::consumer
