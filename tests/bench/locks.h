// ./dev bench locks: the shipped lock against the floor (floors/lock_floor.h), on five real nodes.
#pragma once

#include "tests/bench/shared/options.h"

namespace fencepost::bench {

// For each number in flight, a side for each way to contact the nodes. Throws when something cannot
// be started or measured.
void RunLocksBench(const Options& options);

// ./dev bench peers: the same by processes: `fencepost bench locks` and the peers' programs
// (peers/), whose command line it is too.
void RunPeersBench(const Options& options);

}  // namespace fencepost::bench
