#include "consumer/pipeline/readiness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

PipelineState Well() {
  return {.output = {PartPhase::kUp}, .dead_letters = {PartPhase::kUp}, .kafka = {PartPhase::kUp}};
}

std::vector<std::string> Sentences(const PipelineState& state) {
  std::vector<std::string> sentences;
  for (const Reason& reason : ReasonsOf(state)) sentences.push_back(Sentence(reason));
  return sentences;
}

TEST(Readiness, HasNoReasonWhereAllIsWell) { EXPECT_THAT(Sentences(Well()), IsEmpty()); }

// It passes, and a lost quorum may not: hidden, the one that someone must end would show too late.
TEST(Readiness, StillShowsALostQuorumWhileTheGroupIsRebalancing) {
  PipelineState state = Well();
  state.kafka = {PartPhase::kRebalancing};
  state.lock = Reason{.code = ReasonCode::kNoQuorum};
  EXPECT_THAT(Sentences(state),
              ElementsAre("lock: no quorum of lock nodes", "kafka: the group is rebalancing"));
  EXPECT_EQ(WhyNotReady(ReasonsOf(state)),
            "lock: no quorum of lock nodes; kafka: the group is rebalancing");
}

TEST(Readiness, TellsEveryReasonTheGravestFirst) {
  const PipelineState state{.failure = "the output is of another store",
                            .lock = Reason{.code = ReasonCode::kLockClock},
                            .output = {PartPhase::kDown, "the database is away"},
                            .dead_letters = {PartPhase::kDown, "no such topic"},
                            .kafka = {PartPhase::kUp, "one broker is away"},
                            .stalled = "orders/0/17: handling for 312 s"};
  EXPECT_THAT(Sentences(state),
              ElementsAre("stopping: the output is of another store", "lock: clock",
                          "output: the database is away", "dead letters: no such topic",
                          "stalled: orders/0/17: handling for 312 s", "kafka: one broker is away"));
}

TEST(Readiness, IsNotEndedByRemarks) {
  PipelineState state = Well();
  state.stalled = "orders/0/17: handling for 312 s";
  state.failing = "only orders/0/17 fails: 500, 87 attempts";
  state.written_again = "only orders/0/17 is refused: a duplicate";
  state.dead_letters.reason = "the last one was tried twice";
  state.kafka.reason = "one broker is away";
  const auto reasons = ReasonsOf(state);
  EXPECT_EQ(reasons.size(), 5U);
  EXPECT_TRUE(std::ranges::all_of(reasons, IsRemark));
  EXPECT_EQ(WhyNotReady(reasons), "");
}

TEST(Readiness, SaysNothingOfTheGroupThatADrainingWorkerLeaves) {
  PipelineState state = Well();
  state.draining = true;
  state.kafka = {PartPhase::kDown, "left the group"};
  EXPECT_THAT(Sentences(state), ElementsAre("draining"));
}

TEST(Readiness, SaysThatAllIsRefusedOnlyWhileSomethingCouldBeWritten) {
  PipelineState state = Well();
  state.refused = "every record is refused (10 in a row): no such field";
  EXPECT_THAT(Sentences(state), ElementsAre(state.refused));
  state.output = {PartPhase::kDown, "the database is away"};
  EXPECT_THAT(Sentences(state), ElementsAre("output: the database is away"));
}

TEST(Readiness, KnowsWhatAWorkerThatHasJustBegunWaitsFor) {
  const PipelineState state{.lock = Reason{.code = ReasonCode::kLockConnecting},
                            .output = {PartPhase::kConnecting},
                            .dead_letters = {PartPhase::kUp},
                            .kafka = {PartPhase::kConnecting}};
  EXPECT_TRUE(std::ranges::all_of(ReasonsOf(state), IsBeginning));
  EXPECT_THAT(Sentences(state),
              ElementsAre("lock: connecting", "output: connecting", "kafka: connecting"));
  PipelineState later = state;
  later.output = {PartPhase::kDown, "the password is wrong"};
  EXPECT_FALSE(std::ranges::all_of(ReasonsOf(later), IsBeginning));
}

TEST(Readiness, MakesSentencesOfFields) {
  EXPECT_EQ(Sentence({.code = ReasonCode::kLockQuarantine, .span = 12'900ms}),
            "lock: lock nodes are in quarantine for another 12 s");
  EXPECT_EQ(Sentence({.code = ReasonCode::kLockQuarantine}), "lock: lock nodes are in quarantine");
  const std::string away = "1 of 3 nodes is away (127.0.0.1:7001: timeout)";
  EXPECT_EQ(
      Sentence({.code = ReasonCode::kLockQuarantine, .detail = away, .span = 35'000ms, .nodes = 1}),
      "lock: 1 of 3 nodes is away (127.0.0.1:7001: timeout), 1 in quarantine for another 35 s");
  EXPECT_EQ(Sentence({.code = ReasonCode::kNoQuorum, .detail = away}),
            "lock: no quorum of lock nodes: " + away);
  EXPECT_EQ(Sentence({.code = ReasonCode::kLockTtl, .span = 3s, .limit = 2s}),
            "lock: lock.ttl of 3000 ms is above the lock store's max_ttl of 2000 ms: lower "
            "lock.ttl, or stop all workers and create the store again with `fencepost locks init "
            "--force --max-ttl`");
  EXPECT_EQ(Sentence({.code = ReasonCode::kStarting}), "starting");
}

}  // namespace
}  // namespace fencepost::consumer
