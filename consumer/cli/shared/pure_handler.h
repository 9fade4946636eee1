// A handler without effects of its own (jq, take) as a command runs it. One thread.
#pragma once

#include <optional>

#include "consumer/pipeline/options.h"
#include "consumer/worker/worker_parts.h"

namespace fencepost::cli {

// What it makes of the record, as a worker's would. Blocks for the call's timeout at most, and some
// seconds. nullopt: the pipeline has no such handler, it does not start, or it does not end.
std::optional<consumer::HandlerResult> AskPureHandler(const consumer::PipelineOptions& options,
                                                      consumer::HandlerCall call);

}  // namespace fencepost::cli
