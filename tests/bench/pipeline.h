// ./dev bench pipeline: from Kafka to PostgreSQL, shipped workers against the floor, on real
// servers.
#pragma once

#include "tests/bench/shared/options.h"

namespace fencepost::bench {

// A side for the floor (floors/pipeline_floor.h), and for each way to identify records and number
// of workers. Throws when something cannot be started or measured, or an id has not exactly one
// effect.
void RunPipelineBench(const Options& options);

}  // namespace fencepost::bench
