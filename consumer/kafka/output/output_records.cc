#include "consumer/kafka/output/output_records.h"

#include <fmt/format.h>

namespace fencepost::consumer {

OutputRecords::OutputRecords(const KafkaOutputOptions& options, std::string_view worker,
                             RecordEncoder* encoder, bool key_is_json)
    : options_(options), worker_(worker), encoder_(encoder), key_is_json_(key_is_json) {}

void OutputRecords::Begin(const WriteItem& item) {
  item_ = &item;
  next_ = 0;
  count_ = CountValues(item);
  produced_.timestamp = item.origin != nullptr ? item.origin->timestamp : item.record->timestamp;
}

tl::expected<const OutgoingRecord*, EncodeProblem> OutputRecords::Next() {
  current_ = ValueOf(*item_, next_++);
  evaluator_.Begin(ContextOf(*item_, worker_, current_));
  const Bytes key = Key();
  if (!key) return tl::unexpected(key.error());
  const Bytes value = Value();
  if (!value) return tl::unexpected(value.error());
  produced_.key = *key;
  produced_.value = *value;
  produced_.headers.clear();
  PassHeaders(*item_->record, options_.headers, produced_.headers);
  headers_.resize(options_.headers.set.size());
  for (std::size_t i = 0; i < headers_.size(); ++i) {
    const Column& column = options_.headers.set[i];
    const Bytes header = Select(column.selector, column.name.c_str(), headers_[i]);
    if (!header) return tl::unexpected(header.error());
    produced_.headers.push_back(HeaderView{column.name, *header});
  }
  return &produced_;
}

namespace {

tl::unexpected<EncodeProblem> ProblemOf(const char* what, const Selector& selector,
                                        const std::string& why) {
  const std::string text = fmt::format("{} from {}: {}", what, selector.InWords(), why);
  return tl::unexpected(EncodeProblem{.detail = text, .shown = text});
}

tl::unexpected<EncodeProblem> Misfit(const char* what, const EncodeProblem& why) {
  return tl::unexpected(
      EncodeProblem{.detail = fmt::format("the {} does not fit its schema: {}", what, why.detail),
                    .shown = fmt::format("the {} does not fit its schema: {}", what, why.shown)});
}

}  // namespace

OutputRecords::Bytes OutputRecords::Key() {
  if (encoder_ == nullptr || !encoder_->HasKey()) return Select(options_.key, "key", key_);
  const auto found = SelectJson(options_.key, "key");
  if (!found) return tl::unexpected(found.error());
  if (!*found) return std::nullopt;
  const auto encoded = encoder_->Key(json_, key_);
  if (!encoded) return Misfit("key", encoded.error());
  return key_;
}

OutputRecords::Bytes OutputRecords::Value() {
  if (encoder_ == nullptr || !encoder_->HasValue()) return Select(options_.value, "value", value_);
  const auto found = SelectJson(options_.value, "value");
  if (!found) return tl::unexpected(found.error());
  if (!*found) return std::nullopt;
  const auto encoded = encoder_->Value(json_, value_);
  if (!encoded) return Misfit("value", encoded.error());
  return value_;
}

tl::expected<bool, EncodeProblem> OutputRecords::SelectJson(const Selector& selector,
                                                            const char* what) {
  const bool value = selector.kind == Selector::Kind::kValue && current_;
  const bool key = selector.kind == Selector::Kind::kKey && key_is_json_ && item_->record->key;
  const Selector whole{.kind = value ? Selector::Kind::kJson : Selector::Kind::kKeyJson};
  json_.clear();
  const auto done = evaluator_.AppendAsJson(value || key ? whole : selector, json_);
  if (!done) return ProblemOf(what, selector, done.error());
  // A JSON null that is a whole value or key is one; that there is nothing is no value.
  return json_ != "null" || value || key;
}

// The record's own key and value need no copy.
OutputRecords::Bytes OutputRecords::Select(const Selector& selector, const char* what,
                                           std::string& buffer) {
  if (selector.kind == Selector::Kind::kKey && item_->record->key) return item_->record->key;
  if (selector.kind == Selector::Kind::kValue && current_) return current_;
  buffer.clear();
  const auto found = evaluator_.Append(selector, buffer);
  if (!found) return ProblemOf(what, selector, found.error());
  return *found ? Bytes(buffer) : std::nullopt;
}

}  // namespace fencepost::consumer
