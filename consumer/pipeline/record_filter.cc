#include "consumer/pipeline/record_filter.h"

#include <utility>

#include <fmt/format.h>

#include "consumer/record/dead_letter.h"

namespace fencepost::consumer {
namespace {

using Condition = FilterOptions::Condition;
using Kind = Selector::Kind;

constexpr std::string_view kEquals = " = ", kExists = " exists";

std::string ConditionText(const Condition& condition) {
  Selector selector = condition.selector;
  selector.optional = false;
  return selector.Text() +
         (condition.text ? fmt::format("{}{}", kEquals, *condition.text) : std::string(kExists));
}

class ConditionFilter final : public RecordFilter {
 public:
  explicit ConditionFilter(std::vector<Condition> all) : all_(std::move(all)) {}

  tl::expected<bool, std::string> Matches(const RecordContext& context) override {
    evaluator_.Begin(context);
    for (const Condition& condition : all_) {
      text_.clear();
      const auto found = evaluator_.Append(condition.selector, text_);
      if (!found) return found;
      if (*found && (!condition.text || text_ == *condition.text)) continue;
      lacks_ = &condition;
      return false;
    }
    return true;
  }
  [[nodiscard]] std::string WhyNot() const override {
    return lacks_ == nullptr ? "" : ConditionText(*lacks_) + " does not hold";
  }

 private:
  const std::vector<Condition> all_;
  const Condition* lacks_ = nullptr;
  Evaluator evaluator_;
  std::string text_;
};

}  // namespace

tl::expected<Condition, std::string> ParseCondition(std::string_view text) {
  const std::size_t equals = text.find(kEquals);
  const bool exists = equals == std::string_view::npos && text.ends_with(kExists);
  if (equals == std::string_view::npos && !exists) {
    return tl::unexpected<std::string>(
        "no condition: it is SELECTOR = TEXT or SELECTOR exists, with blanks between; for more, "
        "give a jq program instead of the list");
  }
  const std::string_view name =
      exists ? text.substr(0, text.size() - kExists.size()) : text.substr(0, equals);
  auto selector = Selector::Parse(name);
  if (!selector) return tl::unexpected(selector.error());
  switch (selector->kind) {
    case Kind::kPosition:
    case Kind::kRecordId:
    case Kind::kToken:
    case Kind::kWorker:
    case Kind::kRecordJson:
    case Kind::kWholeJson:
    case Kind::kIndex:
    case Kind::kConstant:
      return tl::unexpected<std::string>(
          "a record has no id, token or worker yet: take key, value, topic, partition, offset, "
          "timestamp, header:NAME, json:/POINTER or key:/POINTER");
    default:
      break;
  }
  if (selector->optional) {
    return tl::unexpected<std::string>(
        "leave the ? out: where there is nothing, the condition does not hold");
  }
  selector->optional = true;
  Condition condition{.selector = std::move(*selector), .text = std::nullopt};
  if (!exists) condition.text = text.substr(equals + kEquals.size());
  return condition;
}

std::unique_ptr<RecordFilter> MakeConditionFilter(std::vector<Condition> all) {
  return std::make_unique<ConditionFilter>(std::move(all));
}

void Filter(RecordFilter& filter, bool as_original, const TopicPartition& where, Record& record) {
  if (!record.problem.empty()) return;
  const auto origin = as_original ? OriginOf(record, where.topic) : std::nullopt;
  RecordContext context;
  context.record = &record;
  context.where = &where;
  context.origin = origin ? &*origin : nullptr;
  const auto matches = filter.Matches(context);
  if (!matches) {
    record.problem = "when: " + matches.error();
  } else {
    record.filtered = !*matches;
  }
}

}  // namespace fencepost::consumer
