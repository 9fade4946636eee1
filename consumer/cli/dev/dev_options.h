// What `fencepost dev` makes of a pipeline's options: the same pipeline on servers of this machine.
// Pure; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/cli/local/local_servers.h"
#include "consumer/pipeline/options.h"

namespace fencepost::cli {

// In the place of the servers that the file names.
struct DevPlaces {
  std::vector<std::string> brokers;
  std::string lock_node;
  std::filesystem::path folder;  // for what the output writes
  bool keep_output = false;      // it is the file's own
};

struct DevPipeline {
  consumer::PipelineOptions options;
  // What is not as in the file beside where servers are, and what is the same and may surprise: a
  // sentence each.
  std::vector<std::string> notes;
};
DevPipeline ForDev(consumer::PipelineOptions file, const DevPlaces& places);

// Instead of each pattern of kafka.topics, one topic that it matches. Error: of which none comes to
// mind.
tl::expected<void, std::string> NameTopics(consumer::KafkaOptions& kafka);

// Outputs and dead letters of other clusters are on that of the input; a topic there whose name is
// read has another one. What that changes, a sentence each.
std::vector<std::string> UseOneCluster(consumer::PipelineOptions& file);

// What is made for it: the topics that it reads and writes.
inline constexpr int kDevPartitions = 4;  // of those that it reads
std::vector<LocalServers::Topic> TopicsOf(const consumer::PipelineOptions& options);

// Whether a key's value is replaced, so that a variable in it need not be set.
bool IsReplaced(std::string_view key, bool keep_output);

// For people: what the output is, and where: "PostgreSQL, shop.effects".
std::string OutputText(const consumer::OutputOptions& output);
// The table, topic or file alone.
std::string TargetOf(const consumer::OutputOptions& output);

}  // namespace fencepost::cli
