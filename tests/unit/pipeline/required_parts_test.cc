// What an output takes from a record itself, whatever the handler makes of it.
#include "consumer/pipeline/required_parts.h"

#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

std::vector<Column> Columns(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::vector<Column> columns;
  for (const auto& [name, selector] : pairs) {
    columns.push_back({name, Selector::Parse(selector).value()});
  }
  return columns;
}

PostgresOptions Table(const char* selector, const RowRules& rules = {}) {
  PostgresOptions options;
  options.columns = Columns({{"x", selector}});
  options.rules = rules;
  return options;
}

PostgresOptions FencedByHeader(OnNull on_null) {
  return Table("=1", {.on_conflict = OnConflict::kUpdate,
                      .key = {"x"},
                      .fence_column = "at",
                      .fence_by = Selector::Parse("header:at").value(),
                      .on_null_value = on_null});
}

KafkaOutputOptions Topic(const char* key, const char* value, const char* header) {
  KafkaOutputOptions options;
  options.key = Selector::Parse(key).value();
  options.value = Selector::Parse(value).value();
  options.headers.set = Columns({{"h", header}});
  return options;
}

TEST(RequiredParts, AreKnownToBeMissingBeforeTheHandlerIsCalled) {
  const RowRules updates{.on_conflict = OnConflict::kUpdate, .key = {"x"}};
  const RowRules fenced{.on_conflict = OnConflict::kUpdate,
                        .key = {"x"},
                        .fence_column = "at",
                        .fence_by = Selector::Parse("timestamp").value(),
                        .on_null_value = OnNull::kDelete};
  const RowRules skips{.on_null_value = OnNull::kSkip};
  const RowRules deletes{.key = {"y"}, .on_null_value = OnNull::kDelete};
  PostgresOptions statement;
  statement.args = {Selector::Parse("json:/a").value(), Selector::Parse("key").value()};
  Record bare, tombstone, keyed;
  bare.value = keyed.value = R"({"a":1,"null":null})";
  keyed.key = R"({"id":7})";
  struct Row {
    OutputOptions output;
    const Record* record;
    const char* missing;
    HandlerOptions handler{};
  };
  const auto by = [](HttpResult result, const char* pointer = "") {
    return HandlerOptions{HttpHandlerOptions{.result = result, .result_pointer = pointer}};
  };
  const HandlerOptions keep = by(HttpResult::kKeep);
  const HandlerOptions merge = by(HttpResult::kMerge, "/e/f");
  const Row rows[] = {
      {Table("key"), &bare, "column x from key: key finds nothing in the record"},
      {Table("key"), &keyed, ""},
      {Table("key?"), &bare, ""},
      {Table("key?", updates), &bare, "column x from key?: a key cannot be null"},
      {Table("header:h"), &bare, "column x from header:h: header:h finds nothing in the record"},
      {Table("header:h?"), &bare, ""},
      {Table("timestamp"), &bare, "column x from timestamp: timestamp finds nothing in the record"},
      {Table("record:/b"), &bare, "column x from record:/b: record:/b finds nothing in the value"},
      {Table("record:/b?"), &bare, ""},
      {Table("record:/null"), &bare, ""},
      {Table("record:/null", updates), &bare, "column x from record:/null: a key cannot be null"},
      {Table("key:/b"), &keyed, "column x from key:/b: key:/b finds nothing in the key"},
      {Table("key:/id", fenced), &keyed,
       "column at from timestamp: timestamp finds nothing in the record"},
      // What the handler makes is known to it alone.
      {Table("json:/b"), &bare, ""},
      {Table("value"), &tombstone, ""},
      {Table("key"), &tombstone, "column x from key: key finds nothing in the record"},
      // The handler may make a null of any value: what that needs, by on_null_value.
      {Table("key", skips), &tombstone, ""},
      {Table("key", skips), &bare, ""},
      {Table("key", deletes), &tombstone, ""},
      {Table("key", deletes), &bare, ""},
      {Table("header:h", deletes), &bare, ""},
      {Table("key", fenced), &tombstone, "column x from key: key finds nothing in the record"},
      {Table("key", fenced), &bare, "column x from key: key finds nothing in the record"},
      {FencedByHeader(OnNull::kSkip), &bare, ""},
      {FencedByHeader(OnNull::kDelete), &bare,
       "column at from header:at: header:at finds nothing in the record"},
      {statement, &bare, "argument $2 from key: key finds nothing in the record"},
      {Topic("key?", "value", "=1"), &bare, ""},
      {Topic("key", "value", "=1"), &bare, "key from key: key finds nothing in the record"},
      {Topic("key?", "record:/b", "=1"), &bare,
       "value from record:/b: record:/b finds nothing in the value"},
      {Topic("key?", "value", "header:h"), &bare,
       "h from header:h: header:h finds nothing in the record"},
      {FileOptions{.path = "f", .columns = Columns({{"x", "key"}})}, &bare,
       "column x from key: key finds nothing in the record"},
      {StdoutOptions{.columns = Columns({{"x", "header:h"}})}, &bare,
       "column x from header:h: header:h finds nothing in the record"},
      {FileOptions{.path = "f", .columns = {}}, &bare, ""},
      // The value is known where the answer leaves it as it is.
      {Table("json:/b"), &bare, "column x from json:/b: json:/b finds nothing in the value", keep},
      {Table("json:/b?"), &bare, "", keep},
      {Table("json:/a"), &bare, "", keep},
      {Table("json:/null", updates), &bare, "column x from json:/null: a key cannot be null", keep},
      {Table("value"), &bare, "", keep},
      {Table("value"), &tombstone, "column x from value: value finds nothing in the record", keep},
      {Table("json:/b", skips), &bare, "column x from json:/b: json:/b finds nothing in the value",
       keep},
      {Table("json:/b", skips), &tombstone, "", keep},
      {Table("json:/b", deletes), &bare,
       "column x from json:/b: json:/b finds nothing in the value", keep},
      {Table("json:/b", deletes), &tombstone, "", keep},
      {Table("key", skips), &bare, "column x from key: key finds nothing in the record", keep},
      {Table("json:/b"), &bare, "column x from json:/b: json:/b finds nothing in the value", merge},
      {Table("json:/ea"), &bare, "column x from json:/ea: json:/ea finds nothing in the value",
       merge},
      {Table("json:/e/g"), &bare, "column x from json:/e/g: json:/e/g finds nothing in the value",
       merge},
      {Table("json:/e"), &bare, "", merge},
      {Table("json:/e/f"), &bare, "", merge},
      {Table("json:/e/f/g"), &bare, "", merge},
      {Table("json:"), &bare, "", merge},
      {Table("json:/b"), &bare, "", by(HttpResult::kReplace)},
      {Table("json:/b"), &bare, "", by(HttpResult::kJq)},
      {Table("json:/b", skips), &bare, "", by(HttpResult::kJq)},
  };
  Evaluator evaluator;
  const TopicPartition where{"orders", 0};
  for (const Row& row : rows) {
    SCOPED_TRACE("row " + std::to_string(&row - rows));
    EXPECT_EQ(MissingPart(RequiredPartsOf(row.output, row.handler),
                          {.record = row.record, .where = &where}, evaluator),
              row.missing);
  }
}

}  // namespace
}  // namespace fencepost::consumer
