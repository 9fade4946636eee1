#include "consumer/handlers/http/http_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

using ::testing::HasSubstr;

HttpHandlerOptions Batches(HttpBatchForm form, HttpResult result = HttpResult::kReplace) {
  return {
      .url = "http://service/", .result = result, .batch = {.max_records = 50}, .batch_form = form};
}

// What each of the records a, b and c gets: its value, "null", or "CLASS(again): TEXT"; of an
// answer that fails whole "all: CLASS: TEXT".
std::string Told(const AnswerBody& body) {
  if (body) return body->value_or("null");
  const HandlerFailure& failure = body.error();
  return failure.error_class + (failure.retry ? ", again: " : ", for good: ") + failure.text;
}

std::vector<std::string> Told(const HttpHandlerOptions& options,
                              const std::optional<std::string>& answer,
                              const std::vector<std::string_view>& ids = {"a", "b", "c"}) {
  const auto bodies = ParseHttpBatch(options, answer, ids);
  if (!bodies) return {"all: " + bodies.error().error_class + ": " + bodies.error().text};
  std::vector<std::string> told;
  for (const AnswerBody& body : *bodies) told.push_back(Told(body));
  return told;
}

struct BatchAnswer {
  std::string what;
  std::string answer;
  std::vector<std::string> told;
};

const std::string kNone =
    "bad_answer, again: the answer to its batch has no verdict on this record";
const std::string kTwice = "bad_answer, again: the answer has two verdicts on this record";
const std::string kStranger =
    "all: bad_answer: the answer has the id of a record that is not in its batch";
const std::string kMixed =
    "all: bad_answer: some elements of the answer are verdicts with an id, others are not";
const std::string kOnNone =
    "all: bad_answer: a verdict of the answer does not have its record's id, as it was sent";
const std::string kNoArray = "all: bad_answer: the answer is not a JSON array";
const std::string kBadLine = "all: bad_answer: a line of the answer is not JSON";
const std::string kForm =
    "bad_answer, again: the error is not {\"retry\": true or false, \"message\": TEXT, \"class\": "
    "a "
    "word of a-z and _, or a status}";
const std::string kOneOf = "bad_answer, again: its verdict must have one of value and error";

std::string Counted(int values) {
  return "all: bad_answer: the answer has " + std::to_string(values) +
         " values for 3 records, and no ids that say for which";
}

TEST(HttpBatch, OfAnArraySaysOfEachRecordWhatItsAnswerSays) {
  const std::vector<BatchAnswer> rows = {
      {"in order", "[1, {\"x\": 2}, \"c\"]", {"1", "{\"x\": 2}", "\"c\""}},
      {"with all digits",
       "[12345678901234567890.10, 1E400, -0]",
       {"12345678901234567890.10", "1E400", "-0"}},
      {"nulls", "[null, null, 3]", {"null", "null", "3"}},
      {"arrays", "[[1], [2], [3]]", {"[1]", "[2]", "[3]"}},
      {"by id",
       R"([{"id":"a","value":1},{"id":"b","value":2},{"id":"c","value":3}])",
       {"1", "2", "3"}},
      {"by id in another order",
       R"( [ {"id":"c","value":{"n":3}}, {"value":1,"id":"a"}, {"more":0,"id":"b","value":[2]} ] )",
       {"1", "[2]", "{\"n\":3}"}},
      {"an id with an escape",
       R"([{"id":"\u0061","value":1},{"id":"b","value":2},
                                   {"id":"c","value":3}])",
       {"1", "2", "3"}},
      {"half a batch by id", R"([{"id":"b","value":2}])", {kNone, "2", kNone}},
      {"half a batch in order", "[1]", {Counted(1)}},
      {"none", "[]", {Counted(0)}},
      {"too many in order", "[1,2,3,4]", {Counted(4)}},
      {"an id twice",
       R"([{"id":"a","value":1},{"id":"b","value":2},{"id":"a","value":1}])",
       {kTwice, "2", kNone}},
      {"an id three times",
       R"([{"id":"a","value":1},{"id":"a","value":1},{"id":"a","value":1},{"id":"b","value":2},
           {"id":"c","value":3}])",
       {kTwice, "2", "3"}},
      {"a stranger's id",
       R"([{"id":"a","value":1},{"id":"b","value":2},{"id":"x","value":3}])",
       {kStranger}},
      {"a stranger beside all of them",
       R"([{"id":"a","value":1},{"id":"b","value":2},{"id":"c","value":3},{"id":"x","value":4}])",
       {kStranger}},
      {"mixed forms", R"([{"id":"a","value":1},2,{"id":"c","value":3}])", {kMixed}},
      {"values with ids of their own",
       R"([{"id":"p-1","name":"x"},{"id":17},{"id":"p-3","name":"z"}])",
       {R"({"id":"p-1","name":"x"})", "{\"id\":17}", R"({"id":"p-3","name":"z"})"}},
      {"verdicts whose ids are no texts",
       R"([{"id":"a","value":1},{"id":null,"value":2},{"id":"c","value":3}])",
       {kOnNone}},
      {"an error without an id",
       R"([{"value":1},{"error":{"retry":false}},{"value":3}])",
       {kOnNone}},
      {"values with an error that is null",
       R"([{"n":1,"error":null},{"n":2,"error":null},3])",
       {R"({"n":1,"error":null})", R"({"n":2,"error":null})", "3"}},
      {"values with the records' ids in order",
       R"([{"id":"a"},{"id":"b"},{"id":"c"}])",
       {"{\"id\":\"a\"}", "{\"id\":\"b\"}", "{\"id\":\"c\"}"}},
      {"values with the records' ids in another order",
       R"([{"id":"b"},{"id":"a"},{"id":"c"}])",
       {"all: bad_answer: the values of the answer have ids, in another order than the request"}},
      {"errors",
       R"([{"id":"a","error":{"retry":false,"message":"no such\norder"}},
           {"id":"b","error":{"retry":true,"message":"later","class":"503"}},
           {"id":"c","error":{}}])",
       {"http_error, for good: no such order", "503, again: later",
        "http_error, again: the service refused the record"}},
      {"errors beside values",
       R"([{"id":"a","value":1},{"id":"b","error":{"message":"m","class":"bad_order","more":[]}},
           {"id":"c","value":null}])",
       {"1", "bad_order, again: m", "null"}},
      {"errors of other forms",
       R"([{"id":"a","error":"text"},{"id":"b","error":{"retry":"no"}},
           {"id":"c","error":{"class":"Card 4111"}}])",
       {kForm, kForm, kForm}},
      {"members that are null beside the other",
       R"([{"id":"a","value":1,"error":null},{"id":"b","value":null,"error":{"message":"m"}},
           {"id":"c","value":null,"error":null}])",
       {"1", "http_error, again: m", "null"}},
      {"both, or nothing of both",
       R"([{"id":"a","value":1,"error":{}},{"id":"b","error":null},{"id":"c","value":3}])",
       {kOneOf, kOneOf, "3"}},
      {"a text", "done", {kNoArray}},
      {"an object", R"({"errors":false})", {kNoArray}},
      {"NaN", "[NaN,2,3]", {kNoArray}},
      {"two documents", "[1,2,3][4]", {kNoArray}},
      {"cut off", "[1,2,3", {kNoArray}},
      {"a web page", "<html>", {kNoArray}},
      {"an empty body", "", {kNoArray}},
  };
  for (const BatchAnswer& row : rows) {
    EXPECT_EQ(Told(Batches(HttpBatchForm::kArray), row.answer), row.told) << row.what;
  }
}

TEST(HttpBatch, TakesANumberForTheIdThatIsItsText) {
  const auto told = [](const std::string& answer) {
    return Told(Batches(HttpBatchForm::kArray), answer, {"17", "18"});
  };
  EXPECT_EQ(told(R"([{"id":18,"value":1},{"id":17,"error":{"retry":false,"message":"declined"}}])"),
            (std::vector<std::string>{"http_error, for good: declined", "1"}));
  EXPECT_EQ(
      told(R"([{"id":18,"score":2},{"id":17,"score":1}])"),
      std::vector<std::string>{
          "all: bad_answer: the values of the answer have ids, in another order than the request"});
}

TEST(HttpBatch, OfLinesSaysOfEachRecordWhatItsAnswerSays) {
  const std::vector<BatchAnswer> rows = {
      {"in order", "1\n{\"x\": 2}\n3", {"1", "{\"x\": 2}", "3"}},
      {"with a blank last line", "1\n2\n3\n\n", {"1", "2", "3"}},
      {"with a return before each end", "1\r\n2\r\n3\r\n", {"1", "2", "3"}},
      {"by id",
       "{\"id\":\"c\",\"value\":3}\n\n{\"id\":\"a\",\"error\":{\"retry\":false}}\n",
       {"http_error, for good: the service refused the record", kNone, "3"}},
      {"an array of verdicts", R"([{"id":"c","value":3},{"id":"a","value":1}])", {"1", kNone, "3"}},
      {"arrays as values", "[1]\n[2]\n[3]\n", {"[1]", "[2]", "[3]"}},
      {"an array of values", "[1,2,3]", {Counted(1)}},
      {"too few", "1\n2\n", {Counted(2)}},
      {"a line that is none", "1\nNaN\n3\n", {kBadLine}},
      {"cut off", "1\n2\n{\"x\":", {kBadLine}},
      {"two documents in a line", "1\n2 3\n4\n", {kBadLine}},
      {"an empty body", "\n", {Counted(0)}},
  };
  for (const BatchAnswer& row : rows) {
    EXPECT_EQ(Told(Batches(HttpBatchForm::kNdjson), row.answer), row.told) << row.what;
  }
  EXPECT_EQ(Told(Batches(HttpBatchForm::kNdjson), "[5]", {"a"}), std::vector<std::string>{"[5]"})
      << "of one record the line is its value";
}

TEST(HttpBatch, WithoutABodyIsAnAnswerWhereTheResultNeedsNone) {
  using Form = HttpBatchForm;
  using Result = HttpResult;
  const std::vector<std::string> nulls = {"null", "null", "null"};
  EXPECT_EQ(Told(Batches(Form::kArray), std::nullopt), nulls) << "204";
  EXPECT_EQ(Told(Batches(Form::kNdjson, Result::kKeep), std::nullopt), nulls);
  EXPECT_EQ(Told(Batches(Form::kArray, Result::kKeep), ""), nulls);
  EXPECT_EQ(Told(Batches(Form::kArray, Result::kMerge), " \n"), nulls);
  EXPECT_EQ(Told(Batches(Form::kArray, Result::kKeep), "[1]"), std::vector{Counted(1)})
      << "an answer that is there counts";
}

TEST(HttpBatch, ReadsAnAnswerOfTheLargestSize) {
  const std::string large(8 << 20, 'x');
  EXPECT_EQ(Told(Batches(HttpBatchForm::kArray), "[1,\"" + large + "\",3]"),
            (std::vector<std::string>{"1", "\"" + large + "\"", "3"}));
}

HandlerCall CallOf(const std::string& id, std::optional<std::string_view> key) {
  HandlerCall call{.id = 1, .record_id = id, .token = 9'007'199'254'740'993, .attempt = 2};
  call.record.key = key;
  return call;
}

TEST(HttpBatch, CarriesAnElementForEachRecord) {
  for (const auto form : {HttpBatchForm::kArray, HttpBatchForm::kNdjson}) {
    HttpBatchText text(form);
    EXPECT_FALSE(text.Add(CallOf("a\"1", "k"), "{\"n\": 1.10,\n \"s\": \"a\\nb\"}\n"));
    const auto refused = text.Add(CallOf("b", "k"), "{\"n\": NaN}");
    ASSERT_TRUE(refused.has_value());
    EXPECT_EQ(refused->error_class, "bad_record");
    EXPECT_FALSE(refused->asked);
    EXPECT_THAT(refused->text, HasSubstr("NaN is not JSON (handler.http.batch sends JSON)"));
    EXPECT_FALSE(text.Add(CallOf("c", "\xff"), std::nullopt));
    EXPECT_FALSE(text.Add(CallOf("d", std::nullopt), "[]"));
    const std::string a = R"({"id":"a\"1","token":9007199254740993,"attempt":2,"key":"k",)"
                          R"("value":{"n": 1.10,  "s": "a\nb"}})";
    const std::string c = R"({"id":"c","token":9007199254740993,"attempt":2,"key":null,)"
                          R"("key_base64":"/w==","value":null})";
    const std::string d =
        R"({"id":"d","token":9007199254740993,"attempt":2,"key":null,"value":[]})";
    EXPECT_EQ(text.Take(), form == HttpBatchForm::kArray ? "[" + a + "," + c + "," + d + "]"
                                                         : a + "\n" + c + "\n" + d + "\n");
  }
}

}  // namespace
}  // namespace fencepost::consumer
