#include "consumer/outputs/ledger/ledger.h"
#include "consumer/flow/ports/ledger_duplicate.h"
#include "consumer/outputs/rows/batch_rows.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/outputs/postgres/postgres_connection.h"
#include "consumer/outputs/rows/row_sql.h"
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
  for (const char* bad : {"", ".", "a.", ".a", "a..b", "a.b.c", "\"a", "\"a\"b", "\"\"", "`a"}) {
    EXPECT_FALSE(SplitTableName(bad)) << bad;
  }
  EXPECT_THAT(SplitTableName("`a.b`.`c``d`").value(), ElementsAre("a.b", "c`d"));
  EXPECT_THAT(SplitTableName("2026_orders").value(), ElementsAre("2026_orders"));
}

TEST(Ledger, QuotesATableInWordsWhereItsLettersNeedIt) {
  EXPECT_EQ(TableInWords({"Shop", "effects_2"}), "Shop.effects_2");
  EXPECT_EQ(TableInWords({"order-events"}), R"("order-events")");
  EXPECT_EQ(TableInWords({"2026_orders"}, '`'), "`2026_orders`");
}

TEST(Ledger, AsksForContentFirstThenSourceThenToken) {
  const Batch batch{{.id = "a", .token = 50, .crc = 7}};
  const auto judged = [&](std::uint64_t token, const char* source, locking::ContentCrc crc) {
    return DuplicateOrConflict({.token = locking::Token(token), .crc = crc, .source = source},
                               batch.items()[0], "t/0/1")
        .result;
  };
  EXPECT_EQ(judged(60, "t/0/1", 8), kIdConflict);
  EXPECT_EQ(judged(60, "t/0/2", 8), kIdConflict);
  EXPECT_EQ(judged(60, "t/0/1", 7), kOwnEarlier);
  EXPECT_EQ(judged(51, "t/0/2", 7), kFenced);
  EXPECT_EQ(judged(50, "t/0/2", 7), kDuplicate);
  EXPECT_EQ(judged(49, "t/0/2", 7), kDuplicate);
}

TEST(Ledger, ARecordThatMakesNoRowIsInConflictWithNone) {
  const Batch batch{{.id = "a", .token = 50, .crc = 7}};
  constexpr locking::ContentCrc kOtherRule = (locking::ContentCrc{1} << 32) + 7;
  const auto judged = [&](std::uint64_t token, locking::ContentCrc crc, bool makes_rows) {
    return DuplicateOrConflict({.token = locking::Token(token), .crc = crc, .source = "t/0/2"},
                               batch.items()[0], "t/0/1", makes_rows)
        .result;
  };
  EXPECT_EQ(judged(0, 7, true), kDuplicate);
  EXPECT_EQ(judged(0, 7, false), kDuplicate);
  EXPECT_EQ(judged(0, 8, true), kNotWritten) << "the row gives way";
  EXPECT_EQ(judged(0, kOtherRule, true), kNotWritten) << "the content may be another";
  EXPECT_EQ(judged(0, 8, false), kNoOutput);
  EXPECT_EQ(judged(49, 8, false), kNoOutput);
  EXPECT_EQ(judged(49, 8, true), kIdConflict);
  EXPECT_EQ(judged(49, 7, false), kDuplicate);
}

TEST(Ledger, TellsTheTokenOfTheRowThatStands) {
  const Batch batch{{.id = "a", .token = 50, .crc = 7}};
  for (const char* source : {"t/0/1", "t/0/2"}) {
    const WriteOutcome outcome = DuplicateOrConflict(
        {.token = locking::Token(51), .crc = 7, .source = source}, batch.items()[0], "t/0/1");
    EXPECT_EQ(outcome.stands, locking::Token(51)) << source;
  }
}

TEST(Ledger, ForgetsOnlyRowsBelowWhatIsCommittedOrOfOtherTopics) {
  const PruneScope scope{.keep = std::chrono::seconds(1),
                         .committed = {{{"orders", 3}, 10}, {{"a/b", 0}, 10}},
                         .topics = {"orders", "a/b"}};
  for (const char* source : {"orders/3/0", "orders/3/9", "former/3/10"}) {
    EXPECT_TRUE(MayPrune(scope, source)) << source;
  }
  PruneScope by_pattern = scope;
  by_pattern.topics = {"orders", "^a/.*"};
  EXPECT_FALSE(MayPrune(by_pattern, "a/c/0/1")) << "it is read";
  EXPECT_TRUE(MayPrune(by_pattern, "b/0/1"));
  for (const char* source : {"orders/3/10", "orders/33/1", "orders/4/1", "orders/3/-1", "orders/3/",
                             "orders/3/1x", "a/b/0/9", "/3/1", "3/1", "orders", "", "former/x/1"}) {
    EXPECT_FALSE(MayPrune(scope, source)) << source;
  }
}

TEST(Ledger, PrunesByAClockThatNoStepForwardMoves) {
  using std::chrono::hours;
  const locking::Now start = locking::ReadClocks();
  const PruneClock clock(start);
  EXPECT_EQ(clock.At({start.boot + hours(1), start.wall + hours(1)}), start.wall + hours(1));
  EXPECT_EQ(clock.At({start.boot + hours(1), start.wall + hours(999)}), start.wall + hours(1));
  EXPECT_EQ(clock.At({start.boot + hours(1), start.wall - hours(9)}), start.wall - hours(9));
}

TEST(BatchRows, StandInByteOrderOfTheirIdsWhateverTheOrderOfTheItems) {
  std::vector<std::string> ids{"", "A", "B", "a", "\xc3\xa4", "\xf0\x9f\x98\x80"};
  std::vector<std::string> shuffled = ids;
  std::mt19937 random(7);
  BatchRows rows(OneShape({.columns = OrderColumns()}), "w");
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
      EXPECT_EQ(rows.of(0).cell(row, 0), ids[row]);
      EXPECT_EQ(rows.source(row), "orders/3/5");
      EXPECT_EQ(rows.Find(ids[row]), row);
    }
    EXPECT_EQ(rows.Find("b"), std::nullopt);
  }
}

TEST(BatchRows, SayWhatASelectorRefusesAndTellNullFromEmpty) {
  const Batch bad{{.id = "a", .value = R"({"y":1})"}};
  const Batch batch{{.id = "b", .value = R"({"x":""})"},
                    {.id = "c", .value = R"({"x":"1","z":null})"}};
  BatchRows rows(OneShape({.columns = Columns({{"one", "json:/x"}, {"two", "json:/z?"}})}), "w");
  std::vector<WriteOutcome> outcomes(1);
  rows.Fill(bad.items(), outcomes);
  EXPECT_EQ(outcomes[0].result, kBadRecord);
  EXPECT_THAT(outcomes[0].detail, ::testing::StartsWith("column one from json:/x: "));
  outcomes.assign(2, {});
  rows.Fill(batch.items(), outcomes);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows.of(0).cell(0, 0), "");
  EXPECT_EQ(rows.of(0).cell(0, 1), std::nullopt);
  EXPECT_EQ(rows.of(0).cell(1, 0), "1");
}

TEST(BatchRowsDeathTest, TwoRecordsOfOneIdAreAProgrammingError) {
  const Batch batch{{.id = "a", .offset = 1}, {.id = "a", .offset = 2}};
  BatchRows rows(OneShape({.columns = OrderColumns()}), "w");
  std::vector<WriteOutcome> outcomes(2);
  EXPECT_DEATH(rows.Fill(batch.items(), outcomes), "");
}

TEST(PgFailure, OnlyWhatSpeaksOfTheServerIsKnownToBeNoRecordsDoing) {
  const auto failure = [](const char* state) {
    return FailureOf({.kind = PgFailure::Kind::kServer, .sqlstate = state, .text = ""});
  };
  for (const char* state : {"22P02", "23505", "P0001", "SH001", "54000", "42P01", "42501", "42601",
                            "XX000", "0A000", "HV000", "F0000"}) {
    EXPECT_EQ(failure(state), WriteFailure::kRefused) << state;
  }
  for (const char* state : {"40001", "40P01", "53100", "55000", "57P01", "58030", "25006", "08006",
                            "28000", "3D000", "XX001"}) {
    EXPECT_EQ(failure(state), WriteFailure::kUnavailable) << state;
  }
  EXPECT_EQ(failure("55P03"), WriteFailure::kLocked);
  EXPECT_EQ(failure("57014"), WriteFailure::kTooSlow);
  EXPECT_EQ(failure("25P04"), WriteFailure::kTooSlow);
  EXPECT_EQ(FailureOf({.kind = PgFailure::Kind::kTimeout}), WriteFailure::kClientTimeout);
  EXPECT_EQ(FailureOf({.kind = PgFailure::Kind::kConnection}), WriteFailure::kUnavailable);
}

TEST(PgFailure, TellsWhichRuleBetweenRowsIsBroken) {
  using enum OutputError::Between;
  const auto between = [](const char* state) {
    return ToOutputError({PgFailure::Kind::kServer, state, "what"}, "db:5432/shop").between;
  };
  for (const char* state : {"23505", "23P01"}) EXPECT_EQ(between(state), kUnique) << state;
  for (const char* state : {"23503", "23001"}) EXPECT_EQ(between(state), kForeignKey) << state;
  for (const char* state : {"23502", "23514", "22P02", "P0001", "40001", "55P03"}) {
    EXPECT_EQ(between(state), kNone) << state;
  }
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
  EXPECT_TRUE(error("28P01").error.Line().starts_with("db:5432/shop: what; check the dsn's user"));
}

}  // namespace
}  // namespace fencepost::consumer
