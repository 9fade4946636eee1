#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/decode/avro_text.h"
#include "tests/unit/decode/decode_fixture.h"

namespace fencepost::consumer {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string AsTimestamp(std::string_view type, std::int64_t units) {
  return Decoded(Avro(Logical("long", type)), Long(units));
}

TEST(Avro, PrimitivesAreTheirJson) {
  EXPECT_EQ(Decoded(Avro(R"("null")"), ""), "null");
  EXPECT_EQ(Decoded(Avro(R"("boolean")"), "\1"), "true");
  EXPECT_EQ(Decoded(Avro(R"("int")"), Long(-7)), "-7");
  EXPECT_EQ(Decoded(Avro(R"("long")"), Long(INT64_MIN)), "-9223372036854775808");
  EXPECT_EQ(Decoded(Avro(R"("long")"), Long(INT64_MAX)), "9223372036854775807");
  EXPECT_EQ(Decoded(Avro(R"("double")"), std::string("\x9a\x99\x99\x99\x99\x99\xb9\x3f", 8)),
            "0.1");
  EXPECT_EQ(Decoded(Avro(R"("float")"), std::string("\xcd\xcc\xcc\x3d", 4)), "0.1");
  EXPECT_EQ(Decoded(Avro(R"("double")"), std::string("\0\0\0\0\0\0\xf0\xff", 8)), R"("-Infinity")");
  EXPECT_EQ(Decoded(Avro(R"("string")"), Sized("a\"b\n\xc3\xa9")), "\"a\\\"b\\n\xc3\xa9\"");
  EXPECT_EQ(Decoded(Avro(R"("bytes")"), Sized(std::string_view("\0\xff", 2))), R"("AP8=")");
}

TEST(Avro, ANumberHasAtMost64Bits) {
  const std::string nine(9, '\xff');
  EXPECT_EQ(Decoded(Avro(R"("long")"), nine + '\x01'), "-9223372036854775808");
  for (const std::string& bytes : {nine + '\x03', nine + '\x81' + std::string(1, '\0')}) {
    EXPECT_THAT(Decoded(Avro(R"("long")"), bytes), StartsWith("error: "));
  }
}

TEST(Avro, ADecimalKeepsEachDigitAndItsScale) {
  const auto decimal = [](std::string_view bytes, int scale) {
    return Decoded(
        Avro(Logical("bytes", "decimal", fmt::format(R"(,"precision":40,"scale":{})", scale))),
        Sized(bytes));
  };
  EXPECT_EQ(decimal("\x04\xe2", 2), "12.50");
  EXPECT_EQ(decimal("\xff", 2), "-0.01");
  EXPECT_EQ(decimal("\x80", 0), "-128");
  EXPECT_EQ(decimal("", 2), "0.00");
  EXPECT_EQ(decimal(std::string_view("\x01\0\0\0\0\0\0\0\0", 9), 4), "1844674407370955.1616");
  EXPECT_EQ(Decoded(Avro(R"({"type":"fixed","name":"f","size":2,"logicalType":"decimal",)"
                         R"("precision":4,"scale":1})"),
                    "\xff\x85"),
            "-12.3");
  EXPECT_EQ(Decoded(Avro(Logical("bytes", "decimal")), Sized("\x04\xe2")), R"("BOI=")")
      << "without a precision it is none";
}

TEST(Avro, DecimalsAreThoseOfALongerCalculation) {
  std::mt19937_64 random(20261122);
  for (int i = 0; i < 20'000; ++i) {
    const auto number = static_cast<std::int64_t>(random()) >> (random() % 64);
    std::string bytes;
    for (int shift = 56; shift >= 0; shift -= 8)
      bytes.push_back(static_cast<char>(number >> shift));
    std::string out;
    ASSERT_TRUE(avro::AppendDecimal(bytes, 0, out));
    ASSERT_EQ(out, std::to_string(number));
  }
}

TEST(Avro, DatesAndTimesAreTexts) {
  EXPECT_EQ(Decoded(Avro(Logical("int", "date")), Long(20'779)), R"("2026-11-22")");
  EXPECT_EQ(Decoded(Avro(Logical("int", "date")), Long(-1)), R"("1969-12-31")");
  EXPECT_EQ(Decoded(Avro(Logical("int", "time-millis")), Long(47'100'250)), R"("13:05:00.250")");
  EXPECT_EQ(Decoded(Avro(Logical("long", "time-micros")), Long(1)), R"("00:00:00.000001")");
  EXPECT_EQ(AsTimestamp("timestamp-millis", 1'795'352'700'250), R"("2026-11-22T13:05:00.250Z")");
  EXPECT_EQ(AsTimestamp("timestamp-micros", -1), R"("1969-12-31T23:59:59.999999Z")");
  EXPECT_EQ(AsTimestamp("timestamp-nanos", 1), R"("1970-01-01T00:00:00.000000001Z")");
  EXPECT_EQ(AsTimestamp("local-timestamp-millis", 0), R"("1970-01-01T00:00:00.000")");
  EXPECT_EQ(Decoded(Avro(Logical("long", "date")), Long(1)), "1") << "a date is an int";
}

TEST(Avro, ADateThatNoTextStandsForIsAnError) {
  EXPECT_THAT(AsTimestamp("timestamp-millis", INT64_MAX), HasSubstr("out of range"));
  EXPECT_THAT(AsTimestamp("timestamp-nanos", INT64_MIN), StartsWith("\"1677-"));
  EXPECT_THAT(Decoded(Avro(Logical("int", "time-millis")), Long(86'400'000)),
              HasSubstr("out of range"));
  EXPECT_THAT(Decoded(Avro(Logical("int", "date")), Long(INT32_MAX)), HasSubstr("out of range"));
}

TEST(Avro, ARecordIsAnObjectAndAUnionIsItsValue) {
  const SchemaText schema =
      Avro(R"({"type":"record","name":"Order","namespace":"shop","fields":[)"
           R"({"name":"id","type":{"type":"string","logicalType":"uuid"}},)"
           R"({"name":"state","type":{"type":"enum","name":"State","symbols":["NEW","PAID"]}},)"
           R"({"name":"before","type":["null","State"]},)"
           R"({"name":"tags","type":{"type":"array","items":"string"}},)"
           R"({"name":"by","type":{"type":"map","values":["null","long","shop.State"]}}]})");
  const std::string id = "6f1c0b56-0000-4000-8000-000000000001";
  // The array in two blocks, the first with its size in bytes.
  const std::string payload = Sized(id) + Long(1) + Long(1) + Long(0) +  //
                              Long(-1) + Long(2) + Sized("a") + Long(1) + Sized("b") + Long(0) +
                              Long(2) + Sized("x") + Long(1) + Long(5) + Sized("y") + Long(2) +
                              Long(1) + Long(0);
  EXPECT_EQ(Decoded(schema, payload), R"({"id":")" + id +
                                          R"(","state":"PAID","before":"NEW",)"
                                          R"("tags":["a","b"],"by":{"x":5,"y":"PAID"}})");
}

TEST(Avro, NamesOfOtherSchemasAreFoundAndCirclesEnd) {
  SchemaText schema =
      Avro(R"({"type":"record","name":"shop.Line","fields":[{"name":"of","type":"shop.Item"},)"
           R"({"name":"next","type":["null","Line"]}]})");
  schema.references = {
      {"shop.Item", R"({"type":"fixed","name":"Item","namespace":"shop","size":1})"}};
  EXPECT_EQ(Decoded(schema, "a" + Long(1) + "b" + Long(0)),
            R"({"of":"YQ==","next":{"of":"Yg==","next":null}})");
  schema.references.clear();
  EXPECT_EQ(Decoded(schema, ""), "error: it is no Avro schema: the type shop.Item is not defined");
}

TEST(Avro, WhatIsNoSchemaIsOneLine) {
  for (const std::string_view text :
       {"", "{", "[]", "{}", R"("strin")", R"({"type":"record","name":"R"})", R"({"type":"array"})",
        R"({"type":"fixed","name":"F","size":-1})", R"({"type":"enum","name":"E"})", "7"}) {
    EXPECT_THAT(Decoded(Avro(std::string(text)), ""), StartsWith("error: it is no Avro schema: "))
        << text;
  }
}

// Each way to write a length that is not there, or work without an end.
// It was copied and written out by recursion, as deep as the text.
TEST(Avro, ADefaultThatIsNestedTooDeeplyIsNoSchema) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  EXPECT_THAT(Decoded(Avro(R"({"type":"record","name":"R","fields":[{"name":"a","type":"int",)"
                           R"("default":)" +
                           deep + "}]}"),
                      ""),
              StartsWith("error: it is no Avro schema: "));
}

TEST(Avro, HostileBytesAreAnErrorAndCostNothing) {
  const SchemaText list =
      Avro(R"({"type":"record","name":"L","fields":[{"name":"n","type":["null","L"]}]})");
  EXPECT_THAT(Decoded(list, std::string(1 << 20, '\2')), HasSubstr("nested too deeply"));
  EXPECT_THAT(
      Decoded(Avro(R"({"type":"record","name":"L","fields":[{"name":"n","type":"L"}]})"), ""),
      HasSubstr("nested too deeply"));
  EXPECT_THAT(Decoded(Avro(R"("bytes")"), Long(std::int64_t{1} << 40)), HasSubstr("cut off"));
  EXPECT_THAT(Decoded(Avro(R"("bytes")"), Long(-1)), HasSubstr("cut off"));
  const SchemaText nulls = Avro(R"({"type":"array","items":"null"})");
  EXPECT_THAT(Decoded(nulls, Long(INT64_MAX)), HasSubstr("too much JSON"));
  EXPECT_THAT(Decoded(nulls, Long(3 << 20) + Long(0)), HasSubstr("too much JSON"))
      << "no ten bytes become megabytes of it";
  EXPECT_THAT(Decoded(nulls, Long(INT64_MIN)), HasSubstr("cut off"));
  EXPECT_THAT(Decoded(Avro(R"("long")"), std::string(11, '\xff')), HasSubstr("cut off"));
  EXPECT_THAT(Decoded(Avro(R"("int")"), Long(std::int64_t{1} << 31)), HasSubstr("32 bits"));
  EXPECT_THAT(Decoded(Avro(R"("string")"), Sized("\xff")), HasSubstr("not UTF-8"));
  EXPECT_THAT(Decoded(Avro(R"("boolean")"), "\2"), HasSubstr("cut off"));
}

TEST(Avro, ARecordThatIsCutOffOrHasMoreIsAnErrorAtEachByte) {
  const SchemaText schema =
      Avro(R"({"type":"record","name":"R","fields":[{"name":"a","type":"string"},)"
           R"({"name":"b","type":"double"},{"name":"c","type":{"type":"array","items":"long"}}]})");
  const std::string whole =
      Sized("secret") + std::string(8, '\1') + Long(2) + Long(1) + Long(300) + Long(0);
  EXPECT_THAT(Decoded(schema, whole), StartsWith("{"));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string said = Decoded(schema, whole.substr(0, size));
    EXPECT_THAT(said, HasSubstr("cut off")) << size;
    EXPECT_THAT(said, ::testing::Not(HasSubstr("secret")));
  }
  EXPECT_EQ(Decoded(schema, whole + "x"),
            fmt::format("error: has bytes left over (at byte {} of the payload)", whole.size()));
}

}  // namespace
}  // namespace fencepost::consumer
