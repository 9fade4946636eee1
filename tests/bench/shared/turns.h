// The sides of a measurement take turns, round by round, on the same servers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/bench/shared/measure.h"

namespace fencepost::bench {

using Json = nlohmann::ordered_json;

struct Side {
  std::string name;
  bool reference = false;         // a floor or a peer: the others are compared with it
  std::function<Figures()> turn;  // the same names each time
};

struct Measurement {
  std::string bench;  // as ./dev bench calls it
  Json of;            // an object: what was varied, and on how much work
  std::string words;  // what the floor is, in one line
  int rounds = 1;
  std::vector<std::string> compared{};  // figures with ratios; empty: the first
  bool references_only = false;
};

// Prints one line, {"bench", "of", "words", "rounds", "load", "sides": [{"name", "figures",
// "ratios"}]}. Figures are medians of the rounds; `ratios` says for each reference and compared
// figure what this side has of it: the median of the ratios round by round, since what slows both
// sides of a round does not move their ratio. Throws what a turn throws.
void TakeTurns(const Measurement& measurement, std::vector<Side> sides);

}  // namespace fencepost::bench
