// What the facts of a record say together: what its verdicts count and quote. A value; `facts`
// outlives it.
#pragma once

#include <optional>
#include <string>

#include "consumer/cli/explain/explain_facts.h"
#include "consumer/cli/explain/explain_words.h"
#include "locking/base/types.h"

namespace fencepost::cli {

struct Findings {
  explicit Findings(const Facts& facts);

  [[nodiscard]] bool RowUnknown() const {
    return finality == consumer::Finality::kLedger && Known(facts.row) == nullptr;
  }
  [[nodiscard]] std::string Nodes(int count) const;  // "2 of 3 lock nodes"
  // When the newest token in this state was drawn, and how long the last one lasts.
  [[nodiscard]] std::string Drawn(NodeState state) const;
  [[nodiscard]] std::string LongestRest(NodeState state) const;

  const Facts& facts;
  const consumer::PipelineOptions& options;
  const consumer::Finality finality;
  const consumer::LedgerEntry* const row;
  const StoredLetter* const letter;
  const bool group_known;
  const consumer::Offset* const committed;
  const bool past;  // the group's offset
  int reached = 0;  // lock nodes
  int done = 0;     // of them; where there is a ledger, a mark says nothing
  int held = 0;     // the most nodes that hold one token
  int expired = 0;
};

// Of a record that no part knows to be done or bad.
Verdict JudgeUnfinished(const Findings& findings);
// A part that would decide was not reached, or an id is all that there is.
Verdict JudgeUnknown(const Findings& findings);

}  // namespace fencepost::cli
