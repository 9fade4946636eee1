// fencepost lint FILE...: check pipeline files; one line a finding.
#include <cstdio>

#include <CLI/CLI.hpp>

#include "config/loader.h"
#include "consumer/cli/shared/command.h"
#include "consumer/cli/shared/pipelines.h"

namespace fencepost::cli {
namespace {

struct LintArguments {
  std::vector<std::string> files;
  std::string format = "text";
  bool online = false;
};

int Lint(const LintArguments& arguments) {
  if (arguments.online) {
    return ExitUsage(
        "--online is not supported by this build yet; lint without it checks the files alone");
  }
  std::vector<config::LoadResult> loaded;
  std::vector<config::Finding> findings;
  const auto add = [&findings](const std::vector<config::Finding>& more) {
    findings.insert(findings.end(), more.begin(), more.end());
  };
  for (const std::string& file : arguments.files) {
    loaded.push_back(LoadFile(file));
    CheckLockTls(loaded.back());
    add(loaded.back().findings);
  }
  add(config::CheckTogether(loaded));
  if (arguments.format == "json") {
    std::printf("%s\n", config::FormatFindingsJson(findings).c_str());
  } else {
    for (const config::Finding& finding : findings) {
      std::printf("%s\n", config::FormatFinding(finding).c_str());
    }
  }
  return config::HasErrors(findings) ? kUsage : kOk;
}

}  // namespace

void AddLint(CLI::App& app, Run& run) {
  const auto arguments = std::make_shared<LintArguments>();
  CLI::App* command = app.add_subcommand("lint", "check pipeline files; nothing is started");
  command->add_option("FILE", arguments->files, "pipeline files")->required();
  command->add_option("--format", arguments->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}));
  command->add_flag("--online", arguments->online, "ask the servers too");
  command->callback([&run, arguments] { run = [arguments] { return Lint(*arguments); }; });
}

}  // namespace fencepost::cli
