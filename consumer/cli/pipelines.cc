#include "consumer/cli/pipelines.h"

#include <cstdio>

#include "config/loader.h"

namespace fencepost::cli {

std::optional<std::vector<consumer::PipelineOptions>> LoadPipelines(
    const std::vector<std::string>& files) {
  std::vector<config::LoadResult> loaded;
  bool good = true;
  const auto print = [&good](const std::vector<config::Finding>& findings) {
    for (const config::Finding& finding : findings) {
      std::fprintf(stderr, "%s\n", config::FormatFinding(finding).c_str());
    }
    good = good && !config::HasErrors(findings);
  };
  for (const std::string& file : files) {
    loaded.push_back(config::Load(file, config::Environment::Process()));
    print(loaded.back().findings);
  }
  print(config::CheckTogether(loaded));
  if (!good) return std::nullopt;
  std::vector<consumer::PipelineOptions> pipelines;
  for (config::LoadResult& result : loaded) pipelines.push_back(std::move(*result.options));
  return pipelines;
}

}  // namespace fencepost::cli
