#include "consumer/cli/dlq/dlq_effects.h"

#include "consumer/cli/dlq/dlq_replay.h"
#include "consumer/cli/shared/ledger_view.h"

namespace fencepost::cli {
namespace {

constexpr std::chrono::seconds kLookupLimit{30};

}  // namespace

tl::expected<std::vector<LetterEffect>, Error> EffectsOf(const consumer::PipelineOptions& options,
                                                         LedgerView& ledger,
                                                         const std::vector<StoredLetter>& letters) {
  std::vector<std::string> ids;
  std::vector<std::size_t> letter_of;  // by id
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const StoredLetter& letter = letters[i];
    const auto add = [&](std::string id) {
      ids.push_back(std::move(id));
      letter_of.push_back(i);
    };
    if (!letter.record_id.empty() && letter.error_class != kIdConflict) add(letter.record_id);
    if (options.identity.accept_replay_ids) add(NewReplayId(letter));
  }
  std::vector<LetterEffect> effects(letters.size(), LetterEffect::kNone);
  const auto rows = ledger.Lookup(ids, kLookupLimit);
  if (!rows) return tl::unexpected(rows.error());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if ((*rows)[i]) effects[letter_of[i]] = LetterEffect::kTaken;
  }
  return effects;
}

}  // namespace fencepost::cli
