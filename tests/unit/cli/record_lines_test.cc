// What is sent for a line: of tests' records, and of any other JSON.
#include "consumer/cli/dev/record_lines.h"

#include <gtest/gtest.h>

#include <vector>

#include <fmt/format.h>

namespace fencepost::cli {
namespace {

std::string Shown(const std::optional<std::string>& text) { return text.value_or("(null)"); }

// "topic/partition key value [name=value] [@timestamp]", or what is wrong.
std::string Read(std::string_view line) {
  const std::vector<std::string> topics{"orders", "returns"};
  const auto record = ReadRecordLine(line, topics, 4);
  if (!record) return record.error();
  std::string text = fmt::format("{}/{} {} {}", record->topic, record->partition,
                                 Shown(record->key), Shown(record->value));
  for (const auto& [name, value] : record->headers) text += fmt::format(" {}={}", name, value);
  if (record->timestamp) text += fmt::format(" @{}", record->timestamp->count());
  return text;
}

TEST(RecordLines, AreValuesUnlessTheyAreRecordsAsTestsHaveThem) {
  const std::pair<const char*, const char*> kLines[] = {
      {R"({"order_id": "o-1", "amount": 1.50})",
       R"(orders/0 (null) {"order_id": "o-1", "amount": 1.50})"},
      {"  [1, 2]\r", "orders/0 (null) [1, 2]"},
      {R"("text")", R"(orders/0 (null) "text")"},
      {"12345678901234567890.50", "orders/0 (null) 12345678901234567890.50"},
      {"null", "orders/0 (null) null"},
      {R"({"value": {"amount": 1.50}})", R"(orders/0 (null) {"amount": 1.50})"},
      {R"({"key": "k", "value": "<order/>"})", "orders/0 k <order/>"},
      {R"({"key": {"id": 1}, "value": null, "partition": 3})", R"(orders/3 {"id": 1} (null))"},
      {R"({"key": null, "value": 1e3, "topic": "returns"})", "returns/0 (null) 1e3"},
      {R"({"value": "a\nb", "headers": {"n": "x\"", "m": 7}, "timestamp": 1700000000000})",
       "orders/0 (null) a\nb n=x\" m=7 @1700000000000"},
      // One member more, and it is a value.
      {R"({"value": 1, "currency": "EUR"})", R"(orders/0 (null) {"value": 1, "currency": "EUR"})"},
      {R"({"key": "k"})", R"(orders/0 (null) {"key": "k"})"},
      {"{}", "orders/0 (null) {}"},
  };
  for (const auto& [line, record] : kLines) EXPECT_EQ(Read(line), record) << line;
}

TEST(RecordLines, SayWhyNothingIsSent) {
  const std::pair<const char*, const char*> kLines[] = {
      {R"({"order_id": )", "it is no JSON document: "},
      {"o-1", "it is no JSON document: "},
      {R"({"a": 1} {"a": 2})", "it is no JSON document: "},
      {R"({"value": 1, "topic": "other"})",
       "it is a record of the topic \"other\", which is none of orders, returns"},
      {R"({"value": 1, "partition": 4})", "it is a record of partition 4; here there are 0 to 3"},
      {R"({"value": 1, "partition": "x"})", "it is a record whose partition cannot be read: "},
      {R"({"value": 1, "timestamp": 1.5})", "it is a record whose timestamp cannot be read: "},
      {R"({"value": 1, "headers": ["a"]})", "it is a record whose headers cannot be read: "},
      {R"({"value": 1, "headers": {"a": null}})", "it is a record whose header a is null"},
      {R"({"value": 1, "topic": 7})", "it is a record whose topic cannot be read: "},
  };
  for (const auto& [line, why] : kLines) EXPECT_EQ(Read(line).find(why), 0) << Read(line);
}

}  // namespace
}  // namespace fencepost::cli
