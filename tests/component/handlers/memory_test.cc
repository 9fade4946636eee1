// What one record takes in a handler, and its answer.
#include "consumer/handlers/exec/exec_protocol.h"
#include "consumer/handlers/http/http_answer.h"
#include "consumer/handlers/jq/jq_handler.h"
#include "tests/component/handlers/runner_fixture.h"
#include "tests/support/peak_memory.h"

namespace fencepost::consumer {
namespace {

using testing::ExpectBounded;
using testing::List;
using testing::Repeated;

std::string Said(const HandlerResult& result) {
  return result ? "" : "error: " + result.error().text;
}

struct Row {
  const char* name;
  std::string text;
  const char* verdict = "";
};
constexpr const char* kRefused = "error: the value takes too much memory in jq";

TEST(Memory, OfAValueInJqIsAboutSixteenTimesItsSizeOrItIsRefused) {
  std::string names = "{";
  for (int i = 0; i < 1'000'000; ++i) names += fmt::format("\"{:x}\":1,", i);
  const std::vector<Row> rows = {
      {"numbers", List("1", 1'000'000)},
      {"many numbers", List("1", 4'000'000)},
      {"more numbers", List("1", 16'000'000), kRefused},
      {"empty lists", List("[]", 100'000)},
      {"many empty lists", List("[]", 2'000'000), kRefused},
      {"empty objects", List("{}", 2'000'000), kRefused},
      {"objects", List(R"({"id":12345,"name":"abcdefgh","more":true})", 50'000)},
      {"small objects", List(R"({"a":1})", 1'000'000), kRefused},
      {"many names", names + R"("z":1})"},
      {"a text", List('"' + std::string(3 << 20, 'x') + '"', 1)},
      {"control characters", List('"' + Repeated("\\u0001", 1'000'000) + '"', 0)},
      {"brackets in a text", List('"' + std::string(3 << 20, '{') + '"', 1)},
  };
  for (const Row& row : rows) {
    ExpectBounded(row.name, row.text.size(), row.verdict, [&] {
      const auto handler = JqHandler::Make(".").value();
      const TopicPartition where{.topic = "orders"};
      Record record;
      record.value = row.text;
      return Said(handler->Handle({.record = &record, .where = &where}, {}));
    });
  }
}

TEST(Memory, OfTheLineForAProgramIsBounded) {
  std::vector<std::string> names;
  for (int i = 0; i < 200'000; ++i) names.push_back(fmt::format("{:x}", i));
  for (const auto& [name, value] :
       {std::pair<std::string, std::string>{"controls", std::string(4 << 20, '\1')},
        {"bytes", std::string(4 << 20, '\xff')},
        {"headers", ""}}) {
    CallSpec spec{.value = value};
    std::size_t size = value.size();
    if (value.empty()) {
      for (const std::string& header : names) {
        spec.headers.emplace_back(header, "1");
        size += header.size() + 3;
      }
    }
    const HandlerCall call = MakeCall(1, spec);
    ExpectBounded(name, size, "", [&] {
      return ExecRequest(call, ExecValue::kText) ? std::string() : "error";
    });
  }
}

TEST(Memory, OfTheReplyOfAProgramIsAboutSixteenTimesItsSizeOrItIsRefused) {
  const char* const refused = "error: the sum of the values";
  for (const Row& row : {Row{"values", "{\"values\":" + List("1", 300'000) + "}"},
                         Row{"many values", "{\"values\":" + List("1", 8'000'000) + "}", refused},
                         Row{"many nulls", "{\"values\":" + List("null", 3'000'000) + "}", refused},
                         Row{"lists", "{\"value\":" + List("[]", 5'000'000) + "}"},
                         Row{"text", "{\"value_text\":\"" + Repeated("\\u0001", 2'000'000) + "\"}"},
                         Row{"no reply", List("1", 8'000'000), "error: it is not a JSON object"}}) {
    ExpectBounded(row.name, row.text.size(), row.verdict, [&] {
      const auto reply = ParseExecReply(row.text, "o-1");
      return reply ? Said(*reply) : "error: " + reply.error();
    });
  }
}

TEST(Memory, OfAnAnswerOverHttpIsBoundedByItsSize) {
  for (const int status : {200, 404}) {
    const std::string body(16 << 20, '\xff');
    ExpectBounded(std::to_string(status), body.size(), status == 200 ? "" : "error: HTTP 404", [&] {
      const AnswerBody read = BodyOf({}, {.status = status, .encoding = "", .body = body});
      return read ? "" : "error: " + read.error().text;
    });
  }
}

}  // namespace
}  // namespace fencepost::consumer
