// What a Kafka output passes on of a record: its headers and its time.
#include "consumer/kafka/output/output_records.h"

#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

using Headers = std::vector<HeaderView>;

const TopicPartition kWhere{"orders", 3};

std::string Text(const Headers& headers) {
  std::string text;
  for (const auto& [name, value] : headers) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value.value_or("(null)"));
  }
  return text;
}

Column Set(const char* name, const char* selector) {
  return {.name = name, .selector = Selector::Parse(selector).value()};
}

TEST(OutputRecords, PassOnTheRecordsHeaders) {
  const Headers own{
      {"a", "1"}, {"traceparent", "00-x"}, {"a", "2"}, {"none", std::nullopt}, {"empty", ""}};
  const Headers replay{{"fencepost-record-id", "o-1"}, {"a", "1"},
                       {"fencepost-topic", "orders"},  {"fencepost-partition", "3"},
                       {"fencepost-offset", "17"},     {"fencepost-timestamp", "5"},
                       {"fencepost-error", "x"},       {"fencepost-mine", "is nobody's"}};
  struct Row {
    Headers own;
    HeaderRules rules;
    const char* written;
  };
  const Row rows[] = {
      {own, {}, "a=1 traceparent=00-x a=2 none=(null) empty="},
      {{}, {}, ""},
      {own,
       {.set = {Set("b", "=x")}, .dropped = {}},
       "a=1 traceparent=00-x a=2 none=(null) empty= b=x"},
      {own, {.set = {Set("a", "=x")}, .dropped = {}}, "traceparent=00-x none=(null) empty= a=x"},
      {own,
       {.set = {Set("a", "header:a")}, .dropped = {}},
       "traceparent=00-x none=(null) empty= a=2"},
      {own,
       {.set = {Set("A", "=x")}, .dropped = {}},
       "a=1 traceparent=00-x a=2 none=(null) empty= A=x"},
      {own,
       {.set = {Set("b", "header:absent?")}, .dropped = {}},
       "a=1 traceparent=00-x a=2 none=(null) empty= b=(null)"},
      {own, {.set = {}, .dropped = {"a", "absent"}}, "traceparent=00-x none=(null) empty="},
      {own, {.set = {}, .dropped = {"*"}}, ""},
      {own, {.set = {Set("t", "header:traceparent")}, .dropped = {"*"}}, "t=00-x"},
      // To another pipeline, what is written is no replay and no dead letter.
      {replay, {}, "a=1 fencepost-mine=is nobody's"},
      {replay,
       {.set = {Set("fencepost-record-id", "header:fencepost-record-id")}, .dropped = {}},
       "a=1 fencepost-mine=is nobody's fencepost-record-id=o-1"},
  };
  for (const Row& row : rows) {
    KafkaOutputOptions options;
    options.headers = row.rules;
    OutputRecords records(options, "worker", nullptr, false);
    Record record;
    record.value = "v";
    record.headers = row.own;
    // The record's own value, the two of a handler, a filtered record.
    const HandlerValues two{"x", std::nullopt};
    const HandlerValues none{};
    for (const HandlerValues* values : {static_cast<const HandlerValues*>(nullptr), &two, &none}) {
      const WriteItem item{.record = &record, .where = &kWhere, .values = values};
      records.Begin(item);
      std::size_t written = 0;
      for (; !records.AtEnd(); ++written) {
        const auto next = records.Next();
        ASSERT_TRUE(next) << next.error().shown;
        EXPECT_EQ(Text((*next)->headers), row.written);
      }
      EXPECT_EQ(written, values == nullptr ? 1 : values->size());
    }
  }
}

TEST(OutputRecords, OfAReplayHaveTheOriginalsTime) {
  const KafkaOutputOptions options;
  OutputRecords records(options, "worker", nullptr, false);
  Record record;
  record.timestamp = Millis(9000);
  WriteItem item{.record = &record, .where = &kWhere};
  const auto time = [&] {
    records.Begin(item);
    return records.Next().value()->timestamp;
  };
  EXPECT_EQ(time(), Millis(9000));
  const ReplayOrigin origin{.timestamp = Millis(5000)};
  item.origin = &origin;
  EXPECT_EQ(time(), Millis(5000));
}

}  // namespace
}  // namespace fencepost::consumer
