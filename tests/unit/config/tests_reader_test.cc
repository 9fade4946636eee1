// tests: what it loads to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/pipeline_text.h"

namespace fencepost::config {
namespace {

using consumer::LifeStage;
using consumer::PipelineTest;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;
using testing::Pair;

LoadResult LoadTests(const std::string& tail) {
  return LoadText(kPipeline + tail, "p.yaml", FakeEnvironment());
}

std::vector<PipelineTest> Loaded(const std::string& tail) {
  LoadResult result = LoadTests(tail);
  EXPECT_TRUE(result.options) << testing::PrintToString(Lines(result.findings));
  return std::move(result.tests);
}

TEST(Tests, TakeAllTheirKeys) {
  const auto tests = Loaded(R"(
handler: {http: {url: "http://a", idempotent: true}}
dead_letter: {topic: dead}
tests:
  - name: an order is written once
    given:
      - {key: c-1, value: {order_id: o-1, amount: 12.50}}
      - {topic: orders, partition: 1, key: x, value: "raw text", headers: {h: v, i: "1"},
         timestamp: 1700000000000}
    http:
      - {status: 503, times: 1}
      - {status: 200, body: '{"ok":true}', headers: {Retry-After: "1"}}
      - {record_id: o-2, timeout: true}
    faults: {kill_worker_after: handler, lease_lost_during: output, redis_nodes_down: 3,
             duplicate: 2}
    expect:
      rows: [{order_id: o-1, amount: "12.50"}, {amount: null}]
      rows_in_order: true
      dead_letters: [{error_class: "404", record_id: o-2}]
      skips: 2
      filtered: 3
      handler_calls: 1
      stops_with: id_conflict
  - name: nothing comes of nothing
    given: [{}]
    expect: {rows: [], dead_letters: []}
)");
  ASSERT_EQ(tests.size(), 2u);
  const PipelineTest& t = tests[0];
  EXPECT_EQ(t.name, "an order is written once");
  EXPECT_EQ(t.line, 23);
  ASSERT_EQ(t.given.size(), 2u);
  EXPECT_EQ(t.given[0].topic, "orders");
  EXPECT_EQ(t.given[0].partition, 0);
  EXPECT_THAT(t.given[0].key, Optional(std::string("c-1")));
  EXPECT_THAT(t.given[0].value, Optional(std::string(R"({"order_id":"o-1","amount":12.50})")));
  EXPECT_FALSE(t.given[0].timestamp);
  EXPECT_EQ(t.given[0].line, 25);
  EXPECT_EQ(t.given[1].partition, 1);
  EXPECT_THAT(t.given[1].value, Optional(std::string("raw text")));
  EXPECT_THAT(t.given[1].headers, ElementsAre(Pair("h", "v"), Pair("i", "1")));
  EXPECT_THAT(t.given[1].timestamp, Optional(consumer::Millis(1700000000000)));
  ASSERT_EQ(t.http.size(), 3u);
  EXPECT_EQ(t.http[0].status, 503);
  EXPECT_THAT(t.http[0].times, Optional(1));
  EXPECT_FALSE(t.http[0].record_id);
  EXPECT_EQ(t.http[1].body, R"({"ok":true})");
  EXPECT_THAT(t.http[1].headers, ElementsAre(Pair("Retry-After", "1")));
  EXPECT_FALSE(t.http[1].times);
  EXPECT_THAT(t.http[2].record_id, Optional(std::string("o-2")));
  EXPECT_TRUE(t.http[2].timeout);
  EXPECT_EQ(t.http[2].line, 31);
  EXPECT_EQ(t.faults.kill_worker_after, LifeStage::kHandler);
  EXPECT_EQ(t.faults.lease_lost_during, LifeStage::kOutput);
  EXPECT_EQ(t.faults.redis_nodes_down, 3);
  EXPECT_EQ(t.faults.duplicate, 2);
  ASSERT_TRUE(t.rows);
  ASSERT_EQ(t.rows->size(), 2u);
  EXPECT_THAT(t.rows->at(0).cells, ElementsAre(Pair("order_id", "o-1"), Pair("amount", "12.50")));
  EXPECT_THAT(t.rows->at(1).cells, ElementsAre(Pair("amount", std::nullopt)));
  EXPECT_TRUE(t.rows_in_order);
  ASSERT_TRUE(t.dead_letters);
  EXPECT_THAT(t.dead_letters->at(0).fields,
              ElementsAre(Pair("error_class", "404"), Pair("record_id", "o-2")));
  EXPECT_THAT(t.skips, Optional(2));
  EXPECT_THAT(t.filtered, Optional(3));
  EXPECT_THAT(t.handler_calls, Optional(1));
  EXPECT_THAT(t.stops_with, Optional(std::string("id_conflict")));
  EXPECT_FALSE(tests[1].given[0].key || tests[1].given[0].value);
  EXPECT_THAT(tests[1].rows, Optional(IsEmpty()));
  EXPECT_THAT(tests[1].dead_letters, Optional(IsEmpty()));
  EXPECT_FALSE(tests[1].skips || tests[1].filtered || tests[1].handler_calls ||
               tests[1].stops_with);
  EXPECT_EQ(tests[1].faults.kill_worker_after, std::nullopt);
}

// What a value of a given record comes out as.
std::string ValueOf(const std::string& yaml) {
  const auto tests =
      Loaded("tests: [{name: a, expect: {skips: 0}, given: [{value: " + yaml + "}]}]\n");
  return tests.at(0).given.at(0).value.value_or("(null)");
}

TEST(Tests, GiveMapsAndListsAsJsonThatKeepsItsDigits) {
  EXPECT_EQ(ValueOf("{a: 12.50, b: -0, c: 1e400, d: 12345678901234567890}"),
            R"({"a":12.50,"b":-0,"c":1e400,"d":12345678901234567890})");
  EXPECT_EQ(ValueOf("{a: 010, b: .5, c: +1, d: 1., e: 0x1, f: 1e, g: -}"),
            R"({"a":"010","b":".5","c":"+1","d":"1.","e":"0x1","f":"1e","g":"-"})");
  EXPECT_EQ(ValueOf("{a: '1', b: \"true\", c: true, d: false, e: ~, f: null, g: 'null', h: yes}"),
            R"({"a":"1","b":"true","c":true,"d":false,"e":null,"f":null,"g":"null","h":"yes"})");
  EXPECT_EQ(ValueOf("[1, [a, {b: []}], {}, \"x\\n\\\"\"]"), R"([1,["a",{"b":[]}],{},"x\n\""])");
}

TEST(Tests, GiveSingleValuesAsTheirText) {
  EXPECT_EQ(ValueOf("12.50"), "12.50");
  EXPECT_EQ(ValueOf("'{\"a\": 1}'"), "{\"a\": 1}");
  EXPECT_EQ(ValueOf("''"), "");
  EXPECT_EQ(ValueOf("~"), "(null)");
}

TEST(Tests, ReplaceVariablesInValues) {
  EXPECT_EQ(ValueOf("{a: \"${SECRET}\", b: [\"${N:-7}\"], \"${c}\": \"$${d}\"}"),
            R"({"a":"hunter2","b":["7"],"${c}":"${d}"})");
}

TEST(Tests, NameTheCellsOfAStatementAndOfAKafkaOutput) {
  std::string text = kPipeline;
  text.erase(text.find("output:"));
  const std::string test = "tests: [{name: a, given: [{}], expect: {rows: [{x: 1}]}}]\n";
  const auto told = [&](const std::string& output) {
    const auto lines = Lines(LoadText(text + output + test, "p", FakeEnvironment()).findings);
    return lines.empty() ? "" : lines.back().substr(lines.back().find("\"x\""));
  };
  EXPECT_EQ(told("output: {postgres: {dsn: host=b, statement: S $1 $2, args: [key, value]}}\n"),
            "\"x\" is none of $1, $2 [tests]");
  EXPECT_EQ(told("output: {kafka: {topic: b, headers: {h: key}}}\n"),
            "\"x\" is none of key, value, header:NAME [tests]");
  EXPECT_EQ(told("guarantee: at-least-once\noutput: {stdout: {}}\n"), "");
}

}  // namespace
}  // namespace fencepost::config
