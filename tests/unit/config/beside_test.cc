// What the command line gives beside a pipeline's file: --with and --set.
#include <map>
#include <ostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/pipeline_text.h"

namespace fencepost::config {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kOwn = R"(version: 1
name: orders
kafka:
  topics: [orders]
record_id: json:/order_id
on_bad_record: stop
output:
  sqlite: {path: orders.db, table: effects, columns: {order_id: json:/order_id}}
)";
constexpr const char* kShared = R"(lock:
  ttl: 20s
  redis: {nodes: [127.0.0.1:7001], password: "${SECRET}"}
kafka:
  brokers: [127.0.0.1:9092]
)";

// `with`: the texts of 1.yaml, 2.yaml and so on, or none for kShared.
struct Row {
  std::string name;
  std::string more;  // of p.yaml, behind kOwn
  std::vector<std::string> with, set;
  std::vector<std::string> findings;
  std::map<std::string, std::string> shown{};  // as the status page has them; "": not there
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

LoadResult LoadRow(const Row& row) {
  const std::vector<std::string> texts =
      row.with.empty() ? std::vector<std::string>{kShared} : row.with;
  Environment environment = FakeEnvironment();
  environment.read_file = [&](const std::string& path) -> tl::expected<std::string, std::string> {
    const std::size_t number = std::stoul(path) - 1;
    if (number < texts.size()) return texts[number];
    return tl::unexpected(std::string("cannot be read"));
  };
  Beside beside{.with = {}, .set = row.set};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    beside.with.push_back(texts[i] == "?" ? "99.yaml" : std::to_string(i + 1) + ".yaml");
  }
  return LoadText(kOwn + row.more, "p.yaml", environment, beside);
}

const std::vector<Row> kRows = {
    {"SectionsAreMergedMapByMap",
     "lock: {wait: 10s, redis: {username: u}}\n",
     {},
     {},
     {},
     {{"kafka.topics", "orders"},
      {"kafka.brokers", "127.0.0.1:9092"},
      {"lock.ttl", "20s"},
      {"lock.wait", "10s"},
      {"lock.redis.username", "u"},
      {"lock.redis.password", "(not shown)"}}},
    {"ASecretIsSetAsAFile",
     "",
     {"lock: {redis: {nodes: [127.0.0.1:7001]}}\nkafka: {brokers: [127.0.0.1:9092]}\n"},
     {"lock.redis.password={file: /proc/sys/kernel/ostype}"},
     {},
     {{"lock.redis.password", "(not shown)"}}},
    {"AMapOfTheUsersOwnNamesIsAMapToo",
     "",
     {kShared, "output: {sqlite: {columns: {amount: json:/amount}}}"},
     {},
     {},
     {{"output.sqlite.columns", "order_id: json:/order_id, amount: json:/amount"}}},
    {"AListIsGivenInOneFile",
     "",
     {"lock: {redis: {nodes: [a:1]}}\nkafka:\n  brokers: [a:1]\n  topics: [b]\n"},
     {},
     {"p.yaml:4:3: error: kafka.topics is given at 1.yaml:4:3 too: leave one of them out "
      "[duplicate-key]"}},
    {"AValueIsGivenInOneFileEvenIfItIsTheSame",
     "lock: {ttl: 20s}\n",
     {},
     {},
     {"p.yaml:9:8: error: lock.ttl is given at 1.yaml:2:3 too: leave one of them out "
      "[duplicate-key]"}},
    {"AMapAndATextOfOneKeyAreNotMerged",
     "observe: x\n",
     {kShared, "observe: {http: ':1'}"},
     {},
     {"p.yaml:9:1: error: observe is given at 2.yaml:1:1 too: leave one of them out "
      "[duplicate-key]",
      "p.yaml:9:10: error: observe needs a map, here is a single value [type]"}},
    {"TwoSharedFilesGiveAKeyOnce",
     "",
     {kShared, "lock:\n  ttl: 9s\n"},
     {},
     {"1.yaml:2:3: error: lock.ttl is given at 2.yaml:2:3 too: leave one of them out "
      "[duplicate-key]"}},
    {"AnUnknownKeyIsToldWhereItIs",
     "",
     {kShared, "\nobserv: {}\n"},
     {},
     {"2.yaml:2:1: error: unknown key \"observ\"; did you mean \"observe\"? [unknown-key]"}},
    {"AWrongValueIsToldWhereItIs",
     "ledger: {keep: 5}\n",
     {kShared, "processing:\n  timeout: 5\n"},
     {},
     {"p.yaml:9:16: error: ledger.keep: \"5\" is not a duration; write 250ms, 10s, 5m, "
      "24h or 7d [value]",
      "2.yaml:2:12: error: processing.timeout: \"5\" is not a duration; write 250ms, 10s, 5m, "
      "24h or 7d [value]"}},
    {"WhatIsMissingIsMissingInThePipeline",
     "",
     {kShared, "dead_letter: {}\n"},
     {},
     {"p.yaml:1:1: error: dead_letter.topic is missing [missing]"}},
    {"AVariableOfASharedFileIsReplaced",
     "",
     {kShared, "observe: {http: \"${MISSING}\"}\n"},
     {},
     {"2.yaml:1:17: error: observe.http: the variable MISSING is not set; ${MISSING:-default} "
      "gives a default [variable]"}},
    {"AFileThatCannotBeReadIsAllThatIsTold",
     "lok: 1\n",
     {"?"},
     {},
     {"99.yaml:1:1: error: cannot be read [file]"}},
    {"AFileThatIsNoYamlIsAllThatIsTold",
     "lok: 1\n",
     {kShared, "lock:\n\tttl: 5s\n"},
     {},
     {"2.yaml:2:1: error: not YAML: a tab cannot indent, use spaces [yaml]"}},
    {"AnEmptySharedFileIsLeftOut",
     "",
     {kShared, "# nothing yet\n"},
     {},
     {"2.yaml:1:1: error: the file is empty: leave out --with [yaml]"}},
    {"AQuestionMarkOfASharedFileIsRead",
     "",
     {kShared, "output: {sqlite: {columns: {amount: json:/a?}}}"},
     {},
     {},
     {{"output.sqlite.columns", "order_id: json:/order_id, amount: json:/a?"}}},
    {"SetReplacesWhatTheFilesSay",
     "processing: {concurrency: 3}\n",
     {},
     {"lock.ttl=30s", "processing.concurrency=5", "observe.http=127.0.0.1:1"},
     {},
     {{"lock.ttl", "30s"}, {"processing.concurrency", "5"}, {"observe.http", "127.0.0.1:1"}}},
    {"SetTakesListsAsTheyAreWrittenInAFile",
     "",
     {},
     {"kafka.topics=a,b", "record_id=[json:/a, 'json:/b']",
      "kafka.brokers=[\"${BROKER:-k:1}\", l:2]"},
     {},
     {{"kafka.topics", "a, b"},
      {"record_id", "json:/a, json:/b"},
      {"kafka.brokers", "${BROKER:-k:1}, l:2"}}},
    {"SetTakesAnAddressInBracketsForNoList",
     "",
     {},
     {"kafka.brokers=[::1]:9092"},
     {},
     {{"kafka.brokers", "[::1]:9092"}}},
    {"SetTakesAMapInPlaceOfASection",
     "lock: {redis: {username: u}}\n",
     {},
     {"lock.redis={nodes: [b:1]}", "kafka.tls={}"},
     {},
     {{"lock.redis.nodes", "b:1"}, {"lock.redis.username", ""}, {"lock.redis.password", ""}}},
    {"SetTakesATextWordByWord",
     "",
     {},
     {"when=.a == \"x # y: [z]\"", "lock.redis.password=p#: 1"},
     {},
     {{"when", ".a == \"x # y: [z]\""}, {"lock.redis.password", "(not shown)"}}},
    {"SetNamesWhatAMapHas",
     "",
     {},
     {"output.sqlite.columns.order_id=key", "output.sqlite.columns.at=timestamp",
      "kafka.librdkafka.fetch.wait.max.ms=50"},
     {},
     {{"output.sqlite.columns", "order_id: key, at: timestamp"},
      {"kafka.librdkafka", "fetch.wait.max.ms: (not shown)"}}},
    {"SetReplacesTheVariableThatIsNotSet",
     "observe: {http: \"${MISSING}\"}\n",
     {},
     {"observe.http=127.0.0.1:1"},
     {},
     {{"observe.http", "127.0.0.1:1"}}},
    {"SetOfAnUnknownKeyNamesTheNearest",
     "",
     {},
     {"lock.tll=5s", "ttl=5s", "lok.ttl=5s"},
     {"--set lock.tll: error: unknown key \"tll\" in lock; did you mean \"ttl\"? [unknown-key]",
      "--set ttl: error: unknown key \"ttl\"; there is lock.ttl [unknown-key]",
      "--set lok.ttl: error: unknown key \"lok\"; did you mean \"lock\"? [unknown-key]"}},
    {"SetWithinWhatHasNoKeysIsRefused",
     "",
     {},
     {"kafka.topics.0=a", "tests.name=x"},
     {"--set kafka.topics.0: error: there is no key kafka.topics.0: kafka.topics has none within "
      "it [unknown-key]",
      "--set tests.name: error: tests is a list: what is within it has no path of its own; set all "
      "of it, as in --set 'tests=[{name: …}]' [unknown-key]"}},
    {"SetWithinAListTellsToSetAllOfIt",
     "",
     {},
     {"output.postgres.effects.table=x"},
     {"--set output.postgres.effects.table: error: output.postgres.effects is a list: what is "
      "within it has no path of its own; set all of it, as in --set "
      "'output.postgres.effects=[{table: …}]' [unknown-key]"}},
    {"SetTellsAWrongValueByItsKey",
     "",
     {},
     {"lock.ttl=5", "kafka.topics=[]", "kafka.brokers=[*a]"},
     {"--set lock.ttl: error: lock.ttl: \"5\" is not a duration; write 250ms, 10s, 5m, 24h or 7d "
      "[value]",
      "--set kafka.topics: error: kafka.topics is empty [value]",
      "--set kafka.brokers: error: aliases are not allowed: write the value out [alias]"}},
    {"SetNeedsAValue",
     "",
     {},
     {"lock.ttl"},
     {"--set lock.ttl: error: has no value: --set KEY=VALUE, as in --set lock.ttl=5s [value]"}},
    {"SetGivesAKeyOnce",
     "",
     {},
     {"lock.ttl=25s", "lock.ttl=26s", "lock.redis.username=u", "lock.redis={nodes: [a:1]}"},
     {"--set lock.ttl: error: the key, or one within it, is set twice [duplicate-key]",
      "--set lock.redis: error: the key, or one within it, is set twice [duplicate-key]"}},
};

class BesideTest : public ::testing::TestWithParam<Row> {};

TEST_P(BesideTest, GivesTheseFindingsAndValues) {
  const Row& row = GetParam();
  const LoadResult result = LoadRow(row);
  EXPECT_THAT(Lines(result.findings), ::testing::ElementsAreArray(row.findings));
  EXPECT_EQ(result.options.has_value(), row.findings.empty());
  if (!result.options) return;
  for (const auto& [path, value] : row.shown) {
    const auto& shown = result.options->shown;
    const auto found = std::ranges::find(shown, path, [](const auto& pair) { return pair.first; });
    EXPECT_EQ(found == shown.end() ? "" : found->second, value) << path;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, BesideTest, ::testing::ValuesIn(kRows),
                         [](const auto& test) { return test.param.name; });

TEST(Beside, TheHashCoversAllThatIsGiven) {
  const auto hash = [](const std::vector<std::string>& with, const std::vector<std::string>& set) {
    return LoadRow({.name = {}, .more = {}, .with = with, .set = set, .findings = {}})
        .options.value()
        .config_hash;
  };
  const std::string base = hash({kShared}, {});
  EXPECT_EQ(base, hash({kShared}, {}));
  EXPECT_NE(base, hash({kShared + std::string("# more\n")}, {}));
  EXPECT_NE(base, hash({kShared}, {"lock.ttl=21s"}));
  EXPECT_NE(hash({kShared}, {"lock.ttl=22s"}), hash({kShared}, {"lock.ttl=21s"}));
}

TEST(Beside, WhatASectionOfAListLacksIsMissingThere) {
  Environment environment = FakeEnvironment();
  environment.read_file = [](const std::string&) -> tl::expected<std::string, std::string> {
    return std::string(kShared) +
           "output:\n  sqlite:\n    effects:\n"
           "      - {table: {by: json:/k}, columns: {order_id: json:/order_id}}\n";
  };
  std::string own = kOwn;
  own.resize(own.find("output:"));
  own += "output: {sqlite: {path: orders.db}}\n";
  const LoadResult result = LoadText(own, "p.yaml", environment, {.with = {"1.yaml"}, .set = {}});
  EXPECT_THAT(Lines(result.findings),
              ElementsAre("1.yaml:9:10: error: output.sqlite.effects.table.of is missing "
                          "[missing]"));
}

TEST(Beside, TestsNameTheFileThatHasThem) {
  const LoadResult result =
      LoadRow({.name = {},
               .more = {},
               .with = {kShared, "tests:\n  - {name: t, given: [{key: x}], expect: {rows: []}}\n"},
               .set = {},
               .findings = {}});
  ASSERT_EQ(result.tests.size(), 1u);
  EXPECT_EQ(result.tests[0].file + ":" + std::to_string(result.tests[0].line), "2.yaml:2");
}

TEST(Beside, WhatTwoPipelinesShareIsToldOnce) {
  std::vector<Finding> all;
  const auto finding = [](const char* file, const char* message) {
    return Finding{.file = file, .message = message, .rule = "value"};
  };
  AddNew(all, std::vector{finding("a", "x"), finding("b", "x")});
  AddNew(all, std::vector{finding("b", "x"), finding("b", "y")});
  EXPECT_THAT(Lines(all), ElementsAre("a:1:1: error: x [value]", "b:1:1: error: x [value]",
                                      "b:1:1: error: y [value]"));
}

TEST(Beside, GithubShowsWhatIsSetWithoutAFile) {
  EXPECT_EQ(FormatFindingGithub({.file = "--set a", .line = 0, .message = "b", .rule = "value"}),
            "::error title=value::--set a: b");
}

}  // namespace
}  // namespace fencepost::config
