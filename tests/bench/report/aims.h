// What the measurements are to show, and whether they do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/bench/shared/turns.h"

namespace fencepost::bench {

struct Aim {
  std::string words;
  std::string bench;
  Json of;           // what the measurement's `of` has
  std::string side;  // how its names begin; of several, the one that is nearest to the aim counts
  std::string reference;  // a ratio to it; empty: the figure itself
  std::string figure;
  double bound;
  bool at_least;
};

const std::vector<Aim>& Aims();

// Nothing where it was not measured. Measurements with --set do not count.
std::optional<double> Measured(const Aim& aim, const std::vector<Json>& measurements);
bool Reached(const Aim& aim, double measured);

}  // namespace fencepost::bench
