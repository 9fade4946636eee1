// fencepost create [KIND [DIR]]: a commented starter pipeline on standard output, or with its
// programs in a folder.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "config/loader.h"
#include "consumer/cli/shared/command.h"

namespace fencepost::cli {
namespace {

constexpr std::string_view kFolder = "config/examples/";

std::string Kinds() {
  std::string kinds;
  for (const config::Example& example : config::Examples()) {
    kinds += fmt::format("{}{}", kinds.empty() ? "" : ", ", example.name);
  }
  return kinds;
}

// KIND and what it is for, a line each: the first line of its text, but for a script's `#!`.
std::string Meanings() {
  std::string lines = "Kinds:\n";
  for (const config::Example& example : config::Examples()) {
    std::string_view line = example.text;
    if (line.starts_with("#!")) line.remove_prefix(line.find('\n') + 1);
    line = line.substr(0, line.find('\n'));
    const std::size_t words = line.find_first_not_of("# \"");
    lines += fmt::format("  {:<16} {}\n", example.name,
                         words == 0 ? "The smallest one: from Kafka to PostgreSQL."
                                    : line.substr(words, line.find_last_not_of('"') + 1 - words));
  }
  return lines;
}

struct CreatedFile {
  std::string name;
  std::string text;
};

bool IsPipeline(const config::Example& example) {
  return example.name.find('.') == std::string_view::npos;
}

// A kind's own file first, then the programs that its text names with their folder: where it is
// written to, they are beside it.
std::vector<CreatedFile> FilesOf(const config::Example& kind) {
  std::vector<CreatedFile> files{
      {fmt::format("{}{}", kind.name, IsPipeline(kind) ? ".yaml" : ""), std::string(kind.text)}};
  for (const config::Example& other : config::Examples()) {
    const std::string path = fmt::format("{}{}", kFolder, other.name);
    if (!IsPipeline(other) && kind.text.find(path) != std::string_view::npos) {
      files.push_back({std::string(other.name), std::string(other.text)});
    }
  }
  std::string& text = files.front().text;
  for (auto at = text.find(kFolder); at != std::string::npos; at = text.find(kFolder, at)) {
    text.erase(at, kFolder.size());
  }
  return files;
}

int Print(const std::vector<CreatedFile>& files) {
  for (const CreatedFile& file : files) {
    if (files.size() > 1) {
      fmt::print("{}==> {} <==\n", &file == &files.front() ? "" : "\n", file.name);
    }
    std::fwrite(file.text.data(), 1, file.text.size(), stdout);
  }
  return std::fflush(stdout) == 0 ? kOk : kFailed;
}

// All of them or, where one is there already, none.
int WriteInto(const std::filesystem::path& folder, const std::vector<CreatedFile>& files) {
  std::error_code error;
  for (const CreatedFile& file : files) {
    const std::filesystem::path path = folder / file.name;
    if (std::filesystem::exists(std::filesystem::symlink_status(path, error))) {
      return ExitUsage(fmt::format("create: {} exists: nothing was written", path.string()));
    }
  }
  std::filesystem::create_directories(folder, error);
  for (const CreatedFile& file : files) {
    const std::string path = (folder / file.name).string();
    std::FILE* out = std::fopen(path.c_str(), "wx");
    const bool written = out != nullptr && std::fwrite(file.text.data(), 1, file.text.size(),
                                                       out) == file.text.size();
    if ((out != nullptr && std::fclose(out) != 0) || !written) {
      return ExitFailed(fmt::format("create: cannot write {}: {}", path, std::strerror(errno)));
    }
    fmt::print("{}\n", path);
  }
  return kOk;
}

int Create(const std::string& kind, const std::string& folder) {
  const auto examples = config::Examples();
  const auto found = std::ranges::find(examples, kind, &config::Example::name);
  if (found == examples.end()) {
    return ExitUsage(fmt::format("create: there is no \"{}\"; there are {}", kind, Kinds()));
  }
  const std::vector<CreatedFile> files = FilesOf(*found);
  return folder.empty() ? Print(files) : WriteInto(folder, files);
}

}  // namespace

void AddCreate(CLI::App& app, Run& run) {
  struct Words {
    std::string kind = "orders";
    std::string folder;
  };
  const auto words = std::make_shared<Words>();
  CLI::App* command = app.add_subcommand("create", "print or write a pipeline to start from");
  command->add_option("KIND", words->kind, "one of " + Kinds())->capture_default_str();
  command->add_option("DIR", words->folder, "write it there, with the programs that it runs");
  command->footer(Meanings());
  command->callback(
      [&run, words] { run = [words] { return Create(words->kind, words->folder); }; });
}

}  // namespace fencepost::cli
