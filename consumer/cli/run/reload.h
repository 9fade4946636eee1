// What of a pipeline's file a running worker takes up, and what needs a restart. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "consumer/pipeline/options.h"

namespace fencepost::cli {

struct Changes {
  std::vector<std::string> applied;  // keys of the file
  std::vector<std::string> refused;  // need a restart
  std::vector<std::string> ignored;  // of the process, which has them from its first file
  // "retry.attempts, observe.log.level are applied; kafka.topics needs a restart"
  [[nodiscard]] std::string Text() const;
  // Of the log: reloaded, or where something has changed and nothing is applied, reload_refused.
  [[nodiscard]] const char* Event() const {
    return applied.empty() && !Whole() ? "reload_refused" : "reloaded";
  }
  [[nodiscard]] bool Whole() const { return refused.empty() && ignored.empty(); }
};

// By the rows of the schema; values are compared, not their texts, and none is named.
Changes ChangesOf(const consumer::PipelineOptions& before, const consumer::PipelineOptions& after,
                  bool first_file);

// Takes the applied keys of `fresh` over, and no other: what they do, and what is shown of them.
void TakeOver(const Changes& changes, const consumer::PipelineOptions& fresh,
              consumer::PipelineOptions& running);

}  // namespace fencepost::cli
