// The pipeline file of a run, as JSON, which YAML has in it.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/shared/turns.h"

namespace fencepost::bench {

struct PipelineFile {
  std::string bootstrap, topic;  // the group is called like the topic
  std::vector<std::string> nodes;
  std::string by;  // record_id: position, or id: json:/order_id
  // One of these:
  std::string dsn;                 // effects go to the table of Servers
  std::string output_topic;        // or to this topic, in transactions
  std::string handler_url;         // before the output; empty: no handler
  std::vector<std::string> set{};  // PATH=VALUE

  [[nodiscard]] std::string Text() const;
};

// Puts a value at a path: lock.contact=quorum. Values are JSON where they are, else text; a path
// with a slash in it has its parts between slashes, since some names have dots:
// kafka/librdkafka/fetch.wait.max.ms=50. Throws std::invalid_argument.
void Set(Json& file, const std::string& assignment);

}  // namespace fencepost::bench
