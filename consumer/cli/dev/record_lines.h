// Lines of a file or of standard input → records to send. Pure; any thread.
//
// An object with a `value` and nothing beside topic, partition, key, headers and timestamp is a
// record as the `tests:` of a pipeline file give it: its key and value are a text, null, or JSON
// that is sent as its text. Any other JSON document is the value of a record.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "consumer/pipeline/pipeline_test.h"

namespace fencepost::cli {

// `topics`: of which a record names one; the first where it does not. The error is a sentence.
tl::expected<consumer::GivenRecord, std::string> ReadRecordLine(std::string_view line,
                                                                std::span<const std::string> topics,
                                                                int partitions);

}  // namespace fencepost::cli
