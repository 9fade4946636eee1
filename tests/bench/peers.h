// ./dev bench peers: the shipped lock, the floor, and the peers' programs (tests/bench/peers), in
// turns on the same five real nodes.
#pragma once

#include <string>
#include <vector>

namespace fencepost::bench {

struct PeersBench {
  std::vector<std::string> programs;  // paths; each named by its file
  std::vector<int> in_flight{1, 256};
  int rounds = 5;
  double seconds = 2;  // of one side in one round
};

// Prints a table on stderr and one line of JSON for each number in flight on stdout: `ratio` is
// ours / that side, the median over the rounds. Throws when something cannot be started or
// measured.
void RunPeersBench(const PeersBench& bench);

}  // namespace fencepost::bench
