// fencepost lint FILE...: check pipeline files, and on request the servers that they name; one line
// a finding.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <variant>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "config/loader.h"
#include "consumer/cli/lint/online.h"
#include "consumer/cli/shared/command.h"
#include "consumer/cli/shared/pipelines.h"

namespace fencepost::cli {
namespace {

struct LintArguments {
  PipelineFiles pipelines;
  std::string format = "text";
  bool env_optional = false;
  bool online = false;
  int timeout_s = 10;
};

// A build machine has neither passwords nor addresses: what hangs on a variable that is not set is
// not checked.
void ForgiveVariables(std::vector<config::Finding>& findings) {
  for (config::Finding& finding : findings) {
    if (finding.rule == "variable") finding.severity = config::Severity::kWarning;
  }
}

// The program's own file, as in [python3, scripts/transform.py]: a path from the folder in which
// the worker is started. An absolute one may be there on the worker's host alone.
void LookForScript(config::LoadResult& loaded) {
  const auto* exec = loaded.options
                         ? std::get_if<consumer::ExecHandlerOptions>(&loaded.options->handler.kind)
                         : nullptr;
  if (exec == nullptr) return;
  for (std::size_t i = 1; i < exec->command.size(); ++i) {
    const std::string& word = exec->command[i];
    const bool path = word.find('/') != std::string::npos && word.find("://") == std::string::npos;
    std::error_code error;
    if (!path || word.starts_with('-') || word.starts_with('/') ||
        std::filesystem::exists(word, error)) {
      continue;
    }
    config::Findings findings(loaded.sources);
    findings.Warning(loaded.PlaceOf("handler.exec.command"), "advice",
                     fmt::format("handler.exec.command: there is no {} in {}, from where lint was "
                                 "started: a worker looks for it where it is started itself; an "
                                 "absolute path is found from everywhere",
                                 word, std::filesystem::current_path(error).string()));
    for (config::Finding& finding : findings.Take()) loaded.advice.push_back(std::move(finding));
  }
}

int Lint(const LintArguments& arguments) {
  std::vector<config::LoadResult> loaded;
  std::vector<config::Finding> findings;
  const auto add = [&findings](const std::vector<config::Finding>& more) {
    config::AddNew(findings, more);
  };
  for (const std::string& file : arguments.pipelines.files) {
    loaded.push_back(LoadFile(file, arguments.pipelines.beside));
    CheckTls(loaded.back());
    LookForScript(loaded.back());
    add(loaded.back().findings);
    if (!config::HasErrors(loaded.back().findings)) add(loaded.back().advice);
  }
  add(config::CheckTogether(loaded));
  if (arguments.env_optional) ForgiveVariables(findings);
  const bool files_are_good = !config::HasErrors(findings);
  for (const config::LoadResult& file : loaded) {
    if (files_are_good) add(file.remarks);
    if (!arguments.online || !file.options) continue;
    add(LintOnline(file, std::chrono::seconds(arguments.timeout_s)));
  }
  if (arguments.format == "json") {
    std::printf("%s\n", config::FormatFindingsJson(findings).c_str());
  } else {
    const auto format =
        arguments.format == "github" ? config::FormatFindingGithub : config::FormatFinding;
    for (const config::Finding& finding : findings) {
      std::printf("%s\n", format(finding).c_str());
    }
    const bool person = arguments.format == "text" && isatty(STDOUT_FILENO) == 1;
    for (const config::LoadResult& file : loaded) {
      const bool found = std::ranges::any_of(findings, [&file](const config::Finding& finding) {
        return std::ranges::count(file.sources, finding.file) > 0 &&
               finding.severity != config::Severity::kInfo;
      });
      if (person && !found) std::printf("%s: ok\n", file.file.c_str());
    }
  }
  if (!files_are_good) return kUsage;
  return config::HasErrors(findings) ? kFailed : kOk;
}

}  // namespace

void AddLint(CLI::App& app, Run& run) {
  const auto arguments = std::make_shared<LintArguments>();
  CLI::App* command = app.add_subcommand("lint", "check pipeline files; nothing is started");
  AddPipelineFiles(*command, arguments->pipelines, "pipeline files; - is standard input");
  command->add_option("--format", arguments->format, "text, json or github")
      ->check(CLI::IsMember({"text", "json", "github"}));
  command->add_flag("--env-optional", arguments->env_optional,
                    "a variable that is not set is a warning, and what hangs on it is not checked");
  command->add_flag("--online", arguments->online,
                    "ask the servers, too: brokers, topics, group, schema registry, table and "
                    "rights, lock nodes; nothing is written");
  command
      ->add_option("--timeout", arguments->timeout_s, "seconds that each server has, with --online")
      ->check(CLI::Range(1, 600));
  command->callback([&run, arguments] { run = [arguments] { return Lint(*arguments); }; });
}

}  // namespace fencepost::cli
