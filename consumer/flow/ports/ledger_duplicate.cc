#include "consumer/flow/ports/ledger_duplicate.h"

#include <fmt/format.h>

namespace fencepost::consumer {

WriteOutcome DuplicateOrConflict(const LedgerRow& existing, const WriteItem& item,
                                 std::string_view source) {
  if (existing.content_crc != static_cast<std::int64_t>(item.crc)) {
    return {.result = WriteResult::kIdConflict,
            .detail = fmt::format(
                "the ledger holds {} with other content: from {}, checksum {:08x}; this is {}, "
                "checksum {:08x}",
                item.record_id, existing.source, existing.content_crc, source, item.crc),
            .shown = fmt::format("the ledger holds its id with other content, from {}",
                                 existing.source)};
  }
  if (existing.source == source) return {WriteResult::kOwnEarlier, {}};
  if (existing.token > item.token.value()) return {WriteResult::kFenced, {}};
  return {WriteResult::kDuplicate, {}};
}

}  // namespace fencepost::consumer
