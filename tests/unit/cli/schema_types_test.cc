// Types of columns by an Avro schema.
#include "consumer/cli/tables/schema_types.h"

#include <gtest/gtest.h>

namespace fencepost::cli {
namespace {

using consumer::ValueKind;

constexpr const char* kSchema = R"({"type": "record", "name": "Order", "fields": [
  {"name": "id", "type": "long"},
  {"name": "customer", "type": ["null", "string"]},
  {"name": "total",
   "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
  {"name": "raw", "type": "bytes"},
  {"name": "colour", "type": {"type": "enum", "name": "Colour", "symbols": ["RED"]}},
  {"name": "uuid", "type": {"type": "string", "logicalType": "uuid"}},
  {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
  {"name": "day", "type": {"type": "int", "logicalType": "date"}},
  {"name": "time", "type": {"type": "int", "logicalType": "time-millis"}},
  {"name": "rate", "type": "double"},
  {"name": "paid", "type": "boolean"},
  {"name": "either", "type": ["int", "string"]},
  {"name": "size", "type": ["int", "long"]},
  {"name": "nothing", "type": "null"},
  {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "Line",
    "fields": [{"name": "sku", "type": "string"}, {"name": "price", "type": ["null", "float"]},
               {"name": "next", "type": ["null", "Line"]}]}}},
  {"name": "tags", "type": {"type": "map", "values": "int"}}]})";

TEST(SchemaTypes, AreOfWhatThePointerLeadsTo) {
  const auto schema = consumer::avro::Schema::Parse({.text = kSchema, .references = {}});
  ASSERT_TRUE(schema) << schema.error();
  struct Row {
    const char* pointer;
    std::optional<ValueKind> kind;
  };
  const Row rows[] = {
      {"", ValueKind::kJson},
      {"/id", ValueKind::kWhole},
      {"/customer", std::nullopt},
      {"/colour", ValueKind::kText},
      {"/uuid", ValueKind::kText},
      {"/total", ValueKind::kDecimal},
      {"/raw", ValueKind::kText},
      {"/at", ValueKind::kMoment},
      {"/day", ValueKind::kDate},
      {"/time", ValueKind::kText},
      {"/rate", ValueKind::kDecimal},
      {"/paid", ValueKind::kBoolean},
      {"/either", std::nullopt},
      {"/size", ValueKind::kWhole},
      {"/nothing", std::nullopt},
      {"/lines", ValueKind::kJson},
      {"/lines/0/sku", std::nullopt},
      {"/lines/0/price", ValueKind::kDecimal},
      {"/lines/0/next/next/price", ValueKind::kDecimal},
      {"/lines/0/none", std::nullopt},
      {"/tags/a~1b", ValueKind::kWhole},
      {"/none", std::nullopt},
      {"/id/none", std::nullopt},
  };
  for (const Row& row : rows)
    EXPECT_EQ(KindInSchema(*schema, row.pointer), row.kind) << row.pointer;
}

}  // namespace
}  // namespace fencepost::cli
