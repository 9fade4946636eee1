// Which dead letters may be replayed, and as whom.
#include <gmock/gmock.h>

#include "consumer/cli/dlq/dlq_decide.h"
#include "tests/unit/cli/letters.h"

namespace fencepost::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Rules : consumer::PipelineOptions {
  bool as_new_id = false;
  Rules() {
    kafka.topics = {"orders"};
    identity.record_id.front().kind = consumer::Selector::Kind::kJson;
    on_id_conflict = consumer::OnBad::kDeadLetter;
  }
};
const consumer::LedgerEntry kRow{.token = locking::Token(77),
                                 .crc = 1,
                                 .worker = "worker-2",
                                 .source = "orders/1/5",
                                 .completed_at = "2026-11-03T11:00:00.000Z"};

ReplayDecision Decided(const StoredLetter& letter, const Rules& rules,
                       const std::optional<consumer::LedgerEntry>& row) {
  return Decide(letter, rules, rules.as_new_id, row);
}
PlantedLetter Conflict() { return PlantedLetter().Set("fencepost-error-class", "id_conflict"); }

TEST(Replay, CarriesTheOriginalId) {
  const ReplayDecision decision = Decided(PlantedLetter().Read(), Rules(), std::nullopt);
  EXPECT_TRUE(decision.replay);
  EXPECT_EQ(decision.header_id, "o-17");
  EXPECT_THAT(decision.why, IsEmpty());
}

TEST(Replay, OfWhatTookEffectMeanwhileIsRefused) {
  for (const bool as_new_id : {false, true}) {
    Rules rules;
    rules.as_new_id = as_new_id;
    const ReplayDecision decision = Decided(PlantedLetter().Read(), rules, kRow);
    EXPECT_FALSE(decision.replay);
    EXPECT_EQ(decision.why,
              "id o-17 has taken effect: completed 2026-11-03T11:00:00.000Z by worker-2 from "
              "orders/1/5 under token 77");
  }
}

TEST(Replay, IsOfWhatNothingWasWrittenFor) {
  consumer::LedgerEntry nothing = kRow;
  nothing.token = locking::Token();
  const StoredLetter letter = PlantedLetter().Read();
  EXPECT_TRUE(Decided(letter, Rules(), nothing).replay) << "that of another record";
  nothing.source = letter.origin.Text();
  EXPECT_THAT(Decided(letter, Rules(), nothing).why, HasSubstr("was done, and made no row"));
  Rules rules;
  rules.identity.record_id.front().kind = consumer::Selector::Kind::kPosition;
  rules.identity.accept_replay_ids = true;
  EXPECT_TRUE(Decided(letter, rules, nothing).replay) << "by position that is what it waits for";
  rules.ledger_keep = std::chrono::hours(1);
  EXPECT_THAT(Decided(letter, rules, kRow).why, HasSubstr("ledger.keep has passed"));
  rules.as_new_id = true;
  EXPECT_TRUE(Decided(letter, rules, kRow).replay);
  EXPECT_THAT(Decided(letter, rules, kRow).header_id, IsEmpty()) << "a position has no other name";
}

TEST(Replay, OfAnIdConflictNeedsANewId) {
  const ReplayDecision decision = Decided(Conflict().Read(), Rules(), kRow);
  EXPECT_FALSE(decision.replay);
  EXPECT_THAT(decision.why, AllOf(HasSubstr("id o-17 was processed with other content"),
                                  HasSubstr("orders/1/5"), HasSubstr("--as-new-id")));
}

TEST(Replay, OfAnIdConflictGetsTheSameNewIdEachTimeWhereItCounts) {
  Rules rules;
  rules.as_new_id = rules.identity.accept_replay_ids = true;
  const ReplayDecision decision = Decided(Conflict().Read(), rules, kRow);
  EXPECT_TRUE(decision.replay);
  EXPECT_EQ(decision.header_id, "o-17:replay:orders.dead/0/7");
}

TEST(Replay, OfAnIdConflictWarnsWhereTheContentStillSaysTheId) {
  Rules rules;
  rules.as_new_id = true;
  const ReplayDecision decision = Decided(Conflict().Read(), rules, kRow);
  EXPECT_TRUE(decision.replay);
  EXPECT_THAT(decision.header_id, IsEmpty());
  EXPECT_THAT(decision.why, HasSubstr("its content still says id o-17"));
  rules.on_id_conflict = consumer::OnBad::kStop;
  EXPECT_FALSE(Decided(Conflict().Read(), rules, kRow).replay);
  EXPECT_THAT(Decided(Conflict().Read(), rules, kRow).why, HasSubstr("stop the pipeline"));
}

TEST(Replay, WithoutAnIdNeedsANewOne) {
  const StoredLetter letter = PlantedLetter().Drop("fencepost-record-id").Read();
  Rules rules;
  for (const bool accepted : {false, true}) {
    rules.identity.accept_replay_ids = accepted;
    EXPECT_FALSE(Decided(letter, rules, std::nullopt).replay);
    EXPECT_THAT(Decided(letter, rules, std::nullopt).why,
                AllOf(HasSubstr("no record id"), HasSubstr("--as-new-id")));
  }
  rules.as_new_id = true;
  EXPECT_EQ(Decided(letter, rules, std::nullopt).header_id, ":replay:orders.dead/0/7");
}

TEST(Replay, OfAPositionNeedsReplayIdsOrANewId) {
  const StoredLetter letter = PlantedLetter().Read();
  Rules rules;
  rules.identity.record_id.front().kind = consumer::Selector::Kind::kPosition;
  EXPECT_THAT(Decided(letter, rules, std::nullopt).why,
              AllOf(HasSubstr("record_id is position"), HasSubstr("accept_replay_ids: true")));
  rules.identity.accept_replay_ids = true;
  EXPECT_EQ(Decided(letter, rules, std::nullopt).header_id, "o-17");
  rules.identity.accept_replay_ids = false;
  rules.as_new_id = true;
  EXPECT_TRUE(Decided(letter, rules, std::nullopt).replay);
  EXPECT_THAT(Decided(letter, rules, std::nullopt).header_id, IsEmpty());
}

TEST(Replay, ToATopicThatThePipelineDoesNotReadIsRefused) {
  const StoredLetter letter = PlantedLetter().Set("fencepost-topic", "bills").Read();
  EXPECT_THAT(
      Decided(letter, Rules(), std::nullopt).why,
      HasSubstr("came from bills, which the pipeline does not read (kafka.topics: orders)"));
}

TEST(Replay, ToATopicThatAPatternMatchesIsNotRefused) {
  const StoredLetter letter = PlantedLetter().Set("fencepost-topic", "bills").Read();
  Rules rules;
  rules.kafka.topics = {"orders", "^bil.*"};
  EXPECT_TRUE(Decided(letter, rules, std::nullopt).replay);
  rules.kafka.topics = {"orders", "^bil"};
  EXPECT_THAT(Decided(letter, rules, std::nullopt).why,
              HasSubstr("does not read (kafka.topics: orders, ^bil)"));
}

TEST(Replay, LeavesOnlyTheRecordsOwnHeaders) {
  const StoredLetter letter = PlantedLetter().Read();
  const auto own = OwnHeaders(letter.stored.record);
  ASSERT_EQ(own.size(), 1u);
  EXPECT_EQ(own[0].name, "source");
  EXPECT_EQ(own[0].value, "shop");
}

}  // namespace
}  // namespace fencepost::cli
