// What a record costs, and what a dead letter is made of.
#include <gtest/gtest.h>

#include "consumer/kafka/output/dead_letter_record.h"
#include "consumer/record/record.h"

namespace fencepost::consumer {
namespace {

TEST(Record, CountsItsHeadersToo) {
  const std::string megabyte(1 << 20, 'h');
  Record record;
  EXPECT_EQ(record.Bytes(), 64u);
  record.key = "key";
  record.value = "value";
  EXPECT_EQ(record.Bytes(), 72u);
  record.headers = {{"name", megabyte}, {"none", std::nullopt}};
  EXPECT_EQ(record.Bytes(), 72u + 4 + megabyte.size() + 4 + 2 * sizeof(HeaderView));
}

DeadLetter Letter(std::string error) {
  DeadLetter letter;
  letter.where = {"orders", 3};
  letter.error = std::move(error);
  return letter;
}

std::string ErrorHeader(const DeadLetter& letter, std::size_t max_error) {
  return AddedHeaders(letter, "p", max_error).front().second;
}

TEST(DeadLetterHeaders, HoldNoMoreThanAThousandBytesOfTheError) {
  const DeadLetter letter = Letter(std::string(600'000, 'x') + "\n");
  EXPECT_EQ(ErrorHeader(letter, kMaxErrorHeader), std::string(997, 'x') + "...");
  EXPECT_EQ(ErrorHeader(letter, 0), "");
}

TEST(DeadLetterHeaders, HoldTheErrorAsOneLineOfWholeCharacters) {
  EXPECT_EQ(ErrorHeader(Letter("no\n\tinteger: \xff"), kMaxErrorHeader), "no integer: ?");
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "\u20ac";  // three bytes each
  const std::string cut = ErrorHeader(Letter(text), kMaxErrorHeader);
  EXPECT_EQ(cut.size(), 996u + 3) << "332 whole characters, and the mark of the cut";
  EXPECT_TRUE(text.starts_with(cut.substr(0, 996)));
}

TEST(DeadLetterHeaders, ShortenTheErrorInTwoSteps) {
  EXPECT_EQ(ShorterError(Letter(std::string(201, 'x')), kMaxErrorHeader), 200u);
  EXPECT_EQ(ShorterError(Letter(std::string(201, 'x')), 200), 0u);
  EXPECT_EQ(ShorterError(Letter("short"), kMaxErrorHeader), 0u);
  EXPECT_EQ(ShorterError(Letter("short"), 0), std::nullopt);
  EXPECT_EQ(ShorterError(Letter(""), kMaxErrorHeader), std::nullopt);
}

}  // namespace
}  // namespace fencepost::consumer
