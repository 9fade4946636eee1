// What a test expects against what came. Pure.
#pragma once

#include <vector>

#include "consumer/testing/test_run.h"
#include "consumer/testing/test_world.h"

namespace fencepost::consumer {

// The differences, each with the line of what was expected.
std::vector<TestFailure> Compare(const PipelineTest& test, TestWorld& world);

}  // namespace fencepost::consumer
