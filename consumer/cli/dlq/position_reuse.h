// Whether the position that a dead letter's id names is still its own record's: a topic that was
// made again counts from 0, and its records have the ids of those that died before. Blocks.
#pragma once

#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/cli/dlq/dlq_letter.h"
#include "consumer/pipeline/options.h"
#include "locking/base/error.h"

namespace fencepost::cli {

// By letter, what is at its position instead; "": its own record, or one that is not kept any more,
// or its id is no position of this cluster. Key and value are compared. Error: Kafka cannot be
// asked.
tl::expected<std::vector<std::string>, Error> FindReuse(const consumer::PipelineOptions& options,
                                                        const std::vector<StoredLetter>& letters);

}  // namespace fencepost::cli
