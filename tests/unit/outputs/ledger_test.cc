#include "consumer/outputs/ledger.h"
#include "consumer/outputs/batch_rows.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/outputs/postgres_connection.h"
#include "tests/component/outputs/batch.h"

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;
using enum WriteResult;

TEST(Ledger, QuotesAnyTextAsOneIdentifier) {
  EXPECT_EQ(QuoteIdentifier("Effects"), R"("Effects")");
  EXPECT_EQ(QuoteIdentifier(R"(a"; DROP TABLE b;--)"), R"("a""; DROP TABLE b;--")");
}

TEST(Ledger, SplitsATableNameAtDotsOutsideOfQuotes) {
  EXPECT_THAT(SplitTableName("effects").value(), ElementsAre("effects"));
  EXPECT_THAT(SplitTableName("Shop.Effects").value(), ElementsAre("Shop", "Effects"));
  EXPECT_THAT(SplitTableName(R"("a.b"."c""d")").value(), ElementsAre("a.b", "c\"d"));
  for (const char* bad : {"", ".", "a.", ".a", "a..b", "a.b.c", "\"a", "\"a\"b", "\"\""}) {
    EXPECT_FALSE(SplitTableName(bad)) << bad;
  }
}

TEST(Ledger, AsksForContentFirstThenSourceThenToken) {
  const Batch batch{{.id = "a", .token = 50, .crc = 7}};
  const auto judged = [&](std::uint64_t token, const char* source, std::int64_t crc) {
    return Classify({.token = token, .source = source, .content_crc = crc}, batch.items()[0],
                    "t/0/1")
        .result;
  };
  EXPECT_EQ(judged(60, "t/0/1", 8), kIdConflict);
  EXPECT_EQ(judged(60, "t/0/2", 8), kIdConflict);
  EXPECT_EQ(judged(60, "t/0/1", 7), kOwnEarlier);
  EXPECT_EQ(judged(51, "t/0/2", 7), kFenced);
  EXPECT_EQ(judged(50, "t/0/2", 7), kDuplicate);
  EXPECT_EQ(judged(49, "t/0/2", 7), kDuplicate);
}

TEST(BatchRows, StandInByteOrderOfTheirIdsWhateverTheOrderOfTheItems) {
  std::vector<std::string> ids{"", "A", "B", "a", "\xc3\xa4", "\xf0\x9f\x98\x80"};
  std::vector<std::string> shuffled = ids;
  std::mt19937 random(7);
  BatchRows rows(OrderColumns(), "w");
  for (int round = 0; round < 20; ++round) {
    std::ranges::shuffle(shuffled, random);
    Batch batch;
    for (const std::string& id : shuffled) batch.Add({.id = id, .offset = 5});
    std::vector<WriteOutcome> outcomes(ids.size());
    rows.Fill(batch.items(), outcomes);
    ASSERT_EQ(rows.size(), ids.size());
    for (std::size_t row = 0; row < ids.size(); ++row) {
      EXPECT_EQ(rows.item(row).record_id, ids[row]);
      EXPECT_EQ(shuffled[rows.index(row)], ids[row]);
      EXPECT_EQ(rows.cell(row, 0), ids[row]);
      EXPECT_EQ(rows.source(row), "orders/3/5");
      EXPECT_EQ(rows.Find(ids[row], 0, rows.size()), row);
    }
    EXPECT_EQ(rows.Find("b", 0, rows.size()), std::nullopt);
    EXPECT_EQ(rows.Find("A", 2, rows.size()), std::nullopt) << "outside of the range";
  }
}

TEST(BatchRows, LeaveOutWhatASelectorRefusesAndTellNullFromEmpty) {
  const Batch batch{{.id = "b", .value = R"({"x":""})"},
                    {.id = "a", .value = R"({"y":1})"},
                    {.id = "c", .value = R"({"x":"1","z":null})"}};
  BatchRows rows(Columns({{"one", "json:/x"}, {"two", "json:/z?"}}), "w");
  std::vector<WriteOutcome> outcomes(3);
  rows.Fill(batch.items(), outcomes);
  EXPECT_EQ(outcomes[1].result, kBadRecord);
  EXPECT_THAT(outcomes[1].detail, ::testing::StartsWith("column one from json:/x: "));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows.cell(0, 0), "");
  EXPECT_EQ(rows.cell(0, 1), std::nullopt);
  EXPECT_EQ(rows.cell(1, 0), "1");
}

TEST(BatchRowsDeathTest, TwoRecordsOfOneIdAreAProgrammingError) {
  const Batch batch{{.id = "a", .offset = 1}, {.id = "a", .offset = 2}};
  BatchRows rows(OrderColumns(), "w");
  std::vector<WriteOutcome> outcomes(2);
  EXPECT_DEATH(rows.Fill(batch.items(), outcomes), "");
}

TEST(BatchRows, TextIsUtf8WithoutNul) {
  EXPECT_TRUE(BatchRows::IsText("gr\xc3\xbc\xc3\x9f dich"));
  EXPECT_TRUE(BatchRows::IsText(""));
  EXPECT_FALSE(BatchRows::IsText("\xff"));
  EXPECT_FALSE(BatchRows::IsText(std::string_view("a\0b", 3)));
}

TEST(PgFailure, OnlyTheDataOfARecordAndWhatIsRaisedOnPurposeMakeItBad) {
  const auto refuses = [](const char* state) {
    return RefusesRecord({PgFailure::Kind::kServer, state, ""});
  };
  for (const char* state : {"22P02", "22001", "22021", "23505", "23502", "23503", "P0001", "P0002",
                            "P0004", "SH001", "99001", "54000"}) {
    EXPECT_TRUE(refuses(state)) << state;
  }
  for (const char* state : {"40001", "40P01", "42P01", "42501", "42804", "53100", "55P03", "57014",
                            "57P01", "25006", "08006", "54023", "XX000", "72000", "F0000", ""}) {
    EXPECT_FALSE(refuses(state)) << state;
  }
  EXPECT_FALSE(RefusesRecord({PgFailure::Kind::kConnection, "", ""}));
}

TEST(PgFailure, SaysWhatToDo) {
  const auto error = [](const char* state) {
    return ToOutputError({PgFailure::Kind::kServer, state, "what"}, "db:5432/shop");
  };
  EXPECT_EQ(error("42501").error.code, "output_denied");
  EXPECT_EQ(error("42P01").error.code, "output_schema");
  EXPECT_EQ(error("53100").error.code, "output_full");
  EXPECT_EQ(error("25006").error.code, "output_read_only");
  EXPECT_EQ(error("57P01").error.code, "output_unavailable");
  EXPECT_TRUE(error("40P01").retry_at_once);
  EXPECT_TRUE(error("40001").retry_at_once);
  EXPECT_FALSE(error("55P03").retry_at_once);
  EXPECT_TRUE(error("28P01").error.Line().starts_with("db:5432/shop: what; check user"));
}

}  // namespace
}  // namespace fencepost::consumer
