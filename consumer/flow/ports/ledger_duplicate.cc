#include "consumer/flow/ports/ledger_duplicate.h"

#include <fmt/format.h>

#include "locking/base/planted.h"

namespace fencepost::consumer {

WriteOutcome DuplicateOrConflict(const LedgerEntry& existing, const WriteItem& item,
                                 std::string_view source) {
  const bool other =
      existing.crc && (locking::IsOtherContent(*existing.crc, item.crc) ||
                       (Planted("other_rule_is_a_conflict") && *existing.crc != item.crc));
  if (other && !Planted("other_content_is_a_duplicate")) {
    return {.result = WriteResult::kIdConflict,
            .detail = fmt::format("the ledger holds {} from {}; this is {}", item.record_id,
                                  existing.source, source),
            .shown = fmt::format("the ledger holds the id from {}", existing.source)};
  }
  WriteOutcome outcome{.result = WriteResult::kDuplicate, .stands = existing.token};
  if (outcome.stands > item.token) outcome.result = WriteResult::kFenced;
  if (existing.source == source) outcome.result = WriteResult::kOwnEarlier;
  return outcome;
}

}  // namespace fencepost::consumer
