// The headers of a record by their names, of which several may be equal. Pure; any thread.
#pragma once

#include <vector>

#include "consumer/record/record.h"

namespace fencepost::consumer {

// Of equal names the last counts: those, in their order. In one pass, however many there are.
std::vector<HeaderView> LastOfEachName(const std::vector<HeaderView>& headers);

}  // namespace fencepost::consumer
