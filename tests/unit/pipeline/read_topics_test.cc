// Which topics kafka.topics reads.
#include "consumer/pipeline/read_topics.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

TEST(ReadTopics, AreThoseThatAreNamedOrThatAPatternMatchesAsAWhole) {
  struct Row {
    std::vector<std::string> entries;
    const char* topic;
    bool read;
  };
  const Row rows[] = {
      {{"orders"}, "orders", true},
      {{"orders"}, "orders2", false},
      {{"or.ers"}, "orders", false},
      {{"^returns-.*"}, "returns-eu", true},
      {{"^returns-.*"}, "returns-", true},
      {{"^returns-.*"}, "my-returns-eu", false},
      {{"^returns-[a-z]+"}, "returns-eu", true},
      {{"^returns-[a-z]+"}, "returns-eu2", false},
      {{"^returns-[a-z]+$"}, "returns-eu", true},
      {{"^a|b"}, "a", true},
      {{"^a|b"}, "b", true},
      {{"^a|b"}, "ab", false},
      {{"^a|b"}, "xb", false},
      {{"^orders\\.[0-9]{2,3}"}, "orders.123", true},
      {{"^orders\\.[0-9]{2,3}"}, "ordersx123", false},
      {{"^Orders"}, "orders", false},
      {{"orders", "^a.*", "^b.*"}, "orders", true},
      {{"orders", "^a.*", "^b.*"}, "b1", true},
      {{"orders", "^a.*", "^b.*"}, "c", false},
      {{"^.*"}, "orders", true},
      {{"^.*"}, "_private", true},
      {{"^.*"}, "__consumer_offsets", false},
      {{"^__consumer_offsets"}, "__consumer_offsets", false},
      {{"__consumer_offsets"}, "__consumer_offsets", true},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(ReadTopics(row.entries).Has(row.topic), row.read)
        << ::testing::PrintToString(row.entries) << " " << row.topic;
  }
}

TEST(ReadTopics, TellWhatIsNamedFromWhatIsMatched) {
  const ReadTopics read{"orders", "^ord.*", "^b|c"};
  EXPECT_THAT(read.names(), ::testing::ElementsAre("orders"));
  EXPECT_EQ(read.pattern(), "^(ord.*|b|c)$");
  EXPECT_TRUE(read.Names("orders") && read.Matches("orders"));
  EXPECT_FALSE(read.Names("order"));
  EXPECT_TRUE(read.Matches("order"));
  EXPECT_EQ(ReadTopics{"orders"}.pattern(), "");
}

TEST(Pattern, ThatCannotBeOneSaysWhereAndWhy) {
  const std::pair<std::string, const char*> rows[] = {
      {"^orders-.*", ""},
      {"^[]a](b|c)\\)[[:digit:]][^]]", ""},
      {"^[)(]", ""},
      {"^", "nothing follows the ^"},
      {"^a[b", "a [ is not closed, at its character 3"},
      {"^a[[:digit:]", "a [ is not closed, at its character 3"},
      {"^a(b|(c)", "a ( is not closed, at its character 3"},
      {"^a)|(b", "a ) closes nothing, at its character 3"},
      {"^(a)\\1", "it refers back to a group, at its character 5"},
      {"^a\\", "Trailing backslash, at its character 3"},
      {"^\\.a\\", "Trailing backslash, at its character 5"},
      {"^*a", "Invalid preceding regular expression, at its character 2"},
      {"^a{3,2}b", "Invalid content of \\{\\}, at its character 7"},
      {"^ab{1", "Unmatched \\{, at its character 4"},
      {"^[b-a]c", "Invalid range end, at its character 5"},
      {"^[[:digits:]]", "Invalid character class name, at its character 12"},
      {"^" + std::string(499, 'a'), ""},
      {"^" + std::string(500, '('), "it is longer than 500 characters"},
      {"^[{]a{2,100}b{3}\\{", ""},
      {"^(a{2}|b)+", ""},
      {"^a{1,101}", "a bound is above 100, at its character 3"},
      {"^a{99999999999,}", "a bound is above 100, at its character 3"},
      {"^a{2}{3}", "a bound is about what has one already, at its character 6"},
      {"^(a{1,9}b){2}", "a bound is about what has one already, at its character 11"},
      {"^((a{2})b)+{2}", "a bound is about what has one already, at its character 12"},
      {"^(a+)+", ""},
      {"^(-[a-z]*)*(b?c|d){2,9}", ""},
      {"^(a|b*c|[d*]|\\**e)*", ""},
      {"^(a*)*{1,50}", "it repeats what may be empty, at its character 6"},
      {"^([a-z]*){1,100}", "it repeats what may be empty, at its character 10"},
      {"^(a*b?)+", "it repeats what may be empty, at its character 8"},
      {"^(a|)*", "it repeats what may be empty, at its character 6"},
      {"^(a|b*c|d{0,3})*", "it repeats what may be empty, at its character 16"},
      {"^((a)(b*|c)?|d)*", "it repeats what may be empty, at its character 12"},
      {"^(($|\\b)(a{,2}))*", "it repeats what may be empty, at its character 17"},
      {"^()*", "it repeats what may be empty, at its character 4"},
      {"^.*?", "it repeats what may be empty, at its character 4"},
      {std::string("^a\0b", 4), "it has a NUL, at its character 3"},
  };
  for (const auto& [pattern, problem] : rows)
    EXPECT_EQ(ProblemOfPattern(pattern), problem) << pattern;
}

}  // namespace
}  // namespace fencepost::consumer
