// --with and --set, as a user gives them to each command that reads pipeline files.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/support/process.h"
#include "tests/support/worker_process.h"

namespace fencepost::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kOwn =
    "version: 1\nname: {}\nkafka: {{topics: [{}]}}\nrecord_id: json:/id\non_bad_record: stop\n"
    "output: {{sqlite: {{path: e.db, table: t, columns: {{a: key}}}}}}\n";
constexpr const char* kShared =
    "kafka: {brokers: [127.0.0.1:9]}\nlock:\n  redis: {nodes: [127.0.0.1:1]}\n";

class Beside : public ::testing::Test {
 protected:
  std::string Own(const std::string& name, const std::string& more = "") {
    return folder_.Write(name + ".yaml", fmt::format(kOwn, name, name) + more);
  }
  TempDir folder_;
  const std::string shared_ = folder_.Write("shared.yaml", kShared);
};

TEST_F(Beside, EveryCommandThatReadsAPipelineTakesBoth) {
  const std::string own = Own("orders");
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"run"},
                                             {"dev"},
                                             {"lint"},
                                             {"lint", "--env-optional"},
                                             {"test"},
                                             {"test", "--env-optional"},
                                             {"explain", "--id", "a"},
                                             {"forget", "--id", "a"},
                                             {"dlq", "list"},
                                             {"dlq", "show"},
                                             {"dlq", "replay"},
                                             {"dlq", "purge"},
                                             {"locks", "init"},
                                             {"locks", "status"},
                                             {"locks", "inspect"},
                                             {"bench", "locks"}}) {
    std::vector<std::string> all = words;
    // The file last: neither option takes a second word.
    all.insert(all.end(), {"--with", shared_, "--set", "lock.tll=5s", own});
    const Finished refused = RunFencepost(all);
    EXPECT_EQ(refused.exit_code, 2) << words.front();
    EXPECT_EQ(refused.output + refused.error_output,
              "--set lock.tll: error: unknown key \"tll\" in lock; did you mean \"ttl\"? "
              "[unknown-key]\n")
        << fmt::format("{}", fmt::join(words, " "));
  }
}

TEST_F(Beside, WordsBehindTheFileAreTheCommandsOwn) {
  const std::string own = Own("orders");
  const Finished all = RunFencepost({"explain", own, "returns", "0", "7", "--with", shared_});
  EXPECT_EQ(all.exit_code, 2);
  EXPECT_EQ(all.error_output.find("fencepost: pipeline orders does not read topic returns"), 0u)
      << all.error_output;
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"dlq", "list"}, {"dev"}, {"forget", "--id", "a"}}) {
    std::vector<std::string> two = words;
    two.insert(two.end(), {own, "/nowhere/other.yaml"});
    const Finished refused = RunFencepost(two);
    EXPECT_EQ(refused.exit_code, 2) << words.front();
    EXPECT_EQ(refused.error_output.find(own), std::string::npos) << refused.error_output;
    EXPECT_NE(refused.error_output.find("/nowhere/other.yaml"), std::string::npos)
        << refused.error_output;
  }
}

TEST_F(Beside, TestsOfAPipelineAreNothingToWhoRunsIt) {
  const std::string own = Own("orders",
                              "tests: [{name: a, given: [{topic: orders, value: {id: a}}], "
                              "expect: {rows: []}}]\n");
  const std::vector<std::string> elsewhere{"--with", shared_, "--set", "kafka.topics=staging", own};
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.end(), elsewhere.begin(), elsewhere.end());
    return RunFencepost(words);
  };
  for (const char* word : {"lint", "test"}) {
    EXPECT_THAT(run({word}).error_output + run({word}).output, HasSubstr("[tests]")) << word;
  }
  EXPECT_THAT(run({"explain", "--id", "a"}).error_output, Not(HasSubstr("[tests]")));
}

TEST_F(Beside, OneSharedFileServesSeveralPipelines) {
  const std::string a = Own("a");
  const std::string b = Own("b");
  const Finished good = RunFencepost({"lint", a, b, "--with", shared_});
  EXPECT_EQ(good.exit_code, 0) << good.output;
  const std::string more = folder_.Write("more.yaml", "lock:\n  ttl: 5\n");
  for (const char* command : {"lint", "run", "test"}) {
    const Finished bad = RunFencepost({command, a, b, "--with", shared_, "--with", more});
    EXPECT_EQ(bad.exit_code, 2);
    EXPECT_EQ(bad.output + bad.error_output,
              more +
                  ":2:8: error: lock.ttl: \"5\" is not a duration; write 250ms, 10s, 5m, 24h "
                  "or 7d [value]\n")
        << command << ": once, though both have it";
  }
}

TEST_F(Beside, AKeyThatTwoFilesGiveIsToldWithBothPlaces) {
  const std::string own = Own("orders", "lock: {ttl: 20s}\n");
  const std::string more = folder_.Write("more.yaml", "lock:\n  ttl: 20s\n");
  const Finished lint = RunFencepost({"lint", own, "--with", shared_, "--with", more});
  EXPECT_EQ(lint.exit_code, 2);
  EXPECT_EQ(lint.output, fmt::format("{}:7:8: error: lock.ttl is given at {}:2:3 too: leave one of "
                                     "them out [duplicate-key]\n",
                                     own, more));
}

TEST_F(Beside, AFailedTestIsToldWithTheFileThatHasIt) {
  const std::string tests = folder_.Write(
      "tests.yaml", "tests:\n  - name: one\n    given: [{key: x}]\n    expect: {rows: [{a: z}]}\n");
  const Finished test = RunFencepost({"test", Own("orders"), "--with", shared_, "--with", tests});
  EXPECT_EQ(test.exit_code, 1);
  EXPECT_THAT(test.output, AllOf(HasSubstr("FAIL  one"), HasSubstr(tests + ":4: ")));
}

TEST_F(Beside, NeitherGoesWithoutAPipelineFile) {
  const Finished status =
      RunFencepost({"locks", "status", "--redis", "127.0.0.1:1", "--with", shared_});
  EXPECT_EQ(status.exit_code, 2);
  EXPECT_EQ(status.error_output,
            "fencepost: --with, --set: go with a pipeline file, not with --redis\n");
}

TEST_F(Beside, HelpTellsOfBoth) {
  const Finished help = RunFencepost({"run", "--help"});
  EXPECT_THAT(help.output, AllOf(HasSubstr("--with FILE"), HasSubstr("--set KEY=VALUE")));
}

}  // namespace
}  // namespace fencepost::testing
