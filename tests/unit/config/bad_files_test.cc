// What is wrong with a file, its text, keys and values, and with what they mean together.
#include <fstream>
#include <ostream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/paths.h"
#include "tests/unit/config/pipeline_text.h"

namespace fencepost::config {
namespace {

// The good file, line by line, with what a case changes.
class Spoiled {
 public:
  void GoTo(int line) {
    while (line_ < line) Copy();
  }
  void Drop(const std::string& line) {
    std::string dropped;
    std::getline(good_, dropped);
    EXPECT_EQ(dropped, line) << "line " << line_ << " of the good file";
    ++line_;
  }
  void Add(const std::string& line) { text_ += line + "\n"; }
  std::string Text() {
    while (good_.peek() != EOF) Copy();
    return text_;
  }

 private:
  void Copy() {
    std::string line;
    std::getline(good_, line);
    Add(line);
    ++line_;
  }
  std::istringstream good_{kPipeline};
  int line_ = 1;
  std::string text_;
};

struct Case {
  std::string name;
  std::vector<std::string> changes, findings;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::vector<Case> Cases() {
  std::vector<Case> cases;
  std::ifstream file(testing::SourcePath("tests/unit/config/bad_files.txt"));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("# ")) {
      cases.push_back({.name = line.substr(2), .changes = {}, .findings = {}});
    } else if (!cases.empty() && !line.empty()) {
      const bool change = std::string_view("@-+").find(line.front()) != std::string_view::npos;
      (change ? cases.back().changes : cases.back().findings).push_back(line);
    }
  }
  return cases;
}

class BadFile : public ::testing::TestWithParam<Case> {};

TEST_P(BadFile, IsToldWithLineColumnAndRule) {
  Spoiled spoiled;
  for (const std::string& change : GetParam().changes) {
    if (change.front() == '@') spoiled.GoTo(std::stoi(change.substr(1)));
    if (change.front() == '-') spoiled.Drop(change.substr(1));
    if (change.front() == '+') spoiled.Add(change.substr(1));
  }
  const std::string text = spoiled.Text();
  const LoadResult result = LoadText(text, "p.yaml", FakeEnvironment());
  std::vector<std::string> expected;
  for (const std::string& finding : GetParam().findings) expected.push_back("p.yaml:" + finding);
  EXPECT_EQ(Lines(result.findings), expected) << text;
  EXPECT_EQ(result.options.has_value(), !HasErrors(result.findings));
}

INSTANTIATE_TEST_SUITE_P(Of, BadFile, ::testing::ValuesIn(Cases()),
                         [](const auto& test) { return test.param.name; });

std::vector<std::string> Whole(std::string_view text) {
  return Lines(LoadText(text, "p.yaml", FakeEnvironment()).findings);
}

TEST(BadText, IsToldBeforeAnyKey) {
  using ::testing::ElementsAre;
  const std::string empty =
      "p.yaml:1:1: error: the file is empty; fencepost create prints a pipeline to start from "
      "[yaml]";
  EXPECT_THAT(Whole(""), ElementsAre(empty));
  EXPECT_THAT(Whole("# nothing\n"), ElementsAre(empty));
  EXPECT_THAT(Whole("---\n"), ElementsAre(empty));
  EXPECT_THAT(
      Whole("- a\n"),
      ElementsAre("p.yaml:1:1: error: a pipeline is a map of keys, as in name: orders [yaml]"));
  const std::string not_text =
      "p.yaml:1:1: error: not a UTF-8 text without control characters [file]";
  EXPECT_THAT(Whole("a:\n\tb: 1\n"),
              ElementsAre("p.yaml:2:1: error: not YAML: a tab cannot indent, use spaces [yaml]"));
  EXPECT_THAT(Whole("a: \xff\n"), ElementsAre(not_text));
  EXPECT_THAT(Whole(std::string_view("a: \0\n", 5)), ElementsAre(not_text));
  EXPECT_THAT(Whole("\xff\xfe"), ElementsAre(not_text));
  EXPECT_THAT(Whole(std::string((1 << 20) + 1, '#')),
              ElementsAre("p.yaml:1:1: error: larger than 1 MiB [file]"));
  EXPECT_THAT(Whole("a: " + std::string(100, '[')),
              ElementsAre("p.yaml:1:20: error: nested deeper than 32 levels [yaml]"));
  EXPECT_THAT(Whole(std::string(100000, '[')), ::testing::SizeIs(1));
}

TEST(BadText, OfManyAliasesIsNotUnfolded) {
  std::string bomb = "a0: &a0 x\n";
  for (int i = 1; i < 40; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before + ", " + before +
            "]\n";
  }
  EXPECT_GT(Whole(bomb).size(), 100u);
}

}  // namespace
}  // namespace fencepost::config
