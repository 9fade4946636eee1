// What one record takes while it is decoded or encoded: the peak of a process that does nothing
// else.
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/peak_memory.h"
#include "tests/unit/decode/decode_fixture.h"

namespace fencepost::consumer {
namespace {

using testing::ExpectBounded;
using testing::Repeated;

// A field of bytes or of a message.
std::string FieldOf(int number, std::string_view bytes) {
  const auto varint = [](std::uint64_t bits) {
    std::string text;
    for (; bits >= 0x80; bits >>= 7) text.push_back(static_cast<char>(bits | 0x80));
    text.push_back(static_cast<char>(bits));
    return text;
  };
  return varint(static_cast<std::uint64_t>(number) << 3 | 2) + varint(bytes.size()) +
         std::string(bytes);
}

// `message M { repeated W w = 1; }` and more, with W of so many fields like `field`.
std::string Types(std::string_view syntax, std::string_view field, int fields) {
  std::string text = fmt::format("syntax = \"{}\"; import \"google/protobuf/any.proto\"; ", syntax);
  const std::string_view one = syntax == "proto2" ? "optional " : "";
  text += fmt::format(
      "message M {{ repeated W w = 1; {0}M m = 2; repeated int32 n = 3; "
      "repeated google.protobuf.Any any = 4; {0}string text = 5; "
      "repeated string texts = 6; map<string, string> map = 7; {0}bool b = 8; {1}}} "
      "message E {{}} message W {{ ",
      one, syntax == "proto2" ? "extensions 100 to 200; " : "");
  for (int i = 1; i <= fields; ++i) text += fmt::format("{} field_{} = {}; ", field, i, i);
  text += "} ";
  if (syntax == "proto2") text += "extend M { repeated W more = 100; }";
  return text;
}

constexpr std::string_view kRefused = "error: takes too much memory";

struct Case {
  std::string name;
  std::string schema;
  std::string bytes;  // of a message M
  std::string_view verdict;
};

std::vector<Case> ProtobufCases() {
  const std::string empty("\x0a\0", 2);  // a W
  const std::string strings = Types("proto3", "string", 300);
  const std::string any = FieldOf(1, "type.googleapis.com/W");
  const std::string both = FieldOf(1, "type.googleapis.com/M") + FieldOf(2, Repeated(empty, 9000));
  std::string deep = FieldOf(3, std::string(200'000, '\1'));
  for (int i = 0; i < 40; ++i) deep = FieldOf(2, deep);
  std::string any_in_any = std::string(1 << 20, 'x');
  for (int i = 0; i < 40; ++i) {
    any_in_any = FieldOf(1, "type.googleapis.com/google.protobuf.Any") + FieldOf(2, any_in_any);
  }
  return {
      {"messages", Types("proto3", "E", 50), Repeated(empty, 50'000), kRefused},
      {"many messages", Types("proto3", "E", 500), Repeated(empty, 100'000), kRefused},
      {"proto2", Types("proto2", "optional string", 100), Repeated(empty, 100'000), kRefused},
      {"optional", Types("proto3", "optional string", 50), Repeated(empty, 100'000), ""},
      {"many optional", Types("proto3", "optional string", 500), Repeated(empty, 100'000),
       kRefused},
      {"with defaults", Types("proto3", "int32", 300), Repeated(empty, 100'000), kRefused},
      {"some with defaults", Types("proto3", "int32", 300), Repeated(empty, 20), ""},
      {"maps", Types("proto3", "map<string, int64>", 50), Repeated(empty, 50'000), kRefused},
      {"lists", Types("proto3", "repeated E", 50), Repeated(empty, 50'000), kRefused},
      {"Any", strings, Repeated(FieldOf(4, any), 10'000), kRefused},
      {"Any of much", Types("proto3", "E", 50), FieldOf(4, both), kRefused},
      {"Any in Any", strings, FieldOf(4, any_in_any), kRefused},
      {"extensions", Types("proto2", "optional string", 500),
       Repeated(std::string("\xa2\x06\0", 3), 100'000), kRefused},
      {"behind a group that is none", Types("proto3", "E", 50),
       "\x43\x44" + Repeated(empty, 50'000), kRefused},
      {"unknown texts", strings, Repeated(std::string("\x7a\0", 2), 1'000'000), ""},
      {"many unknown texts", strings, Repeated(std::string("\x7a\0", 2), 4'000'000), kRefused},
      {"unknown groups", strings, Repeated(std::string("\x7b\x7c"), 4'000'000), kRefused},
      {"an unknown group of much", strings,
       "\x7b" + Repeated(std::string("\x7a\0", 2), 4'000'000) + "\x7c", kRefused},
      {"cut off", Types("proto3", "E", 50), Repeated(empty, 1000) + "\x0a", "is no message M"},
      {"numbers", strings, FieldOf(3, std::string(200'000, '\1')), ""},
      {"many numbers", strings, FieldOf(3, std::string(2'000'000, '\1')), kRefused},
      {"numbers in the depth", strings, deep, kRefused},
      {"a text", strings, FieldOf(5, std::string(8 << 20, 'x')), ""},
      {"texts", strings, Repeated(FieldOf(6, "some text"), 100'000), ""},
      {"many texts", strings, Repeated(std::string("\x32\0", 2), 1'000'000), kRefused},
      {"a map", strings, Repeated(FieldOf(7, FieldOf(1, "a")), 100'000), ""},
  };
}

TEST(Memory, AProtobufMessageTakesAboutSixteenTimesItsSizeOrIsRefused) {
  for (const Case& one : ProtobufCases()) {
    const SchemaText schema = Protobuf(one.schema);
    const std::string payload = std::string(1, '\0') + one.bytes;
    ExpectBounded(one.name, payload.size(), one.verdict, [&] { return Decoded(schema, payload); });
  }
}

TEST(Memory, SoDoesAnAvroRecord) {
  std::string fields;
  for (int i = 0; i < 500; ++i) {
    fields += fmt::format(R"({}{{"name":"a_field_{}","type":"null"}})", i == 0 ? "" : ",", i);
  }
  const std::string of_nulls =
      R"({"type":"array","items":{"type":"record","name":"R","fields":[)" + fields + "]}}";
  const std::string nulls = R"({"type":"array","items":"null"})";
  const std::string texts = R"({"type":"array","items":"string"})";
  const std::vector<Case> cases = {
      {"nulls", nulls, Long(INT64_MAX), "becomes too much JSON"},
      {"nulls behind a text",
       R"([{"type":"record","name":"R","fields":[{"name":"t","type":)"
       R"("string"},{"name":"n","type":{"type":"array","items":"null"}}]}])",
       Long(0) + Sized(std::string(2'000'000, 'x')) + Long(INT64_MAX), "becomes too much JSON"},
      {"records of nulls", of_nulls, Long(INT64_MAX), "becomes too much JSON"},
      {"texts", texts, Long(1'000'000) + std::string(1'000'001, '\0'), ""},
      {"control characters", texts, Long(1) + Sized(std::string(4 << 20, '\1')) + Long(0), ""},
  };
  for (const Case& one : cases) {
    const SchemaText schema = Avro(one.schema);
    ExpectBounded(one.name, one.bytes.size(), one.verdict,
                  [&] { return Decoded(schema, one.bytes); });
  }
}

TEST(Memory, SoDoesWhatIsEncoded) {
  const auto list = [](std::string_view item, std::size_t times) {
    return "[" + Repeated(std::string(item) + ",", times) + std::string(item) + "]";
  };
  const auto w = [&](std::string_view item, std::size_t times) {
    return "{\"w\":" + list(item, times) + "}";
  };
  const std::string numbers = R"({"type":"array","items":"int"})";
  const std::string with_defaults =
      R"({"type":"array","items":{"type":"record","name":"R","fields":[{"name":"a","type":)"
      R"("string","default":")" +
      std::string(5000, 'x') + R"("}]}})";
  const std::vector<std::pair<SchemaText, std::pair<std::string, std::string_view>>> cases = {
      {Protobuf(Types("proto3", "E", 50)), {w("{}", 30'000), ""}},
      {Protobuf(Types("proto3", "map<string, int64>", 500)), {w("{}", 30'000), kRefused}},
      {Protobuf(Types("proto2", "optional string", 500)), {w("{}", 100'000), kRefused}},
      {Avro(numbers), {list("1", 400'000), ""}},
      {Avro(numbers), {list("1", 2'000'000), "error: has too many values"}},
      {Avro(with_defaults), {list("{}", 100), ""}},
      {Avro(with_defaults), {list("{}", 100'000), "error: becomes too many bytes"}},
  };
  for (const auto& [schema, rest] : cases) {
    const auto& [json, verdict] = rest;
    const std::string message = schema.kind == SchemaKind::kProtobuf ? "M" : "";
    ExpectBounded(schema.text.substr(0, 200), json.size(), verdict,
                  [&] { return Encoded(schema, json, message); });
  }
}

TEST(Memory, ARecordForWhichThereIsNoneIsBad) {
  class Greedy : public Decoder {
    tl::expected<void, std::string> Decode(std::string_view /*payload*/,
                                           std::string& json) override {
      json = "begun";
      throw std::bad_alloc();
    }
  };
  Greedy greedy;
  std::string json;
  const auto done = TryDecode(greedy, "x", json);
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error(), "takes more memory than there is");
  EXPECT_EQ(json, "");
}

}  // namespace
}  // namespace fencepost::consumer
