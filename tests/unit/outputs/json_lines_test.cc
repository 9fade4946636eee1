#include "consumer/outputs/file/json_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/json/json_text.h"
#include "tests/component/outputs/batch.h"

namespace fencepost::consumer {
namespace {

using ::testing::HasSubstr;

// The line that one record makes, or "bad: why".
std::string Line(std::vector<Column> columns, Batch::Entry entry) {
  const Batch batch{std::move(entry)};
  JsonLines lines(std::move(columns), "w");
  std::vector<WriteOutcome> outcomes(1);
  std::string text = lines.Fill(batch.items(), outcomes);
  if (outcomes[0].result == WriteResult::kBadRecord) return "bad: " + outcomes[0].detail;
  EXPECT_TRUE(text.ends_with("\n")) << text;
  text.pop_back();
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  return text;
}

std::string OfValue(const char* selector, const std::string& value) {
  return Line(Columns({{"x", selector}}), {.id = "i", .value = value});
}

TEST(JsonLines, WithoutColumnsALineIsTheWholeRecord) {
  EXPECT_EQ(
      Line({}, {.id = "o-1",
                .offset = 8,
                .token = 1ull << 62,
                .value = "{\n \"a\" : [1.0, 2]\n}",
                .key = "k\"\n",
                .headers = {{"h", "1"}, {"null", std::nullopt}, {"h", "2"}, {"\xff", "\xfe"}}}),
      R"({"record_id":"o-1","token":4611686018427387904,"worker":"w","topic":"orders",)"
      R"("partition":3,"offset":8,"timestamp":1700000000123,"key":"k\"\n","value":{"a":[1.0,2]},)"
      R"("headers":{"null":null,"h":"2","hex:ff":{"base64":"/g=="}}})");
  EXPECT_EQ(Line({}, {.id = "t", .tombstone = true}),
            R"({"record_id":"t","token":1,"worker":"w","topic":"orders","partition":3,"offset":0,)"
            R"("timestamp":1700000000123,"key":null,"value":null,"headers":{}})");
}

TEST(JsonLines, HaveTheIdItselfWhereItIsStoredAsItsDigest) {
  const Batch batch{{.id = "sha256:00"}};
  std::vector<WriteItem> items = batch.items();
  items[0].whole_id = "a\tb";
  JsonLines lines(Columns({{"x", "record_id"}}), "w");
  std::vector<WriteOutcome> outcomes(1);
  EXPECT_EQ(lines.Fill(items, outcomes), "{\"x\":\"a\\u0009b\"}\n");
}

TEST(JsonLines, BehindARefusedRecordHaveNoneOfItsChain) {
  const Batch batch{{.id = "a", .value = "{}"},
                    {.id = "b", .value = R"({"x":1})"},
                    {.id = "c", .value = R"({"x":2})"},
                    {.id = "d", .value = R"({"x":3})"}};
  std::vector<WriteItem> items = batch.items();
  items[0].chain = items[2].chain = 7;
  items[1].chain = 8;
  JsonLines lines(Columns({{"x", "json:/x"}}), "w");
  std::vector<WriteOutcome> outcomes(4);
  EXPECT_EQ(lines.Fill(items, outcomes), "{\"x\":1}\n{\"x\":3}\n");
  std::vector<WriteResult> results;
  for (const WriteOutcome& outcome : outcomes) results.push_back(outcome.result);
  EXPECT_THAT(results, ::testing::ElementsAre(WriteResult::kBadRecord, WriteResult::kCommitted,
                                              WriteResult::kNotWritten, WriteResult::kCommitted));
}

TEST(JsonLines, ColumnsStandInTheirOrderEachInItsType) {
  EXPECT_EQ(Line(Columns({{"z", "offset"},
                          {"a \"b\"", "=7"},
                          {"k", "key"},
                          {"h", "header:n"},
                          {"none", "header:none?"},
                          {"at", "timestamp"},
                          {"p", "partition"},
                          {"t", "token"},
                          {"id", "record_id"}}),
                 {.id = "17", .offset = 9, .key = "5", .headers = {{"n", "6"}}}),
            R"({"z":9,"a \"b\"":"7","k":"5","h":"6","none":null,"at":1700000000123,"p":3,"t":1,)"
            R"("id":"17"})");
}

TEST(JsonLines, WhatAJsonSelectorFindsKeepsItsTypeAndItsDigits) {
  const std::string value = R"({"n":12345678901234567890.10,"s":"a\u00e9\n\"","t":true,"z":null,)"
                            R"("o": { "x" : [ 1 , "a b" ] },"e":1E+2})";
  const auto of = [&](const char* selector) { return OfValue(selector, value); };
  EXPECT_EQ(of("json:/n"), R"({"x":12345678901234567890.10})");
  EXPECT_EQ(of("json:/s"), R"({"x":"a\u00e9\n\""})");
  EXPECT_EQ(of("json:/t"), R"({"x":true})");
  EXPECT_EQ(of("json:/z"), R"({"x":null})");
  EXPECT_EQ(of("json:/o"), R"({"x":{"x":[1,"a b"]}})");
  EXPECT_EQ(of("json:/o/x/1"), R"({"x":"a b"})");
  EXPECT_EQ(of("json:/e"), R"({"x":1E+2})");
  EXPECT_EQ(of("json:/none?"), R"({"x":null})");
  EXPECT_EQ(of("json:/none"),
            "bad: column x from json:/none: json:/none finds nothing in the value");
  EXPECT_THAT(OfValue("json:/a", R"({"a":{"b":01}})"), HasSubstr("bad: column x from json:/a: "));
  EXPECT_EQ(OfValue("json:", " \"a\\u0041\" "), R"({"x":"a\u0041"})");
  EXPECT_EQ(OfValue("json:", " 007"), OfValue("json:", "007"));
  EXPECT_THAT(OfValue("json:", "007"), HasSubstr("bad: column x from json: (the whole of it): "));
  EXPECT_THAT(OfValue("json:/a", R"({"a":1} garbage)"),
              HasSubstr("something follows the JSON document"));
}

TEST(JsonLines, TheValueIsEmbeddedWhereItIsJson) {
  EXPECT_EQ(OfValue("value", "{ \"a\":\n1 }"), R"({"x":{"a":1}})");
  EXPECT_EQ(OfValue("value", " 10.00 "), R"({"x":10.00})");
  EXPECT_EQ(OfValue("value", "\"s\""), R"({"x":"s"})");
  EXPECT_EQ(OfValue("value", "null"), R"({"x":null})");
  EXPECT_EQ(OfValue("value", "o-17"), R"({"x":"o-17"})");
  EXPECT_EQ(OfValue("value", ""), R"({"x":""})");
  EXPECT_EQ(OfValue("value", "{\"a\":1"), R"({"x":"{\"a\":1"})");
  EXPECT_EQ(OfValue("value", "{\"a\":1} {"), R"({"x":"{\"a\":1} {"})");
  EXPECT_EQ(OfValue("value", "\xff\xfe\x01"), R"({"x":{"base64":"//4B"}})");
  EXPECT_EQ(OfValue("value", "{\"a\":\"\xff\"}"), R"({"x":{"base64":"eyJhIjoi/yJ9"}})");
  EXPECT_THAT(Line(Columns({{"x", "value"}}), {.id = "i", .tombstone = true}),
              HasSubstr("bad: column x from value: value finds nothing"));
  EXPECT_EQ(Line(Columns({{"x", "value?"}}), {.id = "i", .tombstone = true}), R"({"x":null})");
}

TEST(JsonLines, EachValueOfAHandlerIsReadForItself) {
  const Batch batch{{.id = "1", .values = {{R"({"a":1})", R"({"a":2})"}}},
                    {.id = "2", .values = {{R"({"a":3})", R"({"b":4})"}}},
                    {.id = "3", .value = R"({"a":5})"}};
  JsonLines lines(Columns({{"a", "json:/a"}, {"id", "record_id"}}), "w");
  std::vector<WriteOutcome> outcomes(3);
  EXPECT_EQ(lines.Fill(batch.items(), outcomes),
            "{\"a\":1,\"id\":\"1\"}\n{\"a\":2,\"id\":\"1\"}\n{\"a\":5,\"id\":\"3\"}\n")
      << "all lines of a record or none";
  EXPECT_EQ(outcomes[1].detail,
            "value 2 of 2: column a from json:/a: json:/a finds nothing in the handler's answer");
}

TEST(JsonText, EscapesWhatAStringCannotHold) {
  std::string out;
  AppendJsonString(std::string_view("\x00\x1f\t\r\\\"/\x7f\xc3\xa9", 10), out);
  EXPECT_EQ(out, "\"\\u0000\\u001f\\u0009\\u000d\\\\\\\"/\x7f\xc3\xa9\"");
}

}  // namespace
}  // namespace fencepost::consumer
