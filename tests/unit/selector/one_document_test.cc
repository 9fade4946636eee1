// A text that is not exactly one JSON document is bad in every way in which it is looked at as
// JSON, with one reason.
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/encode/json_tree.h"
#include "consumer/encode/record_encoder.h"
#include "consumer/handlers/exec/exec_protocol.h"
#include "consumer/handlers/http/http_answer.h"
#include "consumer/handlers/http/http_request.h"
#include "consumer/handlers/http/http_rules.h"
#include "consumer/handlers/jq/jq_handler.h"
#include "consumer/handlers/take_handler.h"
#include "consumer/json/json_digest.h"
#include "consumer/json/json_text.h"
#include "consumer/kafka/output/output_records.h"
#include "consumer/outputs/rows/cell_values.h"
#include "consumer/record/identity.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace fencepost::consumer {
namespace {

using ::testing::EndsWith;

const TopicPartition kWhere{"orders", 3};

struct Verdict {
  std::string text;
  std::string_view problem;
};

constexpr std::string_view kMany = "it has two documents or more";
constexpr std::string_view kFollows = "something follows the JSON document";
constexpr std::string_view kCutOff = "it is cut off";
constexpr std::string_view kLiteral = "a literal is neither a number nor true, false or null";
constexpr std::string_view kName = "a name in quotes is missing in an object";
constexpr std::string_view kComma = "a comma has nothing behind it";
constexpr std::string_view kNoValue = "a value is missing";
constexpr std::string_view kNaN = "NaN is not JSON";
constexpr std::string_view kInfinity = "Infinity is not JSON";
constexpr std::string_view kComment = "it has a comment";
constexpr std::string_view kQuotes = "it has single quotes, and JSON has double ones";
constexpr std::string_view kEscape = "a string has an escape that JSON does not have";
constexpr std::string_view kHalf = "a string has half a surrogate pair";
constexpr std::string_view kControl = "a string has a control character that is not escaped";
constexpr std::string_view kTwice = "an object has a name twice";
constexpr std::string_view kUtf8 = "it is not UTF-8";
constexpr std::string_view kUtf16 = "it is UTF-16, and JSON is UTF-8";
constexpr std::string_view kDeep = "it is nested deeper than 200 levels";

std::string Nested(std::size_t levels) {
  return R"({"a":1,"b":)" + std::string(levels - 1, '[') + std::string(levels - 1, ']') + "}";
}
std::string ManyNames(std::string_view last) {
  std::string json = R"({"a":1)";
  for (int i = 0; i < 40; ++i) json += ",\"n" + std::to_string(i) + "\":0";
  return json + ",\"" + std::string(last) + "\":0}";
}

const Verdict kBad[] = {
    {R"({"a":1} {"a":2})", kMany},
    {R"({"a":1}{"a":2})", kMany},
    {"{\"a\":1}\n{\"a\":2}\n", kMany},
    {"{\"a\":1}\n{\"a\":2}\n{\"a\":3}", kMany},
    {R"({"a":1} 2)", kMany},
    {R"({"a":1} {"a":)", kFollows},
    {R"({"a":1} junk)", kFollows},
    {R"({"a":1}})", kFollows},
    {R"({"a":1},)", kFollows},
    {std::string("{\"a\":1}\0", 8), kFollows},
    {R"({"a":1,"lines":[{"sku":1})", kCutOff},
    {R"({"a":1,"lines":[{"sku":1}])", kCutOff},
    {R"({"a":1,"lines":{"sku":[1]})", kCutOff},
    {R"({"a":1,"b)", kCutOff},
    {R"({"a":1,"b":"x\)", kCutOff},
    {R"({"a":1,"b":"\ud83)", kCutOff},
    {R"({"a":1,"b":"\ud83d)", kCutOff},
    {R"({"a":1,"b":"\ud83d\)", kCutOff},
    {R"({"a":1,"b")", kCutOff},
    {R"({"a":1,)", kCutOff},
    {R"({"a":1,"b":tru)", kCutOff},
    {R"({"a":1,"b":-)", kCutOff},
    {R"({"a":1,"b":1.)", kCutOff},
    {R"({"a":1,"b":2e+)", kCutOff},
    {R"({"a":1, junk })", kName},
    {R"({"a":1,b:2})", kName},
    {R"({"a":1,})", kComma},
    {R"({"a":1,"b":[1, ]})", kComma},
    {R"({"a":1,"b":})", kNoValue},
    {R"({"a":1,"b":[1,,2]})", kNoValue},
    {R"({"a":1,"b":NaN})", kNaN},
    {R"({"a":1,"b":-nan})", kNaN},
    {R"({"a":1,"b":NaN)", kNaN},
    {R"({"a":1,"b":[Infinity]})", kInfinity},
    {R"({"a":1,"b":-Infinity})", kInfinity},
    {R"({"a":1,"b":01})", kLiteral},
    {R"({"a":1,"b":+1})", kLiteral},
    {R"({"a":1,"b":.5})", kLiteral},
    {R"({"a":1,"b":0x1F})", kLiteral},
    {R"({"a":1,"b":nul})", kLiteral},
    {R"({"a":1,"b":True})", kLiteral},
    {R"({"a":1,"b":undefined})", kLiteral},
    {R"({"a":1,'b':2})", kQuotes},
    {R"({"a":1,"b":'x'})", kQuotes},
    {R"({"a":1, /* b */ "b":2})", kComment},
    {"{\"a\":1,\"b\": // b\n2}", kComment},
    {"// a\n{\"a\":1}", kComment},
    {R"({"a":1} // a)", kComment},
    {R"({"a":1,"b" 2})", "a colon is missing behind a name"},
    {R"({"a":1 "b":2})", "a comma is missing in an object"},
    {R"({"a":1,"b":[1 2]})", "a comma is missing in an array"},
    {R"({"a":1,"b":[1}})", "a comma is missing in an array"},
    {R"({"a":1,"b":"\x"})", kEscape},
    {R"({"a":1,"b":"it\'s"})", kEscape},
    {R"({"a":1,"b":"\u12g4"})", kEscape},
    {R"({"a":1,"b":"caf\u00e9 \ud83d"})", kHalf},
    {R"({"a":1,"b":"\ud83dx"})", kHalf},
    {R"({"a":1,"b":"\ud83d\u0041"})", kHalf},
    {R"({"a":1,"b":"\ude00\ud83d"})", kHalf},
    {R"({"a":1,"\ud83d":2})", kHalf},
    {"{\"a\":1,\"b\":\"\n\"}", kControl},
    {std::string("{\"a\":1,\"b\":\"\0\"}", 15), kControl},
    {R"({"a":1,"b":2,"b":3})", kTwice},
    {R"({"a":1,"b":2,"\u0062":2})", kTwice},
    {R"({"a":1,"b":[{"c":{"":1,"":1}}]})", kTwice},
    {ManyNames("n7"), kTwice},
    {ManyNames("n\\u0037"), kTwice},
    {"{\"a\":1,\"b\":\"\xff\"}", kUtf8},
    {"{\"a\":1,\"b\":\"caf\xe9\"}", kUtf8},
    {"\xef\xbb\xbf{\"a\":1}", "it begins with a byte order mark"},
    {std::string("{\0\"\0a\0\"\0:\0001\0}\0", 14), kUtf16},
    {std::string("\0{\0\"\0a\0\"\0:\0001\0}", 14), kUtf16},
    {std::string("\xff\xfe{\0}\0", 6), kUtf16},
    {std::string("\xfe\xff\0{\0}", 6), kUtf16},
    {Nested(201), kDeep},
    {Nested(1024), kDeep},
    {Nested(100'000), kDeep},
    {"", "it is empty"},
    {" \r\n", "it is white space alone"},
};

const std::string kGood[] = {
    R"({"a":1})",
    " {\"a\":1} \r\n\t",
    R"({"a":1,"b":"\u0000 \ud83d\ude00 \/"})",
    R"({"a":1,"b":{"a":2},"c":[{"a":3},{"a":4}]})",
    ManyNames("n40"),
    Nested(64),
    Nested(200),
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

HandlerCall CallWith(std::string_view text) {
  HandlerCall call{.record = WithValue(text), .where = kWhere, .record_id = "id"};
  return call;
}

std::string ForTake(std::string_view text) {
  const Record record = WithValue(text);
  TakeHandler take({Of("json:/a")});
  const auto done = take.Handle({.record = &record, .where = &kWhere}, {});
  if (done) return done->front().value();
  EXPECT_EQ(done.error().error_class, "bad_record") << text;
  return done.error().text;
}

// The line without what is not the value.
std::string ForExec(std::string_view text) {
  const auto line = ExecRequest(CallWith(text), ExecValue::kJson);
  if (!line) {
    EXPECT_EQ(line.error().error_class, "bad_record");
    EXPECT_FALSE(line.error().retry);
    const std::string& shown = line.error().shown;
    return shown.substr(0, shown.rfind(" ("));
  }
  const auto same = ParseExecReply(*line, "id");  // which has a value and a record_id, too
  return same ? Column(WithValue(same->value().front().value()), "json:/a", nullptr) : same.error();
}

std::string ForHttp(std::string_view text) {
  const auto target = HttpTarget::Make(
      {.url = "http://a/", .headers = {{"content-type", "Application/X+JSON; q=1"}}}, "orders");
  Evaluator evaluator;
  const auto parts = target->PartsOf(CallWith(text), std::string(text), evaluator);
  if (parts) return Column(WithValue(text), "json:/a", nullptr);
  EXPECT_EQ(parts.error().error_class, "bad_record");
  EXPECT_FALSE(parts.error().retry);
  const std::string& shown = parts.error().shown;
  return shown.substr(0, shown.rfind(" ("));
}

// The text with `value` for the first `a`.
std::string OfExec(std::string_view text) {
  std::string line(text);
  if (const auto at = line.find("\"a\""); at != std::string::npos) {
    line.replace(at, 3, "\"value\"");
  }
  const auto reply = ParseExecReply(line, "id");
  return reply ? reply->value().front().value() : reply.error();
}

std::string AsCell(std::string_view text) {
  std::string cell(text);
  const auto made = MakeCellJson(Of("value"), std::nullopt, cell, 0);
  return made ? Column(WithValue(cell), "json:/a", nullptr) : made.error();
}

std::string AsTree(std::string_view text) {
  const auto tree = ParseJsonTree(text);
  return tree ? tree->top.members.front().text : tree.error();
}

std::string OfHttp(std::string_view text) {
  const auto body = BodyOf({}, {.status = 200, .body = std::string(text)}).value();
  const std::optional<std::string_view> answer = body;
  return Column({}, "json:/a", &answer);
}

// With an answer merged into it.
std::string ForMerge(std::string_view text) {
  static HttpResultRule rule =
      HttpResultRule::Make({.result = HttpResult::kMerge, .result_pointer = "/m"}).value();
  const auto made = rule.Apply(CallWith(text), "{}");
  if (made) return Column(WithValue(made->front().value()), "json:/a", nullptr);
  EXPECT_EQ(made.error().error_class, "bad_record") << text;
  return made.error().shown.substr(0, made.error().shown.rfind(" ("));
}

const Way kWays[] = {
    {"id", AsId},
    {"column", [](std::string_view text) { return Column(WithValue(text), "json:/a", nullptr); }},
    {"optional column",
     [](std::string_view text) { return Column(WithValue(text), "json:/a?", nullptr); }},
    {"key", AsKey},
    {"output", AsOutput},
    {"JSON column", AsCell},
    {"encode", AsTree},
    {"jq", OfJq},
    {"take", ForTake},
    {"exec", ForExec},
    {"exec's reply", OfExec},
    {"http", ForHttp},
    {"http's answer", OfHttp},
    {"merge", ForMerge}};

TEST(OneDocument, WhatIsNotOneIsBadInEveryWayAndSaysWhy) {
  for (const Verdict& bad : kBad) {
    const std::string shown = bad.text.substr(0, 100);
    EXPECT_EQ(JsonProblem(bad.text), bad.problem) << shown;
    for (const Way& way : kWays) {
      // A reply has two levels more.
      if (std::string_view(way.name) == "exec's reply" && bad.text == Nested(201)) continue;
      EXPECT_THAT(way.look(bad.text), EndsWith(": " + std::string(bad.problem)))
          << way.name << ": " << shown;
    }
  }
}

TEST(OneDocument, IsReadInEveryWay) {
  for (const std::string& good : kGood) {
    for (const Way& way : kWays) EXPECT_EQ(way.look(good), "1") << way.name << ": " << good;
    EXPECT_EQ(Column(WithValue(good), "json:", nullptr), Trimmed(good));
  }
}

// What is written by a schema is JSON; without one it is bytes.
std::string ForKafka(std::string_view text, RecordEncoder* encoder) {
  const KafkaOutputOptions options;
  OutputRecords records(options, "worker", encoder, false);
  const Record record = WithValue(text);
  const WriteItem item{.record = &record, .where = &kWhere, .token = locking::Token(1)};
  records.Begin(item);
  const auto next = records.Next();
  return next ? std::string((*next)->value.value()) : next.error().shown;
}

TEST(OneDocument, IsWhatASchemaWants) {
  EncodeOptions schema;
  schema.value.format = RecordFormat::kJsonSchema;
  RecordEncoder encoder(schema);
  for (const Verdict& bad : kBad) {
    EXPECT_EQ(ForKafka(bad.text, nullptr), bad.text);
    EXPECT_THAT(ForKafka(bad.text, &encoder), EndsWith(": " + std::string(bad.problem)));
  }
}

TEST(OneDocument, KeepsNumbersBeyondDoublesEverywhereButInJq) {
  for (const std::string number : {"1e400", "-0", "123456789012345678901234567890.10", "1E-999"}) {
    const std::string text = "{\"a\":" + number + "}";
    for (const Way& way : kWays) {
      const bool jq = std::string_view(way.name) == "jq" && number != "-0";
      EXPECT_EQ(way.look(text), jq ? "jq would change the number " + number : number) << way.name;
    }
  }
}

TEST(OneDocument, ThePageHasEveryVerdictAndNoOther) {
  std::set<std::string> verdicts;
  for (const Verdict& bad : kBad) verdicts.emplace(bad.problem);
  std::istringstream page(
      fencepost::testing::ReadFile(fencepost::testing::SourcePath("consumer/json/README.md")));
  std::set<std::string> rows;
  bool table = false;
  for (std::string line; std::getline(page, line);) {
    if (line == "| value | verdict |") table = std::getline(page, line).good();
    const auto at = line.rfind(" | ");
    table = table && line.starts_with("|");
    if (!table || at == std::string::npos) continue;
    const std::string verdict = line.substr(at + 3, line.size() - at - 5);
    if (!verdict.starts_with("JSON")) rows.insert(verdict);
  }
  EXPECT_EQ(rows, verdicts);
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

}  // namespace
}  // namespace fencepost::consumer
