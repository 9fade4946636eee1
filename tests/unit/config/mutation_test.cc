// Spoils good files in thousands of ways, the same ones each time: nothing may crash, hang or loop,
// and what is said must be fit to print.
#include <random>

#include <gtest/gtest.h>

#include "config/examples.h"
#include "tests/unit/config/pipeline_text.h"

namespace fencepost::config {
namespace {

std::string Mutated(std::string text, const std::string& other, std::mt19937& random) {
  static const std::vector<std::string> kBits = {"{",
                                                 "}",
                                                 "[",
                                                 "]",
                                                 "?",
                                                 "? ",
                                                 ": ",
                                                 ":",
                                                 "- ",
                                                 "&a ",
                                                 "*a",
                                                 "!",
                                                 "!!str ",
                                                 "|\n",
                                                 ">\n",
                                                 "\"",
                                                 "'",
                                                 "#",
                                                 " #",
                                                 "\n",
                                                 "\n---\n",
                                                 "\n...\n",
                                                 "%YAML 1.2\n",
                                                 "\t",
                                                 "  ",
                                                 ",",
                                                 "~",
                                                 "<<: ",
                                                 "${",
                                                 "$${",
                                                 "${A:-",
                                                 "${file:/dev/null}",
                                                 "\\",
                                                 "\\x",
                                                 "@",
                                                 "`",
                                                 "010",
                                                 "-1",
                                                 "99999999999999999999s",
                                                 "=",
                                                 "\r\n",
                                                 "\xc3\xa9",
                                                 "\xef\xbb\xbf",
                                                 "lock:",
                                                 "null",
                                                 "\"\\u0000\""};
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (std::size_t edits = 1 + below(4); edits > 0 && !text.empty(); --edits) {
    const std::size_t at = below(text.size());
    switch (below(6)) {
      case 0:
        text[at] = static_cast<char>(random() % 128);
        break;
      case 1:
        text.erase(at, 1 + below(20));
        break;
      case 2:
      case 3:
        text.insert(at, kBits[below(kBits.size())]);
        break;
      case 4:
        text.insert(at, other.substr(below(other.size()), 1 + below(40)));
        break;
      default:
        text.insert(at, text.substr(below(text.size()), 1 + below(40)));
        break;
    }
  }
  return text;
}

TEST(Loader, SurvivesMutatedFiles) {
  std::vector<std::string> seeds = {kPipeline};
  for (const Example& example : Examples()) {
    if (!example.name.ends_with(".py")) seeds.emplace_back(example.text);
  }
  ASSERT_GT(seeds.size(), 5u);
  const Environment environment = FakeEnvironment();
  std::mt19937 random(7);
  int good = 0;
  for (std::size_t i = 0; i < 12000; ++i) {
    const std::string text =
        Mutated(seeds[i % seeds.size()], seeds[(i + 1) % seeds.size()], random);
    SCOPED_TRACE(text);
    const LoadResult result = LoadText(text, "p.yaml", environment);
    ASSERT_NE(result.options.has_value(), HasErrors(result.findings));
    good += result.options ? 1 : 0;
    for (const Finding& finding : result.findings) {
      ASSERT_GE(finding.line, 1);
      ASSERT_GE(finding.col, 1);
      ASSERT_FALSE(finding.message.empty());
      ASSERT_EQ(finding.message.find('\n'), std::string::npos);
      ASSERT_EQ(finding.message.find("hunter2"), std::string::npos);
    }
  }
  EXPECT_GT(good, 500);
  EXPECT_LT(good, 15000);
}

}  // namespace
}  // namespace fencepost::config
