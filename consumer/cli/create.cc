// fencepost create [KIND]: a commented starter pipeline on standard output.
#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "config/loader.h"
#include "consumer/cli/shared/command.h"

namespace fencepost::cli {
namespace {

std::string Kinds() {
  std::string kinds;
  for (const config::Example& example : config::Examples()) {
    kinds += fmt::format("{}{}", kinds.empty() ? "" : ", ", example.name);
  }
  return kinds;
}

// KIND and what it is for, a line each: the first line of its text.
std::string Meanings() {
  std::string lines = "Kinds:\n";
  for (const config::Example& example : config::Examples()) {
    std::string_view text = example.text;
    if (text.starts_with("#!")) text.remove_prefix(text.find('\n') + 1);
    const std::string_view line = text.substr(0, text.find('\n'));
    const std::size_t words = line.find_first_not_of("# \"");
    lines += fmt::format(
        "  {:<16} {}\n", example.name,
        words == 0 ? "The smallest one: from Kafka to PostgreSQL." : line.substr(words));
  }
  return lines;
}

int Create(const std::string& kind) {
  const auto examples = config::Examples();
  const auto found = std::find_if(examples.begin(), examples.end(),
                                  [&](const config::Example& e) { return e.name == kind; });
  if (found == examples.end()) {
    return ExitUsage(fmt::format("create: there is no \"{}\"; there are {}", kind, Kinds()));
  }
  // Where it is printed to, the program is printed beside it.
  std::string text(found->text);
  constexpr std::string_view kFolder = "config/examples/";
  for (auto at = text.find(kFolder); at != std::string::npos; at = text.find(kFolder, at)) {
    text.erase(at, kFolder.size());
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0 ? kOk : kFailed;
}

}  // namespace

void AddCreate(CLI::App& app, Run& run) {
  const auto kind = std::make_shared<std::string>("orders");
  CLI::App* command = app.add_subcommand("create", "print a pipeline to start from");
  command->add_option("KIND", *kind, "one of " + Kinds())->capture_default_str();
  command->footer(Meanings());
  command->callback([&run, kind] { run = [kind] { return Create(*kind); }; });
}

}  // namespace fencepost::cli
