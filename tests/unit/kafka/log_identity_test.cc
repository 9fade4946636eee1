#include "consumer/kafka/log_identity/log_reader.h"
#include "consumer/kafka/log_identity/log_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include <fmt/format.h>

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Optional;
using Verdict = LogComparison::Verdict;

constexpr locking::ContentCrc kRule = 7ull << 32;
const TopicPartition kWhere{"orders", 3};
constexpr LogSamples::Clock::time_point kNow{1000s};
constexpr auto kLater = kNow + LogSamples::kBetween;

LogSample At(Offset offset, std::uint32_t crc = 0xabcd) {
  return {.offset = offset, .timestamp = 1'700'000'000'000 + offset, .crc = crc, .content = 0};
}

// The log that all these samples are of.
const LogState kLog = [] {
  LogState log{.end = 20'000, .records = {}};
  for (Offset offset = 0; offset < log.end; ++offset) log.records.push_back(At(offset));
  return log;
}();
const LogState kNoneLeft{.end = 20'000, .records = {}};

std::string Text(const LogSample& sample, Offset next) {
  return MetadataText({.sample = sample, .failed = {}}, next);
}

Record Of(std::optional<std::string_view> key, std::optional<std::string_view> value) {
  Record record;
  record.offset = 7;
  record.timestamp = 1'700'000'000'123ms;
  record.key = key;
  record.value = value;
  return record;
}

TEST(LogSample, IsReadFromTheTextThatItWasWrittenAs) {
  const LogSample sample{41, 1'700'000'000'123, 0x00abcdef};
  EXPECT_EQ(Text(sample, 42), "fencepost1 42 41 1700000000123 00abcdef");
  EXPECT_THAT(ParseMetadata(Text(sample, 42), 42).sample, Optional(sample));
  const LogSample none{0, -1, 0};
  EXPECT_THAT(ParseMetadata(Text(none, 1), 1).sample, Optional(none));
}

TEST(LogSample, IsShortHoweverLargeItsNumbersAre) {
  const auto most = std::numeric_limits<std::int64_t>::max();
  const LogSample sample{most - 1, std::numeric_limits<std::int64_t>::min(), 0xffffffff};
  EXPECT_LT(Text(sample, most).size(), 100u);
  EXPECT_THAT(ParseMetadata(Text(sample, most), most).sample, Optional(sample));
}

TEST(LogSample, IsNotReadFromTheMetadataOfOthers) {
  for (const char* text :
       {"", "fencepost1", "fencepost1 ", "fencepost2 42 41 17 ab", "fencepost1 42 41 17",
        "fencepost1 42 41 17 ab more", "fencepost1 42 41 17 abg", "fencepost1 42 x 17 ab",
        "fencepost1 42  41 17 ab", "fencepost1 42 41 17 1ffffffff", "fencepost1 42 -1 17 ab",
        "42 41 17 ab", "anything", "{\"json\":true}"}) {
    EXPECT_EQ(ParseMetadata(text, 42), CommitMetadata()) << text;
  }
}

TEST(LogSample, IsNotReadWhereItWasCopiedToAnotherOffset) {
  EXPECT_EQ(ParseMetadata(Text(At(41), 42), 43).sample, std::nullopt);
  EXPECT_EQ(ParseMetadata(Text(At(42), 42), 42).sample, std::nullopt) << "it is not below it";
}

TEST(LogSample, DiffersWithKeyValueTimestampAndWithWhatIsMissing) {
  const LogSample one = SampleOf(Of("key", "value"));
  EXPECT_EQ(one, SampleOf(Of("key", "value")));
  EXPECT_EQ(one.offset, 7);
  EXPECT_EQ(one.timestamp, 1'700'000'000'123);
  for (const Record& other : {Of("kez", "value"), Of("key", "valuf"), Of("keyv", "alue"),
                              Of("key", std::nullopt), Of(std::nullopt, "value"), Of("key", "")}) {
    EXPECT_NE(one.crc, SampleOf(other).crc);
  }
  EXPECT_NE(SampleOf(Of("", "")).crc, SampleOf(Of(std::nullopt, "")).crc);
  Record untimed = Of("key", "value");
  untimed.timestamp.reset();
  EXPECT_NE(one, SampleOf(untimed));
}

TEST(LogSample, OfAnAnchorIsReadFromTheTextThatItWasWrittenAs) {
  const LogSample sample{.offset = 41, .timestamp = -1, .crc = {}, .content = kRule | 7};
  EXPECT_EQ(AnchorText(sample), "41:-1:30064771079");
  EXPECT_THAT(ParseAnchor(AnchorText(sample)), Optional(sample));
  for (const char* text : {"", "41", "41:1", "41:1:x", "41:1:7 ", "x", "41;1;7"}) {
    EXPECT_EQ(ParseAnchor(text), std::nullopt) << text;
  }
}

struct Comparison {
  const char* name;
  std::vector<LogSample> known;
  LogState log;
  Verdict verdict;
  const char* why = "";
};

LogSample Content(Offset offset, locking::ContentCrc content) {
  LogSample sample = At(offset);
  sample.crc.reset();
  sample.content = content;
  return sample;
}

LogSample Later(LogSample sample) {
  ++sample.timestamp;
  return sample;
}

class CompareLogTest : public ::testing::TestWithParam<Comparison> {};

TEST_P(CompareLogTest, TellsByWhatBothHave) {
  const LogComparison found = CompareLog(GetParam().known, GetParam().log);
  EXPECT_EQ(found.verdict, GetParam().verdict);
  EXPECT_THAT(fmt::format("{}: {}", found.offset, found.why), HasSubstr(GetParam().why));
}

INSTANTIATE_TEST_SUITE_P(
    Rows, CompareLogTest,
    ::testing::Values(
        Comparison{"nothing_is_known", {}, {9, {}}, Verdict::kUnknown},
        Comparison{"all_are_there", {At(4), At(8)}, {9, {At(8), At(4)}}, Verdict::kSame},
        Comparison{"one_is_there", {At(4), At(8)}, {9, {At(4)}}, Verdict::kSame},
        Comparison{"all_are_deleted", {At(4), At(8)}, {9, {}}, Verdict::kUnknown},
        Comparison{
            "one_is_there_that_was_behind_the_end", {At(8)}, {9, {At(8)}, 5}, Verdict::kSame},
        Comparison{"none_is_there_that_was_behind_the_end",
                   {At(4), At(8)},
                   {9, {At(4)}, 5},
                   Verdict::kOther,
                   "8: it ended at offset 5, and a record of "},
        Comparison{"one_has_another_time",
                   {At(4), At(8)},
                   {9, {Later(At(4)), At(8)}},
                   Verdict::kOther,
                   "4: a record of 2023-11-14T22:13:20.004Z was read here, and now there is "
                   "another one, of 2023-11-14T22:13:20.005Z"},
        Comparison{"one_has_other_bytes", {At(4)}, {9, {At(4, 1)}}, Verdict::kOther, "4: a record"},
        Comparison{"one_has_another_content",
                   {Content(8, kRule | 1)},
                   {9, {Content(8, kRule | 2)}},
                   Verdict::kOther,
                   "8: a record"},
        Comparison{"contents_by_two_rules",
                   {Content(8, kRule | 1)},
                   {9, {Content(8, (8ull << 32) | 2)}},
                   Verdict::kSame},
        Comparison{
            "checksums_that_only_one_has", {At(8)}, {9, {Content(8, kRule | 1)}}, Verdict::kSame},
        Comparison{"it_ends_at_the_newest",
                   {At(8), At(4)},
                   {8, {At(4)}},
                   Verdict::kOther,
                   "8: it ends at offset 8"}),
    [](const auto& row) { return row.param.name; });

struct Sighting {
  std::chrono::milliseconds at;
  bool is_short;
  bool believed = false;
};

// What a deposed leader says for a moment is not believed.
TEST(ShortEnds, AreBelievedOnceTheyWereFoundForTenSecondsAndNoOtherOneMeanwhile) {
  const std::vector<Sighting> rows[] = {
      {{0s, true}, {1s, true}, {9999ms, true}, {10s, true, true}, {11s, true, true}},
      {{0s, true}, {10s, true, true}},
      {{0s, true}, {1s, false}, {10s, true}, {20s, true, true}},
      {{0s, true}, {121s, true}, {131s, true, true}},  // not asked for so long
  };
  for (const auto& row : rows) {
    ShortEnds ends;
    for (const Sighting& one : row) {
      EXPECT_FALSE(ends.Believed({"orders", 4}, kNow)) << "another partition";
      if (!one.is_short) ends.OnLongEnough(kWhere);
      if (!one.is_short) continue;
      EXPECT_EQ(ends.Believed(kWhere, kNow + one.at), one.believed)
          << &row - rows << " after " << one.at.count() << " ms";
    }
  }
}

TEST(TopicReplaced, NamesTheRecordAndBothStores) {
  const Error error = TopicReplaced("g", kWhere, CompareLog({At(4)}, {9, {At(4, 1)}}));
  EXPECT_EQ(error.code, "topic_replaced");
  for (const char* text :
       {"orders/3/4: the topic was recreated or truncated: a record of ",
        "--group g --topic orders:3 --reset-offsets --to-earliest --execute",
        "fencepost forget FILE --topic orders --partition 3 --from 0 --to 9223372036854775807 "}) {
    EXPECT_THAT(error.Line(), HasSubstr(text));
  }
}

TEST(LogSamples, SayThatARecordIsAnother) {
  LogSamples samples;
  samples.Begin(kWhere, At(4));
  const auto next = samples.Answered(kWhere, {.end = 9, .records = {At(4, 1)}}, kNow);
  EXPECT_EQ(next.compared.verdict, Verdict::kOther);
  EXPECT_EQ(next.ask, std::nullopt);
  EXPECT_EQ(samples.Answered(kWhere, kLog, kNow).compared.verdict, Verdict::kSame)
      << "the question stays";
}

TEST(LogSamples, TakesTheFirstRecordOfAGroupAtOnce) {
  LogSamples samples;
  samples.Begin(kWhere, std::nullopt);
  EXPECT_EQ(samples.TextFor(kWhere, 5), "");
  EXPECT_TRUE(samples.Wants(kWhere, kNow));
  EXPECT_EQ(samples.Sampled(kWhere, At(4), kNow), std::nullopt) << "there is nothing to ask";
  EXPECT_EQ(samples.TextFor(kWhere, 5), Text(At(4), 5));
  EXPECT_FALSE(samples.Wants(kWhere, kLater - 1ms));
  EXPECT_TRUE(samples.Wants(kWhere, kLater));
}

TEST(LogSamples, TakesANewerRecordOnlyAfterTheOneBeforeItWasFoundUnchanged) {
  LogSamples samples;
  samples.Begin(kWhere, std::nullopt);
  samples.Sampled(kWhere, At(4), kNow);
  EXPECT_THAT(samples.Sampled(kWhere, At(90), kLater), Optional(4));
  EXPECT_FALSE(samples.Wants(kWhere, kLater + 1h)) << "while the question is open";
  EXPECT_EQ(samples.TextFor(kWhere, 100), Text(At(4), 100));
  EXPECT_EQ(samples.Answered(kWhere, kLog, kLater).ask, std::nullopt);
  EXPECT_EQ(samples.TextFor(kWhere, 100), Text(At(90), 100));
}

TEST(LogSamples, AsksForTheCommittedOneFirstAndCommitsItOn) {
  LogSamples samples;
  samples.Begin(kWhere, At(4));
  EXPECT_FALSE(samples.Wants(kWhere, kNow)) << "it is asked for";
  EXPECT_EQ(samples.Sampled(kWhere, At(6), kNow), std::nullopt);
  EXPECT_EQ(samples.TextFor(kWhere, 8), Text(At(4), 8));
  EXPECT_EQ(samples.Answered(kWhere, kLog, kNow).ask, std::nullopt);
  EXPECT_TRUE(samples.Wants(kWhere, kNow));
  EXPECT_THAT(samples.Sampled(kWhere, At(9), kNow), Optional(4));
}

TEST(LogSamples, AsksForAnOlderOneWhereTheNewerCannotTell) {
  LogSamples samples;
  samples.Begin(kWhere, At(4));
  samples.Answered(kWhere, kLog, kNow);
  samples.Sampled(kWhere, At(9), kNow);
  samples.Answered(kWhere, kLog, kNow);
  EXPECT_THAT(samples.Sampled(kWhere, At(20), kLater), Optional(9));
  EXPECT_THAT(samples.Answered(kWhere, kNoneLeft, kLater).ask, Optional(4));
  EXPECT_EQ(samples.TextFor(kWhere, 30), Text(At(4), 30));
  EXPECT_EQ(samples.Answered(kWhere, kNoneLeft, kLater).ask, std::nullopt);
  EXPECT_EQ(samples.TextFor(kWhere, 30), Text(At(20), 30)) << "there is no other";
}

// A topic is recreated and read in less than the time between two questions; then nothing comes.
TEST(LogSamples, AsksOnceMoreForTheNewestWhereRecordsWereReadAfterItAndNoMoreCome) {
  LogSamples samples;
  const auto quiet = kLater + LogSamples::kQuiet;
  samples.Begin(kWhere, std::nullopt);
  samples.Sampled(kWhere, At(4), kNow);
  EXPECT_EQ(samples.Unsampled(kWhere, 5, quiet), std::nullopt) << "nothing was read since";
  EXPECT_EQ(samples.Unsampled(kWhere, 30, quiet - 1ms), std::nullopt) << "a record may come";
  EXPECT_THAT(samples.Unsampled(kWhere, 30, quiet), Optional(4));
  EXPECT_FALSE(samples.Wants(kWhere, quiet + 1h)) << "while the question is open";
  EXPECT_EQ(samples.Answered(kWhere, kLog, quiet).ask, std::nullopt);
  EXPECT_EQ(samples.Unsampled(kWhere, 30, quiet + 1h), std::nullopt) << "once";
  EXPECT_THAT(samples.Unsampled(kWhere, 31, quiet + 1h), Optional(4));
  EXPECT_EQ(
      samples.Answered(kWhere, {.end = 40, .records = {At(4, 1)}}, quiet + 1h).compared.verdict,
      Verdict::kOther);
}

TEST(LogSamples, GivesTheNewestBelowTheOffsetAlsoWhenItGoesBack) {
  LogSamples samples;
  samples.Begin(kWhere, At(10));
  samples.Answered(kWhere, kLog, kNow);
  for (const Offset offset : {20, 30}) {
    samples.Sampled(kWhere, At(offset), kNow);
    samples.Answered(kWhere, kLog, kNow);
  }
  EXPECT_EQ(samples.TextFor(kWhere, 30), Text(At(20), 30));
  EXPECT_EQ(samples.TextFor(kWhere, 31), Text(At(30), 31));
  EXPECT_EQ(samples.TextFor(kWhere, 25), Text(At(20), 25)) << "of a transaction that comes again";
  EXPECT_EQ(samples.TextFor(kWhere, 10), "");
}

TEST(LogSamples, KeepsFewAndTheOldestForAnOffsetThatDoesNotMove) {
  LogSamples samples;
  samples.Begin(kWhere, At(10));
  samples.Answered(kWhere, kLog, kNow);
  for (Offset offset = 100; offset < 10'000; offset += 100) {
    samples.Sampled(kWhere, At(offset), kNow);
    samples.Answered(kWhere, kLog, kNow);
  }
  EXPECT_EQ(samples.TextFor(kWhere, 11), Text(At(10), 11));
  EXPECT_THAT(samples.Sampled(kWhere, At(10'001), kNow), Optional(9'900));
  std::size_t kept = 1;
  while (samples.Answered(kWhere, kNoneLeft, kNow).ask) ++kept;
  EXPECT_LE(kept, LogSamples::kKept);
}

TEST(LogSamples, WantsARecordSoonerWhenSomethingHasHappenedToTheTopics) {
  LogSamples samples;
  samples.Begin(kWhere, std::nullopt);
  samples.Sampled(kWhere, At(4), kNow);
  EXPECT_FALSE(samples.Wants(kWhere, kNow));
  samples.Hurry();
  EXPECT_TRUE(samples.Wants(kWhere, kNow));
}

TEST(LogSamples, KnowsNothingOfPartitionsThatAreNotAssigned) {
  LogSamples samples;
  EXPECT_FALSE(samples.Wants(kWhere, kNow));
  EXPECT_EQ(samples.Sampled(kWhere, At(4), kNow), std::nullopt);
  EXPECT_EQ(samples.Answered(kWhere, kLog, kNow).ask, std::nullopt);
  EXPECT_EQ(samples.TextFor(kWhere, 5), "");
}

TEST(LogSamples, IsSilentWhereTheBrokersTakeNoMetadata) {
  LogSamples samples;
  samples.Begin(kWhere, At(4));
  EXPECT_NE(samples.TextFor(kWhere, 5, {{.offset = 7, .attempts = 1}}), Text(At(4), 5));
  samples.Shorten();
  EXPECT_EQ(samples.TextFor(kWhere, 5, {{.offset = 7, .attempts = 1}}), Text(At(4), 5))
      << "without the failed records it may be short enough";
  samples.Shorten();
  EXPECT_EQ(samples.TextFor(kWhere, 5, {{.offset = 7, .attempts = 1}}), "");

  LogSamples other;  // without failures it is the sample that is too long
  other.Begin(kWhere, At(4));
  EXPECT_EQ(other.TextFor(kWhere, 5), Text(At(4), 5));
  other.Shorten();
  EXPECT_EQ(other.TextFor(kWhere, 5), "");
}

}  // namespace
}  // namespace fencepost::consumer
