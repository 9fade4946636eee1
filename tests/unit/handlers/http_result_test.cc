// handler.http's `body` and `result`: what a request carries of a record, and what an answer makes
// of it.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "consumer/handlers/http/http_answer.h"
#include "consumer/handlers/http/http_rules.h"
#include "consumer/json/json_text.h"

namespace fencepost::consumer {
namespace {

using Text = std::optional<std::string>;

HandlerCall CallWith(const Text& value) {
  auto kept = std::make_shared<Text>(value);
  HandlerCall call{.where = {.topic = "orders", .partition = 3}, .record_id = "o-1"};
  if (*kept) call.record.value = **kept;
  call.record.key = "k";
  call.record.owner = kept;
  return call;
}

std::string Said(const HandlerFailure& failure) {
  EXPECT_EQ(failure.text, failure.shown) << "it holds nothing of the record, nor of the answer";
  return failure.error_class + (failure.retry ? ", again: " : ", for good: ") + failure.shown;
}

const HttpHandlerOptions kReplace{};
const HttpHandlerOptions kKeep{.result = HttpResult::kKeep};
HttpHandlerOptions MergeInto(std::string pointer) {
  return {.result = HttpResult::kMerge, .result_pointer = std::move(pointer)};
}
HttpHandlerOptions ByJq(std::string program) {
  return {.result = HttpResult::kJq, .result_program = std::move(program)};
}

// The values, each in its line, or the failure.
std::string OutcomeOf(const HttpHandlerOptions& options, const Text& record,
                      const HttpAnswer& answer) {
  HttpResultRule rule = HttpResultRule::Make(options).value();
  const HandlerCall call = CallWith(record);
  if (const auto refusal = rule.Refusal(call)) {
    EXPECT_FALSE(refusal->asked);
    return "not called: " + Said(*refusal);
  }
  const AnswerBody body = BodyOf(options, answer);
  if (!body) return body.error().error_class;
  const HandlerResult result = rule.Apply(call, *body);
  if (!result) {
    EXPECT_TRUE(result.error().asked);
    return result.error().error_class == "bad_answer" ? Said(result.error())
                                                      : result.error().error_class;
  }
  std::string values;
  for (const Text& value : *result) {
    values += (values.empty() ? "" : "\n") + value.value_or("(null)");
    const bool merged = options.result == HttpResult::kMerge;
    EXPECT_EQ(merged ? JsonProblem(*value) : "", "") << *value;
  }
  return result->empty() ? "(no value)" : values;
}

std::string Nested(int levels) { return std::string(levels, '[') + std::string(levels, ']'); }

TEST(HttpResult, IsWhatTheAnswerMakesOfTheRecord) {
  struct Row {
    HttpHandlerOptions options;
    Text record;
    HttpAnswer answer;
    std::string outcome;
  };
  const auto ok = [](std::string body) { return HttpAnswer{.status = 200, .body = body}; };
  const HttpAnswer none{.status = 204};
  const std::string no_array = " is no object, which alone takes a new name";
  const auto bad = [](std::string why, const char* pointer) {
    return "not called: bad_record, for good: " + why + " (handler.http.result merges into " +
           pointer + ")";
  };
  const Row rows[] = {
      {kReplace, "{}", ok("no JSON"), "no JSON"},
      {kReplace, "{}", ok(""), ""},
      {kReplace, "{}", none, "(null)"},
      {kReplace, "{}", {.status = 503, .body = "{}"}, "503"},
      {kKeep, "no JSON", ok("{}"), "no JSON"},
      {kKeep, "{}", none, "{}"},
      {kKeep, "{}", {.status = 200, .encoding = "br", .body = "?"}, "{}"},
      {kKeep, std::nullopt, ok("{}"), "(null)"},
      {kKeep, "{}", {.status = 404}, "404"},

      {MergeInto("/e"), R"({"a":1.10, "b" : 1e400 })", ok(R"({"s":9007199254740993})"),
       R"({"a":1.10, "b" : 1e400,"e":{"s":9007199254740993} })"},
      {MergeInto("/e"), R"( {"e": [1, 2] ,"z":0} )", ok(" 7\n"), R"( {"e": 7 ,"z":0} )"},
      {MergeInto("/e"), R"({"e":null})", ok(R"("x")"), R"({"e":"x"})"},
      {MergeInto("/e"), R"({"e":{"a":{}} , "z":1})", ok("{}"), R"({"e":{} , "z":1})"},
      {MergeInto("/e"), R"({"\u0065":1})", ok("2"), R"({"\u0065":2})"},
      {MergeInto("/e"), "{}", ok("1"), R"({"e":1})"},
      {MergeInto("/e"), "{ }", ok("1"), R"({"e":1 })"},
      {MergeInto("/x/y/z"), R"({"a":1})", ok("1"), R"({"a":1,"x":{"y":{"z":1}}})"},
      {MergeInto("/x/y"), R"({"x":{"a":"}"}})", ok("1"), R"({"x":{"a":"}","y":1}})"},
      {MergeInto("/a~1b/m~0n"), R"({"a/b":{}})", ok("1"), R"({"a/b":{"m~n":1}})"},
      {MergeInto("/a\"\n"), "{}", ok("1"), R"({"a\"\n":1})"},
      {MergeInto("/"), R"({"a":1})", ok("1"), R"({"a":1,"":1})"},
      {MergeInto("/l/1"), R"({"l":[1, 2 ,3]})", ok("9"), R"({"l":[1, 9 ,3]})"},
      {MergeInto("/0/x"), R"([{}, 1])", ok("9"), R"([{"x":9}, 1])"},
      {MergeInto("/l/3"), R"({"l":[1,2,3]})", ok("9"), bad("/l" + no_array, "/l/3")},
      {MergeInto("/l/-"), R"({"l":[]})", ok("9"), bad("/l" + no_array, "/l/-")},
      {MergeInto("/a/b/c"), R"({"a":1})", ok("9"), bad("/a" + no_array, "/a/b/c")},
      {MergeInto("/a/b"), R"({"a":null})", ok("9"), bad("/a" + no_array, "/a/b")},
      {MergeInto("/e"), "[1]", ok("9"), bad("the value" + no_array, "/e")},
      {MergeInto("/e"), "17", ok("9"), bad("the value" + no_array, "/e")},
      {MergeInto("/e"), "null", ok("9"), bad("the value" + no_array, "/e")},
      {MergeInto("/e"), "{1}", ok("9"),
       bad("the value is not valid JSON: a name in quotes is missing in an object", "/e")},
      {MergeInto("/e"), R"({"a":1,"\u0061":2})", ok("9"),
       bad("the value is not valid JSON: an object has a name twice", "/e")},
      {MergeInto("/e"), std::nullopt, ok("9"),
       "not called: bad_record, for good: the value is null, and handler.http.result merges into "
       "it"},
      {MergeInto("/e"), "{}", none, R"({"e":null})"},
      {MergeInto("/e"), "{}", ok(""), R"({"e":null})"},
      {MergeInto("/e"), "{}", ok("<html>"),
       "bad_answer, again: the answer is not valid JSON: a literal is neither a number nor true, "
       "false or null"},
      {MergeInto("/e"), "{}", ok(" "),
       "bad_answer, again: the answer is not valid JSON: it is white space alone"},
      {MergeInto("/e"), "{}", ok("{} {}"),
       "bad_answer, again: the answer is not valid JSON: it has two documents or more"},
      {MergeInto("/e"), "{}", ok(R"({"a":1,"a":2})"),
       "bad_answer, again: the answer is not valid JSON: an object has a name twice"},
      {MergeInto("/e/f"), "{}", ok(Nested(198)), R"({"e":{"f":)" + Nested(198) + "}}"},
      {MergeInto("/e/f"), "{}", ok(Nested(199)),
       "bad_answer, again: the answer is not valid JSON: it is nested deeper than 200 levels"},
      {MergeInto("/e"), "{}", {.status = 500, .body = "{}"}, "500"},
      {MergeInto("/e"), "{}", {.status = 200, .encoding = "br", .body = "?"}, "connection"},
      {MergeInto("/e"), "{}", ok('"' + std::string(16 << 20, 'x') + '"'), "too_large"},

      {ByJq(".record + {score: .answer.score}"), R"({"id":1})", ok(R"({"score":0.5})"),
       R"({"id":1,"score":0.5})"},
      {ByJq(".record.id, .answer[]"), R"({"id":1})", ok("[2,null]"), "1\n2\n(null)"},
      {ByJq("empty"), "{}", ok("1"), "(no value)"},
      {ByJq("[.record, .answer, $record_id, $topic, $key]"), std::nullopt, none,
       R"([null,null,"o-1","orders","k"])"},
      {ByJq(".answer"), "{}", ok(""), "(null)"},
      {ByJq(".answer"), "no", ok("1"),
       "not called: bad_record, for good: the value is not valid JSON: a literal is neither a "
       "number nor true, false or null (handler.http.result reads it)"},
      {ByJq(".answer"), "{}", ok("{"),
       "bad_answer, again: the answer is not valid JSON: it is cut off"},
      {ByJq(".answer.a"), "{}", ok("[]"), "jq"},
      {ByJq(".record"), "9007199254740993", ok("1"), "bad_record"},
      {ByJq(".answer"), "{}", ok("9007199254740993"), "bad_record"},
      {ByJq(".answer.b"), "9007199254740993", ok(R"({"a":1e400,"b":1})"), "1"},
      {ByJq(".answer"), "{}", {.status = 429}, "429"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE("row " + std::to_string(&row - rows));
    EXPECT_EQ(OutcomeOf(row.options, row.record, row.answer), row.outcome);
  }
}

TEST(HttpBody, IsWhatARequestCarriesOfTheRecord) {
  struct Row {
    HttpHandlerOptions options;
    Text record;
    std::string body;
  };
  const auto by_jq = [](std::string program) {
    return HttpHandlerOptions{.body = HttpBody::kJq, .body_program = std::move(program)};
  };
  const Row rows[] = {
      {{}, "no JSON", "no JSON"},
      {{}, "", ""},
      {{}, std::nullopt, "(none)"},
      {{.method = "DELETE"}, "{}", "{}"},
      {{.method = "GET"}, "{}", "(none)"},
      {{.body = HttpBody::kNone}, "{}", "(none)"},
      {by_jq("{id: .order_id, amount}"), R"({"order_id":7,"amount":1.5,"x":0})",
       R"({"id":7,"amount":1.5})"},
      {by_jq("[$record_id, $key, .]"), std::nullopt, R"(["o-1","k",null])"},
      {by_jq(".a"), "{}", "null"},
      {by_jq("empty"), "{}",
       "bad_record, for good: the program of handler.http.body gives no result, and needs one"},
      {by_jq(".[]"), "[1,2]",
       "bad_record, for good: the program of handler.http.body gives several results, and needs "
       "one"},
      {by_jq("."), "no",
       "bad_record, for good: the value is not valid JSON: a literal is neither a number nor true, "
       "false or null"},
      {by_jq(".a"), "[]", "jq"},
      {by_jq("."), "9007199254740993", "bad_record"},
      {by_jq(".a"), R"({"a":1,"b":9007199254740993})", "1"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE("row " + std::to_string(&row - rows));
    const auto body = HttpBodyRule::Make(row.options).value().Of(CallWith(row.record));
    if (body) {
      EXPECT_EQ(body->value_or("(none)"), row.body);
      continue;
    }
    const HandlerFailure& failure = body.error();
    EXPECT_FALSE(failure.asked);
    EXPECT_FALSE(failure.retry);
    EXPECT_EQ(failure.text == failure.shown ? Said(failure) : failure.error_class, row.body);
  }
}

TEST(HttpPrograms, ThatDoNotCompileNameTheirKey) {
  const auto body = HttpBodyRule::Make({.body = HttpBody::kJq, .body_program = "nothing"});
  EXPECT_EQ(body.error().where, "handler.http.body.jq");
  const auto result = HttpResultRule::Make(ByJq("{"));
  EXPECT_EQ(result.error().where, "handler.http.result.jq");
}

}  // namespace
}  // namespace fencepost::consumer
