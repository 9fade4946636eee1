// Whether a record whose id has a ledger row is that row's record: a duplicate, or a conflict of
// ids. Pure; any thread.
#pragma once

#include <string_view>

#include "consumer/flow/ports/ports.h"

namespace fencepost::consumer {

// `existing`: a row that the item's transaction did not insert. The order of the questions is the
// contract: content, then source, then token.
WriteOutcome DuplicateOrConflict(const LedgerEntry& existing, const WriteItem& item,
                                 std::string_view source);

}  // namespace fencepost::consumer
