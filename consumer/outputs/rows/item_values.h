// What an output makes rows, lines or records of: a handler's values, or the record's own.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <tl/expected.hpp>

#include "consumer/outputs/output.h"
#include "consumer/pipeline/options.h"
#include "consumer/record/selector.h"

namespace fencepost::consumer {

using ItemValue = std::optional<std::string_view>;

inline std::size_t CountValues(const WriteItem& item) {
  return item.values == nullptr ? 1 : item.values->size();
}

// The i-th of CountValues.
inline ItemValue ValueOf(const WriteItem& item, std::size_t i) {
  if (item.values == nullptr) return item.record->value;
  const std::optional<std::string>& value = (*item.values)[i];
  return value ? ItemValue(*value) : std::nullopt;
}

// What selectors see of the item with this value, which stays good as long as the context.
inline RecordContext ContextOf(const WriteItem& item, std::string_view worker,
                               const ItemValue& value) {
  return {.record = item.record,
          .where = item.where,
          .origin = item.origin,
          .record_id = item.whole_id.empty() ? item.record_id : item.whole_id,
          .token = item.token.value(),
          .worker = worker,
          .value = item.values == nullptr ? nullptr : &value};
}

// Appends those of the record's own headers that are passed on, in their order.
void PassHeaders(const Record& record, const HeaderRules& rules, std::vector<HeaderView>& headers);
// They say nothing else of traceparent.
bool CarriesTrace(const HeaderRules& rules);

// Calls visit(value) for each value until one fails. The error says which, where there are several.
template <typename Visit>
tl::expected<void, std::string> ForEachValue(const WriteItem& item, Visit&& visit) {
  const std::size_t count = CountValues(item);
  for (std::size_t i = 0; i < count; ++i) {
    if (auto done = visit(ValueOf(item, i)); !done) {
      if (count == 1) return done;
      return tl::unexpected(fmt::format("value {} of {}: {}", i + 1, count, done.error()));
    }
  }
  return {};
}

}  // namespace fencepost::consumer
