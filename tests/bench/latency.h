// ./dev bench latency: from the time in a record to the commit of its effect in PostgreSQL, at a
// tenth of the rate that the workers reached in a first run; ours and the floor
// (floors/pipeline_floor.h) at the same rate.
#pragma once

#include "tests/bench/shared/options.h"

namespace fencepost::bench {

void RunLatencyBench(const Options& options);

}  // namespace fencepost::bench
