// Three workers under load for hours, with faults at random from the table of the matrix: at the
// end nothing is lost or doubled, and the workers need no more than at the beginning.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fencepost::matrix {

struct SoakOptions {
  std::chrono::seconds length{3600};
  std::chrono::seconds sample_every{60};
  std::uint64_t seed = 1;
};

// What is watched of it, by name: "resident memory of worker-1", "keys on lock nodes", …
using Sample = std::map<std::string, double>;

// The first fifth warms up. Of the rest, the mean of the last third against that of the first one:
// "" where nothing has grown by more than `most` (a part of it) and by more than `least` of its
// kind (MiB, or pieces), else a line for each. Keys may double.
std::string Growth(const std::vector<Sample>& samples, double most = 0.15, double least = 16);

// A line a sample on stdout, and a sum. 0 when all went well.
int RunSoak(const SoakOptions& options);

}  // namespace fencepost::matrix
