// A failing plan, made smaller: the same seed with one fault after the other switched off, fewer
// records, workers, partitions, shorter trouble, as long as the same invariant is broken.
#pragma once

#include <string>

#include "tests/model/simulator/plan.h"

namespace fencepost::simulator {

Plan Shrink(Plan plan, const std::string& invariant);
// What is left of it, in one line.
std::string Describe(const Plan& plan);

}  // namespace fencepost::simulator
