// From a pipeline file to the options that a worker runs by. The one way in: parse, check against
// the schema, lint. Nothing is started, nothing is asked of a network. Any thread.
#pragma once

#include <functional>
#include <map>
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

// What the command line gives beside a pipeline's file.
struct Beside {
  std::vector<std::string> with;  // --with FILE: more sections, below those of the pipeline
  std::vector<std::string> set;   // --set KEY=VALUE: in the place of what the files say
  bool tests = true;              // `tests:` are read, whose findings concern nobody who runs it
};

struct LoadResult {
  std::string file;
  std::vector<std::string> sources;  // of places: that file, the ones beside it, each --set
  std::optional<consumer::PipelineOptions> options;  // there exactly when no finding is an error
  std::vector<consumer::PipelineTest> tests;         // the file's, where there are options
  std::vector<Finding> findings;                     // sorted by place; all that could be found
  // Where there are options (config/lint/lint.h): Advise, TellWhatTheLockIsFor.
  std::vector<Finding> advice, remarks;
  // Of what the file has, by path: for what only others can check (jq programs, servers).
  std::map<std::string, Place, std::less<>> places;
  // Of the key, or of the nearest section around it.
  [[nodiscard]] Place PlaceOf(std::string_view path) const;
};

// A file that cannot be read is the finding FILE:1:1: error: cannot be read: … [file].
LoadResult Load(const std::string& path, const Environment& environment, const Beside& beside = {});
// The same for a text at hand; `file` is what findings call it.
LoadResult LoadText(std::string_view text, const std::string& file, const Environment& environment,
                    const Beside& beside = {});

// What is wrong with running these files in one process: a pipeline name that comes twice, two
// pipelines that share the records of a topic, or two keytabs.
std::vector<Finding> CheckTogether(std::span<const LoadResult> files);

// Of config/examples/, by name: what `fencepost create` prints.
struct Example {
  std::string_view name;  // "orders" of orders.yaml; what belongs to one keeps its whole file name
  std::string_view text;
};
std::vector<Example> Examples();

}  // namespace fencepost::config
