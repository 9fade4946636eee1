// ./dev bench memory: a worker's resident memory while it works as fast as it can, and what it and
// the nodes spend while there is nothing to do. ./dev bench node-memory: the bytes that a node
// spends on a remembered name. Both without a floor: the aims are absolute.
#pragma once

#include "tests/bench/shared/options.h"

namespace fencepost::bench {

void RunMemoryBench(const Options& options);
void RunNodeMemoryBench(const Options& options);

}  // namespace fencepost::bench
