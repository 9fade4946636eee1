#include "consumer/outputs/rows/item_values.h"

#include <algorithm>

#include "consumer/record/dead_letter.h"

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

}  // namespace fencepost::consumer
