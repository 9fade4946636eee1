// Checks that look at more than one key, or at what a value means. Errors refuse the pipeline.
#pragma once

#include "config/finding.h"
#include "config/reader.h"

namespace fencepost::config {

void Lint(const Values& values, Findings& findings);

}  // namespace fencepost::config
