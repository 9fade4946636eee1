// Facts of a record, in plain words: what is known part by part, what happened, and what will
// happen next. Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "consumer/cli/explain/explain_facts.h"

namespace fencepost::cli {

struct Verdict {
  // Stable, for programs: waiting, in_progress, locking, takeover, done, duplicate, replayed,
  // dead_lettered, bad_record, no_output, filtered, passed_without_trace, beyond_end, gone, hole,
  // unknown.
  std::string code;
  std::string happened;  // sentences
  std::string next;      // sentences
};
Verdict Judge(const Facts& facts);

// One line a part: the record, its partition, the group, its identity, each lock node, the ledger,
// the dead letters.
std::vector<std::string> FactLines(const Facts& facts);
nlohmann::json FactsJson(const Facts& facts);

}  // namespace fencepost::cli
