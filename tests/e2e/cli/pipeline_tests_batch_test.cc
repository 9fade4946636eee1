// fencepost test with a handler that takes batches: the stubs answer them, in bad ways too.
#include <gmock/gmock.h>

#include <fmt/format.h>

#include "tests/support/paths.h"
#include "tests/support/process.h"
#include "tests/support/worker_process.h"

namespace fencepost::testing {
namespace {

using ::testing::HasSubstr;

std::string Pipeline(const std::string& handler, const std::string& tests) {
  return R"(version: 1
name: orders
guarantee: exactly-once
kafka: {brokers: [127.0.0.1:9], topics: [orders]}
lock: {redis: {nodes: [127.0.0.1:1, 127.0.0.1:2, 127.0.0.1:3]}}
dead_letter: {topic: orders.dead}
record_id: json:/id
handler:
)" + handler +
         R"(
output:
  postgres:
    dsn: postgresql://app@127.0.0.1/shop
    table: effects
    columns: {id: record_id, n: "json:/n"}
tests:
)" + tests;
}

Finished RunText(const std::string& text) {
  const TempDir folder;
  return RunFencepost({"test", folder.Write("orders.yaml", text)});
}

// Three records, of as many keys, and what must come of them.
std::string Case(const std::string& name, const std::string& stubs, const std::string& expect) {
  return fmt::format(R"(  - name: {}
    given:
      - {{key: a, value: {{id: a, n: 1}}}}
      - {{key: b, value: {{id: b, n: 1}}}}
      - {{key: c, value: {{id: c, n: 1}}}}
    http: [{}]
    expect: {{{}}}
)",
                     name, stubs, expect);
}

constexpr const char* kAll =
    "rows: [{id: a, n: 2}, {id: b, n: 2}, {id: c, n: 2}], dead_letters: []";

TEST(PipelineTestsBatch, StubsAnswerEachRecordOfABatchAndInBadWays) {
  const std::string good = "{body: {n: 2}}";
  const auto calls = [](int count) { return fmt::format("{}, handler_calls: {}", kAll, count); };
  std::string tests;
  for (const std::string form : {"verdicts", "reversed", "values"}) {
    tests += Case(form, "{batch: " + form + ", body: {n: 2}}", calls(1));
  }
  tests += Case("half", "{batch: half, body: {n: 2}}, " + good, calls(2));
  tests += Case("few", "{batch: few, body: {n: 2}}, " + good, calls(4));
  tests += Case("an id twice", "{batch: twice, body: {n: 2}}, " + good, kAll);
  tests += Case("status 500", "{batch: values, status: 500}, " + good, calls(4));
  tests += Case("fails whole", "{status: 400}, " + good, calls(4));
  tests += Case("too large", "{status: 413}, " + good, calls(3));
  tests += Case("late", "{timeout: true, times: 1}, " + good, calls(4));
  tests +=
      Case("each its own", "{record_id: b, status: 400}, {record_id: c, body: {n: 7}}, " + good,
           "rows: [{id: a, n: 2}, {id: c, n: 7}], dead_letters: [{record_id: b, error_class: "
           "\"400\"}], handler_calls: 1");
  const Finished run =
      RunText(Pipeline("  http: {url: \"http://127.0.0.1:9/price\", idempotent: true, "
                       "batch: {max_records: 3, linger: 20ms}}",
                       tests));
  EXPECT_EQ(run.exit_code, 0) << run.output << run.error_output;
}

TEST(PipelineTestsBatch, AProgramReallyGetsThem) {
  const Finished run = RunText(Pipeline(R"(  exec:
    idempotent: true
    batch: {max_records: 3, linger: 1s}
    command:
      - python3
      - -c
      - |
        import json, sys
        for line in sys.stdin:
            batch = json.loads(line)["batch"]
            print(json.dumps({"batch": [{"record_id": r["record_id"], "value": {"n": len(batch)}}
                                        for r in reversed(batch)]}), flush=True))",
                                        R"(  - name: three
    given:
      - {key: a, value: {id: a}}
      - {key: b, value: {id: b}}
      - {key: c, value: {id: c}}
      - {key: d, value: {id: d}}
    expect:
      rows: [{id: a, n: 3}, {id: b, n: 3}, {id: c, n: 3}, {id: d, n: 1}]
      handler_calls: 2
)"));
  EXPECT_EQ(run.exit_code, 0) << run.output << run.error_output;
}

TEST(PipelineTestsBatch, AStubOfABatchNeedsAHandlerThatTakesThem) {
  const Finished run =
      RunText(Pipeline("  http: {url: \"http://127.0.0.1:9/price\", idempotent: true}",
                       Case("none", "{batch: half}", kAll)));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.error_output + run.output,
              HasSubstr("tests.http.batch: handler.http has no batch"));
}

}  // namespace
}  // namespace fencepost::testing
