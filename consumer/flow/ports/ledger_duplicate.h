// Whether a record whose id has a ledger row is that row's record: a duplicate, or a conflict of
// ids. Pure; any thread.
#pragma once

#include <string_view>

#include "consumer/flow/ports/ports.h"

namespace fencepost::consumer {

// `existing`: a row that the item's transaction did not insert. The order of the questions is the
// contract: content, then source, then token. Two records of one id are in conflict only where both
// make rows. Of other content, an item that makes none (`makes_rows`) is kNoOutput, and leaves the
// row alone; one that makes rows is kNotWritten where nothing was written for the other one: it
// takes the place of that row (GivesWay).
WriteOutcome DuplicateOrConflict(const LedgerEntry& existing, const WriteItem& item,
                                 std::string_view source, bool makes_rows = true);
// The row is not of this content, and nothing was written for it.
bool GivesWay(const LedgerEntry& existing, locking::ContentCrc crc);

}  // namespace fencepost::consumer
