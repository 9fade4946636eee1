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
      for (;; ++written) {
        const auto next = records.Next();
        ASSERT_TRUE(next) << next.error().shown;
        if (*next == nullptr) break;
        EXPECT_EQ(Text((*next)->headers), row.written);
      }
      EXPECT_EQ(written, values == nullptr ? 1 : values->size());
    }
  }
}

// Doubles the value, and has no result for "none"; a stand-in for jq.
class Twice final : public ValueProgram {
 public:
  tl::expected<Values, std::string> Run(const RecordContext& context) override {
    const auto value = context.value != nullptr ? *context.value : context.record->value;
    if (value == "none") return Values();
    if (value == "bad") return tl::unexpected(std::string("jq fails"));
    return Values{std::string(*value) + "1", std::nullopt};
  }
};

TEST(OutputRecords, AreThoseOfEachFormInItsTopic) {
  KafkaOutputOptions options;
  const Selector key = Selector::Parse("key?").value();
  const Selector kind = Selector::Parse("header:kind?").value();
  const auto route = [&](Route::Otherwise otherwise, std::string name = "") {
    return Route{.by = kind,
                 .of = {{"a", "to-a"}, {"b", "first"}},
                 .otherwise = otherwise,
                 .name = std::move(name)};
  };
  options.records = {
      {.topic = "first", .route = {}, .key = key, .program = "", .when = {}},
      {.topic = "", .route = route(Route::Otherwise::kSkip), .key = key, .program = "", .when = {}},
      {.topic = "made",
       .route = {},
       .key = key,
       .program = "twice",
       .when = {.all = {{.selector = key, .text = std::nullopt}}, .program = ""}},
  };
  const JqMakers jq{
      .filter = {}, .values = [](const std::string&) {
        return tl::expected<std::unique_ptr<ValueProgram>, Error>(std::make_unique<Twice>());
      }};
  OutputRecords records(options, "worker", nullptr, false, jq);
  EXPECT_EQ(records.topics(), (std::vector<std::string>{"first", "to-a", "made"}));
  struct Row {
    std::optional<std::string_view> key, value;
    const char* kind;
    const char* made;  // TOPIC=VALUE, or the error
  };
  const Row rows[] = {
      {"k", "v", "a", "first=v to-a=v made=v1 made=(null)"},
      {std::nullopt, "v", "b", "first=v first=v"},
      {"k", "none", "x", "first=none"},
      {"k", "bad", "a", "record 3 (made): value: jq fails"},
  };
  for (const Row& row : rows) {
    Record record;
    record.key = row.key;
    record.value = row.value;
    record.headers = {{"kind", row.kind}};
    const WriteItem item{.record = &record, .where = &kWhere};
    records.Begin(item);
    std::string made;
    for (;;) {
      const auto next = records.Next();
      if (!next) made = next.error().shown;
      if (!next || *next == nullptr) break;
      EXPECT_EQ(records.topics()[records.topic()], (*next)->topic);
      made += fmt::format("{}{}={}", made.empty() ? "" : " ", (*next)->topic,
                          (*next)->value.value_or("(null)"));
    }
    EXPECT_EQ(made, row.made);
  }
}

TEST(OutputRecords, ThatChooseNoTopicNameTheTextsThereAreAndNotTheRecords) {
  KafkaOutputOptions options;
  options.records.resize(2);
  options.records[0].topic = "first";
  Route route{.by = Selector::Parse("header:kind?").value(),
              .of = {},
              .otherwise = Route::Otherwise::kBad,
              .name = ""};
  std::string texts;
  for (const char* text : {"a", "b", "c", "d", "e", "f", "g"}) {
    route.of.emplace_back(text, "to");
    options.records[1].route = route;
    if (route.of.size() <= 5) texts += fmt::format("{}'{}'", texts.empty() ? "" : ", ", text);
    const std::string more =
        route.of.size() > 5 ? fmt::format(" and {} more", route.of.size() - 5) : "";
    for (const Headers& headers : {Headers{{"kind", "other"}}, Headers{}}) {
      OutputRecords records(options, "worker", nullptr, false);
      Record record;
      record.value = "v";
      record.headers = headers;
      const WriteItem item{.record = &record, .where = &kWhere};
      records.Begin(item);
      EXPECT_TRUE(records.Next());
      EXPECT_EQ(
          records.Next().error().shown,
          "record 2 (topic by header:kind?): topic: header:kind? gives none of " + texts + more);
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
