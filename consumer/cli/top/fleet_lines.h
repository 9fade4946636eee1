// The workers of a pipeline as a table of text. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "consumer/fleet/fleet.h"

namespace fencepost::cli {

// A line a worker, then the totals, the partitions that no worker has, and what troubles whom. A
// line has `width` columns at most.
std::vector<std::string> LinesOf(const consumer::Fleet& fleet, std::size_t width);

// Of the command: 1 where a worker has not answered, or none has this pipeline.
int ExitCodeOf(const consumer::Fleet& fleet);

}  // namespace fencepost::cli
