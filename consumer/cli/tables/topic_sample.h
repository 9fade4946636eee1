// Samples of a pipeline's topics, for the types of columns.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/outputs/tables/wanted_tables.h"
#include "consumer/pipeline/options.h"
#include "locking/base/error.h"

namespace fencepost::cli {

// What the pipeline reads: by name, or what its patterns match now. Error: Kafka does not say.
tl::expected<std::vector<std::string>, Error> TopicsOf(const consumer::KafkaOptions& kafka);

struct TopicSample {
  std::size_t records = 0;  // that the pipeline is about
  // The handler was not called (http, exec), so that what it makes is not known.
  bool without_handler = false;
};

// Reads the newest `most` records of these topics together, and tells the tables what their columns
// hold. Blocks for some seconds at most, and the calls of a handler (jq, take). Error: Kafka or the
// schema registry cannot be asked.
tl::expected<TopicSample, Error> SampleTopics(const consumer::PipelineOptions& options,
                                              const std::vector<std::string>& topics,
                                              std::size_t most,
                                              std::vector<consumer::WantedTable>& tables);

}  // namespace fencepost::cli
