// The `tests:` of a pipeline file → what `fencepost test` runs. Read after the pipeline itself,
// which says what its tests may name: topics, columns, lock nodes, a handler. Values; any thread.
#pragma once

#include <vector>

#include "config/read/reader.h"
#include "config/text/finding.h"
#include "config/text/variables.h"
#include "consumer/pipeline/pipeline_test.h"

namespace fencepost::config {

// Errors go to `findings`; the tests are good when none did. Empty where the file has none.
std::vector<consumer::PipelineTest> ReadTests(const Values& pipeline,
                                              const Environment& environment, Findings& findings);

}  // namespace fencepost::config
