// Which dead letters may go back to their topic, and how. Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "consumer/cli/dlq/dlq_letter.h"
#include "consumer/outputs/output.h"
#include "consumer/pipeline/options.h"

namespace fencepost::cli {

struct ReplayRules {
  std::vector<std::string> topics;  // that the pipeline reads
  bool position_ids = false;
  bool accept_replay_ids = false;
  bool conflict_stops = false;  // on_id_conflict: stop
  bool as_new_id = false;
};
ReplayRules RulesOf(const consumer::PipelineOptions& options, bool as_new_id);

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
ReplayDecision Decide(const StoredLetter& letter, const ReplayRules& rules,
                      const std::optional<consumer::LedgerEntry>& row);

}  // namespace fencepost::cli
