// The pipeline file of a run, as JSON, which YAML has in it.
#pragma once

#include <string>
#include <vector>

namespace fencepost::bench {

struct PipelineFile {
  std::string bootstrap, topic;  // the group is called like the topic
  std::vector<std::string> nodes;
  // position or block: record_id: position, with a lock for each record or for 1,024 of them;
  // id: record_id: json:/order_id.
  std::string by;
  // One of these:
  std::string dsn{};           // effects go to the table of Servers
  std::string output_topic{};  // or to this topic, in transactions
  std::string handler_url{};   // before the output; empty: no handler
  // PATH=VALUE, of which values are JSON where they are, else text: lock.block=64. A path
  // with a slash has its parts between slashes, since some names have dots:
  // kafka/librdkafka/fetch.wait.max.ms=50.
  std::vector<std::string> set{};
  int tables = 1;  // 2: by effects, the same rows to the second table of Servers, too

  [[nodiscard]] std::string Text() const;  // throws std::invalid_argument for what cannot be set
};

}  // namespace fencepost::bench
