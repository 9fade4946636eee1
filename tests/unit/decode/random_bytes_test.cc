// Bytes that nobody has written: a decoder says what they are, or that they are nothing.
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/decode/wire_format.h"
#include "consumer/record/json_reader.h"
#include "tests/unit/decode/decode_fixture.h"

namespace fencepost::consumer {
namespace {

struct Case {
  SchemaText schema;
  std::string whole;  // bytes of this schema
};

std::vector<Case> Cases() {
  const SchemaText avro = {
      .kind = SchemaKind::kAvro,
      .text = R"({"type":"record","name":"R","fields":[{"name":"s","type":["null","string"]},)"
              R"({"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":9,)"
              R"("scale":2}},{"name":"m","type":{"type":"map","values":["R","double","long"]}},)"
              R"({"name":"t","type":{"type":"long","logicalType":"timestamp-micros"}},)"
              R"({"name":"a","type":{"type":"array","items":{"type":"fixed","name":"F",)"
              R"("size":3}}}]})"};
  const std::string one =
      Long(1) + Sized("text") + Sized("\x04\xe2") + Long(0) + Long(77) + Long(0);
  const SchemaText protobuf = {
      .kind = SchemaKind::kProtobuf,
      .text = R"(syntax = "proto3"; import "google/protobuf/struct.proto";)"
              R"(import "google/protobuf/any.proto"; import "google/protobuf/duration.proto";)"
              R"(message M { string s = 1; M m = 2; map<string, M> by = 3; repeated sint64 n = 4;)"
              R"( google.protobuf.Struct st = 5; google.protobuf.Any any = 6; double d = 7;)"
              R"( google.protobuf.Duration du = 8; })"};
  const std::string zero(1, '\0');
  return {
      {avro, Long(1) + Sized("text") + Sized("\x04\xe2") + Long(2) + Sized("x") + Long(0) + one +
                 Sized("y") + Long(2) + Long(9) + Long(0) + Long(1) + Long(1) + "abc" + Long(0)},
      {protobuf, zero + "\x0a\x01s\x12\x03\x0a\x01t\x1a\x08\x0a\x01k\x12\x03\x0a\x01v\x22\x02\x02"
                        "\x04\x2a\x09\x0a\x07\x0a\x01z\x12\x02\x20\x01\x42\x02\x08\x01"}};
}

// Of all that it takes: a JSON text, whole and checked. Of what it does not: one line.
TEST(RandomBytes, AreJsonOrAnErrorAndNeverACrash) {
  std::mt19937 random(7);
  for (const Case& one : Cases()) {
    auto decoder = MakeDecoder(one.schema);
    ASSERT_TRUE(decoder) << decoder.error();
    std::string json;
    const auto whole = (*decoder)->Decode(one.whole, json);
    ASSERT_TRUE(whole) << whole.error();
    JsonReader reader;
    int taken = 0;
    for (int i = 0; i < 40'000; ++i) {
      std::string bytes = one.whole;
      if (i % 4 == 0) bytes.assign(random() % 64, '\0');
      const std::size_t changes = i % 4 == 0 ? bytes.size() : 1 + random() % 4;
      for (std::size_t n = 0; n < changes && !bytes.empty(); ++n) {
        bytes[random() % bytes.size()] = static_cast<char>(random());
      }
      if (i % 4 == 1) bytes.resize(random() % (bytes.size() + 8));
      json.clear();
      const auto done = (*decoder)->Decode(bytes, json);
      if (!done) {
        ASSERT_EQ(done.error().find('\n'), std::string::npos);
        continue;
      }
      ++taken;
      std::string whole_text;
      reader.Begin(json);
      ASSERT_NE(reader.AppendRaw("", whole_text), JsonFound::kMalformed)
          << reader.problem() << ": " << json;
    }
    EXPECT_GT(taken, 100);
    EXPECT_LT(taken, 39'000);
  }
}

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
  EXPECT_THAT(ParseWireFormat(std::string_view("\0\0\0\1", 4)).error(),
              ::testing::HasSubstr("ends within the header"));
}

TEST(JsonSchema, IsTheValueAsItIs) {
  EXPECT_EQ(Decoded({.kind = SchemaKind::kJson, .text = "{}"}, R"({"a": 1})"), R"({"a": 1})");
}

}  // namespace
}  // namespace fencepost::consumer
