#include "consumer/kafka/source/witness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;
using ::testing::Optional;

const TopicPartition kWhere{"orders", 3};
constexpr WitnessBook::Clock::time_point kNow{1000s};
constexpr auto kLater = kNow + WitnessBook::kBetween;

Witness At(Offset offset) { return {offset, 1'700'000'000'000 + offset, 0xabcd}; }

Record Of(std::optional<std::string_view> key, std::optional<std::string_view> value) {
  Record record;
  record.offset = 7;
  record.timestamp = 1'700'000'000'123ms;
  record.key = key;
  record.value = value;
  return record;
}

TEST(Witness, IsReadFromTheTextThatItWasWrittenAs) {
  const Witness witness{41, 1'700'000'000'123, 0x00abcdef};
  EXPECT_EQ(WitnessText(witness, 42), "fencepost1 42 41 1700000000123 00abcdef");
  EXPECT_THAT(ReadWitness(WitnessText(witness, 42), 42), Optional(witness));
  const Witness none{0, -1, 0};
  EXPECT_THAT(ReadWitness(WitnessText(none, 1), 1), Optional(none));
}

TEST(Witness, IsShortHoweverLargeItsNumbersAre) {
  const auto most = std::numeric_limits<std::int64_t>::max();
  const Witness witness{most - 1, std::numeric_limits<std::int64_t>::min(), 0xffffffff};
  EXPECT_LT(WitnessText(witness, most).size(), 100u);
  EXPECT_THAT(ReadWitness(WitnessText(witness, most), most), Optional(witness));
}

TEST(Witness, IsNotReadFromTheMetadataOfOthers) {
  for (const char* text :
       {"", "fencepost1", "fencepost1 ", "fencepost2 42 41 17 ab", "fencepost1 42 41 17",
        "fencepost1 42 41 17 ab more", "fencepost1 42 41 17 abg", "fencepost1 42 x 17 ab",
        "fencepost1 42  41 17 ab", "fencepost1 42 41 17 1ffffffff", "fencepost1 42 -1 17 ab",
        "42 41 17 ab", "anything", "{\"json\":true}"}) {
    EXPECT_EQ(ReadWitness(text, 42), std::nullopt) << text;
  }
}

TEST(Witness, IsNotReadWhereItWasCopiedToAnotherOffset) {
  EXPECT_EQ(ReadWitness(WitnessText(At(41), 42), 43), std::nullopt);
  EXPECT_EQ(ReadWitness(WitnessText(At(42), 42), 42), std::nullopt) << "it is not below it";
}

TEST(Witness, DiffersWithKeyValueTimestampAndWithWhatIsMissing) {
  const Witness one = WitnessOf(Of("key", "value"));
  EXPECT_EQ(one, WitnessOf(Of("key", "value")));
  EXPECT_EQ(one.offset, 7);
  EXPECT_EQ(one.timestamp, 1'700'000'000'123);
  for (const Record& other : {Of("kez", "value"), Of("key", "valuf"), Of("keyv", "alue"),
                              Of("key", std::nullopt), Of(std::nullopt, "value"), Of("key", "")}) {
    EXPECT_NE(one.crc, WitnessOf(other).crc);
  }
  EXPECT_NE(WitnessOf(Of("", "")).crc, WitnessOf(Of(std::nullopt, "")).crc);
  Record untimed = Of("key", "value");
  untimed.timestamp.reset();
  EXPECT_NE(one, WitnessOf(untimed));
}

TEST(WitnessBook, TakesTheFirstRecordOfAGroupAtOnce) {
  WitnessBook book;
  book.Begin(kWhere, std::nullopt);
  EXPECT_EQ(book.TextFor(kWhere, 5), "");
  EXPECT_TRUE(book.Wants(kWhere, kNow));
  EXPECT_EQ(book.Sampled(kWhere, At(4), kNow), std::nullopt) << "there is nothing to ask";
  EXPECT_EQ(book.TextFor(kWhere, 5), WitnessText(At(4), 5));
  EXPECT_FALSE(book.Wants(kWhere, kLater - 1ms));
  EXPECT_TRUE(book.Wants(kWhere, kLater));
}

TEST(WitnessBook, TakesANewerRecordOnlyAfterTheOneBeforeItWasFoundUnchanged) {
  WitnessBook book;
  book.Begin(kWhere, std::nullopt);
  book.Sampled(kWhere, At(4), kNow);
  EXPECT_THAT(book.Sampled(kWhere, At(90), kLater), Optional(At(4)));
  EXPECT_FALSE(book.Wants(kWhere, kLater + 1h)) << "while the question is open";
  EXPECT_EQ(book.TextFor(kWhere, 100), WitnessText(At(4), 100));
  EXPECT_EQ(book.Answered(kWhere, WitnessAnswer::kSame, kLater), std::nullopt);
  EXPECT_EQ(book.TextFor(kWhere, 100), WitnessText(At(90), 100));
}

TEST(WitnessBook, AsksForTheCommittedOneFirstAndCommitsItOn) {
  WitnessBook book;
  book.Begin(kWhere, At(4));
  EXPECT_FALSE(book.Wants(kWhere, kNow)) << "it is asked for";
  EXPECT_EQ(book.Sampled(kWhere, At(6), kNow), std::nullopt);
  EXPECT_EQ(book.TextFor(kWhere, 8), WitnessText(At(4), 8));
  EXPECT_EQ(book.Answered(kWhere, WitnessAnswer::kSame, kNow), std::nullopt);
  EXPECT_TRUE(book.Wants(kWhere, kNow));
  EXPECT_THAT(book.Sampled(kWhere, At(9), kNow), Optional(At(4)));
}

TEST(WitnessBook, AsksForAnOlderOneWhereTheNewerCannotTell) {
  WitnessBook book;
  book.Begin(kWhere, At(4));
  book.Answered(kWhere, WitnessAnswer::kSame, kNow);
  book.Sampled(kWhere, At(9), kNow);
  book.Answered(kWhere, WitnessAnswer::kSame, kNow);
  EXPECT_THAT(book.Sampled(kWhere, At(20), kLater), Optional(At(9)));
  EXPECT_THAT(book.Answered(kWhere, WitnessAnswer::kNothing, kLater), Optional(At(4)));
  EXPECT_EQ(book.TextFor(kWhere, 30), WitnessText(At(4), 30));
  EXPECT_EQ(book.Answered(kWhere, WitnessAnswer::kNothing, kLater), std::nullopt);
  EXPECT_EQ(book.TextFor(kWhere, 30), WitnessText(At(20), 30)) << "there is no other";
}

TEST(WitnessBook, GivesTheNewestBelowTheOffsetAlsoWhenItGoesBack) {
  WitnessBook book;
  book.Begin(kWhere, At(10));
  book.Answered(kWhere, WitnessAnswer::kSame, kNow);
  for (const Offset offset : {20, 30}) {
    book.Sampled(kWhere, At(offset), kNow);
    book.Answered(kWhere, WitnessAnswer::kSame, kNow);
  }
  EXPECT_EQ(book.TextFor(kWhere, 30), WitnessText(At(20), 30));
  EXPECT_EQ(book.TextFor(kWhere, 31), WitnessText(At(30), 31));
  EXPECT_EQ(book.TextFor(kWhere, 25), WitnessText(At(20), 25))
      << "of a transaction that comes again";
  EXPECT_EQ(book.TextFor(kWhere, 10), "");
}

TEST(WitnessBook, KeepsFewAndTheOldestForAnOffsetThatDoesNotMove) {
  WitnessBook book;
  book.Begin(kWhere, At(10));
  book.Answered(kWhere, WitnessAnswer::kSame, kNow);
  for (Offset offset = 100; offset < 10'000; offset += 100) {
    book.Sampled(kWhere, At(offset), kNow);
    book.Answered(kWhere, WitnessAnswer::kSame, kNow);
  }
  EXPECT_EQ(book.TextFor(kWhere, 11), WitnessText(At(10), 11));
  EXPECT_THAT(book.Sampled(kWhere, At(10'001), kNow), Optional(At(9'900)));
  std::size_t kept = 1;
  while (book.Answered(kWhere, WitnessAnswer::kNothing, kNow)) ++kept;
  EXPECT_LE(kept, WitnessBook::kKept);
}

TEST(WitnessBook, WantsARecordSoonerWhenSomethingHasHappenedToTheTopics) {
  WitnessBook book;
  book.Begin(kWhere, std::nullopt);
  book.Sampled(kWhere, At(4), kNow);
  EXPECT_FALSE(book.Wants(kWhere, kNow));
  book.Hurry();
  EXPECT_TRUE(book.Wants(kWhere, kNow));
}

TEST(WitnessBook, KnowsNothingOfPartitionsThatAreNotAssigned) {
  WitnessBook book;
  EXPECT_FALSE(book.Wants(kWhere, kNow));
  EXPECT_EQ(book.Sampled(kWhere, At(4), kNow), std::nullopt);
  EXPECT_EQ(book.Answered(kWhere, WitnessAnswer::kSame, kNow), std::nullopt);
  EXPECT_EQ(book.TextFor(kWhere, 5), "");
}

TEST(WitnessBook, IsSilentWhereTheBrokersTakeNoMetadata) {
  WitnessBook book;
  book.Begin(kWhere, At(4));
  book.Silence();
  EXPECT_EQ(book.TextFor(kWhere, 5), "");
}

}  // namespace
}  // namespace fencepost::consumer
