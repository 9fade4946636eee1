// House rules that a formatter does not know.
#include <filesystem>
#include <regex>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/paths.h"
#include "tests/unit/tidy/source_tree.h"

namespace fencepost::tidy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSubsetOf;
using ::testing::SizeIs;

constexpr std::size_t kMaxLines = 450;
constexpr std::size_t kMaxColumns = 100;

bool IsText(const SourceFile& file) {
  static const std::set<std::string> kEndings = {".h",    ".cc",  ".lua", ".cmake", ".md",
                                                 ".yaml", ".yml", ".sql", ".sh",    ".txt",
                                                 ".css",  ".js",  ".jq"};
  return kEndings.contains(std::filesystem::path(file.path).extension().string()) ||
         file.text.starts_with("#!/bin/bash");
}

std::size_t Columns(std::string_view line) {
  std::size_t columns = 0;
  for (const char c : line) columns += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return columns;
}

Complaints FilesAreShort(const SourceFile& file) {
  if (!IsSource(file) || Under(file, "tests")) return {};
  const std::size_t lines = Lines(file.text).size();
  if (lines <= kMaxLines) return {};
  return {
      Complaint(file, lines, fmt::format("longer than {} lines: one concept a file", kMaxLines))};
}

Complaints LinesFitTheScreen(const SourceFile& file) {
  Complaints complaints;
  if (!IsSource(file) && !file.path.ends_with(".lua") && !file.path.ends_with(".cmake")) return {};
  const auto lines = Lines(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (Columns(lines[i]) > kMaxColumns) {
      complaints.push_back(Complaint(file, i + 1, fmt::format("over {} columns", kMaxColumns)));
    }
  }
  return complaints;
}

Complaints HeadersAreIncludedOnce(const SourceFile& file) {
  if (!file.path.ends_with(".h")) return {};
  for (const std::string_view line : Lines(file.text)) {
    if (line == "#pragma once") return {};
    if (!line.empty() && !line.starts_with("//")) break;
  }
  return {Complaint(file, 1, "a header begins with its manual and #pragma once")};
}

Complaints WhitespaceIsPlain(const SourceFile& file) {
  Complaints complaints;
  if (!IsText(file)) return {};
  const auto lines = Lines(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find('\t') != std::string_view::npos) {
      complaints.push_back(Complaint(file, i + 1, "a tab"));
    }
    if (lines[i].ends_with(' ') || lines[i].ends_with('\r')) {
      complaints.push_back(Complaint(file, i + 1, "blanks at the end"));
    }
  }
  if (!file.text.empty() && !file.text.ends_with('\n')) {
    complaints.push_back(Complaint(file, lines.size(), "no newline at the end"));
  }
  return complaints;
}

Complaints NothingIsLeftForLater(const SourceFile& file) {
  // In two pieces, so that this file passes.
  static const std::regex kLater(R"(\b(TO)"
                                 R"(DO|FIX)"
                                 R"(ME|XX)"
                                 R"(X|HA)"
                                 R"(CK)\b|^\s*#\s*if 0\b)");
  Complaints complaints;
  if (!IsText(file)) return {};
  const auto lines = Lines(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (std::regex_search(lines[i].begin(), lines[i].end(), kLater)) {
      complaints.push_back(Complaint(file, i + 1, "do it, or write an issue"));
    }
  }
  return complaints;
}

Complaints TestsWaitForConditions(const SourceFile& file) {
  static const std::regex kSleep(R"(\b(sleep_for|sleep_until|usleep|nanosleep|sleep)\s*\()");
  Complaints complaints;
  if (!IsSource(file) || !Under(file, "tests") || Under(file, "tests/support")) return {};
  const auto lines = Lines(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (std::regex_search(lines[i].begin(), lines[i].end(), kSleep)) {
      complaints.push_back(Complaint(file, i + 1, "a test sleeps: use WaitUntil"));
    }
  }
  return complaints;
}

TEST(Style, HoldsSourceFilesTo450Lines) {
  EXPECT_THAT(Check(FilesAreShort), IsEmpty());
  std::string text;
  for (std::size_t i = 0; i <= kMaxLines; ++i) text += "int a;\n";
  EXPECT_THAT(FilesAreShort({"locking/a.cc", text}), SizeIs(1));
}

TEST(Style, HoldsLinesTo100Columns) {
  EXPECT_THAT(Check(LinesFitTheScreen), IsEmpty());
  EXPECT_THAT(LinesFitTheScreen({"a.h", "\n" + std::string(101, 'x') + "\n"}),
              ElementsAre("a.h:2: over 100 columns"));
  std::string umlauts;
  for (int i = 0; i < 100; ++i) umlauts += "ä";
  EXPECT_THAT(LinesFitTheScreen({"a.h", umlauts}), IsEmpty());
}

TEST(Style, WantsPragmaOnceInHeaders) {
  EXPECT_THAT(Check(HeadersAreIncludedOnce), IsEmpty());
  EXPECT_THAT(HeadersAreIncludedOnce({"a.h", "// What it is.\nint a;\n#pragma once\n"}), SizeIs(1));
}

TEST(Style, WantsNoTabsAndNoTrailingBlanks) {
  EXPECT_THAT(Check(WhitespaceIsPlain), IsEmpty());
  EXPECT_THAT(
      WhitespaceIsPlain({"a.md", "a\tb\nc \nd"}),
      ElementsAre("a.md:1: a tab", "a.md:2: blanks at the end", "a.md:3: no newline at the end"));
}

TEST(Style, LeavesNothingForLater) {
  EXPECT_THAT(Check(NothingIsLeftForLater), IsEmpty());
  EXPECT_THAT(NothingIsLeftForLater({"a.cc",
                                     "int a;  // TO"
                                     "DO: b\n"}),
              SizeIs(1));
  EXPECT_THAT(NothingIsLeftForLater({"a.cc", "#if 0\n"}), SizeIs(1));
}

TEST(Style, LetsTestsWaitForConditionsInsteadOfSleeping) {
  EXPECT_THAT(Check(TestsWaitForConditions), IsEmpty());
  EXPECT_THAT(TestsWaitForConditions({"tests/e2e/a/b.cc",
                                      "std::this_thread::sleep"
                                      "_for(1s);\n"}),
              SizeIs(1));
}

TEST(Style, KeepsTheTopLevelToSixFoldersAndAFewFiles) {
  std::vector<std::string> folders;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(testing::SourcePath())) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.') || name == "build") continue;
    (entry.is_directory() ? folders : files).push_back(name);
  }
  EXPECT_THAT(folders, ::testing::UnorderedElementsAre("locking", "consumer", "metrics", "config",
                                                       "deploy", "tests"));
  EXPECT_THAT(files,
              IsSubsetOf({"CMakeLists.txt", "CMakePresets.json", "README.md", "CHANGELOG.md",
                          "CONTRIBUTING.md", "DECISIONS.md", "SECURITY.md", "LICENSE", "dev"}));
}

}  // namespace
}  // namespace fencepost::tidy
