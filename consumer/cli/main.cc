// The entry point: errors of the command line, and the exit code.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "config/text/suggestion.h"
#include "consumer/cli/shared/command.h"

namespace fencepost::cli {
namespace {

// As it was typed: "fencepost locks init".
std::string CommandOf(const CLI::App& app) {
  std::string name = app.get_name();
  for (const CLI::App* parsed : app.get_subcommands()) name += " " + CommandOf(*parsed);
  return name;
}

std::optional<std::string> UnknownCommand(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return std::nullopt;
  const std::string_view word = argv[1];
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  if (std::ranges::find(names, word) != names.end()) return std::nullopt;
  const auto near = config::Nearest(word, names);
  return fmt::format("unknown command \"{}\"{}; see `fencepost --help`", word,
                     near ? fmt::format("; did you mean {}?", *near) : "");
}

int Main(int argc, char** argv) {
  CLI::App app{
      "A Kafka consumer that gives each record its effect exactly once where the output makes that "
      "possible, and refuses to claim it where the output does not.",
      "fencepost"};
  app.require_subcommand(1);
  app.set_version_flag("--version", Version());
  app.failure_message([](const CLI::App* failed, const CLI::Error& error) {
    return "fencepost: " + std::string(error.what()) + "; see `" + CommandOf(*failed) +
           " --help`\n";
  });
  // What follows -- of `lock exec` is another program's, word by word.
  std::vector<char*> words(argv, argv + argc);
  static char help[] = "--help";
  if (argc > 1 && std::string_view(argv[1]) == "help") {  // `help lint` is `lint --help`
    words.erase(words.begin() + 1);
    words.push_back(help);
  }
  const bool lock = words.size() > 1 && std::string_view(words[1]) == "lock";
  const auto dashes = std::find_if(words.begin(), words.end(), [lock](const char* word) {
    return lock && std::string_view(word) == "--";
  });
  const std::vector<std::string> behind(dashes == words.end() ? dashes : dashes + 1, words.end());
  Run run;
  AddCommands(app, run, behind);
  if (const auto unknown = UnknownCommand(app, static_cast<int>(words.size()), words.data())) {
    PrintError(*unknown);
    return kUsage;
  }
  try {
    app.parse(static_cast<int>(dashes - words.begin()), words.data());
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
