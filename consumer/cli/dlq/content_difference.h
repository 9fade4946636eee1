// How a record differs from the one that took effect under the same id, for people. Pure but for
// DifferenceFromSource, which reads Kafka; any thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/kafka/client/topic_reader.h"
#include "consumer/record/record.h"
#include "locking/base/error.h"

namespace fencepost::cli {

// One line a difference: "value /amount: 5 there, 9 here". JSON is compared part by part.
std::vector<std::string> ContentDifference(const consumer::Record& there,
                                           const consumer::Record& here);

// The same against the record at `source` ("topic/partition/offset"), as far as it is still there:
// else a line says so.
tl::expected<std::vector<std::string>, Error> DifferenceFromSource(consumer::TopicReader& reader,
                                                                   std::string_view source,
                                                                   const consumer::Record& here,
                                                                   std::chrono::milliseconds limit);

}  // namespace fencepost::cli
