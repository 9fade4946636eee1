// fencepost test: the tests: of a pipeline file, as a user runs them.
#include <gmock/gmock.h>

#include <array>
#include <map>
#include <vector>

#include <fmt/format.h>

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
  const Finished run =
      RunToEnd({.argv = std::move(argv),
                .env = {{"PYTHONPATH", testing::SourcePath("consumer/handlers/exec/python")},
                        {"PYTHONDONTWRITEBYTECODE", "1"}}},
               std::chrono::seconds(60));
  EXPECT_EQ(run.exit_code, 0) << run.output << run.error_output;
  EXPECT_THAT(run.output, AllOf(HasSubstr(" 0 failed\n"), Not(HasSubstr("FAIL"))));
  for (const char* file : {"payments", "enrich", "python", "cdc", "cdc-upsert", "orders-full",
                           "orders-lines", "route"}) {
    EXPECT_THAT(run.output, HasSubstr(std::string("config/examples/") + file + ".yaml\n  ok"));
  }
}

TEST(PipelineTests, RunWithEveryDatabase) {
  const std::string postgres = "postgres:\n    dsn: postgresql://app@127.0.0.1/shop\n";
  for (const std::string other :
       {"mysql:\n    host: h\n    user: u\n    database: d\n", "sqlite:\n    path: shop.db\n"}) {
    std::string text = kPipeline;
    text.replace(text.find(postgres), postgres.size(), other);
    const TempDir folder;
    const Finished run = RunFile({folder.Write("orders.yaml", text + R"(  - name: a row
    given: [{value: {order_id: a}}]
    http: [{body: '{"price":7}'}]
    expect: {rows: [{order_id: a, price: 7}]}
)")});
    EXPECT_EQ(run.exit_code, 0) << other << run.output << run.error_output;
  }
}

TEST(PipelineTests, ShowWhatTheAnswerMakesOfTheRecord) {
  const std::string idempotent = "idempotent: true}}";
  const std::string columns = "columns: {order_id: record_id, price: json:/price}";
  for (const auto& [keys, stub, row] : std::vector<std::array<std::string, 3>>{
           {"result: {merge_into: /e}", "{body: {price: 7.50}}",
            R"({all: '{"order_id":"a","n":1.0,"e":{"price":7.50}}'})"},
           {"result: keep", "{status: 204}", R"({all: '{"order_id":"a","n":1.0}'})"},
           {"body: {jq: .n}, result: {jq: '{p: .answer, n: (.record.n + 1)}'}", "{body: \"7\"}",
            R"({all: '{"p":7,"n":2}'})"}}) {
    std::string text = kPipeline;
    text.replace(text.find(idempotent), idempotent.size(), "idempotent: true, " + keys + "}}");
    text.replace(text.find(columns), columns.size(), "columns: {all: value}");
    const TempDir folder;
    const Finished run = RunFile({folder.Write(
        "orders.yaml",
        fmt::format("{}  - name: a row\n    given: [{{value: {{order_id: a, n: 1.0}}}}]\n"
                    "    http: [{}]\n    expect: {{rows: [{}]}}\n",
                    text, stub, row))});
    EXPECT_EQ(run.exit_code, 0) << keys << run.output << run.error_output;
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

TEST(PipelineTests, FailWithTheLineAndSayWhatWasExpectedAndWhatCame) {
  const std::string stub = R"(    http: [{status: 200, body: '{"price":7}'}]
)";
  struct Row {
    std::string test;
    std::vector<std::string> said;
  };
  const Row rows[] = {
      {stub + "    expect:\n      rows:\n        - {order_id: a, price: \"8\"}\n",
       {"  FAIL  it fails",
        fmt::format(":{}: expected row {{order_id: a, price: 8}}; there are:\n", kTestsLine + 5),
        "{order_id: a, price: 7}  (price is 7, not 8)\n", "1 test, 1 failed\n"}},
      {stub + "    expect: {rows: []}\n", {"1 more row than expected"}},
      {stub + "    expect: {dead_letters: [{error_class: \"404\"}]}\n",
       {"expected dead letter {error_class: 404}; there are: none"}},
      {stub + "    faults: {duplicate: 1}\n    expect: {skips: 0, handler_calls: 2}\n",
       {"expected 0 skips, there was 1", "expected 2 handler calls, there was 1"}},
      {"    expect: {rows: []}\n", {"no stub under http: answers a call for a"}},
      {"    faults: {kill_worker_after: output}\n    expect: {rows: []}\n",
       {"kill_worker_after: there was no occasion for it"}},
  };
  for (const Row& row : rows) {
    const Finished run =
        RunText("  - name: it fails\n    given: [{value: {order_id: a}}]\n" + row.test);
    EXPECT_EQ(run.exit_code, 1) << row.test << run.error_output;
    for (const std::string& said : row.said) EXPECT_THAT(run.output, HasSubstr(said));
  }
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
  for (const auto& [faults, calls] :
       {std::pair("kill_worker_after: lock", 1), std::pair("kill_worker_after: handler", 2),
        std::pair("kill_worker_after: output", 1), std::pair("kill_worker_after: commit", 1),
        std::pair("lease_lost_during: handler", 2), std::pair("lease_lost_during: output", 1),
        std::pair("redis_nodes_down: 1", 1), std::pair("redis_nodes_down: 2", 1)}) {
    const Finished run = RunText(
        fmt::format("  - name: one row\n    given: [{{value: {{order_id: a}}}}]\n"
                    "    http: [{{status: 200, body: '{{\"price\":7}}'}}]\n    faults: {{{}}}\n"
                    "    expect: {{rows: [{{order_id: a, price: \"7\"}}], handler_calls: {}}}\n",
                    faults, calls));
    EXPECT_EQ(run.exit_code, 0) << faults << "\n" << run.output << run.error_output;
  }
}

TEST(PipelineTests, RefuseABadFileWithExit2) {
  const Finished run = RunText("  - {name: one, givn: []}\n");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.error_output, HasSubstr("did you mean"));
}

}  // namespace
}  // namespace fencepost::testing
