// Numbers, times and bytes, as columns take them.
#include "consumer/outputs/rows/cell_values.h"

#include <gtest/gtest.h>

#include <limits>

#include "consumer/outputs/rows/cell_types.h"

namespace fencepost::consumer {
namespace {

std::string Whole(std::string_view number) {
  constexpr auto limits = std::numeric_limits<std::int64_t>();
  const auto value = WholeNumber(number, limits.min(), limits.max());
  return value ? std::to_string(*value) : value.error();
}

TEST(WholeNumbers, AreExactHoweverTheyAreWritten) {
  EXPECT_EQ(Whole("1.0"), "1");
  EXPECT_EQ(Whole("1e3"), "1000");
  EXPECT_EQ(Whole("-0.0"), "0");
  EXPECT_EQ(Whole("12.3400e2"), "1234");
  EXPECT_EQ(Whole("-9223372036854775808"), "-9223372036854775808");
  EXPECT_EQ(Whole("9223372036854775807.000"), "9223372036854775807");
}

TEST(WholeNumbers, AreNoFractionsAndNotOutOfRange) {
  for (const char* number : {"1.5", "1e-1", "0.000001"}) {
    EXPECT_EQ(Whole(number), "is not a whole number") << number;
  }
  for (const char* number : {"9223372036854775808", "1e30", "1e999999999999999999", "-1e19"}) {
    EXPECT_EQ(Whole(number), "is a number out of the type's range") << number;
  }
}

std::string Time(std::string_view number, Conversion unit) {
  const auto point = PointInTimeOf(number, unit);
  if (!point) return point.error();
  std::string text;
  AppendDateTime(*point, 'T', 9, text);
  return text;
}

TEST(PointsInTime, CountFromTheEpochInBothDirections) {
  EXPECT_EQ(Time("0", Conversion::kSeconds), "1970-01-01T00:00:00.000000000");
  EXPECT_EQ(Time("-1", Conversion::kNanos), "1969-12-31T23:59:59.999999999");
  EXPECT_EQ(Time("1735689600123", Conversion::kMillis), "2025-01-01T00:00:00.123000000");
  EXPECT_EQ(Time("1.7e9", Conversion::kSeconds), "2023-11-14T22:13:20.000000000");
  EXPECT_EQ(Time("-0.000001", Conversion::kMillis), "1969-12-31T23:59:59.999999999");
  EXPECT_EQ(Time("19700", Conversion::kDays), "2023-12-09T00:00:00.000000000");
  EXPECT_EQ(Time("-1", Conversion::kDays), "1969-12-31T00:00:00.000000000");
}

// Neither cut off nor rounded.
TEST(PointsInTime, AreNotFinerThanANanosecond) {
  for (const char* number : {"0.0000001", "-0.0000001"}) {
    EXPECT_EQ(Time(number, Conversion::kMillis), "is finer than a nanosecond");
  }
  EXPECT_EQ(Time("0.5", Conversion::kDays), "is not a whole number of days");
}

TEST(PointsInTime, AreOfFourDigitYears) {
  for (const auto unit : {Conversion::kSeconds, Conversion::kMillis}) {
    EXPECT_NE(Time("1e15", unit).find("is that its unit?"), std::string::npos);
    EXPECT_NE(Time("1e99999999999", unit).find("is that its unit?"), std::string::npos);
  }
  EXPECT_EQ(Time("253402300799", Conversion::kSeconds), "9999-12-31T23:59:59.000000000");
}

template <typename Float>
std::string Kept(std::string_view number) {
  const auto value = FloatOf<Float>(number);
  return value ? "kept" : value.error();
}

TEST(Floats, KeepAllDigitsOfANumberOrDoNotTakeIt) {
  for (const char* number : {"0", "0.1", "1e300", "-1.5", "0.10000000000000001", "1e-320",
                             "0.30000000000000004", "9007199254740992", "100.00"}) {
    EXPECT_EQ(Kept<double>(number), "kept") << number;
  }
  for (const char* number : {"0.12345678901234567890123", "12345678901234567890123456789",
                             "9007199254740993", "0.1000000000000000055"}) {
    EXPECT_EQ(Kept<double>(number), "has digits that the type does not keep") << number;
  }
  for (const char* number : {"0.1", "16777216", "0.10000000149011612"}) {
    EXPECT_EQ(Kept<float>(number), "kept") << number;
  }
  for (const char* number : {"16777217", "3.14159265", "0.1000000001"}) {
    EXPECT_EQ(Kept<float>(number), "has digits that the type does not keep") << number;
  }
  EXPECT_EQ(Kept<double>("1e400"), "is a number out of the type's range");
  EXPECT_EQ(Kept<float>("1e40"), "is a number out of the type's range");
}

TEST(EncodedBytes, AreDecodedOrRefused) {
  EXPECT_EQ(Decoded("aGVsbG8=", Conversion::kBase64), "hello");
  EXPECT_EQ(Decoded("aGVsbG8", Conversion::kBase64), "hello");
  EXPECT_EQ(Decoded("", Conversion::kBase64), "");
  EXPECT_EQ(Decoded("00fF", Conversion::kHex), std::string("\0\xff", 2));
  for (const char* text : {"a", "aGVsbG9=", "a b=", "%"}) {
    EXPECT_FALSE(Decoded(text, Conversion::kBase64)) << text;
  }
  for (const char* text : {"0", "0g", "0x00"}) EXPECT_FALSE(Decoded(text, Conversion::kHex));
}

// As PostgreSQL reads an array literal: what is quoted is taken without its backslashes.
TEST(ArrayLiterals, QuoteStringsAndKeepNullsAndNesting) {
  const auto literal = [](std::string_view json, CellKind element) {
    std::string text(json);
    const Column from{.name = "", .selector = {.kind = Selector::Kind::kJson}};
    EXPECT_TRUE(MakeCellArray({.kind = element}, from, ArrayForm::kPostgres, text, 0)) << json;
    return text;
  };
  EXPECT_EQ(literal(" [ 1 , [ 2 ] ] ", CellKind::kText), "{1,{2}}");
  EXPECT_EQ(literal(R"(["a\n","\"","\\"])", CellKind::kText), "{\"a\n\",\"\\\"\",\"\\\\\"}");
  EXPECT_EQ(literal(R"([{"a":"}],"},null])", CellKind::kJson), R"({"{\"a\":\"}],\"}",NULL})");
  EXPECT_EQ(literal("[1.0,-2e1]", CellKind::kWhole), "{1,-20}");
  EXPECT_EQ(literal("[1.0,-2e1]", CellKind::kText), "{1.0,-2e1}");
}

}  // namespace
}  // namespace fencepost::consumer
