// The composition root. Read as a table of contents: each command has a file of its own beside
// this.
#include <cstdio>
#include <exception>

#include <CLI/CLI.hpp>

#include "consumer/cli/command.h"

#ifndef FENCEPOST_VERSION
#error "FENCEPOST_VERSION comes from CMake"
#endif

namespace fencepost::cli {

void PrintError(const std::string& line) { std::fprintf(stderr, "fencepost: %s\n", line.c_str()); }

std::string Version() { return FENCEPOST_VERSION; }
std::string Commit() { return FENCEPOST_COMMIT; }

void AddVersion(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("version", "print the version");
  command->callback([&run] {
    run = [] {
      std::printf("fencepost %s (%s)\n", Version().c_str(), Commit().c_str());
      return kOk;
    };
  });
}

namespace {

int Main(int argc, char** argv) {
  CLI::App app{
      "A Kafka consumer that processes each record exactly once where that can be had, "
      "and says plainly where it cannot.",
      "fencepost"};
  app.require_subcommand(1);
  app.set_version_flag("--version", Version());
  app.failure_message([](const CLI::App* failed, const CLI::Error& error) {
    return "fencepost: " + std::string(error.what()) + "; see `" + failed->get_name() +
           " --help`\n";
  });
  Run run;
  AddRun(app, run);
  AddDemo(app, run);
  AddLint(app, run);
  AddLocks(app, run);
  AddTest(app, run);
  AddBench(app, run);
  AddCreate(app, run);
  AddSchema(app, run);
  AddExplain(app, run);
  AddDlq(app, run);
  AddForget(app, run);
  AddVersion(app, run);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  return run();
}

}  // namespace
}  // namespace fencepost::cli

int main(int argc, char** argv) {
  try {
    return fencepost::cli::Main(argc, argv);
  } catch (const std::exception& error) {
    fencepost::cli::PrintError(error.what());
    return fencepost::cli::kFailed;
  }
}
