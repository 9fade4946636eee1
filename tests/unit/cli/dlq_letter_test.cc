#include "consumer/cli/dlq/dlq_letter.h"

#include <gmock/gmock.h>

#include "consumer/cli/shared/bytes_text.h"
#include "consumer/cli/shared/moments.h"
#include "tests/unit/cli/letters.h"

namespace fencepost::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Letter, IsReadFromItsHeaders) {
  const StoredLetter letter = PlantedLetter().Read();
  EXPECT_EQ(letter.at().Text(), "orders.dead/0/7");
  EXPECT_EQ(letter.origin.Text(), "orders/3/1042");
  EXPECT_EQ(letter.record_id, "o-17");
  EXPECT_EQ(letter.error_class, "404");
  EXPECT_EQ(MomentText(*letter.failed_when), "2026-11-03T10:00:00.000Z");
}

TEST(Letter, OfTheLastHeaderOfANameIsWhatCounts) {
  PlantedLetter text;
  text.headers.insert(text.headers.begin(), {"fencepost-record-id", "an older one"});
  EXPECT_EQ(text.Read().record_id, "o-17");
}

TEST(Letter, IsNoneWithoutWhatNamesItsOrigin) {
  EXPECT_THAT(ReadLetter(PlantedLetter().Drop("fencepost-topic").Stored()).error(),
              HasSubstr("no fencepost-topic"));
  EXPECT_THAT(ReadLetter(PlantedLetter().Drop("fencepost-pipeline").Stored()).error(),
              HasSubstr("fencepost-pipeline"));
  EXPECT_THAT(ReadLetter(PlantedLetter().Set("fencepost-offset", "x1").Stored()).error(),
              HasSubstr("orders/3/x1"));
  EXPECT_FALSE(ReadLetter(PlantedLetter().Set("fencepost-partition", "-1").Stored()));
}

TEST(Letter, MatchesOnlyWhereEveryFilterHolds) {
  const StoredLetter letter = PlantedLetter().Read();
  const LetterFilter all{.pipeline = "orders"};
  EXPECT_TRUE(Matches(all, letter));
  EXPECT_FALSE(Matches({.pipeline = "bills"}, letter));
  const auto with = [&](auto change) {
    LetterFilter filter = all;
    change(filter);
    return Matches(filter, letter);
  };
  EXPECT_TRUE(with([](auto& f) { f.error_class = "404"; }));
  EXPECT_FALSE(with([](auto& f) { f.error_class = "4xx"; }));
  EXPECT_TRUE(with([](auto& f) { f.id = "o-17"; }));
  EXPECT_FALSE(with([](auto& f) { f.id = "o-1"; }));
  EXPECT_FALSE(with([](auto& f) { f.topic = "bills"; }));
  EXPECT_TRUE(with([](auto& f) { f.partition = 3; }));
  EXPECT_FALSE(with([](auto& f) { f.partition = 0; }));
  EXPECT_FALSE(with([](auto& f) { f.offset = 1041; }));
  const WallTime failed = *letter.failed_when;
  EXPECT_TRUE(with([&](auto& f) { f.since = failed; }));
  EXPECT_FALSE(with([&](auto& f) { f.since = failed + Millis(1); }));
  EXPECT_FALSE(with([&](auto& f) { f.until = failed; }));
  EXPECT_TRUE(with([&](auto& f) { f.until = failed + Millis(1); }));
}

TEST(Letter, WithoutATimeIsOutsideOfAnyBound) {
  const StoredLetter letter = PlantedLetter().Set("fencepost-failed-at", "soon").Read();
  EXPECT_FALSE(Matches({.pipeline = "orders", .since = WallTime()}, letter));
  EXPECT_TRUE(Matches({.pipeline = "orders"}, letter));
}

TEST(Letter, IsALine) {
  const std::string line =
      "orders.dead/0/7  2026-11-03T10:00:00.000Z  404  attempts 5  id o-17  from "
      "orders/3/1042  HTTP 404 from the service";
  EXPECT_EQ(LetterLine(PlantedLetter().Read(), LetterEffect::kNone), line);
  EXPECT_EQ(LetterLine(PlantedLetter().Read(), LetterEffect::kUnknown), line);
  EXPECT_EQ(LetterLine(PlantedLetter().Read(), LetterEffect::kTaken),
            line + "  [has taken effect since]");
}

TEST(Letter, CannotSteerTheTerminal) {
  const std::string line = LetterLine(
      PlantedLetter().Set("fencepost-error", "a\nb\x1b[31m\xff").Read(), LetterEffect::kNone);
  EXPECT_THAT(line, HasSubstr("a?b?[31m?"));
  PlantedLetter text;
  text.value = "\x1b]0;x\x07";
  EXPECT_THAT(LetterText(text.Read(), LetterEffect::kNone), Not(HasSubstr("\x1b")));
}

TEST(Letter, ShowsEverything) {
  PlantedLetter text;
  text.value = "line one\nline two";
  text.headers.push_back({"binary", std::string("\x00\xff", 2)});
  text.headers.push_back({"empty", std::nullopt});
  EXPECT_EQ(LetterText(text.Read(), LetterEffect::kNone),
            "orders.dead/0/7\n"
            "  from        orders/3/1042\n"
            "  failed at   2026-11-03T10:00:00.000Z\n"
            "  class       404\n"
            "  error       HTTP 404 from the service\n"
            "  attempts    5\n"
            "  record id   o-17\n"
            "  pipeline    orders\n"
            "  timestamp   2026-11-03T07:13:20.000Z\n"
            "  key         \"customer-17\"\n"
            "  header      source: \"shop\"\n"
            "  header      binary: base64:AP8=\n"
            "  header      empty: null\n"
            "  value       line one\n"
            "              line two\n");
}

TEST(Letter, IsJsonWithEveryByte) {
  PlantedLetter text;
  text.key = std::nullopt;
  text.value = std::string("\x00\xff", 2);
  const nlohmann::json json =
      LetterJson(text.Drop("fencepost-record-id").Read(), LetterEffect::kUnknown, true);
  EXPECT_EQ(json["topic"], "orders.dead");
  EXPECT_EQ(json["offset"], 7);
  EXPECT_EQ(json["source"]["offset"], 1042);
  EXPECT_EQ(json["attempts"], 5);
  EXPECT_TRUE(json["record_id"].is_null());
  EXPECT_TRUE(json["key"].is_null());
  EXPECT_TRUE(json["took_effect"].is_null());
  EXPECT_EQ(json["value"]["base64"], "AP8=");
  ASSERT_EQ(json["headers"].size(), 1u);
  EXPECT_EQ(json["headers"][0]["name"], "source");
  EXPECT_FALSE(LetterJson(text.Read(), LetterEffect::kNone, false).contains("value"));
}

TEST(Bytes, AreCutBetweenCharacters) {
  EXPECT_EQ(Quoted("äöü", 3), "\"ä…\"");
  EXPECT_EQ(Printable("äöü", 3), "ä…");
  EXPECT_EQ(Printable("a\xc2\x9b"
                      "31mb"),
            "a?31mb")
      << "a control sequence in two bytes";
  EXPECT_EQ(Quoted(std::nullopt), "null");
  EXPECT_EQ(Quoted("a\tb\n"), "\"a\\tb\\n\"");
}

}  // namespace
}  // namespace fencepost::cli
