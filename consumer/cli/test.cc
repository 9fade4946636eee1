// fencepost test FILE...: the tests: of pipelines, in process, on virtual time.
#include <unistd.h>

#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "config/loader.h"
#include "consumer/cli/shared/command.h"
#include "consumer/cli/shared/pipelines.h"
#include "consumer/testing/test_run.h"

namespace fencepost::cli {
namespace {

struct TestArguments {
  PipelineFiles pipelines;
  std::string filter;
  bool env_optional = false;
};

struct Totals {
  int run = 0;
  int failed = 0;
  bool stuck = false;  // a handler that cannot be ended still runs
};

std::string Indent(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c;
    if (c == '\n') out += "          ";
  }
  return out;
}

void RunFile(const config::LoadResult& file, const std::string& filter, Totals& totals) {
  if (file.tests.empty()) PrintError(file.file + ": there is nothing to run: no tests: section");
  std::printf("%s\n", file.file.c_str());
  for (const consumer::PipelineTest& test : file.tests) {
    if (test.name.find(filter) == std::string::npos) continue;
    const consumer::TestReport report = consumer::RunPipelineTest(*file.options, test);
    ++totals.run;
    const double seconds = static_cast<double>(report.virtual_time.count()) / 1000;
    std::printf("  %s  %s (%zu record%s, %.1f s of virtual time)\n",
                report.failures.empty() ? "ok  " : "FAIL", test.name.c_str(), report.records,
                report.records == 1 ? "" : "s", seconds);
    if (report.failures.empty()) continue;
    ++totals.failed;
    for (const consumer::TestFailure& failure : report.failures) {
      std::printf("        %s:%d: %s\n", test.file.c_str(), failure.line,
                  Indent(failure.text).c_str());
    }
    for (const std::string& note : report.notes) std::printf("          %s\n", note.c_str());
    totals.stuck = totals.stuck || report.stuck;
  }
}

int RunTests(const TestArguments& arguments) {
  std::vector<config::LoadResult> files;
  const config::Beside& beside = arguments.pipelines.beside;
  std::vector<config::Finding> findings;
  for (const std::string& name : arguments.pipelines.files) {
    std::vector<std::string> stood_in;
    files.push_back(arguments.env_optional ? LoadFileWithStandIns(name, beside, stood_in)
                                           : LoadFile(name, beside));
    if (!stood_in.empty()) {
      std::fprintf(stderr, "%s: not set, so a stand-in is used: %s\n", name.c_str(),
                   fmt::format("{}", fmt::join(stood_in, ", ")).c_str());
    }
    config::AddNew(findings, files.back().findings);
  }
  for (const config::Finding& finding : findings) {
    std::fprintf(stderr, "%s\n", config::FormatFinding(finding).c_str());
  }
  if (config::HasErrors(findings)) return kUsage;
  Totals totals;
  for (const config::LoadResult& file : files) RunFile(file, arguments.filter, totals);
  std::printf("%d test%s, %d failed\n", totals.run, totals.run == 1 ? "" : "s", totals.failed);
  if (totals.run == 0 && !arguments.filter.empty()) {
    return ExitFailed("no test has this in its name: " + arguments.filter);
  }
  if (totals.stuck) {
    std::fflush(nullptr);
    _exit(kFailed);  // its thread can be neither joined nor left without what it uses
  }
  return totals.failed == 0 ? kOk : kFailed;
}

}  // namespace

void AddTest(CLI::App& app, Run& run) {
  const auto arguments = std::make_shared<TestArguments>();
  CLI::App* command = app.add_subcommand(
      "test", "run the tests: of pipelines in process, on virtual time, without servers");
  AddPipelineFiles(*command, arguments->pipelines);
  command->add_option("--filter", arguments->filter, "only tests whose name holds this text");
  command->add_flag("--env-optional", arguments->env_optional,
                    "stand-ins for variables that are not set and files that cannot be read");
  command->callback([&run, arguments] { run = [arguments] { return RunTests(*arguments); }; });
}

}  // namespace fencepost::cli
