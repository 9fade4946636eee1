// Which dead letters may go back to their topic, and how. Pure functions; any thread.
#pragma once

#include <optional>
#include <string>

#include "consumer/cli/dlq/dlq_letter.h"
#include "consumer/outputs/output.h"
#include "consumer/pipeline/options.h"

namespace fencepost::cli {

// The id of this letter's replay with as_new_id: the same for each, so that a second one is
// recognised.
std::string NewReplayId(const StoredLetter& letter);

struct ReplayDecision {
  bool replay = false;
  bool done = false;      // it has taken effect meanwhile: nothing is left to do
  std::string why;        // refused: why, and what to do. Else a warning, or empty
  std::string header_id;  // what fencepost-record-id says; empty: no such header
};
// `row`: what the ledger holds of the letter's own id.
ReplayDecision Decide(const StoredLetter& letter, const consumer::PipelineOptions& options,
                      bool as_new_id, const std::optional<consumer::LedgerEntry>& row);

}  // namespace fencepost::cli
