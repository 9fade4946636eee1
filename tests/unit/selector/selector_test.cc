#include "consumer/record/selector.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/json/json_reader.h"

namespace fencepost::consumer {
namespace {

using testing::HasSubstr;

Selector Parsed(std::string_view text) {
  auto selector = Selector::Parse(text);
  EXPECT_TRUE(selector) << text << ": " << selector.error();
  return selector.value_or(Selector{});
}

// What a selector makes of a record: FOUND bytes, "null", or "bad: why".
std::string Select(std::string_view selector, const Record& record) {
  static const TopicPartition where{"orders", 3};
  RecordContext context;
  context.record = &record;
  context.where = &where;
  context.record_id = "o-17";
  context.token = 9223372036854775807ull;
  context.worker = "pod-1";
  Evaluator evaluator;
  evaluator.Begin(context);
  std::string out = ">";
  const auto found = evaluator.Append(Parsed(selector), out);
  if (!found) {
    EXPECT_EQ(out, ">") << "a failed selector must leave the output alone";
    return "bad: " + found.error();
  }
  if (!*found) {
    EXPECT_EQ(out, ">") << "a null must leave the output alone";
    return "null";
  }
  return out.substr(1);
}

std::string SelectJson(std::string_view selector, std::string_view json) {
  Record record;
  record.value = json;
  return Select(selector, record);
}

TEST(Selector, TakesEveryFormAndGivesItsTextBack) {
  for (const char* text :
       {"position",     "key",        "key?",      "value", "topic",  "partition",
        "offset",       "timestamp?", "record_id", "token", "worker", "header:x-id",
        "header:x-id?", "json:/a/b",  "json:/a?",  "json:", "json:?", "json:/a~1b/~0",
        "=text",        "=",          "=what?"}) {
    EXPECT_EQ(Parsed(text).Text(), text);
  }
  EXPECT_EQ(Parsed("=what?").argument, "what?");
  EXPECT_FALSE(Parsed("=what?").optional);
  EXPECT_TRUE(Parsed("json:/a?").optional);
}

TEST(Selector, IsGuessedOfJsonPathAndOfNames) {
  EXPECT_EQ(LikelySelector("$.order.id"), "json:/order/id");
  EXPECT_EQ(LikelySelector("amount"), "json:/amount");
  for (const char* text : {"", "jason:/a", "a b", "a.b"})
    EXPECT_EQ(LikelySelector(text), "") << text;
}

TEST(Selector, RefusesWhatIsNoneAndSaysWhy) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "not a selector; a selector is one of key, value"},
      {"?", "not a selector"},
      {"keys", "not a selector"},
      {"Key", "not a selector"},
      {" key", "not a selector"},
      {"header:", "header: needs a name"},
      {"header:?", "header: needs a name"},
      {"json:order_id", "a JSON pointer starts with '/'"},
      {"json:/a~2", "'~' is written ~0"},
      {"json:/a~", "'~' is written ~0"},
      {"position?", "leave the ? out"},
  };
  for (const auto& [text, why] : cases) {
    const auto selector = Selector::Parse(text);
    ASSERT_FALSE(selector) << text;
    EXPECT_THAT(selector.error(), HasSubstr(why)) << text;
  }
}

TEST(Selector, GivesThePartsOfARecord) {
  Record record;
  record.offset = 42;
  record.timestamp = std::chrono::milliseconds(1700000000123);
  record.key = "k";
  record.value = "v";
  record.headers = {{"id", "first"}, {"other", std::nullopt}, {"id", "last"}};
  EXPECT_EQ(Select("key", record), "k");
  EXPECT_EQ(Select("value", record), "v");
  EXPECT_EQ(Select("topic", record), "orders");
  EXPECT_EQ(Select("partition", record), "3");
  EXPECT_EQ(Select("offset", record), "42");
  EXPECT_EQ(Select("timestamp", record), "1700000000123");
  EXPECT_EQ(Select("record_id", record), "o-17");
  EXPECT_EQ(Select("token", record), "9223372036854775807");
  EXPECT_EQ(Select("worker", record), "pod-1");
  EXPECT_EQ(Select("=text", record), "text");
  EXPECT_EQ(Select("header:id", record), "last");
  EXPECT_EQ(Select("header:other?", record), "null");
  EXPECT_EQ(Select("header:other", record), "bad: header:other finds nothing in the record");
}

TEST(Selector, WhatIsNotThereIsNullOnlyWithAQuestionMark) {
  const Record empty;
  for (const std::string text : {"key", "value", "timestamp", "header:x", "json:/a"}) {
    EXPECT_EQ(Select(text + "?", empty), "null") << text;
    EXPECT_THAT(Select(text, empty), HasSubstr("bad: " + text + " finds nothing")) << text;
  }
}

TEST(JsonSelector, KeepsTheDigitsOfNumbers) {
  for (const char* number :
       {"9007199254740993", "1.10", "-0", "1e400", "0.1E-7", "123456789012345678901234567890.5"}) {
    const std::string json = "{\"n\" : " + std::string(number) + " , \"m\":1}";
    EXPECT_EQ(SelectJson("json:/n", json), number);
    EXPECT_EQ(SelectJson("json:", " " + std::string(number) + "\n"), number);
  }
}

TEST(JsonSelector, FollowsThePointer) {
  const std::string json =
      R"({"a":{"b":[10,{"c":"x\u00e9\n"}]},"m/n":1,"t~":2,"":3,"gr\u00f6\u00df\"e":4,)"
      R"("yes":true,"no":false,"nil":null})";
  EXPECT_EQ(SelectJson("json:/a/b/0", json), "10");
  EXPECT_EQ(SelectJson("json:/a/b/1/c", json), "x\xc3\xa9\n");
  EXPECT_EQ(SelectJson("json:/a/b", json), R"([10,{"c":"x\u00e9\n"}])");
  EXPECT_EQ(SelectJson("json:/m~1n", json), "1");
  EXPECT_EQ(SelectJson("json:/t~0", json), "2");
  EXPECT_EQ(SelectJson("json:/", json), "3");
  EXPECT_EQ(SelectJson("json:/gr\xc3\xb6\xc3\x9f\"e", json), "4");
  EXPECT_EQ(SelectJson("json:/yes", json), "true");
  EXPECT_EQ(SelectJson("json:/no", json), "false");
  EXPECT_EQ(SelectJson("json:/nil", json), "null");
  EXPECT_EQ(SelectJson("json:", " [1, {\"a\": 2}] "), "[1, {\"a\": 2}]");
  EXPECT_EQ(SelectJson("json:", "\"x\\ty\" "), "x\ty");
  for (const char* nowhere : {"json:/x", "json:/a/b/2", "json:/a/b/-", "json:/a/b/01",
                              "json:/a/b/0/0", "json:/yes/no", "json:/A", "json:/nil/x"}) {
    EXPECT_EQ(SelectJson(nowhere, json),
              "bad: " + std::string(nowhere) + " finds nothing in the value");
    EXPECT_EQ(SelectJson(nowhere + std::string("?"), json), "null");
  }
  EXPECT_EQ(SelectJson("json:/a?", "17"), "null");
  // RFC 6901, 4: ~01 is ~1, and no /.
  EXPECT_EQ(SelectJson("json:/~01", R"({"/":1,"~1":2})"), "2");
  EXPECT_EQ(SelectJson("json:/~1", R"({"~1":2,"/":1})"), "1");
  EXPECT_EQ(SelectJson("json:/~00~10", R"({"~/0":1,"~0/0":2})"), "2");
}

TEST(JsonSelector, MalformedJsonIsBadEvenWhereNullIsFine) {
  const std::pair<const char*, const char*> cases[] = {
      {"json:/a?", ""},
      {"json:/a?", "  "},
      {"json:/a?", "{\"a\":1"},
      {"json:/a?", "{\"a\":1} 2"},
      {"json:/0?", "[1,2"},
      {"json:/a?", "{\"a\":12x}"},
      {"json:/a?", "{\"a\":01}"},
      {"json:/a?", "{\"a\":+1}"},
      {"json:/a?", "{\"a\":1.}"},
      {"json:/a?", "{\"a\":tru}"},
      {"json:/a?", "{\"a\":nul}"},
      {"json:/a?", "{\"a\" 1}"},
      {"json:/a?", "{a:1}"},
      {"json:/a?", "{\"a\":\"\\ud800\"}"},
      {"json:/a?", "{\"a\":\"\\x\"}"},
      {"json:/a?", "{\"a\":\"\xff\"}"},
      {"json:/a?", "{\"a\":\"\n\"}"},
      {"json:/a?", "{\"a\":{\"b\":[1 2]}}"},
      {"json:/a?", "{\"a\":{\"b\":[1}, \"c\":2]}"},
      {"json:/a?", "{\"a\":[tru]}"},
      {"json:/b?", "{\"a\":1, \"b\"}"},
      {"json:/b?", "{\"a\":1 \"b\":2}"},
      {"json:?", "{\"a\":1}{\"b\":2}"},
      {"json:?", "\"a\" \"b\""},
      {"json:?", "1 2"},
      {"json:?", "nope"},
  };
  for (const auto& [selector, json] : cases) {
    EXPECT_THAT(SelectJson(selector, json), HasSubstr("bad: the value is not valid JSON: "))
        << json;
  }
}

TEST(JsonSelector, DeepNestingIsRefusedAndHarmless) {
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  EXPECT_THAT(SelectJson("json:", deep), HasSubstr("nested deeper"));
  EXPECT_THAT(SelectJson("json:/a", "{\"a\":" + deep + "}"), HasSubstr("nested deeper"));
}

TEST(Evaluator, ParsesOnceAndAnswersManySelectorsOfManyRecords) {
  Evaluator evaluator;
  const TopicPartition where{"t", 0};
  for (int i = 0; i < 100; ++i) {
    const std::string json = "{\"a\":" + std::to_string(i) + ",\"b\":\"" + std::string(i, 'x') +
                             "\",\"c\":{\"d\":[" + std::to_string(i) + "]}}";
    Record record;
    record.value = json;
    RecordContext context;
    context.record = &record;
    context.where = &where;
    evaluator.Begin(context);
    for (int round = 0; round < 3; ++round) {
      std::string out;
      for (const char* selector : {"json:/c/d", "json:/b", "json:/a", "json:/z?", "json:/c/d/0"}) {
        ASSERT_TRUE(evaluator.Append(Parsed(selector), out));
        out += '|';
      }
      const std::string n = std::to_string(i);
      EXPECT_EQ(out, "[" + n + "]|" + std::string(i, 'x') + "|" + n + "||" + n + "|");
    }
  }
}

// Breaks a good document in every way a byte can, and asks on; what counts is that nothing crashes
// and that the answer is one of the four.
TEST(JsonReader, SurvivesEveryMutilatedDocument) {
  const std::string good =
      R"({"a":[1,2.5e3,{"b":"x\u00e9\"y"}],"c":{"d":null,"e":true},"f":"\ud83d\ude00"})";
  std::mt19937 random(20261);
  JsonReader reader;
  int counts[4] = {};
  for (int i = 0; i < 30000; ++i) {
    std::string json = good;
    for (auto edits = 1 + random() % 3; edits > 0; --edits) {
      const std::size_t at = random() % json.size();
      switch (random() % 3) {
        case 0:
          json[at] = "{}[]\",:\\0a \xff\0n-"[random() % 16];
          break;
        case 1:
          json.erase(at, 1 + random() % 5);
          break;
        default:
          json.insert(at, 1, "{}[]\",:\\0a"[random() % 10]);
          break;
      }
      if (json.empty()) json = " ";
    }
    reader.Begin(json);
    for (const char* pointer : {"/a/2/b", "/c", "", "/f", "/nowhere", "/a/0"}) {
      std::string out;
      ++counts[static_cast<int>(reader.Append(pointer, out))];
    }
  }
  EXPECT_GT(counts[static_cast<int>(JsonFound::kValue)], 1000);
  EXPECT_GT(counts[static_cast<int>(JsonFound::kMalformed)], 1000);
}

TEST(Selectors, ReadTheValueOfKafkaWhateverAHandlerMadeOfIt) {
  Record record;
  record.value = R"({"source":{"lsn":9007199254740993},"after":{"id":1}})";
  const std::optional<std::string_view> made = R"({"id":1})";
  const TopicPartition where{.topic = "t"};
  Evaluator evaluator;
  evaluator.Begin({.record = &record, .where = &where, .value = &made});
  std::string text;
  const auto of = [&](const char* selector) -> std::string {
    text.clear();
    const auto found = evaluator.Append(Selector::Parse(selector).value(), text);
    return !found ? "! " + found.error() : *found ? text : "null";
  };
  EXPECT_EQ(of("record:/source/lsn"), "9007199254740993");
  EXPECT_EQ(of("json:/id"), "1");
  EXPECT_EQ(of("record:/after/id"), "1");
  EXPECT_EQ(of("json:/source/lsn?"), "null");
  EXPECT_EQ(of("record:/id"), "! record:/id finds nothing in the value");
  record.value.reset();
  evaluator.Begin({.record = &record, .where = &where, .value = &made});
  EXPECT_EQ(of("record:/source/lsn?"), "null");
  EXPECT_EQ(of("record:/source/lsn"),
            "! record:/source/lsn finds nothing: the record has no value");
}

}  // namespace
}  // namespace fencepost::consumer
