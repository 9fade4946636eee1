// Which dead letters may be replayed, and as whom.
#include <gmock/gmock.h>

#include "consumer/cli/dlq/dlq_decide.h"
#include "tests/unit/cli/letters.h"

namespace fencepost::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const ReplayRules kById{.topics = {"orders"}};
const consumer::LedgerEntry kRow{.token = locking::Token(77),
                                 .crc = 1,
                                 .worker = "worker-2",
                                 .source = "orders/1/5",
                                 .completed_at = "2026-11-03T11:00:00.000Z"};

PlantedLetter Conflict() { return PlantedLetter().Set("fencepost-error-class", "id_conflict"); }

TEST(Replay, CarriesTheOriginalId) {
  const ReplayDecision decision = Decide(PlantedLetter().Read(), kById, std::nullopt);
  EXPECT_TRUE(decision.replay);
  EXPECT_EQ(decision.header_id, "o-17");
  EXPECT_THAT(decision.why, IsEmpty());
}

TEST(Replay, OfWhatTookEffectMeanwhileIsRefused) {
  for (const bool as_new_id : {false, true}) {
    ReplayRules rules = kById;
    rules.as_new_id = as_new_id;
    const ReplayDecision decision = Decide(PlantedLetter().Read(), rules, kRow);
    EXPECT_FALSE(decision.replay);
    EXPECT_EQ(decision.why,
              "id o-17 has taken effect: completed 2026-11-03T11:00:00.000Z by worker-2 from "
              "orders/1/5 under token 77");
  }
}

TEST(Replay, OfAnIdConflictNeedsANewId) {
  const ReplayDecision decision = Decide(Conflict().Read(), kById, kRow);
  EXPECT_FALSE(decision.replay);
  EXPECT_THAT(decision.why, AllOf(HasSubstr("id o-17 was processed with other content"),
                                  HasSubstr("orders/1/5"), HasSubstr("--as-new-id")));
}

TEST(Replay, OfAnIdConflictGetsTheSameNewIdEachTimeWhereItCounts) {
  ReplayRules rules = kById;
  rules.as_new_id = rules.accept_replay_ids = true;
  const ReplayDecision decision = Decide(Conflict().Read(), rules, kRow);
  EXPECT_TRUE(decision.replay);
  EXPECT_EQ(decision.header_id, "o-17:replay:orders.dead/0/7");
}

TEST(Replay, OfAnIdConflictWarnsWhereTheContentStillSaysTheId) {
  ReplayRules rules = kById;
  rules.as_new_id = true;
  const ReplayDecision decision = Decide(Conflict().Read(), rules, kRow);
  EXPECT_TRUE(decision.replay);
  EXPECT_THAT(decision.header_id, IsEmpty());
  EXPECT_THAT(decision.why, HasSubstr("its content still says id o-17"));
  rules.conflict_stops = true;
  EXPECT_FALSE(Decide(Conflict().Read(), rules, kRow).replay);
  EXPECT_THAT(Decide(Conflict().Read(), rules, kRow).why, HasSubstr("stop the pipeline"));
}

TEST(Replay, WithoutAnIdNeedsANewOne) {
  const StoredLetter letter = PlantedLetter().Drop("fencepost-record-id").Read();
  ReplayRules rules = kById;
  for (const bool accepted : {false, true}) {
    rules.accept_replay_ids = accepted;
    EXPECT_FALSE(Decide(letter, rules, std::nullopt).replay);
    EXPECT_THAT(Decide(letter, rules, std::nullopt).why,
                AllOf(HasSubstr("no record id"), HasSubstr("--as-new-id")));
  }
  rules.as_new_id = true;
  EXPECT_EQ(Decide(letter, rules, std::nullopt).header_id, ":replay:orders.dead/0/7");
}

TEST(Replay, OfAPositionNeedsReplayIdsOrANewId) {
  const StoredLetter letter = PlantedLetter().Read();
  ReplayRules rules = kById;
  rules.position_ids = true;
  EXPECT_THAT(Decide(letter, rules, std::nullopt).why,
              AllOf(HasSubstr("record_id is position"), HasSubstr("accept_replay_ids: true")));
  rules.accept_replay_ids = true;
  EXPECT_EQ(Decide(letter, rules, std::nullopt).header_id, "o-17");
  rules.accept_replay_ids = false;
  rules.as_new_id = true;
  EXPECT_TRUE(Decide(letter, rules, std::nullopt).replay);
  EXPECT_THAT(Decide(letter, rules, std::nullopt).header_id, IsEmpty());
}

TEST(Replay, ToATopicThatThePipelineDoesNotReadIsRefused) {
  const StoredLetter letter = PlantedLetter().Set("fencepost-topic", "bills").Read();
  EXPECT_THAT(
      Decide(letter, kById, std::nullopt).why,
      HasSubstr("came from bills, which the pipeline does not read (kafka.topics: orders)"));
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
