#include "consumer/outputs/rows/item_values.h"

#include <algorithm>

#include "consumer/record/dead_letter.h"
#include "consumer/trace/trace_context.h"

namespace fencepost::consumer {

void PassHeaders(const Record& record, const HeaderRules& rules, std::vector<HeaderView>& headers) {
  const auto dropped = [&](std::string_view name) {
    return std::ranges::find(rules.dropped, name) != rules.dropped.end();
  };
  if (dropped(HeaderRules::kAll)) return;
  for (const HeaderView& header : record.headers) {
    const bool set = std::ranges::find(rules.set, header.name, &Column::name) != rules.set.end();
    if (!set && !dropped(header.name) && !IsDeadLetterHeader(header.name)) {
      headers.push_back(header);
    }
  }
}

bool CarriesTrace(const HeaderRules& rules) {
  const auto named = [](std::string_view name) {
    return name == HeaderRules::kAll || name == kTraceparent;
  };
  return std::ranges::none_of(rules.dropped, named) &&
         std::ranges::none_of(rules.set, named, &Column::name);
}

}  // namespace fencepost::consumer
