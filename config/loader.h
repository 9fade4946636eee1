// From a pipeline file to the options that a worker runs by. The one way in: parse, check against
// the schema, lint. Nothing is started, nothing is asked of a network. Any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/text/finding.h"
#include "config/text/variables.h"
#include "consumer/pipeline/options.h"
#include "consumer/pipeline/pipeline_test.h"

namespace fencepost::config {

struct LoadResult {
  std::string file;
  std::optional<consumer::PipelineOptions> options;  // there exactly when no finding is an error
  std::vector<consumer::PipelineTest> tests;         // the file's, where there are options
  std::vector<Finding> findings;                     // sorted by place; all that could be found
  Place name_at;                                     // of the pipeline's name, for CheckTogether
  Place jq_at;                                       // of handler.jq: compiled where jq is linked
  Place lock_tls_at;  // of lock.redis.tls: read when a node is connected to
};

// A file that cannot be read is the finding FILE:1:1: error: cannot be read: … [file].
LoadResult Load(const std::string& path, const Environment& environment);
// The same for a text at hand; `file` is what findings call it.
LoadResult LoadText(std::string_view text, const std::string& file, const Environment& environment);

// What is wrong with running these files in one process: a pipeline name that comes twice.
std::vector<Finding> CheckTogether(std::span<const LoadResult> files);

}  // namespace fencepost::config
