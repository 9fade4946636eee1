#include "tests/unit/tidy/source_tree.h"

#include <algorithm>
#include <filesystem>
#include <regex>

#include <fmt/format.h>

#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace fencepost::tidy {

namespace fs = std::filesystem;

std::vector<SourceFile> AllFiles() {
  std::vector<SourceFile> files;
  const fs::path top(testing::SourcePath());
  for (auto it = fs::recursive_directory_iterator(top); it != fs::recursive_directory_iterator();
       ++it) {
    const std::string name = it->path().filename().string();
    if (it->is_directory() && (name == "build" || (name.starts_with('.') && name != ".ci"))) {
      it.disable_recursion_pending();
    } else if (it->is_regular_file()) {
      files.push_back(
          {fs::relative(it->path(), top).string(), testing::ReadFile(it->path().string())});
    }
  }
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool Under(const SourceFile& file, std::string_view folder) {
  return file.path.size() > folder.size() && file.path.starts_with(folder) &&
         file.path[folder.size()] == '/';
}

std::vector<Include> Includes(const SourceFile& file) {
  static const std::regex kInclude(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])");
  std::vector<Include> includes;
  const auto lines = Lines(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::cmatch match;
    if (std::regex_search(lines[i].begin(), lines[i].end(), match, kInclude)) {
      includes.push_back({i + 1, match[2].str(), match[1].str() == "\""});
    }
  }
  return includes;
}

bool IsSource(const SourceFile& file) {
  return file.path.ends_with(".h") || file.path.ends_with(".cc");
}

std::string Complaint(const SourceFile& file, std::size_t line, std::string_view what) {
  return fmt::format("{}:{}: {}", file.path, line, what);
}

Complaints Check(Rule rule) {
  Complaints all;
  for (const SourceFile& file : AllFiles()) {
    for (std::string& complaint : rule(file)) all.push_back(std::move(complaint));
  }
  return all;
}

}  // namespace fencepost::tidy
