// The simulator with a planted bug: `model_planted NAME` passes only when it reports a broken
// invariant.
#include <cstdint>
#include <cstdio>

#include "tests/model/planted/planted.h"
#include "tests/model/simulator/run_seed.h"

int main(int argc, char** argv) {
  constexpr std::uint64_t kMostSeeds = 20'000;
  using fencepost::simulator::OnlySeed;
  using fencepost::simulator::RunSeed;
  using fencepost::simulator::Story;
  if (argc != 2) return std::fprintf(stderr, "usage: model_planted NAME\n"), 2;
  fencepost::Plant(argv[1]);
  const std::uint64_t first = OnlySeed().value_or(1);
  const std::uint64_t last = OnlySeed().value_or(kMostSeeds);
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    if (const auto failure = RunSeed(seed, nullptr, Story::kWhole)) {
      std::printf("found: %s", failure->c_str());
      return 0;
    }
  }
  std::printf("%s: not found in seeds %ju to %ju\n", argv[1], static_cast<std::uintmax_t>(first),
              static_cast<std::uintmax_t>(last));
  return 1;
}
