#include "consumer/flow/ports/ledger_duplicate.h"

#include <fmt/format.h>

#include "locking/base/planted.h"

namespace fencepost::consumer {

namespace {

bool IsOther(const LedgerEntry& existing, locking::ContentCrc crc) {
  return existing.crc && (locking::IsOtherContent(*existing.crc, crc) ||
                          (Planted("other_rule_is_a_conflict") && *existing.crc != crc));
}

}  // namespace

// By another rule, too: nothing speaks against processing it.
bool GivesWay(const LedgerEntry& existing, locking::ContentCrc crc) {
  return existing.token == locking::Token() && existing.crc && *existing.crc != crc &&
         !Planted("filtered_record_takes_the_id");
}

WriteOutcome DuplicateOrConflict(const LedgerEntry& existing, const WriteItem& item,
                                 std::string_view source, bool makes_rows) {
  const bool other = IsOther(existing, item.crc);
  if (other && !makes_rows && !Planted("filtered_record_is_a_conflict")) {
    return {.result = WriteResult::kNoOutput, .took_rows = false};
  }
  if (makes_rows && GivesWay(existing, item.crc)) return {.result = WriteResult::kNotWritten};
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
