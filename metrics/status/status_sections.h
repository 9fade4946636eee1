// One pipeline on the status page: its numbers, partitions, lock nodes, errors, settings. Pure; any
// thread.
#pragma once

#include <string>

#include "metrics/status/shown_pipeline.h"

namespace fencepost::metrics {

// Appends a <section> of HTML.
void AppendPipeline(std::string& out, const ShownPipeline& shown);

}  // namespace fencepost::metrics
