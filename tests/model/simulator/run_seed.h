// Runs seeds, and tells what a failing one did.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace fencepost::simulator {

// Nothing when the run went well; else the seed, the invariant, and the last things that happened.
// `counts`, where given, is added what happened on the way.
std::optional<std::string> RunSeed(std::uint64_t seed,
                                   std::map<std::string, int>* counts = nullptr);
// FENCEPOST_SEED: this one alone. FENCEPOST_SEEDS: how many, from 1 on.
std::optional<std::uint64_t> OnlySeed();
std::uint64_t SeedCount(std::uint64_t usual);

}  // namespace fencepost::simulator
