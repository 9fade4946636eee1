// fencepost test: the tests: of a pipeline file, as a user runs them.
#include <gmock/gmock.h>

#include <map>

#include "tests/support/paths.h"
#include "tests/support/process.h"
#include "tests/support/worker_process.h"

namespace fencepost::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Finished RunFile(std::vector<std::string> words) {
  words.insert(words.begin(), "test");
  return RunFencepost(std::move(words));
}

constexpr const char* kPipeline = R"(version: 1
name: orders
guarantee: exactly-once
kafka: {brokers: [127.0.0.1:9], topics: [orders]}
record_id: json:/order_id
lock: {redis: {nodes: [127.0.0.1:1, 127.0.0.1:2, 127.0.0.1:3]}}
handler: {http: {url: "http://127.0.0.1:9/price", idempotent: true}}
dead_letter: {topic: orders.dead}
output:
  postgres:
    dsn: postgresql://app@127.0.0.1/shop
    table: effects
    columns: {order_id: record_id, price: json:/price}
tests:
)";
constexpr int kTestsLine = 15;  // of the first line that follows

// One test, as YAML under `- `.
Finished RunText(const std::string& tests) {
  const TempDir folder;
  return RunFile({folder.Write("orders.yaml", kPipeline + tests)});
}

TEST(PipelineTests, PassOnEveryExample) {
  std::vector<std::string> argv{"/bin/sh", "-c",
                                "cd " + testing::SourcePath() + " && exec " +
                                    testing::FencepostBinary() + " test config/examples/*.yaml"};
  const Finished run = RunToEnd({.argv = std::move(argv)}, std::chrono::seconds(60));
  EXPECT_EQ(run.exit_code, 0) << run.output << run.error_output;
  EXPECT_THAT(run.output, AllOf(HasSubstr(" 0 failed\n"), Not(HasSubstr("FAIL"))));
  for (const char* file :
       {"payments", "enrich", "exec-python", "cdc", "cdc-upsert", "orders-full"}) {
    EXPECT_THAT(run.output, HasSubstr(std::string("config/examples/") + file + ".yaml\n  ok"));
  }
}

TEST(PipelineTests, RunWithoutTheVariablesThatAreNotSetWhereThatIsAskedFor) {
  std::string text = kPipeline;
  for (const auto& [value, variable] :
       std::map<std::string, std::string>{{"127.0.0.1:9]", "\"${BROKER_OF_NOBODY}\"]"},
                                          {"127.0.0.1:2", "\"${NODE_OF_NOBODY}\""},
                                          {"postgresql://app@127.0.0.1/shop", "${DSN_OF_NOBODY}"},
                                          {"table: effects", "table: ${TABLE_OF_NOBODY:-effects}"},
                                          {"http://127.0.0.1:9/price", "${URL_OF_NOBODY}"}}) {
    text.replace(text.find(value), value.size(), variable);
  }
  const TempDir folder;
  const std::string file = folder.Write("orders.yaml", text + R"(  - name: a price is written
    given: [{value: {order_id: a}}]
    http: [{status: 200, body: '{"price":7}'}]
    expect: {rows: [{order_id: a, price: 7}]}
)");
  EXPECT_EQ(RunFile({file}).exit_code, 2);
  const Finished run = RunFile({"--env-optional", file});
  EXPECT_EQ(run.exit_code, 0) << run.output << run.error_output;
  EXPECT_THAT(run.output, HasSubstr("1 test, 0 failed"));
  EXPECT_THAT(run.error_output, HasSubstr("BROKER_OF_NOBODY, DSN_OF_NOBODY, NODE_OF_NOBODY, "
                                          "URL_OF_NOBODY"));
}

TEST(PipelineTests, TellWithTheLineWhatWasExpectedAndWhatCame) {
  const Finished run = RunText(R"(  - name: a price is written
    given: [{value: {order_id: a}}]
    http: [{status: 200, body: '{"price":7}'}]
    expect:
      rows:
        - {order_id: a, price: "8"}
)");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.output, HasSubstr("  FAIL  a price is written"));
  EXPECT_THAT(run.output, HasSubstr(":" + std::to_string(kTestsLine + 5) +
                                    ": expected row {order_id: a, price: 8}; there are:\n"));
  EXPECT_THAT(run.output, HasSubstr("{order_id: a, price: 7}"));
  EXPECT_THAT(run.output, HasSubstr("1 test, 1 failed\n"));
}

TEST(PipelineTests, FailOnARowTooMany) {
  const Finished run = RunText(R"(  - name: nothing is written
    given: [{value: {order_id: a}}]
    http: [{status: 200, body: '{"price":7}'}]
    expect: {rows: []}
)");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.output, HasSubstr("1 more row(s) than expected"));
}

TEST(PipelineTests, FailOnADeadLetterThatIsMissing) {
  const Finished run = RunText(R"(  - name: it is refused
    given: [{value: {order_id: a}}]
    http: [{status: 200, body: '{"price":7}'}]
    expect: {dead_letters: [{error_class: "404"}]}
)");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.output, HasSubstr("expected dead letter {error_class: 404}; there are: none"));
}

TEST(PipelineTests, FailOnOtherCountsOfSkipsAndHandlerCalls) {
  const Finished run = RunText(R"(  - name: counts
    given: [{value: {order_id: a}}]
    http: [{status: 200, body: '{"price":7}'}]
    faults: {duplicate: 1}
    expect: {skips: 0, handler_calls: 2}
)");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.output, HasSubstr("expected 0 skips, there were 1"));
  EXPECT_THAT(run.output, HasSubstr("expected 2 handler calls, there were 1"));
}

TEST(PipelineTests, FailOnACallThatNoStubAnswers) {
  const Finished run = RunText(R"(  - name: no stub
    given: [{value: {order_id: a}}]
    expect: {rows: []}
)");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.output, HasSubstr("no stub under http: answers a call for a"));
}

TEST(PipelineTests, FailOnAFaultThatHadNoOccasion) {
  const Finished run = RunText(R"(  - name: nothing to kill
    given: [{value: {no_id: 1}}]
    faults: {kill_worker_after: handler}
    expect: {rows: []}
)");
  EXPECT_EQ(run.exit_code, 1) << run.output << run.error_output;
  EXPECT_THAT(run.output, HasSubstr("kill_worker_after: there was no occasion for it"));
}

TEST(PipelineTests, FailOnAStopThatWasNotExpectedAndPassOnOneThatWas) {
  const std::string conflict = R"(    given:
      - {value: {order_id: a}}
      - {value: {order_id: a, amount: 2}}
    http: [{status: 200, body: '{"price":7}'}]
)";
  const TempDir folder;
  std::string text = kPipeline;
  text.replace(text.find("dead_letter: {topic: orders.dead}\n"), 34, "on_id_conflict: stop\n");
  const std::string file = folder.Write(
      "orders.yaml", text + "  - name: it stops\n" + conflict +
                         "    expect: {stops_with: id_conflict}\n  - name: it goes on\n" +
                         conflict + "    expect: {skips: 0}\n");
  const Finished run = RunFile({file});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.output, HasSubstr("  ok    it stops"));
  EXPECT_THAT(run.output, HasSubstr("the pipeline stopped: "));
  EXPECT_THAT(run.output, HasSubstr("2 tests, 1 failed\n"));
}

TEST(PipelineTests, CountTheHandlerCallsOfEveryFault) {
  const auto run = [](const std::string& faults, const std::string& calls) {
    return RunText(
        "  - name: one row\n    given: [{value: {order_id: a}}]\n"
        "    http: [{status: 200, body: '{\"price\":7}'}]\n    faults: {" +
        faults + "}\n    expect: {rows: [{order_id: a, price: \"7\"}], handler_calls: " + calls +
        "}\n");
  };
  for (const auto& [faults, calls] :
       std::vector<std::pair<std::string, std::string>>{{"kill_worker_after: lock", "1"},
                                                        {"kill_worker_after: handler", "2"},
                                                        {"kill_worker_after: output", "1"},
                                                        {"kill_worker_after: commit", "1"},
                                                        {"lease_lost_during: handler", "2"},
                                                        {"lease_lost_during: output", "1"},
                                                        {"redis_nodes_down: 1", "1"},
                                                        {"redis_nodes_down: 2", "1"}}) {
    const Finished finished = run(faults, calls);
    EXPECT_EQ(finished.exit_code, 0) << faults << "\n" << finished.output << finished.error_output;
  }
}

TEST(PipelineTests, SayThatAProgramDoesNotCompile) {
  std::string text = kPipeline;
  const std::string http = R"({http: {url: "http://127.0.0.1:9/price", idempotent: true}})";
  text.replace(text.find(http), http.size(), "{jq: '.price +'}");
  const TempDir folder;
  const Finished run = RunFile({folder.Write(
      "orders.yaml", text + "  - {name: one, given: [{value: {}}], expect: {rows: []}}\n")});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.error_output, HasSubstr("[jq]"));
}

TEST(PipelineTests, RefuseABadFileWithExit2) {
  const Finished run = RunText("  - {name: one, givn: []}\n");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.error_output, HasSubstr("did you mean"));
}

}  // namespace
}  // namespace fencepost::testing
