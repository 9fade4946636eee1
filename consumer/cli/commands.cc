// The composition root. Read as a table of contents: each command has a file of its own beside
// this.
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "config/schema/json_schema.h"
#include "consumer/cli/shared/command.h"
#include "consumer/worker/worker_parts.h"

namespace fencepost::cli {
namespace {

void AddVersion(CLI::App& app, Run& run) {
  CLI::App* command =
      app.add_subcommand("version", "print the version, and those of the libraries");
  command->callback([&run] {
    run = [] {
      std::printf("fencepost %s (%s)\n", Version().c_str(), Commit().c_str());
      for (const auto& [name, version] : consumer::LibraryVersions()) {
        std::printf("  %s %s\n", name.c_str(), version.c_str());
      }
      return kOk;
    };
  });
}

void AddSchema(CLI::App& app, Run& run) {
  CLI::App* command =
      app.add_subcommand("schema", "print the JSON Schema of the pipeline file, for editors");
  command->callback([&run] {
    run = [] {
      fmt::print("{}", config::JsonSchemaText());
      return std::fflush(stdout) == 0 ? kOk : kFailed;
    };
  });
}

}  // namespace

void AddCommands(CLI::App& app, Run& run, const std::vector<std::string>& command_words) {
  AddRun(app, run);
  AddDev(app, run);
  AddDemo(app, run);
  AddLint(app, run);
  AddLocks(app, run);
  AddLock(app, run, command_words);
  AddTest(app, run);
  AddTables(app, run);
  AddBench(app, run);
  AddCreate(app, run);
  AddSchema(app, run);
  AddExplain(app, run);
  AddDlq(app, run);
  AddForget(app, run);
  AddHealth(app, run);
  AddTop(app, run);
  AddVersion(app, run);
  AddCompletion(app, run);
}

}  // namespace fencepost::cli
