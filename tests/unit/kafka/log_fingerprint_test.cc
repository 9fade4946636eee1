#include "consumer/kafka/source/log_fingerprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;
using ::testing::Optional;

const TopicPartition kWhere{"orders", 3};
constexpr LogFingerprints::Clock::time_point kNow{1000s};
constexpr auto kLater = kNow + LogFingerprints::kBetween;

Fingerprint At(Offset offset) { return {offset, 1'700'000'000'000 + offset, 0xabcd}; }

Record Of(std::optional<std::string_view> key, std::optional<std::string_view> value) {
  Record record;
  record.offset = 7;
  record.timestamp = 1'700'000'000'123ms;
  record.key = key;
  record.value = value;
  return record;
}

TEST(Fingerprint, IsReadFromTheTextThatItWasWrittenAs) {
  const Fingerprint fingerprint{41, 1'700'000'000'123, 0x00abcdef};
  EXPECT_EQ(FingerprintText(fingerprint, 42), "fencepost1 42 41 1700000000123 00abcdef");
  EXPECT_THAT(ParseFingerprint(FingerprintText(fingerprint, 42), 42), Optional(fingerprint));
  const Fingerprint none{0, -1, 0};
  EXPECT_THAT(ParseFingerprint(FingerprintText(none, 1), 1), Optional(none));
}

TEST(Fingerprint, IsShortHoweverLargeItsNumbersAre) {
  const auto most = std::numeric_limits<std::int64_t>::max();
  const Fingerprint fingerprint{most - 1, std::numeric_limits<std::int64_t>::min(), 0xffffffff};
  EXPECT_LT(FingerprintText(fingerprint, most).size(), 100u);
  EXPECT_THAT(ParseFingerprint(FingerprintText(fingerprint, most), most), Optional(fingerprint));
}

TEST(Fingerprint, IsNotReadFromTheMetadataOfOthers) {
  for (const char* text :
       {"", "fencepost1", "fencepost1 ", "fencepost2 42 41 17 ab", "fencepost1 42 41 17",
        "fencepost1 42 41 17 ab more", "fencepost1 42 41 17 abg", "fencepost1 42 x 17 ab",
        "fencepost1 42  41 17 ab", "fencepost1 42 41 17 1ffffffff", "fencepost1 42 -1 17 ab",
        "42 41 17 ab", "anything", "{\"json\":true}"}) {
    EXPECT_EQ(ParseFingerprint(text, 42), std::nullopt) << text;
  }
}

TEST(Fingerprint, IsNotReadWhereItWasCopiedToAnotherOffset) {
  EXPECT_EQ(ParseFingerprint(FingerprintText(At(41), 42), 43), std::nullopt);
  EXPECT_EQ(ParseFingerprint(FingerprintText(At(42), 42), 42), std::nullopt)
      << "it is not below it";
}

TEST(Fingerprint, DiffersWithKeyValueTimestampAndWithWhatIsMissing) {
  const Fingerprint one = FingerprintOf(Of("key", "value"));
  EXPECT_EQ(one, FingerprintOf(Of("key", "value")));
  EXPECT_EQ(one.offset, 7);
  EXPECT_EQ(one.timestamp, 1'700'000'000'123);
  for (const Record& other : {Of("kez", "value"), Of("key", "valuf"), Of("keyv", "alue"),
                              Of("key", std::nullopt), Of(std::nullopt, "value"), Of("key", "")}) {
    EXPECT_NE(one.crc, FingerprintOf(other).crc);
  }
  EXPECT_NE(FingerprintOf(Of("", "")).crc, FingerprintOf(Of(std::nullopt, "")).crc);
  Record untimed = Of("key", "value");
  untimed.timestamp.reset();
  EXPECT_NE(one, FingerprintOf(untimed));
}

TEST(LogFingerprints, TakesTheFirstRecordOfAGroupAtOnce) {
  LogFingerprints fingerprints;
  fingerprints.Begin(kWhere, std::nullopt);
  EXPECT_EQ(fingerprints.TextFor(kWhere, 5), "");
  EXPECT_TRUE(fingerprints.Wants(kWhere, kNow));
  EXPECT_EQ(fingerprints.Sampled(kWhere, At(4), kNow), std::nullopt) << "there is nothing to ask";
  EXPECT_EQ(fingerprints.TextFor(kWhere, 5), FingerprintText(At(4), 5));
  EXPECT_FALSE(fingerprints.Wants(kWhere, kLater - 1ms));
  EXPECT_TRUE(fingerprints.Wants(kWhere, kLater));
}

TEST(LogFingerprints, TakesANewerRecordOnlyAfterTheOneBeforeItWasFoundUnchanged) {
  LogFingerprints fingerprints;
  fingerprints.Begin(kWhere, std::nullopt);
  fingerprints.Sampled(kWhere, At(4), kNow);
  EXPECT_THAT(fingerprints.Sampled(kWhere, At(90), kLater), Optional(At(4)));
  EXPECT_FALSE(fingerprints.Wants(kWhere, kLater + 1h)) << "while the question is open";
  EXPECT_EQ(fingerprints.TextFor(kWhere, 100), FingerprintText(At(4), 100));
  EXPECT_EQ(fingerprints.Answered(kWhere, FingerprintAnswer::kSame, kLater), std::nullopt);
  EXPECT_EQ(fingerprints.TextFor(kWhere, 100), FingerprintText(At(90), 100));
}

TEST(LogFingerprints, AsksForTheCommittedOneFirstAndCommitsItOn) {
  LogFingerprints fingerprints;
  fingerprints.Begin(kWhere, At(4));
  EXPECT_FALSE(fingerprints.Wants(kWhere, kNow)) << "it is asked for";
  EXPECT_EQ(fingerprints.Sampled(kWhere, At(6), kNow), std::nullopt);
  EXPECT_EQ(fingerprints.TextFor(kWhere, 8), FingerprintText(At(4), 8));
  EXPECT_EQ(fingerprints.Answered(kWhere, FingerprintAnswer::kSame, kNow), std::nullopt);
  EXPECT_TRUE(fingerprints.Wants(kWhere, kNow));
  EXPECT_THAT(fingerprints.Sampled(kWhere, At(9), kNow), Optional(At(4)));
}

TEST(LogFingerprints, AsksForAnOlderOneWhereTheNewerCannotTell) {
  LogFingerprints fingerprints;
  fingerprints.Begin(kWhere, At(4));
  fingerprints.Answered(kWhere, FingerprintAnswer::kSame, kNow);
  fingerprints.Sampled(kWhere, At(9), kNow);
  fingerprints.Answered(kWhere, FingerprintAnswer::kSame, kNow);
  EXPECT_THAT(fingerprints.Sampled(kWhere, At(20), kLater), Optional(At(9)));
  EXPECT_THAT(fingerprints.Answered(kWhere, FingerprintAnswer::kMissing, kLater), Optional(At(4)));
  EXPECT_EQ(fingerprints.TextFor(kWhere, 30), FingerprintText(At(4), 30));
  EXPECT_EQ(fingerprints.Answered(kWhere, FingerprintAnswer::kMissing, kLater), std::nullopt);
  EXPECT_EQ(fingerprints.TextFor(kWhere, 30), FingerprintText(At(20), 30)) << "there is no other";
}

TEST(LogFingerprints, GivesTheNewestBelowTheOffsetAlsoWhenItGoesBack) {
  LogFingerprints fingerprints;
  fingerprints.Begin(kWhere, At(10));
  fingerprints.Answered(kWhere, FingerprintAnswer::kSame, kNow);
  for (const Offset offset : {20, 30}) {
    fingerprints.Sampled(kWhere, At(offset), kNow);
    fingerprints.Answered(kWhere, FingerprintAnswer::kSame, kNow);
  }
  EXPECT_EQ(fingerprints.TextFor(kWhere, 30), FingerprintText(At(20), 30));
  EXPECT_EQ(fingerprints.TextFor(kWhere, 31), FingerprintText(At(30), 31));
  EXPECT_EQ(fingerprints.TextFor(kWhere, 25), FingerprintText(At(20), 25))
      << "of a transaction that comes again";
  EXPECT_EQ(fingerprints.TextFor(kWhere, 10), "");
}

TEST(LogFingerprints, KeepsFewAndTheOldestForAnOffsetThatDoesNotMove) {
  LogFingerprints fingerprints;
  fingerprints.Begin(kWhere, At(10));
  fingerprints.Answered(kWhere, FingerprintAnswer::kSame, kNow);
  for (Offset offset = 100; offset < 10'000; offset += 100) {
    fingerprints.Sampled(kWhere, At(offset), kNow);
    fingerprints.Answered(kWhere, FingerprintAnswer::kSame, kNow);
  }
  EXPECT_EQ(fingerprints.TextFor(kWhere, 11), FingerprintText(At(10), 11));
  EXPECT_THAT(fingerprints.Sampled(kWhere, At(10'001), kNow), Optional(At(9'900)));
  std::size_t kept = 1;
  while (fingerprints.Answered(kWhere, FingerprintAnswer::kMissing, kNow)) ++kept;
  EXPECT_LE(kept, LogFingerprints::kKept);
}

TEST(LogFingerprints, WantsARecordSoonerWhenSomethingHasHappenedToTheTopics) {
  LogFingerprints fingerprints;
  fingerprints.Begin(kWhere, std::nullopt);
  fingerprints.Sampled(kWhere, At(4), kNow);
  EXPECT_FALSE(fingerprints.Wants(kWhere, kNow));
  fingerprints.Hurry();
  EXPECT_TRUE(fingerprints.Wants(kWhere, kNow));
}

TEST(LogFingerprints, KnowsNothingOfPartitionsThatAreNotAssigned) {
  LogFingerprints fingerprints;
  EXPECT_FALSE(fingerprints.Wants(kWhere, kNow));
  EXPECT_EQ(fingerprints.Sampled(kWhere, At(4), kNow), std::nullopt);
  EXPECT_EQ(fingerprints.Answered(kWhere, FingerprintAnswer::kSame, kNow), std::nullopt);
  EXPECT_EQ(fingerprints.TextFor(kWhere, 5), "");
}

TEST(LogFingerprints, IsSilentWhereTheBrokersTakeNoMetadata) {
  LogFingerprints fingerprints;
  fingerprints.Begin(kWhere, At(4));
  fingerprints.Silence();
  EXPECT_EQ(fingerprints.TextFor(kWhere, 5), "");
}

// A worker that was frozen sees the group's offset at deleted records that another has in hand.
TEST(OffsetOutOfRange, SetsNoGroupBackThatHasReadBeyondWhatWasDeleted) {
  const Error deleted = OffsetOutOfRange("g", kWhere, 20, LogBounds{.first = 21, .end = 30});
  EXPECT_NE(deleted.hint.find("stop the workers and if the group's offset is below 21, set it: "),
            std::string::npos)
      << deleted.hint;
  const Error truncated = OffsetOutOfRange("g", kWhere, 20, LogBounds{.first = 0, .end = 10});
  EXPECT_NE(truncated.hint.find("stop the workers and set the offset: "), std::string::npos);
}

}  // namespace
}  // namespace fencepost::consumer
