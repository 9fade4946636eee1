// Whether a record whose id has a ledger row is that row's record: a duplicate, or a conflict of
// ids. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "consumer/flow/ports/ports.h"

namespace fencepost::consumer {

// A ledger row that this transaction did not insert.
struct LedgerRow {
  std::uint64_t token = 0;
  std::string_view source;
  std::optional<locking::ContentCrc> crc;  // nullopt: not known (LedgerEntry)
};
// The order of the questions is the contract: content, then source, then token.
WriteOutcome DuplicateOrConflict(const LedgerRow& existing, const WriteItem& item,
                                 std::string_view source);

}  // namespace fencepost::consumer
