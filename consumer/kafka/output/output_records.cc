#include "consumer/kafka/output/output_records.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "consumer/pipeline/route.h"
#include "consumer/trace/trace_context.h"
#include "locking/base/check.h"

namespace fencepost::consumer {
namespace {

EncodeProblem Shown(std::string text) { return {.detail = text, .shown = std::move(text)}; }

tl::unexpected<EncodeProblem> ProblemOf(const char* what, const Selector& selector,
                                        const std::string& why) {
  return tl::unexpected(Shown(fmt::format("{} from {}: {}", what, selector.InWords(), why)));
}

tl::unexpected<EncodeProblem> Misfit(const char* what, const EncodeProblem& why) {
  return tl::unexpected(
      EncodeProblem{.detail = fmt::format("the {} does not fit its schema: {}", what, why.detail),
                    .shown = fmt::format("the {} does not fit its schema: {}", what, why.shown)});
}

}  // namespace

OutputRecords::OutputRecords(const KafkaOutputOptions& options, std::string_view worker,
                             RecordEncoder* encoder, bool key_is_json, const JqMakers& jq)
    : options_(options),
      worker_(worker),
      encoder_(encoder),
      key_is_json_(key_is_json),
      topics_(TopicsOf(options)) {
  std::vector<KafkaRecord> records = RecordsOf(options);
  const bool several = records.size() > 1;
  for (KafkaRecord& record : records) AddForm(std::move(record), several, jq);
}

void OutputRecords::AddForm(KafkaRecord record, bool several, const JqMakers& jq) {
  Form& form = forms_.emplace_back();
  form.of = std::move(record);
  if (several) {
    form.name = fmt::format("record {} ({}): ", forms_.size(),
                            form.of.route ? "topic by " + form.of.route->by.Text() : form.of.topic);
  }
  const auto take = [&](auto made, auto& to) {
    if (made) {
      to = std::move(*made);
    } else {
      problem_ = form.name + made.error().Line();
    }
  };
  const FilterOptions& when = form.of.when;
  if (!when.program.empty()) {
    FENCEPOST_CHECK(jq.filter, "jq in a record of the output, and nobody to run it");
    take(jq.filter(when), form.filter);
  } else if (!when.all.empty()) {
    form.filter = MakeConditionFilter(when.all);
  }
  if (form.of.program.empty()) return;
  FENCEPOST_CHECK(jq.values, "jq in a record of the output, and nobody to run it");
  take(jq.values(form.of.program), form.program);
}

void OutputRecords::Begin(const WriteItem& item) {
  item_ = &item;
  value_at_ = 0;
  form_ = 0;
  made_.clear();
  next_made_ = 0;
  produced_.timestamp = item.origin != nullptr ? item.origin->timestamp : item.record->timestamp;
}

tl::expected<const OutgoingRecord*, EncodeProblem> OutputRecords::Next() {
  if (!problem_.empty()) return tl::unexpected(Shown(problem_));
  if (next_made_ < made_.size()) return Fill();
  while (value_at_ < CountValues(*item_)) {
    if (form_ == 0) current_ = ValueOf(*item_, value_at_);
    while (form_ < forms_.size()) {
      const auto begun = BeginForm();
      if (!begun) return tl::unexpected(begun.error());
      if (*begun) return Fill();
    }
    form_ = 0;
    ++value_at_;
  }
  return nullptr;
}

tl::expected<bool, EncodeProblem> OutputRecords::BeginForm() {
  const Form& form = forms_[form_++];
  const auto refused = [&](std::string_view why) {
    return tl::unexpected(Shown(fmt::format("{}{}", form.name, why)));
  };
  const RecordContext context = ContextOf(*item_, worker_, current_);
  if (form.filter != nullptr) {
    const auto matches = form.filter->Matches(context);
    if (!matches) return refused("when: " + matches.error());
    if (!*matches) return false;
  }
  evaluator_.Begin(context);
  std::string_view topic = form.of.topic;
  if (form.of.route) {
    const auto name = Choose(*form.of.route, evaluator_, chosen_);
    if (!name) return refused("topic: " + name.error());
    if (!*name) return false;
    topic = **name;
  }
  topic_ = static_cast<std::size_t>(std::ranges::find(topics_, topic) - topics_.begin());
  made_.clear();
  next_made_ = 0;
  if (form.program == nullptr) return true;
  auto made = form.program->Run(context);
  if (!made) return refused("value: " + made.error());
  made_ = std::move(*made);
  return !made_.empty();
}

// A record of the form that was begun last.
tl::expected<const OutgoingRecord*, EncodeProblem> OutputRecords::Fill() {
  const auto named = [&](const EncodeProblem& problem) {
    const std::string& name = forms_[form_ - 1].name;
    return tl::unexpected(
        EncodeProblem{.detail = name + problem.detail, .shown = name + problem.shown});
  };
  const Bytes key = Key();
  if (!key) return named(key.error());
  const Bytes value = Value();
  if (!value) return named(value.error());
  produced_.topic = topics_[topic_];
  produced_.key = *key;
  produced_.value = *value;
  produced_.headers.clear();
  PassHeaders(*item_->record, options_.headers, produced_.headers);
  if (item_->trace.there() && CarriesTrace(options_.headers)) {
    traceparent_ = TraceparentText(item_->trace);
    SetTraceparent(traceparent_, produced_.headers);
  }
  headers_.resize(options_.headers.set.size());
  for (std::size_t i = 0; i < headers_.size(); ++i) {
    const Column& column = options_.headers.set[i];
    const Bytes header = Select(column.selector, column.name.c_str(), headers_[i]);
    if (!header) return named(header.error());
    produced_.headers.push_back(HeaderView{column.name, *header});
  }
  return &produced_;
}

OutputRecords::Bytes OutputRecords::Key() {
  const Selector& selector = forms_[form_ - 1].of.key;
  if (encoder_ == nullptr || !encoder_->HasKey()) return Select(selector, "key", key_);
  const auto found = SelectJson(selector, "key");
  if (!found) return tl::unexpected(found.error());
  if (!*found) return std::nullopt;
  const auto encoded = encoder_->Key(json_, key_);
  if (!encoded) return Misfit("key", encoded.error());
  return key_;
}

OutputRecords::Bytes OutputRecords::Value() {
  if (next_made_ < made_.size()) return std::optional<std::string_view>(made_[next_made_++]);
  const Selector& selector = forms_[form_ - 1].of.value;
  if (encoder_ == nullptr || !encoder_->HasValue()) return Select(selector, "value", value_);
  const auto found = SelectJson(selector, "value");
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
