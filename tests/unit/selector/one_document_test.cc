// A text that is not exactly one JSON document is bad in every way in which it is looked at as
// JSON, with one reason.
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/handlers/exec/exec_protocol.h"
#include "consumer/handlers/http/http_answer.h"
#include "consumer/handlers/jq/jq_handler.h"
#include "consumer/json/json_digest.h"
#include "consumer/json/json_text.h"
#include "consumer/record/identity.h"

namespace fencepost::consumer {
namespace {

using ::testing::EndsWith;

const TopicPartition kWhere{"orders", 3};

struct Verdict {
  std::string_view text;
  std::string_view problem;
};

constexpr std::string_view kMany = "it has more than one JSON document";
constexpr std::string_view kFollows = "something follows the JSON document";
constexpr std::string_view kCutOff = "it is cut off";
constexpr std::string_view kLiteral = "a literal is neither a number nor true, false or null";
constexpr std::string_view kName = "a name in quotes is missing in an object";

constexpr Verdict kBad[] = {
    {R"({"a":1} {"a":2})", kMany},
    {R"({"a":1}{"a":2})", kMany},
    {"{\"a\":1}\n{\"a\":2}\n", kMany},
    {R"({"a":1} 2)", kMany},
    {R"({"a":1} {"a":)", kFollows},
    {R"({"a":1} junk)", kFollows},
    {R"({"a":1}})", kFollows},
    {R"({"a":1},)", kFollows},
    {R"({"a":1,"lines":[{"sku":1})", kCutOff},
    {R"({"a":1,"lines":[{"sku":1}])", kCutOff},
    {R"({"a":1,"lines":{"sku":[1]})", kCutOff},
    {R"({"a":1,"b)", kCutOff},
    {R"({"a":1,"b":"x\)", kCutOff},
    {R"({"a":1,"b")", kCutOff},
    {R"({"a":1,)", kCutOff},
    {R"({"a":1, junk })", kName},
    {R"({"a":1,})", kName},
    {R"({"a":1,b:2})", kName},
    {R"({"a":1,"b":[1,]})", "a value is missing"},
    {R"({"a":1,"b":})", "a value is missing"},
    {R"({"a":1,"b":NaN})", kLiteral},
    {R"({"a":1,"b":01})", kLiteral},
    {R"({"a":1,"b":nul})", kLiteral},
    {R"({"a":1,"b" 2})", "a colon is missing behind a name"},
    {R"({"a":1 "b":2})", "a comma is missing in an object"},
    {R"({"a":1,"b":[1 2]})", "a comma is missing in an array"},
    {R"({"a":1,"b":[1}})", "a comma is missing in an array"},
    {R"({"a":1,"b":"\x"})", "a string has an escape that JSON does not have"},
    {R"({"a":1,"b":"\u12g4"})", "a string has an escape that JSON does not have"},
    {"{\"a\":1,\"b\":\"\n\"}", "a string has a control character that is not escaped"},
    {"{\"a\":1,\"b\":\"\xff\"}", "it is not UTF-8"},
    {"\xef\xbb\xbf{\"a\":1}", "it begins with a byte order mark"},
    {"", "it is empty"},
    {" \r\n", "it is empty"},
};

Selector Of(std::string_view text) { return Selector::Parse(text).value(); }

// What a selector finds in a record, or why it finds nothing.
std::string Column(const Record& record, std::string_view selector,
                   const std::optional<std::string_view>* answer) {
  Evaluator evaluator;
  evaluator.Begin({.record = &record, .where = &kWhere, .value = answer});
  std::string out;
  const auto found = evaluator.Append(Of(selector), out);
  return found ? out : found.error();
}

struct Way {
  const char* name;
  std::function<std::string(std::string_view)> look;
};

Record WithValue(std::string_view text) {
  Record record;
  record.value = text;
  return record;
}

std::string AsId(std::string_view text) {
  const Record record = WithValue(text);
  Identifier identifier({.record_id = {Of("json:/a")}}, "cluster");
  Identity identity;
  const auto done = identifier.Identify(record, kWhere, identity);
  return done ? identity.id : done.error();
}

std::string AsKey(std::string_view text) {
  Record record;
  record.key = text;
  return Column(record, "key:/a", nullptr);
}

std::string AsOutput(std::string_view text) {
  const Record record = WithValue(text);
  Evaluator evaluator;
  evaluator.Begin({.record = &record, .where = &kWhere});
  std::string out;
  const auto done = evaluator.AppendAsJson(Of("json:/a"), out);
  return done ? out : done.error();
}

std::string OfJq(std::string_view text) {
  const Record record = WithValue(text);
  static const auto jq = JqHandler::Make(".a").value();  // which compiles for long
  const auto done = jq->Handle({.record = &record, .where = &kWhere}, {});
  if (done) return done->front().value();
  EXPECT_EQ(done.error().error_class, "bad_record") << text;
  return done.error().text;
}

// The text with `value` for `a`.
std::string OfExec(std::string_view text) {
  std::string line(text);
  if (const auto at = line.find("\"a\""); at != std::string::npos) {
    line.replace(at, 3, "\"value\"");
  }
  JsonReader json;
  const auto reply = ParseExecReply(line, "id", json);
  return reply ? reply->value().front().value() : reply.error();
}

std::string OfHttp(std::string_view text) {
  const auto values = ResultOf({}, {.status = 200, .body = std::string(text)}).value();
  const std::optional<std::string_view> answer = values.front();
  return Column({}, "json:/a", &answer);
}

const Way kWays[] = {
    {"id", AsId},
    {"column", [](std::string_view text) { return Column(WithValue(text), "json:/a", nullptr); }},
    {"optional column",
     [](std::string_view text) { return Column(WithValue(text), "json:/a?", nullptr); }},
    {"whole", [](std::string_view text) { return Column(WithValue(text), "json:", nullptr); }},
    {"key", AsKey},
    {"output", AsOutput},
    {"jq", OfJq},
    {"exec", OfExec},
    {"http", OfHttp}};

TEST(OneDocument, WhatIsNotOneIsBadInEveryWayAndSaysWhy) {
  for (const Verdict& bad : kBad) {
    EXPECT_EQ(CheckJson(bad.text).problem, bad.problem == "it is not UTF-8" ? "" : bad.problem)
        << bad.text;
    for (const Way& way : kWays) {
      EXPECT_THAT(way.look(bad.text), EndsWith(": " + std::string(bad.problem)))
          << way.name << ": " << bad.text;
    }
  }
}

TEST(OneDocument, IsReadInEveryWay) {
  for (const std::string_view good : {R"({"a":1})", " {\"a\":1} \r\n\t"}) {
    for (const Way& way : kWays) {
      const bool whole = std::string_view(way.name) == "whole";
      EXPECT_EQ(way.look(good), whole ? R"({"a":1})" : "1") << way.name;
    }
  }
}

TEST(OneDocument, OnlyThatIsComparedAsJson) {
  const auto digest = [](std::string_view text) {
    const Record record = WithValue(text);
    Evaluator evaluator;
    evaluator.Begin({.record = &record, .where = &kWhere});
    return evaluator.Digest(Of("value")).value().value();
  };
  for (const Verdict& bad : kBad) {
    EXPECT_EQ(digest(bad.text), DigestText(JsonKind::kBytes, bad.text)) << bad.text;
  }
  EXPECT_EQ(digest(R"({"a":1})"), digest(" {\"a\" :\t1.0} \r\n"));
}

// JSON by its grammar, which stands for no text.
TEST(OneDocument, WithHalfASurrogatePairIsReadWhereNobodyAsksForThat) {
  const std::string text = R"({"a":1,"b":"\ud83d x","c":["\ud83d\u0041"],"d":"\ud83d\ude00"})";
  EXPECT_TRUE(CheckJson(text).half_pairs);
  EXPECT_FALSE(CheckJson(R"({"d":"\ud83d\ude00"})").half_pairs);
  const Record record = WithValue(text);
  EXPECT_EQ(Column(record, "json:/a", nullptr), "1");
  EXPECT_EQ(Column(record, "json:/d", nullptr), "\xf0\x9f\x98\x80");
  for (const char* selector : {"json:", "json:/b", "json:/c"}) {
    EXPECT_THAT(Column(record, selector, nullptr), testing::HasSubstr("is not valid JSON: "))
        << selector;
  }
}

}  // namespace
}  // namespace fencepost::consumer
