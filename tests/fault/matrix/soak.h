// Three workers under load for hours, with faults at random from the table of the matrix: at the
// end nothing is lost or doubled, and the workers need no more than at the beginning.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/fault/matrix/database.h"

namespace fencepost::matrix {

struct SoakOptions {
  std::chrono::seconds length{3600};
  std::chrono::seconds sample_every{60};
  std::uint64_t seed = 1;
  int records_a_second = 200;
  DatabaseKind database = DatabaseKind::kPostgres;
};

// What is watched of it, by name: "resident memory of worker-1", "keys on lock nodes", …
using Sample = std::map<std::string, double>;

// The first fifth warms up. Of the rest, the lower quartile of the last third against that of the
// first one. A line for each that has grown by more than it went up and down within the first
// third, and by more than a step that does not come again (soak.cc); and for each that was seen too
// seldom to be told. "": nothing has grown. A steady growth raises the last third by twice as much
// as it widens the first one, and so it is seen where a third of the time makes more than all else
// that moves it.
std::string Growth(const std::vector<Sample>& samples);

// Shorter ones have too few samples.
inline constexpr std::chrono::minutes kShortestSoak{5};

// A line a sample on stdout, and a sum. 0 when all went well.
int RunSoak(const SoakOptions& options);

}  // namespace fencepost::matrix
