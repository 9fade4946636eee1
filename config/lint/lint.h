// Checks that look at more than one key, or at what a value means. Errors refuse the pipeline.
#pragma once

#include "config/read/reader.h"
#include "config/text/finding.h"

namespace fencepost::config {

void Lint(const Values& values, Findings& findings);

}  // namespace fencepost::config
