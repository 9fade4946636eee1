// A command of this very program, in a process of its own, for who asks a worker over HTTP: what it
// does for minutes, or takes in memory, ends with it. Blocks; any thread, with which it ends.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "consumer/cli/shared/pipelines.h"
#include "consumer/record/record.h"

namespace fencepost::cli {

struct CommandEnd {
  std::string how;   // as ExecProcess::Ended says it
  std::string text;  // what it printed, and how it ended where that was not well
};
inline constexpr const char* kWell = "with exit code 0";
inline constexpr const char* kAskedWrongly = "with exit code 2";
// `words`: behind `fencepost`. Killed after `limit`, or when `stop` is set.
CommandEnd RunOwnCommand(std::vector<std::string> words, consumer::Millis limit,
                         const std::atomic<bool>& stop);

// Of `what`: explain, try-replay, replay. `record`: TOPIC/PARTITION/OFFSET, where it was before it
// died, or id=ID. Empty: it is neither.
std::vector<std::string> WordsAbout(std::string_view record, std::string_view what,
                                    const PipelineFiles& pipeline);

}  // namespace fencepost::cli
