// ./dev bench scrape: how long a look at /metrics takes, with five lock nodes and 1,000 partitions.
#pragma once

#include "tests/bench/shared/options.h"

namespace fencepost::bench {

// The page is built in this process as `run` builds it, and fetched over HTTP from its server.
void RunScrapeBench(const Options& options);

}  // namespace fencepost::bench
