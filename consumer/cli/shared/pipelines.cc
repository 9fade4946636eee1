#include "consumer/cli/shared/pipelines.h"

#include <cstdio>
#include <iostream>
#include <iterator>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "consumer/worker/make_handler.h"
#include "locking/redis/engine/access.h"

namespace fencepost::cli {
namespace {

std::string StandardInput() {
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

// What was loaded is of no use: a finding, and no options.
void Reject(config::LoadResult& loaded, config::Place at, std::string_view rule, std::string why) {
  config::Findings findings(loaded.file);
  findings.Error(at, rule, std::move(why));
  for (config::Finding& finding : findings.Take()) loaded.findings.push_back(std::move(finding));
  loaded.options.reset();
  loaded.tests.clear();
}

}  // namespace

config::LoadResult LoadFile(const std::string& file) {
  config::LoadResult loaded =
      file == "-" ? config::LoadText(StandardInput(), "-", config::Environment::Process())
                  : config::Load(file, config::Environment::Process());
  if (!loaded.options) return loaded;
  const consumer::HandlerOptions& handler = loaded.options->handler;
  if (!std::holds_alternative<consumer::JqHandlerOptions>(handler.kind)) return loaded;
  const auto checked = consumer::CheckHandler(handler);
  if (checked) return loaded;
  Reject(loaded, loaded.jq_at, "jq",
         fmt::format("{}: {}", checked.error().where, checked.error().what));
  return loaded;
}

void CheckLockTls(config::LoadResult& loaded) {
  if (!loaded.options) return;
  const auto problem = locking::TlsProblemOf(loaded.options->lock.redis);
  if (!problem) return;
  Reject(loaded, loaded.lock_tls_at, "tls", "lock.redis.tls: " + problem->Line());
}

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
    loaded.push_back(LoadFile(file));
    CheckLockTls(loaded.back());
    print(loaded.back().findings);
  }
  print(config::CheckTogether(loaded));
  if (!good) return std::nullopt;
  std::vector<consumer::PipelineOptions> pipelines;
  for (config::LoadResult& result : loaded) pipelines.push_back(std::move(*result.options));
  return pipelines;
}

}  // namespace fencepost::cli
