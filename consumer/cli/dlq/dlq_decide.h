// Replaying dead letters: which may go back to their topic, and how. RulesOf and Decide are pure;
// Replay talks to Kafka and the ledger, on one thread.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/cli/dlq/dlq_letter.h"
#include "consumer/cli/dlq/dlq_topic.h"
#include "consumer/outputs/output.h"
#include "consumer/pipeline/options.h"
#include "locking/base/error.h"

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

struct ReplayCounts {
  std::size_t replayed = 0;  // acknowledged; in a dry run: would be replayed
  std::size_t refused = 0;
  std::size_t done = 0;  // of those refused: it has taken effect
  std::size_t failed = 0;
  std::size_t repeated = 0;  // later letters of an id that is in this replay already
};

// Prints what is refused, and why, to stdout; in a dry run also what would be replayed. Error: the
// ledger or the topic cannot be read any more; what was published before stays published.
tl::expected<ReplayCounts, Error> Replay(const consumer::PipelineOptions& options,
                                         LetterTopic& topic, const LetterRequest& request);

}  // namespace fencepost::cli
