// ./dev bench growth [CURVE...]: how the rate from Kafka to PostgreSQL changes with one thing that
// grows. A point is a measurement of its own, without a floor: points are compared with each other.
#pragma once

#include "tests/bench/shared/options.h"

namespace fencepost::bench {

// Throws std::invalid_argument for a curve that there is not, and what a run throws.
void RunGrowthBench(const Options& options);

}  // namespace fencepost::bench
