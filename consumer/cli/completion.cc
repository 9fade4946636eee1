// fencepost completion bash|zsh|fish: a script for the shell, made of the commands as they are.
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "consumer/cli/shared/command.h"

namespace fencepost::cli {
namespace {

struct Words {
  std::vector<const CLI::App*> commands;
  std::vector<std::string> options;  // --http
};
// By the words before it: "" is fencepost itself, then " locks", " locks init".
using Tree = std::map<std::string, Words>;

void Collect(const CLI::App& app, const std::string& path, Tree& tree) {
  Words& words = tree[path];
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    for (const std::string& name : option->get_lnames()) words.options.push_back("--" + name);
  }
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    words.commands.push_back(command);
    Collect(*command, path + " " + command->get_name(), tree);
  }
}

std::vector<std::string> Names(const std::vector<const CLI::App*>& commands) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands) names.push_back(command->get_name());
  return names;
}

// Files are completed by the shell where no word is offered (-o default).
std::string Bash(const Tree& tree) {
  std::string known;
  std::string offered;
  for (const auto& [path, words] : tree) {
    if (!path.empty()) known += fmt::format("{}\"{}\"", known.empty() ? "" : " | ", path);
    offered += fmt::format("    \"{}\")\n      commands=\"{}\" options=\"{}\" ;;\n", path,
                           fmt::join(Names(words.commands), " "), fmt::join(words.options, " "));
  }
  return fmt::format(R"(_fencepost() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} path="" commands="" options="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path ${{COMP_WORDS[i]}}" in
      {}) path+=" ${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$path" in
{}  esac
  local words=$commands
  [[ $current != -* ]] || words=$options
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -o default -F _fencepost fencepost
)",
                     known, offered);
}

std::string Fish(const Tree& tree) {
  std::string lines;
  for (const auto& [path, words] : tree) {
    const auto last = path.rfind(' ');
    const std::string here = path.empty() ? "__fish_use_subcommand"
                                          : "__fish_seen_subcommand_from " + path.substr(last + 1);
    const std::string names = fmt::format("{}", fmt::join(Names(words.commands), " "));
    for (const CLI::App* command : words.commands) {
      const std::string when =
          path.empty() ? here : here + "; and not __fish_seen_subcommand_from " + names;
      std::string meaning = command->get_description();
      std::erase(meaning, '\'');
      lines += fmt::format("complete -c fencepost -n '{}' -a {} -d '{}'\n", when,
                           command->get_name(), meaning);
    }
    for (const std::string& option : words.options) {
      lines += fmt::format("complete -c fencepost -n '{}' -l {}\n", here, option.substr(2));
    }
  }
  return lines;
}

int Complete(const CLI::App& app, const std::string& shell) {
  Tree tree;
  Collect(app, "", tree);
  std::string script;
  if (shell == "fish") {
    script = Fish(tree);
  } else {
    if (shell == "zsh") script = "autoload -U +X bashcompinit && bashcompinit\n";
    script += Bash(tree);
  }
  std::fwrite(script.data(), 1, script.size(), stdout);
  return std::fflush(stdout) == 0 ? kOk : kFailed;
}

}  // namespace

void AddCompletion(CLI::App& app, Run& run) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "print a script that completes commands");
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([&app, &run, shell] { run = [&app, shell] { return Complete(app, *shell); }; });
}

}  // namespace fencepost::cli
