// The composition root. Read as a table of contents: each command has a file of its own beside
// this.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string_view>

#include <CLI/CLI.hpp>

#include "consumer/cli/shared/command.h"

#ifndef FENCEPOST_VERSION
#error "FENCEPOST_VERSION comes from CMake"
#endif

namespace fencepost::cli {

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
  // What follows -- of `lock exec` is another program's, word by word.
  const std::vector<char*> words(argv, argv + argc);
  const bool lock = argc > 1 && std::string_view(argv[1]) == "lock";
  const auto dashes = std::find_if(words.begin(), words.end(), [lock](const char* word) {
    return lock && std::string_view(word) == "--";
  });
  const std::vector<std::string> behind(dashes == words.end() ? dashes : dashes + 1, words.end());
  Run run;
  AddRun(app, run);
  AddDemo(app, run);
  AddLint(app, run);
  AddLocks(app, run);
  AddLock(app, run, behind);
  AddTest(app, run);
  AddBench(app, run);
  AddCreate(app, run);
  AddSchema(app, run);
  AddExplain(app, run);
  AddDlq(app, run);
  AddForget(app, run);
  AddHealth(app, run);
  AddVersion(app, run);
  try {
    app.parse(static_cast<int>(dashes - words.begin()), argv);
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
