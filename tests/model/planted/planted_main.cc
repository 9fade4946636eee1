// A simulator with a planted bug: passes only when it reports a broken invariant.
#include <cstdint>
#include <cstdio>

#include "tests/model/simulator/run_seed.h"

int main() {
  constexpr std::uint64_t kMostSeeds = 1000;
  using fencepost::simulator::OnlySeed;
  using fencepost::simulator::RunSeed;
  const std::uint64_t first = OnlySeed().value_or(1);
  const std::uint64_t last = OnlySeed().value_or(fencepost::simulator::SeedCount(kMostSeeds));
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    if (const auto failure = RunSeed(seed)) {
      std::printf("found: %s", failure->c_str());
      return 0;
    }
  }
  std::printf("not found in seeds %ju to %ju\n", static_cast<std::uintmax_t>(first),
              static_cast<std::uintmax_t>(last));
  return 1;
}
