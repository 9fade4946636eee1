#include "consumer/flow/ports/ledger_duplicate.h"

#include <fmt/format.h>

namespace fencepost::consumer {

WriteOutcome DuplicateOrConflict(const LedgerRow& stands, const WriteItem& item,
                                 std::string_view source) {
  if (stands.content_crc != static_cast<std::int64_t>(item.crc)) {
    return {
        .result = WriteResult::kIdConflict,
        .detail = fmt::format(
            "the ledger holds {} with other content: from {}, checksum {:08x}; this is {}, "
            "checksum {:08x}",
            item.record_id, stands.source, stands.content_crc, source, item.crc),
        .shown = fmt::format("the ledger holds its id with other content, from {}", stands.source)};
  }
  if (stands.source == source) return {WriteResult::kOwnEarlier, {}};
  if (stands.token > item.token.value()) return {WriteResult::kFenced, {}};
  return {WriteResult::kDuplicate, {}};
}

}  // namespace fencepost::consumer
