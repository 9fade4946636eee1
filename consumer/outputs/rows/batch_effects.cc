// Which rows a record has: effect by effect, with what chooses them.
#include <algorithm>

#include <fmt/format.h>

#include "consumer/json/json_text.h"
#include "consumer/outputs/rows/batch_rows.h"
#include "consumer/outputs/rows/item_values.h"
#include "consumer/pipeline/route.h"

namespace fencepost::consumer {

tl::expected<void, std::string> BatchRows::EvaluateItem(const WriteItem& item) {
  if (!problem_.empty()) return tl::unexpected(problem_);
  return ForEachValue(item, [&](const ItemValue& value) -> tl::expected<void, std::string> {
    for (std::size_t effect = 0; effect < effects_.size(); ++effect) {
      if (auto done = EvaluateEffect(effect, item, value); !done) return done;
    }
    return {};
  });
}

tl::expected<void, std::string> BatchRows::EvaluateEffect(std::size_t place, const WriteItem& item,
                                                          const ItemValue& value) {
  const EffectShape& effect = effects_[place];
  const auto refused = [&](std::string_view why) {
    return tl::unexpected(fmt::format("{}{}", effect.name, why));
  };
  const bool null = !value && !effect.shape.takes_null;
  if (null && effect.shape.on_null_value == OnNull::kSkip) return {};
  const RecordContext context = ContextOf(item, worker_, value);
  if (RecordFilter* const filter = choosers_[place].filter.get(); filter != nullptr) {
    const auto matches = filter->Matches(context);
    if (!matches) return refused("when: " + matches.error());
    if (!*matches) return {};
  }
  if (null && effect.shape.on_null_value == OnNull::kBad) {
    return refused(item.values == nullptr
                       ? "the value is null (see on_null_value)"
                       : "the handler's answer is null or has no body (see on_null_value)");
  }
  evaluator_.Begin(context);
  if (effect.effect.each) return EvaluateElements(place, context);
  return EvaluateRow(place, null);
}

tl::expected<void, std::string> BatchRows::EvaluateElements(std::size_t place,
                                                            const RecordContext& context) {
  const EffectShape& effect = effects_[place];
  const Selector& each = *effect.effect.each;
  const auto refused = [&](std::string_view why) {
    return tl::unexpected(fmt::format("{}each: {}", effect.name, why));
  };
  array_.clear();
  const auto found = evaluator_.Append(each, array_);
  if (!found) return refused(found.error());
  if (!*found && each.optional) return {};
  if (!*found || evaluator_.type() != JsonType::kArray) {
    return refused(fmt::format("{} is {}", each.InWords(), *found ? "no array" : "null"));
  }
  RecordContext element = context;
  element.whole = context.value == nullptr ? &context.record->value : context.value;
  ItemValue value;
  element.value = &value;
  const std::vector<std::string_view> elements = JsonElements(array_);
  if (elements.size() > kMostRows) {
    return refused(
        fmt::format("{} elements, and a record may make {} rows", elements.size(), kMostRows));
  }
  for (const std::string_view text : elements) {
    if (text_.size() - begin_ > kMostText) {
      return refused(fmt::format("its rows have more than {} MiB", kMostText >> 20));
    }
    value = text;
    element_ = element.index;
    evaluator_.BeginElement(element);
    if (auto done = EvaluateRow(place, false); !done) return done;
    ++element.index;
  }
  element_.reset();
  return {};
}

tl::expected<std::optional<std::size_t>, std::string> BatchRows::TableOf(std::size_t place) {
  const EffectShape& effect = effects_[place];
  const std::size_t first = choosers_[place].first_table;
  if (!effect.effect.route) return first;
  const auto chosen = Choose(*effect.effect.route, evaluator_, chosen_);
  if (!chosen) return tl::unexpected(effect.name + "table: " + chosen.error());
  if (!*chosen) return std::nullopt;
  return first + static_cast<std::size_t>(std::ranges::find(effect.tables, **chosen) -
                                          effect.tables.begin());
}

tl::expected<void, std::string> BatchRows::EvaluateRow(std::size_t effect, bool null) {
  const auto chosen = TableOf(effect);
  if (!chosen) return tl::unexpected(chosen.error());
  if (!*chosen) return {};
  Table& table = tables_[**chosen];
  const RowShape& shape = table.effect->shape;
  table.rows.push_back({.first_cell = cells_.size(), .element = element_, .deletes = null});
  for (std::size_t column = 0; column < shape.columns.size(); ++column) {
    const bool key = (null || shape.updates()) && shape.IsKey(column);
    if (null && !key && shape.fence != column) {
      cells_.push_back({.at = text_.size(), .size = 0, .null = true});
      continue;
    }
    if (auto done = EvaluateCell(**chosen, column, key); !done) return done;
  }
  return {};
}

}  // namespace fencepost::consumer
