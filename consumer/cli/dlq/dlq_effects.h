// Which dead letters have taken effect since: a look into the ledger. One thread; it blocks.
#pragma once

#include <vector>

#include "consumer/cli/dlq/dlq_letter.h"
#include "consumer/pipeline/options.h"
#include "locking/base/error.h"

namespace fencepost::cli {

class LedgerView;

inline constexpr std::size_t kLettersAtATime = 500;  // a look into the ledger

// One answer a letter, in their order. The id of a conflict is another record's: of those only a
// replay as a new record counts. Error: the ledger cannot be asked.
tl::expected<std::vector<LetterEffect>, Error> EffectsOf(const consumer::PipelineOptions& options,
                                                         LedgerView& ledger,
                                                         const std::vector<StoredLetter>& letters);

}  // namespace fencepost::cli
