// Checks that look at more than one key, or at what a value means. Errors refuse the pipeline.
#pragma once

#include "config/read/reader.h"
#include "config/text/finding.h"

namespace fencepost::config {

void Lint(const Values& values, Findings& findings);
// Warnings of what works, and will hurt, in a file without errors. Only for those who check a file:
// `run` does not say it at each start.
void Advise(const Values& values, Findings& findings);
// What the lock is for in this pipeline: one line, for those who check a file too.
void TellWhatTheLockIsFor(const Values& values, Findings& findings);

}  // namespace fencepost::config
