#include "consumer/kafka/output/output_records.h"

#include <fmt/format.h>

namespace fencepost::consumer {

OutputRecords::OutputRecords(const KafkaOutputOptions& options, std::string_view worker)
    : options_(options), worker_(worker) {}

void OutputRecords::Begin(const WriteItem& item, rd_kafka_topic_t* topic) {
  item_ = &item;
  next_ = 0;
  count_ = CountValues(item);
  produced_.topic = topic;
  produced_.timestamp = item.record->timestamp;
}

tl::expected<const ProducedRecord*, std::string> OutputRecords::Next() {
  current_ = ValueOf(*item_, next_++);
  evaluator_.Begin(ContextOf(*item_, worker_, current_));
  const auto key = Select(options_.key, "key", key_);
  if (!key) return tl::unexpected(key.error());
  const auto value = Select(options_.value, "value", value_);
  if (!value) return tl::unexpected(value.error());
  produced_.key = *key;
  produced_.value = *value;
  produced_.headers.resize(options_.headers.size());
  headers_.resize(options_.headers.size());
  for (std::size_t i = 0; i < headers_.size(); ++i) {
    const Column& column = options_.headers[i];
    const auto header = Select(column.selector, column.name.c_str(), headers_[i]);
    if (!header) return tl::unexpected(header.error());
    produced_.headers[i] = HeaderView{column.name, *header};
  }
  return &produced_;
}

// The record's own key and value need no copy.
tl::expected<OutputRecords::Bytes, std::string> OutputRecords::Select(const Selector& selector,
                                                                      const char* what,
                                                                      std::string& buffer) {
  if (selector.kind == Selector::Kind::kKey && item_->record->key) return item_->record->key;
  if (selector.kind == Selector::Kind::kValue && current_) return current_;
  buffer.clear();
  const auto found = evaluator_.Append(selector, buffer);
  if (!found) {
    return tl::unexpected(fmt::format("{} from {}: {}", what, selector.Text(), found.error()));
  }
  return *found ? Bytes(buffer) : std::nullopt;
}

const ProducedRecord& OutputRecords::Of(const OutgoingRecord& record, rd_kafka_topic_t* topic) {
  produced_.topic = topic;
  produced_.key = record.key;
  produced_.value = record.value;
  produced_.timestamp = record.timestamp;
  produced_.headers = record.headers;
  return produced_;
}

}  // namespace fencepost::consumer
