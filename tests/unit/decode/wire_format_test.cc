// What stands before a payload, and a schema that has nothing to decode.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/decode/wire_format.h"
#include "tests/unit/decode/decode_fixture.h"

namespace fencepost::consumer {
namespace {

TEST(WireFormat, IsAZeroAnIdAndThePayload) {
  const auto message =
      ParseWireFormat(std::string_view("\0\x01\x02\x03\xff"
                                       "abc",
                                       8));
  ASSERT_TRUE(message);
  EXPECT_EQ(message->schema_id, 0x010203ffU);
  EXPECT_EQ(message->payload, "abc");
  EXPECT_THAT(ParseWireFormat("").error(), ::testing::HasSubstr("is empty"));
  EXPECT_THAT(ParseWireFormat("{}").error(), ::testing::HasSubstr("magic byte"));
  EXPECT_THAT(ParseWireFormat("{}").error(), ::testing::HasSubstr("apicurio.value.globalId"));
  EXPECT_THAT(ParseWireFormat("\x03\x01 of 16 bytes").error(), ::testing::HasSubstr("AWS Glue"));
  EXPECT_THAT(ParseWireFormat("\x01 of 16 bytes").error(), ::testing::HasSubstr("with a GUID"));
  EXPECT_THAT(ParseWireFormat(std::string_view("\0\0\0\1", 4)).error(),
              ::testing::HasSubstr("ends within the header"));
}

TEST(JsonSchema, IsTheValueAsItIs) {
  EXPECT_EQ(Decoded({.kind = SchemaKind::kJson, .text = "{}"}, R"({"a": 1})"), R"({"a": 1})");
}

}  // namespace
}  // namespace fencepost::consumer
