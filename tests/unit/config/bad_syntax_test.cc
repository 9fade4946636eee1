// What is wrong with the text and its keys.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/bad_file.h"

namespace fencepost::config {
namespace {

TEST_P(BadFile, IsToldWithLineColumnAndRule) {
  const Case& c = GetParam();
  std::string text = kPipeline;
  const std::size_t at = text.find(c.from);
  ASSERT_NE(at, std::string::npos) << c.from;
  text.replace(at, std::string_view(c.from).size(), c.to);
  const LoadResult result = LoadText(text, "p.yaml", FakeEnvironment());
  std::vector<std::string> expected;
  for (const std::string& finding : c.findings) expected.push_back("p.yaml:" + finding);
  EXPECT_EQ(Lines(result.findings), expected) << text;
  EXPECT_EQ(result.options.has_value(), !HasErrors(result.findings));
}

INSTANTIATE_TEST_SUITE_P(
    Syntax, BadFile,
    testing::Values(
        Case{"Tab",
             "  redis:",
             "\tredis:",
             {"9:1: error: not YAML: a tab cannot indent, use spaces [yaml]"}},
        Case{"OpenQuote",
             "path: orders.db",
             "path: \"orders.db",
             {"14:11: error: not YAML: the quote is never closed [yaml]"}},
        Case{"OpenQuoteAtTheEnd",
             "      amount: json:/amount\n",
             "      amount: 'it''s\n",
             {"18:15: error: not YAML: the quote is never closed [yaml]"}},
        Case{"SecondDocument",
             "version: 1\n",
             "version: 1\n---\n",
             {"2:1: error: a pipeline file holds one document only [yaml]"}},
        Case{"AnchorAndAlias",
             "[127.0.0.1:9092]",
             "&a [*a]",
             {"4:12: error: anchors are not allowed: write the value out [anchor]",
              "4:16: error: aliases are not allowed: write the value out [alias]",
              "4:16: error: kafka.brokers: \"\" is not HOST:PORT [value]"}},
        Case{"UnknownAlias",
             "path: orders.db",
             "path: *db",
             {"14:11: error: aliases are not allowed: write the value out [alias]"}},
        Case{"Tag",
             "name: orders",
             "name: !!str orders",
             {"2:7: error: tags are not allowed: leave it out [tag]"}},
        Case{"LoneTag",
             "name: orders",
             "name: ! orders",
             {"2:7: error: tags are not allowed: leave it out [tag]"}},
        Case{"TagOnAMap",
             "\n  redis:",
             " !x\n  redis:",
             {"8:7: error: tags are not allowed: leave it out [tag]"}},
        Case{"DuplicateKey",
             "name: orders\n",
             "name: orders\nname: others\n",
             {"3:1: error: the key \"name\" is given twice [duplicate-key]"}},
        Case{"DuplicateColumn",
             "      amount:",
             "      \"order_id\":",
             {"18:7: error: the key \"order_id\" is given twice [duplicate-key]"}},
        Case{"DuplicateKeyWithinBraces",
             "path: orders.db",
             "path: {a: 1, a: 2}",
             {"14:11: error: output.sqlite.path needs a single value, here is a map [type]",
              "14:18: error: the key \"a\" is given twice [duplicate-key]"}},
        Case{"KeyThatIsAList",
             "name: orders",
             "? [a]\n: orders",
             {"1:1: error: name is missing [missing]",
              "2:3: error: a key must be a plain text [yaml]"}},
        Case{"UnquotedVariableInBraces",
             "{SECRET}",
             "{X}",
             {"11:15: error: lock.redis.password: the variable X is not set; ${X:-default} gives a "
              "default [variable]"}},
        Case{"UnquotedBraceInAFlowMap",
             "lock:\n",
             "observe: {http: ${ADDR}}\nlock:\n",
             {"8:17: error: inside {} and [] YAML needs values with ?, { or } quoted, as in "
              "\"${VAR}\" "
              "or \"json:/note?\" [quoting]"}},
        Case{"UnquotedQuestionMarkInAFlowMap",
             "lock:\n",
             "observe: {a: 'it''s {', http: json:/x?, b: c}\nlock:\n",
             {"8:31: error: inside {} and [] YAML needs values with ?, { or } quoted, as in "
              "\"${VAR}\" "
              "or \"json:/note?\" [quoting]"}},
        Case{"UnquotedBraceInAFlowList",
             "[orders]",
             "[orders, x}]",
             {"5:20: error: inside {} and [] YAML needs values with ?, { or } quoted, as in "
              "\"${VAR}\" "
              "or \"json:/note?\" [quoting]"}},
        Case{"NotWhatTheQuotingRuleMeans",
             "[orders]",
             "{a: b, c: [d, {e: f}]}\n  x: [orders",
             {"7:13: error: not YAML: end of sequence flow not found [yaml]"}},
        Case{"BracesElsewhereAreNoFlow",
             "name: orders\n",
             "name: orders # {a?\nx: it's {?\ny: |\n  {a?\n\n  it's\nz: \"{?\": 1\n",
             {"8:8: error: not YAML: illegal map value [yaml]"}}),
    NameOfCase);

INSTANTIATE_TEST_SUITE_P(
    Keys, BadFile,
    testing::Values(
        Case{"Slip",
             "brokers:",
             "broker:",
             {"3:1: error: kafka.brokers is missing [missing]",
              "4:3: error: unknown key \"broker\" in kafka; did you mean \"brokers\"? "
              "[unknown-key]"}},
        Case{"SlipAtTheTop",
             "record_id:",
             "recordid:",
             {"7:1: error: unknown key \"recordid\"; did you mean \"record_id\"? [unknown-key]"}},
        Case{"KeyOfAnotherSection",
             "    password:",
             "    ttl: 1s\n    password:",
             {"11:5: error: unknown key \"ttl\" in lock.redis; did you mean \"tls\"?; there is "
              "lock.ttl "
              "[unknown-key]"}},
        Case{"NothingLikeIt",
             "  redis:",
             "  zzz: 1\n  redis:",
             {"9:3: error: unknown key \"zzz\" in lock [unknown-key]"}},
        Case{"DottedKey",
             "name: orders\n",
             "name: orders\nlock.ttl: 1s\n",
             {"3:1: error: unknown key \"lock.ttl\" [unknown-key]"}},
        Case{"MergeKey",
             "name: orders\n",
             "name: orders\n<<: {a: b}\n",
             {"3:1: error: unknown key \"<<\" [unknown-key]"}},
        Case{"MissingAtTheTop",
             "version: 1\nname: orders\n",
             "",
             {"1:1: error: version is missing [missing]", "1:1: error: name is missing [missing]"}},
        Case{"MissingInASection",
             "    table: effects\n",
             "",
             {"13:3: error: output.sqlite.table is missing [missing]"}},
        Case{"NoValue",
             "path: orders.db",
             "path:",
             {"14:5: error: output.sqlite.path has no value [type]"}},
        Case{"ListForAText",
             "path: orders.db",
             "path: [orders.db]",
             {"14:11: error: output.sqlite.path needs a single value, here is a list [type]"}},
        Case{"TextForAList",
             "[orders]",
             "orders",
             {"5:11: error: kafka.topics needs a list, here is a single value [type]"}},
        Case{"MapInAList",
             "[orders]",
             "[{a: b}]",
             {"5:12: error: kafka.topics needs single values, here is a map [type]"}},
        Case{"EmptyList", "[orders]", "[]", {"5:3: error: kafka.topics is empty [value]"}},
        Case{"NullInAList",
             "[orders]",
             "[orders, ~]",
             {"5:20: error: kafka.topics needs single values, here is nothing [type]"}},
        Case{"EmptyColumns",
             "columns:\n      order_id: json:/order_id\n      amount: json:/amount",
             "columns: {}",
             {"16:5: error: output.sqlite.columns is empty [value]"}}),
    NameOfCase);

std::vector<std::string> Whole(std::string_view text) {
  return Lines(LoadText(text, "p.yaml", FakeEnvironment()).findings);
}

TEST(BadText, IsToldBeforeAnyKey) {
  using testing::ElementsAre;
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
  EXPECT_THAT(Whole("a: \xff\n"), ElementsAre(not_text));
  EXPECT_THAT(Whole(std::string_view("a: \0\n", 5)), ElementsAre(not_text));
  EXPECT_THAT(Whole("\xff\xfe"), ElementsAre(not_text));
  EXPECT_THAT(Whole(std::string((1 << 20) + 1, '#')),
              ElementsAre("p.yaml:1:1: error: larger than 1 MiB [file]"));
  EXPECT_THAT(Whole("a: " + std::string(100, '[')),
              ElementsAre("p.yaml:1:20: error: nested deeper than 32 levels [yaml]"));
  EXPECT_THAT(Whole(std::string(100000, '[')), testing::SizeIs(1));
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
