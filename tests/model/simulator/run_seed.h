// Runs seeds, and tells what a failing one did.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fencepost::simulator {

// Nothing when the run went well; else the seed, the invariant, and the last things that happened.
std::optional<std::string> RunSeed(std::uint64_t seed);
// FENCEPOST_SEED: this one alone. FENCEPOST_SEEDS: how many, from 1 on.
std::optional<std::uint64_t> OnlySeed();
std::uint64_t SeedCount(std::uint64_t usual);

}  // namespace fencepost::simulator
