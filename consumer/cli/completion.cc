// fencepost completion SHELL: a script that asks `fencepost completion SHELL -- WORD...` what it
// offers for the last of these words, which is not complete. So it knows the commands as they are.
#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "consumer/cli/shared/command.h"

namespace fencepost::cli {
namespace {

// Files are completed by the shell where no word is offered (-o default).
constexpr std::string_view kBash = R"(_fencepost() {
  COMPREPLY=($("${COMP_WORDS[0]}" completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _fencepost fencepost
)";
constexpr std::string_view kZsh = "autoload -U +X bashcompinit && bashcompinit\n";
constexpr std::string_view kFish =
    "complete -c fencepost -a "
    "'(fencepost completion fish -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'\n";

void Offer(const CLI::App& app, const std::vector<std::string>& words, bool fish) {
  const auto offer = [&](const std::string& name, const std::string& meaning) {
    if (name.starts_with(words.back())) fmt::print("{}{}\n", name, fish ? "\t" + meaning : "");
  };
  const CLI::App* here = &app;
  for (const std::string& word : words) {
    if (&word == &words.back()) break;
    const auto commands = here->get_subcommands(nullptr);
    const auto named = std::ranges::find(commands, word, &CLI::App::get_name);
    if (named != commands.end()) here = *named;
  }
  for (const CLI::App* command : here->get_subcommands(nullptr)) {
    offer(command->get_name(), command->get_description());
  }
  if (!words.back().starts_with('-')) return;
  for (const CLI::Option* option : here->get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    for (const std::string& name : option->get_lnames()) {
      offer("--" + name, option->get_description());
    }
  }
}

struct CompletionArguments {
  std::string shell;
  std::vector<std::string> words;
};

int Complete(const CLI::App& app, const CompletionArguments& arguments) {
  const bool fish = arguments.shell == "fish";
  if (!arguments.words.empty()) {
    Offer(app, arguments.words, fish);
  } else {
    fmt::print("{}{}", arguments.shell == "zsh" ? kZsh : "", fish ? kFish : kBash);
  }
  return std::fflush(stdout) == 0 ? kOk : kFailed;
}

}  // namespace

void AddCompletion(CLI::App& app, Run& run) {
  const auto arguments = std::make_shared<CompletionArguments>();
  CLI::App* command = app.add_subcommand("completion", "print a script that completes commands");
  command->add_option("SHELL", arguments->shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->add_option("WORD", arguments->words, "what the script asks for, behind --");
  command->callback(
      [&app, &run, arguments] { run = [&app, arguments] { return Complete(app, *arguments); }; });
}

}  // namespace fencepost::cli
