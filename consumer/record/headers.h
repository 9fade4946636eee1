// The headers of a record by their names, of which several may be equal. Pure; any thread.
#pragma once

#include <string_view>
#include <vector>

#include "consumer/record/record.h"

namespace fencepost::consumer {

// Of equal names the last counts: those, in their order. In one pass, however many there are.
std::vector<HeaderView> LastOfEachName(const std::vector<HeaderView>& headers);

// Of whoever handed the record on, and no part of what it is: traceparent, tracestate, b3, X-B3-*,
// in capitals or not.
bool IsTraceHeader(std::string_view name);
// The names are equal but for capitals; `lower` has none.
bool SameHeader(std::string_view name, std::string_view lower);

}  // namespace fencepost::consumer
