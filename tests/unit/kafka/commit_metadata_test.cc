// What a group's offset is committed with: the failed records beside the sample of the log
// (log_identity_test.cc has the sample). The text is a stored format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>

#include <fmt/format.h>

#include "consumer/kafka/log_identity/log_sample.h"
#include "consumer/kafka/log_identity/log_samples.h"

namespace fencepost::consumer {
namespace {

using ::testing::SizeIs;

const LogSample kSample{
    .offset = 41, .timestamp = 1'700'000'000'123, .crc = 0x00abcdef, .content = 0};
const std::vector<FailedRecord> kFailed{
    {.offset = 42, .attempts = 124, .alone = Millis(780'000), .last = Millis(1'700'000'900'000)},
    {.offset = 57,
     .attempts = 1,
     .alone = Millis(0),
     .last = Millis(1'700'000'900'123),
     .why = "503",
     .unavailable = true}};

TEST(CommitMetadata, IsReadFromTheTextThatItWasWrittenAs) {
  const CommitMetadata both{kSample, kFailed};
  EXPECT_EQ(MetadataText(both, 42),
            "fencepost1 42 41 1700000000123 00abcdef 42:124:780000:1700000900000: "
            "57:1:0:1700000900123:503!");
  EXPECT_EQ(ParseMetadata(MetadataText(both, 42), 42), both);
  const CommitMetadata failed{std::nullopt, kFailed};
  EXPECT_EQ(MetadataText(failed, 42),
            "fencepost1 42 - 42:124:780000:1700000900000: 57:1:0:1700000900123:503!");
  EXPECT_EQ(ParseMetadata(MetadataText(failed, 42), 42), failed);
  EXPECT_EQ(MetadataText({}, 42), "") << "there is nothing to tell";
  const CommitMetadata named{kSample, kFailed, "orders-2"};
  EXPECT_EQ(MetadataText(named, 42),
            "fencepost1 42 41 1700000000123 00abcdef @orders-2 42:124:780000:1700000900000: "
            "57:1:0:1700000900123:503!");
  EXPECT_EQ(ParseMetadata(MetadataText(named, 42), 42), named);
  for (const CommitMetadata& one :
       {CommitMetadata{kSample, {}, "orders"}, CommitMetadata{std::nullopt, kFailed, "orders"}}) {
    EXPECT_EQ(ParseMetadata(MetadataText(one, 42), 42), one);
  }
}

TEST(CommitMetadata, WithoutFailedRecordsIsWhatItWasBeforeThereWereAny) {
  const CommitMetadata read = ParseMetadata("fencepost1 42 41 1700000000123 00abcdef", 42);
  EXPECT_EQ(read, (CommitMetadata{kSample, {}}));
}

TEST(CommitMetadata, DropsRecordsThatTheOffsetHasPassed) {
  const std::string text = "fencepost1 50 - 42:124:780000:1700000900000 57:1:0:1700000900123:503!";
  EXPECT_EQ(ParseMetadata(text, 50).failed, std::vector<FailedRecord>{kFailed[1]});
}

TEST(CommitMetadata, IsBelowTheBrokersDefaultLimitHoweverManyFailAndHoweverLargeTheNumbersAre) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  CommitMetadata metadata{kSample, {}};
  metadata.sample->offset = kMost - 41;
  for (std::size_t i = 0; i < kMostFailed; ++i) {
    metadata.failed.push_back({.offset = kMost - 40 + static_cast<Offset>(i),
                               .attempts = 1'000'000'000,
                               .alone = Millis(3'000'000'000'000),
                               .last = Millis(kMost),
                               .why = std::string(20, 'x'),
                               .unavailable = true});
  }
  const std::string text = MetadataText(metadata, kMost - 40);
  EXPECT_LT(text.size(), 3'000u);
  EXPECT_EQ(ParseMetadata(text, kMost - 40), metadata);
}

TEST(CommitMetadata, HasOnlyClassesThatAreShortAndPlain) {
  for (const std::string why : {"a b", "a:b", "a!", "\xff", "a class that is too long"}) {
    const CommitMetadata metadata{{}, {{.offset = 42, .attempts = 1, .why = why}}};
    EXPECT_EQ(MetadataText(metadata, 42), "fencepost1 42 - 42:1:0:0:") << why;
  }
}

TEST(CommitMetadata, OfOthersIsIgnored) {
  std::string many = "fencepost1 42 -";
  for (std::size_t i = 0; i <= kMostFailed; ++i) many += fmt::format(" {}:1:0:1", 42 + i);
  for (const std::string& text : {std::string("fencepost1 42 -"),
                                  std::string("fencepost1 42 - "),
                                  std::string("fencepost1 42 -7:1:0:1"),
                                  std::string("fencepost1 42 - 42"),
                                  std::string("fencepost1 42 - 42:1"),
                                  std::string("fencepost1 42 - 42:1:0"),
                                  std::string("fencepost1 42 - 42:1:0:x"),
                                  std::string("fencepost1 42 - 42:1:0:1:1:1"),
                                  std::string("fencepost1 42 - 42:1:0:1:a!b"),
                                  std::string("fencepost1 42 - 42:1:0:1:not plain"),
                                  "fencepost1 42 - 42:1:0:1:" + std::string(21, 'x'),
                                  std::string("fencepost1 42 - 42:1:0:1  43:1:0:1"),
                                  std::string("fencepost1 42 - -1:1:0:1"),
                                  std::string("fencepost1 42 - 42:-1:0:1"),
                                  std::string("fencepost1 42 - 42:1000000001:0:1"),
                                  std::string("fencepost1 42 - 42:99999999999:0:1"),
                                  std::string("fencepost1 42 - 42:1:-1:1"),
                                  std::string("fencepost1 42 - 42:1:0:-1"),
                                  std::string("fencepost1 42 - 42:1:9223372036854775807:1"),
                                  std::string("fencepost1 42 - 42:1:0:9223372036854775808"),
                                  std::string("fencepost1 42 - 42:1:0:1 more"),
                                  std::string("fencepost1 43 - 42:1:0:1"),
                                  std::string("fencepost1 42 41 17 ab more"),
                                  std::string("fencepost1 42 41 17 ab @a more"),
                                  std::string("fencepost1 42 41 17 ab @a\nb"),
                                  "fencepost1 42 41 17 ab @" + std::string(64, 'x'),
                                  many}) {
    EXPECT_EQ(ParseMetadata(text, 42), CommitMetadata()) << text;
  }
}

// Whatever the bytes are, what is read can be reckoned with.
TEST(CommitMetadata, OfAnyBytesIsReadWithinItsLimitsOrNotAtAll) {
  const std::string good = MetadataText({kSample, kFailed}, 42);
  std::mt19937 random(1);
  for (int i = 0; i < 100'000; ++i) {
    std::string text = good.substr(0, 11 + random() % (good.size() - 10));
    for (std::size_t edits = random() % 4; edits > 0; --edits) {
      text[random() % text.size()] = "0123456789:- \xff\0x"[random() % 16];
    }
    const CommitMetadata read = ParseMetadata(text, 42);
    ASSERT_LE(read.failed.size(), kMostFailed);
    ASSERT_LT(read.sample.value_or(LogSample()).offset, 42) << text;
    for (const FailedRecord& one : read.failed) {
      ASSERT_GE(one.offset, 42) << text;
      ASSERT_GE(one.attempts, 0) << text;
      ASSERT_GE(one.alone, Millis(0)) << text;
      ASSERT_LT(one.alone, std::chrono::hours(24 * 366 * 101)) << text;
      ASSERT_GE(one.last, Millis(0)) << text;
    }
  }
}

TEST(CommitMetadata, HasTheFailedRecordsWhereNoSampleIsKnownYet) {
  LogSamples samples;
  const TopicPartition where{"orders", 3};
  samples.Begin(where, std::nullopt);
  EXPECT_THAT(ParseMetadata(samples.TextFor(where, 42, kFailed), 42).failed, SizeIs(2));
}

}  // namespace
}  // namespace fencepost::consumer
