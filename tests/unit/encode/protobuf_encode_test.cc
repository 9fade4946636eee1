#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/decode/decode_fixture.h"

namespace fencepost::consumer {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const SchemaText& Orders() {
  static const SchemaText schema = Protobuf(R"(
syntax = "proto2";
package shop;
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
message Order {
  required string order_id = 1;
  optional int64 amount = 2;
  optional google.protobuf.Timestamp at = 3;
  optional bytes raw = 4;
  map<string, int32> by = 5;
  message Line { optional bool paid = 1; }
}
message Other { optional Other inner = 1; }
message Parts {
  repeated int32 list = 1;
  map<string, float> map = 2;
  optional float f = 3;
  optional double d = 4;
  oneof one { int32 a = 5; int32 b = 6; }
  repeated google.protobuf.Value any = 7;
  optional int32 long_name = 8;
}
)");
  return schema;
}

std::string Encoded(const std::string& message, std::string_view json) {
  return Encoded(Orders(), json, message);
}

TEST(ProtobufEncoding, ComesBackAsItWas) {
  const std::string json = R"({"order_id":"a","amount":"9223372036854775807",)"
                           R"("raw":"/w==","by":{"x":1},"at":"1970-01-01T00:00:01Z"})";
  EXPECT_EQ(Decoded(Orders(), Encoded("", json)), json);
  EXPECT_EQ(Decoded(Orders(), Encoded("", R"({"orderId":"a","amount":5})")),
            R"({"order_id":"a","amount":"5","raw":"","by":{}})")
      << "names in lowerCamelCase, and numbers that are none in a string";
}

TEST(ProtobufEncoding, TheIndexesNameTheMessage) {
  EXPECT_EQ(Encoded("shop.Order", R"({"order_id":"a"})"), std::string("\0\x0a\x01"
                                                                      "a",
                                                                      4));
  EXPECT_EQ(Encoded("shop.Other", "{}"), Long(1) + Long(1));
  EXPECT_EQ(Encoded("shop.Order.Line", R"({"paid":true})"),
            Long(2) + Long(0) + Long(1) + "\x08\x01");
  EXPECT_EQ(Encoded("shop.Nothing", "{}"), "error: the schema has no message shop.Nothing");
  EXPECT_EQ(Encoded("google.protobuf.Timestamp", "{}"),
            "error: the schema has no message google.protobuf.Timestamp")
      << "it is of another file";
}

TEST(ProtobufEncoding, WhatDoesNotFitIsRefusedWithoutItsContent) {
  const std::string refused = "error: is no message shop.Order by the proto3 JSON mapping";
  EXPECT_EQ(Encoded("", R"({"order_id":"a","secret":1})"), refused);
  EXPECT_EQ(Encoded("", R"({"order_id":"a","amount":"secret"})"), refused);
  EXPECT_EQ(Encoded("", R"({"amount":1})"), refused) << "a required field is missing";
  EXPECT_EQ(Encoded("", "{order_id: 'a'}"),
            "error: is not valid JSON: a name in quotes is missing in an object");
  EXPECT_THAT(Encoded("", R"({"order_id":)" + std::string(100'000, '[')), StartsWith("error: "));
  const auto encoder = MakeEncoder(Orders(), "");
  std::string payload;
  EXPECT_THAT((*encoder)->Encode(R"({"amount":1})", payload).error().detail,
              HasSubstr("missing field order_id"));
  EXPECT_THAT((*encoder)->Encode(R"({"order_id":"a","amount":"five"})", payload).error().detail,
              HasSubstr("five"));
}

TEST(ProtobufEncoding, WhatWouldBeLostIsRefused) {
  const std::vector<std::pair<const char*, const char*>> lost{
      {R"({"list":[1,null]})", "has null in a list"},
      {R"({"map":{"a":1,"a":2}})", "is not valid JSON: an object has a name twice"},
      {R"({"map":{"a":16777217}})", "has digits that the type does not keep"},
      {R"({"f":1,"f":2})", "is not valid JSON: an object has a name twice"},
      {R"({"long_name":1,"longName":2})", "has a field under both of its names"},
      {R"({"f":16777217})", "has digits that the type does not keep"},
      {R"({"f":"16777217"})", "has digits that the type does not keep"},
      {R"({"d":0.12345678901234567890123})", "has digits that the type does not keep"},
      {R"({"d":12345678901234567890123456789})", "has digits that the type does not keep"},
      {R"({"a":1,"b":2})", "has two fields of a oneof"}};
  for (const auto& [json, why] : lost) {
    EXPECT_EQ(Encoded("shop.Parts", json), std::string("error: ") + why) << json;
  }
  for (const char* json : {R"({"a":1,"b":null})", R"({"list":null})", R"({"any":[1,null]})",
                           R"({"f":0.1,"d":0.1})", R"({"d":"NaN"})"}) {
    EXPECT_FALSE(Encoded("shop.Parts", json).starts_with("error")) << json;
  }
}

TEST(ProtobufEncoding, DeepMessagesAreRefused) {
  const auto nested = [](std::size_t depth) {
    std::string json;
    for (std::size_t i = 0; i < depth; ++i) json += R"({"inner":)";
    return json + "{}" + std::string(depth, '}');
  };
  EXPECT_THAT(Encoded("shop.Other", nested(150)), StartsWith("error: is n"));
  EXPECT_EQ(Encoded("shop.Other", nested(5000)),
            "error: is not valid JSON: it is nested deeper than 200 levels");
  EXPECT_EQ(Decoded(Orders(), Encoded("shop.Other", nested(50))), nested(50));
}

TEST(JsonSchemaEncoding, IsTheTextAsItIs) {
  const auto encoder = MakeEncoder({.kind = SchemaKind::kJson, .text = "{}"}, "");
  std::string payload;
  EXPECT_TRUE((*encoder)->Encode(R"({"a":1.0})", payload));
  EXPECT_EQ(payload, R"({"a":1.0})");
}

}  // namespace
}  // namespace fencepost::consumer
