// What of a pipeline's file a running worker takes up, and what needs a restart. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "consumer/pipeline/options.h"

namespace fencepost::cli {

struct Changes {
  std::vector<std::string> applied;  // keys of the file
  std::vector<std::string> refused;  // need a restart
  // "retry.attempts, observe.log.level are applied; kafka.topics needs a restart"
  [[nodiscard]] std::string Text() const;
};

// Secrets are compared by their values and named without them.
Changes ChangesOf(const consumer::PipelineOptions& before, const consumer::PipelineOptions& after);

// Takes the applied keys of `fresh` over, and no other: what they do, and what is shown of them.
void TakeOver(const Changes& changes, const consumer::PipelineOptions& fresh,
              consumer::PipelineOptions& running);

}  // namespace fencepost::cli
