// fencepost test: what it shows of a row's digits, of handlers that fail or hang, of dates, and how
// expected rows find theirs.
#include <chrono>

#include <gmock/gmock.h>

#include "tests/support/paths.h"
#include "tests/support/process.h"
#include "tests/support/worker_process.h"

namespace fencepost::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kStart = R"(version: 1
name: orders
guarantee: exactly-once
kafka: {brokers: [127.0.0.1:9], topics: [orders]}
lock: {redis: {nodes: [127.0.0.1:1, 127.0.0.1:2, 127.0.0.1:3]}}
dead_letter: {topic: orders.dead}
)";
constexpr const char* kById = "record_id: json:/id\n";
constexpr const char* kTable = R"(output:
  postgres:
    dsn: postgresql://app@127.0.0.1/shop
    table: effects
    columns: {id: record_id, n: "json:/n?"}
)";
constexpr const char* kLines = R"(output:
  file:
    path: orders.jsonl
    columns: {id: record_id, n: "json:/n?", doc: "json:/doc?"}
)";

Finished RunText(const std::string& text, std::vector<std::string> more = {}) {
  const TempDir folder;
  std::vector<std::string> words{"test", folder.Write("orders.yaml", text)};
  words.insert(words.end(), more.begin(), more.end());
  return RunFencepost(std::move(words));
}

// At least once: JSON lines have no ledger.
std::string LinesPipeline(const std::string& tests) {
  std::string text = kStart;
  text.replace(text.find("exactly-once"), 12, "at-least-once");
  return text + kById + kLines + "tests:\n" + tests;
}

// Its first result decides, and what it fails on is bad.
TEST(PipelineTestsDetail, WhenAsAProgramFilters) {
  const Finished run = RunText(
      "when: |\n"
      "  if . == null then false elif .n == 1 then true elif .n == 2 then empty elif .n == 3\n"
      "  then null elif .n == 4 then (false, true) elif .n == 5 then 0 else error(\"no\") end\n" +
      LinesPipeline(R"(  - name: filters
    given:
      - {value: {id: a, n: 1}}
      - {value: {id: b, n: 2}}
      - {value: {n: 3}}
      - {value: {id: d, n: 4}}
      - {value: {id: e, n: 5}}
      - {value: {id: f, n: 6}}
      - {value: "{"}
      - {key: tombstone}
    expect:
      rows: [{id: a, n: 1}, {id: e, n: 5}]
      filtered: 4
      dead_letters:
        - {error_class: bad_record, offset: 5, error: "when: the program failed on the value"}
        - {error_class: bad_record, offset: 6}
  - name: counts
    given: [{value: {id: a, n: 2}}]
    faults: {duplicate: 2, kill_worker_after: commit}
    expect: {filtered: 2}
)"));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.output, AllOf(HasSubstr("ok    filters"),
                                HasSubstr("expected 2 filtered records, there were 3")));
}

TEST(PipelineTestsDetail, AProgramOfWhenThatDoesNotCompileIsNamedByItsPlace) {
  const Finished run = RunText(
      "when: .a ==\n" + LinesPipeline("  - {name: a, given: [{}], expect: {filtered: 0}}\n"));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.error_output, HasSubstr(":1:7: error: when: the jq program does not compile: "));
}

TEST(PipelineTestsDetail, ALinesNumbersKeepTheirDigits) {
  const Finished run = RunText(LinesPipeline(R"(  - name: digits
    given:
      - {value: {id: a, n: 12.50, doc: {x: [1.0, "a b"]}}}
      - {value: {id: b, n: 123456789012345678901234567890, doc: "say \"hi\"\n"}}
      - {value: {id: c, n: true}}
    expect:
      rows:
        - {id: a, n: 12.50, doc: {x: [1.0, "a b"]}}
        - {id: b, n: 123456789012345678901234567890, doc: "say \"hi\"\n"}
        - {id: c, n: "true", doc: null}
)"));
  EXPECT_EQ(run.exit_code, 0) << run.output << run.error_output;
}

TEST(PipelineTestsDetail, ARecordThatLacksAPartOfTheRequestIsBadAndMakesNoCall) {
  const Finished run = RunText(LinesPipeline(R"(  - name: parts
    given:
      - {value: {id: a, shop: 1}}
      - {value: {id: b}}
      - {value: {id: c, shop: ..}}
    http: [{body: {id: a, n: 1}, times: 1}]
    expect:
      rows: [{id: a}]
      dead_letters:
        - error_class: bad_record
          error: "handler.http.url: json:/shop finds nothing in the value"
        - error_class: bad_record
          error: "handler.http.url: json:/shop would make a segment of the path . or .."
handler:
  http: {url: "https://api/{json:/shop}", tls: {certificate: /not/here, key: /not/here}}
)"));
  EXPECT_EQ(run.exit_code, 0) << run.output << run.error_output;
}

TEST(PipelineTestsDetail, RecordsThatAreAllBadWaitAndTheTestSaysWhy) {
  std::string given;
  for (int i = 0; i < 11; ++i) given += "      - {value: {n: " + std::to_string(i) + "}}\n";
  const Finished run =
      RunText(LinesPipeline("  - name: bad\n    given:\n" + given + "    expect: {rows: []}\n"));
  EXPECT_EQ(run.exit_code, 1) << run.output << run.error_output;
  EXPECT_THAT(run.output,
              HasSubstr("every record is refused (10 in a row): no record id: json:/id"));
}

TEST(PipelineTestsDetail, AFenceComparesAsANumberAndKeepsItsDigits) {
  const Finished run = RunText(std::string(kStart) + "record_id: json:/r\n" + R"(output:
  postgres:
    dsn: postgresql://app@127.0.0.1/shop
    table: effects
    columns: {id: key, note: json:/note}
    on_conflict: update
    key: [id]
    fence_column: version
    fence_by: json:/v
tests:
  - name: the higher version stands
    given:
      - {key: k, value: {r: r0, v: 9.50, note: first}}
      - {key: k, value: {r: r1, v: 10.250, note: second}}
      - {key: k, value: {r: r2, v: 9.75, note: late}}
      - {key: j, value: {r: r3, v: 1.50, note: only}}
    expect:
      rows:
        - {id: k, version: 10.250, note: second}
        - {id: j, version: 1.50, note: only}
)");
  EXPECT_EQ(run.exit_code, 0) << run.output << run.error_output;
}

// README's pipeline, with a topic of dead letters.
TEST(PipelineTestsDetail, AValueIsOneDocumentOrABadRecord) {
  std::string text = ReadFile(SourcePath("README.md"));
  text = text.substr(text.find("```yaml\n") + 8);
  text.resize(text.find("```"));
  const std::string stop = "on_bad_record: stop ";
  text.replace(text.find(stop), stop.size(), "dead_letter: {topic: orders.dead} ");
  const Finished run = RunText(text + R"(tests:
  - name: two documents in one value
    given: [{value: '{"order_id":"o-1","amount":1} {"order_id":"o-2","amount":2}'}]
    expect: {rows: [], dead_letters: [{error_class: bad_record}]}
  - name: cut off behind an inner brace
    given: [{value: '{"order_id":"o-1","amount":1,"lines":[{"sku":1}'}]
    expect: {rows: [], dead_letters: [{error_class: bad_record}]}
)");
  EXPECT_EQ(run.exit_code, 0) << run.output << run.error_output;
  EXPECT_THAT(run.output, HasSubstr("2 tests, 0 failed"));
}

TEST(PipelineTestsDetail, TheExampleTakesDebeziumsNanoseconds) {
  std::string text = RunFencepost({"create", "cdc"}).output;
  text.resize(text.find("\ntests:\n") + 1);
  const Finished run = RunText(text + R"(tests:
  - name: Debezium 2.6 or later
    given:
      - key: {id: 1}
        value: {before: null, after: {id: 1, name: Ada, updated_at: 1735689600000000}, op: c,
                source: {ts_ms: 1716804532123, ts_us: 1716804532123456, ts_ns: 1716804532123456000},
                ts_ms: 1716804532125, ts_us: 1716804532125001, ts_ns: 1716804532125001789}
    expect: {rows: [{id: 1, name: Ada}], dead_letters: []}
)");
  EXPECT_EQ(run.exit_code, 0) << run.output << run.error_output;
  EXPECT_THAT(run.output, HasSubstr("1 test, 0 failed"));
}

// The column may be an array in the database: bytea[], boolean[].
TEST(PipelineTestsDetail, ConvertIsOfEachElementOfAnArray) {
  const Finished run = RunText(std::string(kStart) + kById + R"(output:
  postgres:
    dsn: postgresql://app@127.0.0.1/shop
    table: effects
    columns: {id: record_id, b: json:/b, f: json:/f, d: json:/d}
    convert: {b: base64, f: bool, d: "decimal:2"}
tests:
  - name: arrays
    given:
      - {value: {id: a, b: ["QUI=", null], f: [0, true], d: ["BAg="]}}
      - {value: {id: b, b: "QUI=", f: 1, d: "BAg="}}
      - {value: {id: c, b: ["?"], f: 1, d: "BAg="}}
      - {value: {id: d, b: "QUI=", f: [2], d: "BAg="}}
    expect:
      rows:
        - {id: a, b: '["\\x4142",null]', f: "[0,1]", d: '["10.32"]'}
        - {id: b, b: AB, f: 1, d: 10.32}
      dead_letters:
        - {record_id: c}
        - {record_id: d}
)");
  EXPECT_EQ(run.exit_code, 0) << run.output << run.error_output;
}

TEST(PipelineTestsDetail, NumbersAreComparedAsNumbersAndTextsAsTexts) {
  const std::string given = "    given: [{value: {id: a, n: 12.50}}]\n";
  const Finished run =
      RunText(std::string(kStart) + kById + kTable + "tests:\n" + "  - name: a number\n" + given +
              "    expect: {rows: [{id: a, n: 12.5}]}\n" + "  - name: a text\n" + given +
              "    expect: {rows: [{id: a, n: \"12.5\"}]}\n");
  EXPECT_THAT(run.output, AllOf(HasSubstr("  ok    a number"), HasSubstr("  FAIL  a text"),
                                HasSubstr("{id: a, n: 12.50}  (n is 12.50, not 12.5)")));
}

TEST(PipelineTestsDetail, OfManyRowsTheNearestShowsWhereItDiffers) {
  const Finished run = RunText(std::string(kStart) + kById + kTable + R"(tests:
  - name: two
    given: [{value: {id: a, n: 1}}, {value: {id: b, n: 2}}]
    expect: {rows: [{id: b, n: 3}, {id: a, n: 1}]}
)");
  EXPECT_THAT(run.output,
              AllOf(HasSubstr("{id: a, n: 1}\n"), HasSubstr("{id: b, n: 2}  (n is 2, not 3)\n")));
}

TEST(PipelineTestsDetail, ExpectedRowsThatFitSeveralLeaveEachOtherTheirs) {
  const std::string given = R"(    given:
      - {value: {id: a, n: 1}}
      - {value: {id: b, n: 1}}
      - {value: {id: c, n: 1}}
)";
  const Finished run = RunText(std::string(kStart) + kById + kTable + R"(tests:
  - name: there is a way
)" + given + R"(    expect: {rows: [{n: 1}, {n: "1"}, {id: a}]}
  - name: there is none
)" + given + R"(    expect: {rows: [{id: a}, {n: 1}, {id: a, n: 1}]}
)");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.output, HasSubstr("  ok    there is a way"));
  EXPECT_THAT(run.output, AllOf(HasSubstr("  FAIL  there is none"),
                                HasSubstr("expected row {id: a, n: 1}; there are:")));
}

TEST(PipelineTestsDetail, UnderAFailureStandsWhatTheHandlerSaid) {
  const Finished run = RunText(std::string(kStart) + kById + R"(handler:
  exec: {idempotent: true, command: [sh, -c, "echo cannot open transform.py >&2; exit 2"]}
retry: {attempts: 2, give_up_after: 0s, backoff: {initial: 10ms, max: 10ms}}
)" + kTable + R"(tests:
  - name: it is written
    given: [{value: {id: a, n: 1}}]
    expect: {rows: [{id: a}]}
)");
  EXPECT_EQ(run.exit_code, 1) << run.error_output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("  FAIL  it is written"),
                                HasSubstr("          handler_stderr: cannot open transform.py\n"),
                                HasSubstr("          handler_exited: "),
                                HasSubstr("          handler_failed: orders/0/0: attempt 1: ")));
}

TEST(PipelineTestsDetail, ATestThatPassesShowsNoNotes) {
  const Finished run = RunText(std::string(kStart) + kById + R"(handler: {jq: error("no")}
)" + kTable + R"(tests:
  - name: it is refused
    given: [{value: {id: a, n: 1}}]
    expect: {rows: [], dead_letters: [{record_id: a}]}
)");
  EXPECT_EQ(run.exit_code, 0) << run.output << run.error_output;
  EXPECT_THAT(run.output, Not(HasSubstr("handler_failed")));
}

TEST(PipelineTestsDetail, AProgramThatLoopsForEverFailsItsTestAloneAndTheRunEnds) {
  const auto since = std::chrono::steady_clock::now();
  const Finished run = RunText(std::string(kStart) + kById + R"(handler:
  jq: "if .n == 1 then last(range(infinite)) else . end"
processing: {timeout: 1s}
)" + kTable + R"(tests:
  - name: it loops
    given: [{value: {id: a, n: 1}}]
    expect: {rows: []}
  - name: it does not
    given: [{value: {id: b, n: 2}}]
    expect: {rows: [{id: b}]}
)");
  EXPECT_LT(std::chrono::steady_clock::now() - since, std::chrono::seconds(25));
  EXPECT_EQ(run.exit_code, 1) << run.error_output;
  EXPECT_THAT(run.output,
              AllOf(HasSubstr("  FAIL  it loops"),
                    HasSubstr("the handler hangs: it did not answer the call for a "),
                    HasSubstr("  ok    it does not"), HasSubstr("2 tests, 1 failed\n")));
}

TEST(PipelineTestsDetail, AProgramWhoseAnswersCannotBeReadIsNotRunAtEachRetryOfARecord) {
  const auto since = std::chrono::steady_clock::now();
  const Finished run = RunText(std::string(kStart) + kById + R"(handler:
  exec: {idempotent: true, command: [sh, -c, "while read -r line; do echo no; done"]}
)" + kTable + R"(tests:
  - name: it is given up
    given: [{value: {id: a, n: 1}}]
    expect: {rows: [], dead_letters: [{record_id: a, error_class: exec_protocol}]}
)");
  EXPECT_LT(std::chrono::steady_clock::now() - since, std::chrono::seconds(25));
  EXPECT_EQ(run.exit_code, 0) << run.output << run.error_output;
}

TEST(PipelineTestsDetail, RecordsThatAreGivenUpOneAfterTheOtherHaveTheTimeForIt) {
  std::string given, stubs, letters;
  for (const std::string n : {"1", "2", "3", "4", "5", "6", "7"}) {
    given += "      - {value: {id: bad-" + n + ", n: 1}}\n      - {value: {id: good-" + n + "}}\n";
    stubs += "      - {record_id: bad-" + n + ", status: 500}\n";
    letters += "        - {record_id: bad-" + n + ", error_class: \"500\"}\n";
  }
  const Finished run = RunText(std::string(kStart) + kById + R"(processing: {order: partition}
handler:
  http: {url: "http://127.0.0.1:9/price", idempotent: true, retry_on: [500]}
)" + kTable + "tests:\n  - name: it ends\n    given:\n" +
                               given + "    http:\n" + stubs + "      - {body: {n: 2}}\n" +
                               "    expect:\n      dead_letters:\n" + letters);
  EXPECT_EQ(run.exit_code, 0) << run.output << run.error_output;
}

TEST(PipelineTestsDetail, ARetryAfterDateIsWaitedForInVirtualTime) {
  const Finished run = RunText(std::string(kStart) + kById + R"(handler:
  http: {url: "http://127.0.0.1:9/price", idempotent: true, retry_on: [503]}
)" + kTable + R"(tests:
  - name: it waits
    given: [{value: {id: a, n: 1}}]
    http:
      - {status: 503, times: 1, headers: {Retry-After: "Fri, 15 Jan 2027 08:01:30 GMT"}}
      - {body: {n: 2}}
    expect: {rows: [{id: a, n: 2}], handler_calls: 2}
)");
  EXPECT_EQ(run.exit_code, 0) << run.output << run.error_output;
  EXPECT_THAT(run.output, HasSubstr(", 91.0 s of virtual time)"));
}

TEST(PipelineTestsDetail, AFileWithoutTestsIsNamed) {
  const TempDir folder;
  const std::string none =
      folder.Write("none.yaml", std::string(kStart) + kById + std::string(kTable));
  const std::string one = folder.Write(
      "one.yaml", std::string(kStart) + kById + kTable +
                      "tests: [{name: one, given: [{value: {id: a}}], expect: {skips: 0}}]\n");
  const Finished run = RunFencepost({"test", one, none});
  EXPECT_EQ(run.exit_code, 0) << run.output << run.error_output;
  EXPECT_THAT(run.error_output, HasSubstr(none + ": there is nothing to run: no tests: section"));
  EXPECT_THAT(run.error_output, Not(HasSubstr(one)));
}

}  // namespace
}  // namespace fencepost::testing
