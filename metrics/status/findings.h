// What is wrong with a pipeline, and what to do: the top of the status page. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "metrics/status/shown_pipeline.h"

namespace fencepost::metrics {

enum class FindingLevel { kNote, kWarn, kBad };  // in the order of their weight

struct Finding {
  FindingLevel level = FindingLevel::kNote;  // note: it happened; warn: soon; bad: nothing moves
  std::string what;
  std::string todo;
};

// Runbooks are those of deploy/RUNBOOKS.md.
std::vector<Finding> FindingsOf(const ShownPipeline& shown);

}  // namespace fencepost::metrics
