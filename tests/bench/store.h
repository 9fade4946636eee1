// The lock store that both measurements start on.
#pragma once

#include <sys/types.h>

#include <vector>

#include "tests/support/redis_server.h"

namespace fencepost::bench {

// Empties the nodes and creates the store on them. Nobody may be connected.
void ResetStore(testing::RedisServers& servers);

std::vector<pid_t> Pids(testing::RedisServers& servers);

}  // namespace fencepost::bench
