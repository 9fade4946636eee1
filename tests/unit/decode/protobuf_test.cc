#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/decode/decode_fixture.h"

namespace fencepost::consumer {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const SchemaText& Orders() {
  static const SchemaText schema = Protobuf(R"(
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Order {
  string order_id = 1;
  int64 amount = 2;
  int32 count = 3;
  State state = 4;
  google.protobuf.Timestamp at = 5;
  bytes raw = 6;
  map<string, int32> by = 7;
  message Line { bool paid = 1; }
}
enum State { NEW = 0; PAID = 1; }
message Other { Other inner = 1; }
)");
  return schema;
}

TEST(Protobuf, AMessageIsItsJsonWithTheNamesOfItsFileAndDefaultValues) {
  EXPECT_EQ(Decoded(Orders(), std::string("\0\x0a\x01"
                                          "a\x10\x96\x01\x20\x01\x2a\x02\x08\x01\x32\x01\xff",
                                          16)),
            R"({"order_id":"a","amount":"150","count":0,"state":"PAID",)"
            R"("raw":"/w==","by":{},"at":"1970-01-01T00:00:01Z"})");
}

TEST(Protobuf, TheIndexesNameTheMessage) {
  EXPECT_EQ(Decoded(Orders(), Long(1) + Long(1)), "{}");
  EXPECT_EQ(Decoded(Orders(), Long(2) + Long(0) + Long(1) + "\x08\x01"), R"({"paid":true})")
      << "a map's entry comes before it";
  EXPECT_THAT(Decoded(Orders(), Long(2) + Long(0) + Long(2)), HasSubstr("names no message"));
  EXPECT_THAT(Decoded(Orders(), Long(1) + Long(7)), HasSubstr("names no message"));
  EXPECT_THAT(Decoded(Orders(), Long(1) + Long(-1)), HasSubstr("names no message"));
  EXPECT_THAT(Decoded(Orders(), Long(-1)), HasSubstr("names no message"));
  EXPECT_THAT(Decoded(Orders(), Long(1) + std::string(1, '\x80')), HasSubstr("names no message"));
  EXPECT_THAT(Decoded(Orders(), ""), HasSubstr("names no message"));
}

TEST(Protobuf, MapsAreInOneOrder) {
  const std::string a =
      "\x3a\x05\x0a\x01"
      "a\x10\x01";
  const std::string b =
      "\x3a\x05\x0a\x01"
      "b\x10\x02";
  const std::string zero(1, '\0');
  EXPECT_EQ(Decoded(Orders(), zero + a + b), Decoded(Orders(), zero + b + a));
  EXPECT_THAT(Decoded(Orders(), zero + b + a), HasSubstr(R"("by":{"a":1,"b":2})"));
}

TEST(Protobuf, ReferencesAndWhatRegistriesHaveBuiltInAreFound) {
  SchemaText schema =
      Protobuf(R"(syntax = "proto3"; import "shop/item.proto"; import "confluent/meta.proto";)"
               R"(import "confluent/type/decimal.proto";)"
               R"(message Line { shop.Item item = 1 [(confluent.field_meta).doc = "x"];)"
               R"( confluent.type.Decimal price = 2; })");
  schema.references = {
      {"shop/base.proto", R"(syntax = "proto3"; package shop; message Base { int32 n = 1; })"},
      {"shop/item.proto", R"(syntax = "proto3"; package shop; import "shop/base.proto";)"
                          R"( message Item { Base base = 1; })"}};
  EXPECT_EQ(Decoded(schema, std::string("\0\x0a\x04\x0a\x02\x08\x05\x12\x02\x18\x02", 11)),
            R"({"item":{"base":{"n":5}},"price":{"value":"","precision":0,"scale":2}})");
  schema.references.pop_back();
  EXPECT_THAT(Decoded(schema, ""), StartsWith("error: it is no Protobuf schema: "));
}

// `message M { int32 n = 1; }` as registries give it that were handed a serialized descriptor.
TEST(Protobuf, ASerializedDescriptorIsASchemaToo) {
  EXPECT_EQ(Decoded(Protobuf("CgdtLnByb3RvIg4KAU0SCQoBbhgBIAEoBWIGcHJvdG8z"),
                    std::string("\0\x08\x05", 3)),
            R"({"n":5})");
}

TEST(Protobuf, WhatIsNoSchemaIsOneLine) {
  for (const std::string_view text :
       {"", "message", "syntax = \"proto3\";", "syntax = \"proto3\"; message M { Nothing n = 1; }",
        "syntax = \"proto3\"; message M { int32 a = 1; int32 b = 1; }", "AAAA"}) {
    EXPECT_THAT(Decoded(Protobuf(std::string(text)), std::string(1, '\0')),
                StartsWith("error: it is no Protobuf schema: "))
        << text;
  }
}

TEST(Protobuf, HostileBytesAreAnError) {
  const std::string zero(1, '\0');
  EXPECT_THAT(Decoded(Orders(), zero + "\x0a\x7f"), HasSubstr("is no message shop.Order"));
  EXPECT_THAT(Decoded(Orders(), zero + "\x0a\x01\xff"), HasSubstr("is no message shop.Order"));
  EXPECT_THAT(Decoded(Orders(), zero + "\x2a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x10"),
              StartsWith("error: "));
  std::string deep;
  for (int i = 0; i < 200; ++i)
    deep = "\x0a" + std::string(1, static_cast<char>(deep.size())) + deep;
  EXPECT_THAT(Decoded(Orders(), Long(1) + Long(2) + deep), StartsWith("error: "));
}

}  // namespace
}  // namespace fencepost::consumer
