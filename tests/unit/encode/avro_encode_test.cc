#include <bit>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/decode/avro_text.h"
#include "consumer/encode/avro_values.h"
#include "consumer/json/json_text.h"
#include "tests/unit/decode/decode_fixture.h"

namespace fencepost::consumer {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Encoded(const std::string& schema, std::string_view json) {
  return Encoded(Avro(schema), json);
}

// What comes back: JSON encoded, and decoded again.
std::string There(const std::string& schema, std::string_view json) {
  const std::string payload = Encoded(schema, json);
  return payload.starts_with("error: ") ? payload : Decoded(Avro(schema), payload);
}

constexpr const char* kOrder = R"({"type":"record","name":"Order","namespace":"shop","fields":[
  {"name":"id","type":"string"},
  {"name":"amount","type":"int"},
  {"name":"note","type":["null","string"]},
  {"name":"state","type":{"type":"enum","name":"State","symbols":["NEW","PAID"]},"default":"NEW"},
  {"name":"lines","type":{"type":"array","items":{"type":"record","name":"Line","fields":[
     {"name":"sku","type":"string"},{"name":"count","type":"long","default":1}]}},"default":[]},
  {"name":"tags","type":{"type":"map","values":"long"},"default":{"a":7}}]})";

TEST(AvroEncoding, IsTheBytesOfTheSpecification) {
  EXPECT_EQ(Encoded(R"("null")", "null"), "");
  EXPECT_EQ(Encoded(R"("boolean")", "true"), "\1");
  EXPECT_EQ(Encoded(R"("int")", "-64"), "\x7f");
  EXPECT_EQ(Encoded(R"("long")", "64"), std::string("\x80\x01"));
  EXPECT_EQ(Encoded(R"("double")", "0.1"), std::string("\x9a\x99\x99\x99\x99\x99\xb9\x3f", 8));
  EXPECT_EQ(Encoded(R"("float")", "0.1"), std::string("\xcd\xcc\xcc\x3d", 4));
  EXPECT_EQ(Encoded(R"("string")", R"("foo")"),
            "\x06"
            "foo");
  EXPECT_EQ(Encoded(R"("bytes")", R"("AP8=")"), std::string("\x04\0\xff", 3));
  EXPECT_EQ(Encoded(R"({"type":"array","items":"long"})", "[3,27]"),
            std::string("\x04\x06\x36\0", 4));
  EXPECT_EQ(Encoded(R"({"type":"array","items":"long"})", "[]"), std::string("\0", 1));
  EXPECT_EQ(Encoded(R"(["null","string"])", R"("a")"),
            "\x02\x02"
            "a");
}

TEST(AvroEncoding, OfARecordComesBackAsItWas) {
  const std::string order =
      R"({"id":"o-1","amount":5,"note":null,"state":"PAID",)"
      R"("lines":[{"sku":"é\"","count":2}],"tags":{"n":9223372036854775807}})";
  EXPECT_EQ(There(kOrder, order), order);
}

TEST(AvroEncoding, AMissingFieldIsItsDefaultOrNull) {
  EXPECT_EQ(There(kOrder, R"({"amount":1.0e1,"id":"a"})"),
            R"({"id":"a","amount":10,"note":null,"state":"NEW","lines":[],"tags":{"a":7}})");
  EXPECT_EQ(There(kOrder, R"({"amount":1,"id":"a","lines":[{"sku":"s"}]})"),
            R"({"id":"a","amount":1,"note":null,"state":"NEW",)"
            R"("lines":[{"sku":"s","count":1}],"tags":{"a":7}})");
  EXPECT_EQ(Encoded(kOrder, R"({"id":"a"})"), "error: at /amount is missing");
}

TEST(AvroEncoding, ADefaultIsReadAsTheSpecificationSays) {
  const auto of = [](const std::string& type, const std::string& value) {
    return There(R"({"type":"record","name":"R","fields":[{"name":"a","type":)" + type +
                     R"(,"default":)" + value + "}]}",
                 "{}");
  };
  EXPECT_EQ(of(R"("bytes")", R"("\u0000\u00ff")"), R"({"a":"AP8="})");
  EXPECT_EQ(of(Logical("bytes", "decimal", R"(,"precision":4,"scale":2)"), R"("\u0004\u00e2")"),
            R"({"a":12.50})");
  EXPECT_EQ(of(Logical("int", "date"), "1"), R"({"a":"1970-01-02"})");
  EXPECT_EQ(of(R"(["string","null"])", R"("x")"), R"({"a":"x"})");
  EXPECT_EQ(of(R"("int")", R"("x")"),
            "error: at /a is missing, and its default does not fit the schema");
  EXPECT_EQ(of(R"("R")", "{}"), "error: at /a is missing, and its default does not fit the schema")
      << "it would go on for ever";
}

TEST(AvroEncoding, WhatDoesNotFitNamesItsPlaceAndNothingOfTheRecord) {
  EXPECT_EQ(Encoded(kOrder, R"({"id":"a","amount":"five"})"),
            "error: at /amount is a text, and the schema has an int");
  EXPECT_EQ(Encoded(kOrder, R"({"id":"a","amount":2147483648})"),
            "error: at /amount is a number out of the type's range");
  EXPECT_EQ(Encoded(kOrder, R"({"id":"a","amount":1.5})"),
            "error: at /amount is not a whole number");
  EXPECT_EQ(Encoded(kOrder, R"({"id":"a","amount":1,"state":"LOST"})"),
            "error: at /state is none of the enum's symbols");
  EXPECT_EQ(Encoded(kOrder, R"({"id":"a","amount":1,"note":7})"),
            "error: at /note is a number, and the schema has a text");
  EXPECT_EQ(Encoded(kOrder, R"({"id":"a","amount":1,"lines":[{"sku":"s"},{"sku":null}]})"),
            "error: at /lines/1/sku is null, and the schema has a text");
  EXPECT_EQ(Encoded(kOrder, R"({"id":"a","amount":1,"secret":1})"),
            "error: at /* is a field that the schema does not have");
  EXPECT_EQ(Encoded(kOrder, R"({"id":"a","amount":1,"tags":{"secret":true}})"),
            "error: at /tags/* is a boolean, and the schema has a long");
  EXPECT_EQ(Encoded(kOrder, R"({"id":"a","id":"b","amount":1})"),
            "error: is not valid JSON: an object has a name twice");
  EXPECT_EQ(Encoded(kOrder, R"({"id":"a","amount":1e400})"),
            "error: at /amount is a number out of the type's range");
  const auto encoder = MakeAvroEncoder(Avro(kOrder));
  std::string payload;
  EXPECT_EQ((*encoder)->Encode(R"({"id":"a","amount":1,"a/b":1})", payload).error().detail,
            "at /a~1b is a field that the schema does not have");
}

TEST(AvroEncoding, ADecimalKeepsEachDigitOrIsRefused) {
  const std::string type = Logical("bytes", "decimal", R"(,"precision":38,"scale":2)");
  for (const char* number :
       {"12.50", "-0.01", "-1.28", "0.00", "1.27", "1.28", "-327.68",
        "999999999999999999999999999999999999.99", "-999999999999999999999999999999999999.99"}) {
    EXPECT_EQ(There(type, number), number);
  }
  EXPECT_EQ(There(type, "1e2"), "100.00");
  EXPECT_EQ(There(type, R"("7.5")"), "7.50") << "in a string, as many producers write it";
  EXPECT_EQ(There(type, "0.001"), "error: has more than 2 digits behind the point");
  EXPECT_EQ(There(type, "1e37"), "error: has more than the 38 digits of the type");
  EXPECT_EQ(There(type, "true"), "error: is a boolean, and the schema has a decimal");
  const std::string fixed =
      R"({"type":"fixed","name":"f","size":2,"logicalType":"decimal","precision":5,"scale":0})";
  EXPECT_EQ(There(fixed, "-129"), "-129");
  EXPECT_EQ(There(fixed, "7"), "7");
  EXPECT_EQ(There(fixed, "32768"), "error: is a number out of the type's range");
}

// The other way round is that of a longer calculation (decode/avro_test.cc).
TEST(AvroEncoding, ADecimalIsAsFewBytesAsHoldIt) {
  std::mt19937_64 random(20261124);
  for (int i = 0; i < 20'000; ++i) {
    const auto number = static_cast<std::int64_t>(random()) >> (random() % 64);
    const auto bytes = avro::DecimalBytes(std::to_string(number), 20, 0);
    std::string back;
    ASSERT_TRUE(bytes && avro::AppendDecimal(*bytes, 0, back));
    ASSERT_EQ(back, std::to_string(number));
    const auto bits = std::bit_width(static_cast<std::uint64_t>(number < 0 ? ~number : number));
    ASSERT_EQ(bytes->size(), static_cast<std::size_t>(bits / 8 + 1)) << number;
  }
}

TEST(AvroEncoding, DatesAndTimesComeBackOrAreRefused) {
  const auto same = [](const std::string& type, const std::string& json) {
    EXPECT_EQ(There(type, json), json);
  };
  same(Logical("int", "date"), R"("2026-11-22")");
  same(Logical("int", "date"), R"("0001-01-01")");
  same(Logical("int", "time-millis"), R"("13:05:00.250")");
  same(Logical("long", "time-micros"), R"("00:00:00.000001")");
  same(Logical("long", "timestamp-millis"), R"("2026-11-22T13:05:00.250Z")");
  same(Logical("long", "timestamp-micros"), R"("1969-12-31T23:59:59.999999Z")");
  same(Logical("long", "timestamp-nanos"), R"("1970-01-01T00:00:00.000000001Z")");
  same(Logical("long", "local-timestamp-millis"), R"("1970-01-01T00:00:00.000")");
  same(Logical("string", "uuid"), R"("6f1c0b56-0000-4000-8000-000000000001")");
  same(R"({"type":"fixed","name":"u","size":16,"logicalType":"uuid"})",
       R"("6f1c0b56-0000-4000-8000-000000000001")");
  const std::string millis = Logical("long", "timestamp-millis");
  EXPECT_EQ(There(millis, R"("2026-11-22T15:05:00+02:00")"), R"("2026-11-22T13:05:00.000Z")");
  EXPECT_EQ(There(millis, "1795352700250"), R"("2026-11-22T13:05:00.250Z")") << "in its unit";
  EXPECT_EQ(There(millis, R"("2026-11-22T13:05:00.0001Z")"), "error: is finer than the type holds");
  EXPECT_THAT(There(millis, R"("2026-11-22T13:05:00")"), HasSubstr("RFC 3339"));
  EXPECT_THAT(There(millis, R"("2026-02-30T13:05:00Z")"), HasSubstr("RFC 3339"));
  EXPECT_THAT(There(millis, R"("yesterday")"), HasSubstr("RFC 3339"));
  EXPECT_THAT(There(Logical("long", "timestamp-nanos"), R"("2300-01-01T00:00:00Z")"),
              HasSubstr("out of the type's range"));
  EXPECT_THAT(There(Logical("long", "local-timestamp-millis"), R"("2026-11-22T13:05:00Z")"),
              HasSubstr("without an offset"));
  EXPECT_THAT(There(Logical("int", "date"), R"("2026-11-22T13:05:00")"), HasSubstr("2026-11-22"));
  EXPECT_THAT(There(Logical("int", "time-millis"), R"("24:00:00")"), HasSubstr("13:05:00.250"));
  EXPECT_EQ(There(Logical("string", "uuid"), R"("6f1c0b56")"), "error: is not a UUID");
}

TEST(AvroEncoding, AUnionIsTheFirstTypeThatTakesTheValueAsItIs) {
  const auto in = [](const std::string& types, const std::string& json) {
    const std::string payload = Encoded(types, json);
    return payload.starts_with("error: ") ? payload : std::to_string(payload[0] / 2);
  };
  EXPECT_EQ(in(R"(["null","long","string"])", R"("12")"), "2");
  EXPECT_EQ(in(R"(["null","long"])", R"("12")"), "1") << "its digits, where nothing else fits";
  EXPECT_EQ(in(R"(["bytes","string"])", R"("AP8=")"), "1") << "any text could be base64";
  EXPECT_EQ(in(R"(["int","long","double"])", "3000000000"), "1");
  EXPECT_EQ(in(R"(["int","long","double"])", "1.5"), "2");
  EXPECT_EQ(in(R"(["float","double","long"])", "0.1"), "0");
  EXPECT_EQ(in(R"(["float","double","long"])", "0.123456789"), "1");
  EXPECT_EQ(in(R"(["float","double","long"])", "9007199254740993"), "2");
  EXPECT_EQ(in(R"(["null","double"])", "0.12345678901234567890"),
            "error: has digits that the type does not keep");
  const std::string at = Logical("long", "timestamp-millis");
  EXPECT_EQ(in("[" + at + R"(,"long"])", "5"), "1");
  EXPECT_EQ(in(R"(["null",)" + at + "]", "5"), "1");
  EXPECT_EQ(in("[" + at + R"(,"string"])", R"("2026-11-22T13:05:00Z")"), "0");
  EXPECT_EQ(in("[" + at + R"(,"string"])", R"("later")"), "1");
  EXPECT_EQ(in(R"(["int","boolean"])", R"("x")"), "error: fits none of the union's types");
  const std::string records =
      R"([{"type":"record","name":"A","fields":[{"name":"n","type":"long"}]},)"
      R"({"type":"record","name":"B","fields":[{"name":"n","type":"string"}]}])";
  EXPECT_EQ(in(records, R"({"n":5})"), "0");
  EXPECT_EQ(in(records, R"({"n":"5"})"), "1");
  EXPECT_EQ(in(records, R"({"n":null})"), "error: fits none of the union's types");
}

TEST(AvroEncoding, UnionsWithinUnionsTakeABoundedNumberOfTries) {
  const std::string schema =
      R"({"type":"record","name":"A","fields":[{"name":"n","type":["null","A",)"
      R"({"type":"record","name":"B","fields":[{"name":"n","type":["null","A","B"]}]}]}]})";
  std::string json;
  for (int i = 0; i < 100; ++i) json += R"({"n":)";
  json += "true" + std::string(100, '}');
  EXPECT_THAT(Encoded(schema, json), HasSubstr("too many tries"));
}

TEST(AvroEncoding, ADeepValueIsRefused) {
  const std::string schema =
      R"({"type":"record","name":"A","fields":[{"name":"n","type":["null","A"]}]})";
  const auto nested = [](int depth) {
    std::string json;
    for (int i = 0; i < depth; ++i) json += R"({"n":)";
    return json + "null" + std::string(static_cast<std::size_t>(depth), '}');
  };
  EXPECT_THAT(Encoded(schema, nested(150)), Not(HasSubstr("error")));
  EXPECT_EQ(Encoded(schema, nested(100'000)),
            "error: is not valid JSON: it is nested deeper than 200 levels");
}

// What decode makes of any value of a type, encode takes back as the same bytes.
TEST(AvroEncoding, TakesBackWhatDecodingGives) {
  const std::string all =
      R"({"type":"record","name":"All","fields":[{"name":"b","type":"boolean"},)"
      R"({"name":"i","type":"int"},{"name":"l","type":"long"},{"name":"d","type":"double"},)"
      R"({"name":"f","type":"float"},{"name":"raw","type":"bytes"},{"name":"s","type":"string"},)"
      R"({"name":"x","type":{"type":"fixed","name":"X","size":3}},)"
      R"({"name":"u","type":["null","double"]},)"
      R"({"name":"at","type":{"type":"long","logicalType":"timestamp-micros"}},)"
      R"({"name":"p","type":{"type":"bytes","logicalType":"decimal","precision":20,"scale":3}}]})";
  std::mt19937_64 random(14);
  for (int i = 0; i < 5000; ++i) {
    const auto bits = [&] { return static_cast<std::int64_t>(random()) >> (random() % 64); };
    std::string raw(random() % 20, '\0');
    for (char& c : raw) c = static_cast<char>(random());
    const auto little = [&](int size) {
      std::string bytes;
      auto number = std::bit_cast<std::uint64_t>(static_cast<double>(bits()) / 7);
      if (size == 4) number = std::bit_cast<std::uint32_t>(static_cast<float>(bits()) / 7);
      for (; size > 0; --size, number >>= 8) bytes.push_back(static_cast<char>(number));
      return bytes;
    };
    const bool null = random() % 2 == 0;
    const std::string payload = std::string(1, static_cast<char>(random() % 2)) +
                                Long(static_cast<std::int32_t>(bits())) + Long(bits()) + little(8) +
                                little(4) + Sized(raw) + Sized(fmt::format("\"{}\n", random())) +
                                std::string("\0\x80z", 3) + Long(null ? 0 : 1) +
                                (null ? "" : little(8)) + Long(bits() % 1'000'000'000'000'000) +
                                Sized(*avro::DecimalBytes(std::to_string(bits()), 20, 0));
    const std::string json = Decoded(Avro(all), payload);
    ASSERT_EQ(Encoded(all, json), payload) << json;
  }
}

}  // namespace
}  // namespace fencepost::consumer
