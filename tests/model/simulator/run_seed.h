// Runs seeds, and tells what a failing one did.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/model/simulator/coverage.h"

namespace fencepost::simulator {

// Of the seed as it is, or as small as it can be made.
enum class Story : std::uint8_t { kWhole, kShrunk };
// Nothing when the run went well; else the seed, the invariant, and the last things that happened.
// `counts`, where given, is added what happened on the way.
std::optional<std::string> RunSeed(std::uint64_t seed, Counts* counts = nullptr,
                                   Story story = Story::kShrunk);
// FENCEPOST_SEED: this one alone.
std::optional<std::uint64_t> OnlySeed();

}  // namespace fencepost::simulator
