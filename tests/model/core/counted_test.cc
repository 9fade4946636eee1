// What the core counts, where a real node would need luck to provoke it. moved_by.txt names
// these tests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/model/core/transcript.h"

namespace fencepost::locking {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

struct Counts : LockObserver {
  std::multiset<RoundResult> rounds;
  std::multiset<QuorumFailure> failures;
  std::multiset<Phase> expired;
  std::multiset<LossReason> lost;
  std::multiset<ReleaseOutcome> released;
  std::multiset<Invariant> broken;
  std::vector<Nanos> offsets;
  int late_marks = 0;
  int takeovers = 0;
  std::vector<std::string> notes;
  void OnRound(RoundResult result, Nanos) override { rounds.insert(result); }
  void OnQuorumFailure(QuorumFailure reason) override { failures.insert(reason); }
  void OnExpired(Phase phase) override { expired.insert(phase); }
  void OnLoss(LossReason reason) override { lost.insert(reason); }
  void OnReleased(ReleaseOutcome outcome) override { released.insert(outcome); }
  void OnInvariant(Invariant invariant) override { broken.insert(invariant); }
  void OnNote(Severity, std::string_view event, std::string_view text) override {
    notes.push_back(std::string(event) + ": " + std::string(text));
  }
  void OnCompletedAfterExpiry() override { ++late_marks; }
  void OnTakeover() override { ++takeovers; }
  void OnClockOffset(NodeIndex, Nanos offset) override { offsets.push_back(offset); }
};

class Counted : public ::testing::Test {
 protected:
  LockId Lease() {
    const LockId lock = s.Lease();
    s.Send();
    return lock;
  }
  Counts counts;
  Transcript s{3, true, {}, &counts};
};

TEST_F(Counted, AReleaseByItsOutcome) {
  const std::pair<ReplyCode, ReleaseOutcome> answers[] = {
      {ReplyCode::kFreed, ReleaseOutcome::kReleased},
      {ReplyCode::kExpired, ReleaseOutcome::kExpired},
      {ReplyCode::kStolen, ReleaseOutcome::kStolen},
      {ReplyCode::kTimeout, ReleaseOutcome::kUnknown}};
  for (const auto& [code, outcome] : answers) {
    s.core.Release(Lease(), s.now);
    s.Send();
    s.AnswerAll(code);
    EXPECT_EQ(counts.released.count(outcome), 1u) << static_cast<int>(outcome);
    s.Events();
  }
}

// Its lease was on other nodes than those that are asked now, but for one.
TEST_F(Counted, ATakeoverOnceWhicheverNodeTellsOfIt) {
  s.Ask("x");
  s.Answer('a', ReplyCode::kGranted);
  EXPECT_EQ(counts.takeovers, 0);
  s.Answer('b', ReplyCode::kGrantedTakeover);
  EXPECT_EQ(s.Events(), "leased");
  s.Answer('c', ReplyCode::kGrantedTakeover);
  EXPECT_EQ(counts.takeovers, 1);
}

TEST_F(Counted, AnExpiryByWhereTheWorkWas) {
  for (const Phase phase : {Phase::kWaiting, Phase::kHandling, Phase::kWriting}) {
    s.core.SetPhase(Lease(), phase);
    s.Pass(s.options.ttl);
    s.core.OnTime(s.now);
    EXPECT_EQ(counts.expired.count(phase), 1u) << static_cast<int>(phase);
    s.Events();
  }
  EXPECT_EQ(counts.lost.count(LossReason::kExpired), 3u);
  // Nobody had looked before it was given back.
  const LockId lock = Lease();
  s.Pass(s.options.ttl);
  s.core.Release(lock, s.now);
  EXPECT_EQ(counts.expired.count(Phase::kReleasing), 1u);
}

TEST_F(Counted, ALeaseThatNodesEndedEarlyByAWipeOrByTheirClock) {
  for (const bool stepped : {false, true}) {
    const LockId lock = Lease();
    if (stepped) {
      for (NodeIndex node = 0; node < 2; ++node) {
        s.core.store().OnCall(node, {s.now.boot, s.now.boot, s.now.wall + Millis(60'000)}, s.now);
      }
    }
    s.Extend(lock);
    s.AnswerAll(ReplyCode::kExpired);
    s.Pass(s.options.ttl);
    s.core.OnTime(s.now);
    EXPECT_EQ(counts.lost.count(LossReason::kNodeWiped), 1u);
    EXPECT_EQ(counts.lost.count(LossReason::kClock), stepped ? 1u : 0u);
    s.Events();
    s.Send();
    s.AnswerAll(ReplyCode::kExpired);
  }
}

TEST_F(Counted, ARoundThatCannotBeginForWantOfNodesOnceATry) {
  s.core.OnDisconnected(0, s.now);
  s.core.OnDisconnected(1, s.now);
  s.Acquire("x", Millis(5000));
  EXPECT_EQ(counts.rounds.count(RoundResult::kNoQuorum), 1u);
  EXPECT_EQ(counts.failures.count(QuorumFailure::kUnreachable), 1u);
  s.Pass(Millis(5000));
  s.core.OnTime(s.now);
  EXPECT_EQ(s.Events(), "gave-up:unavailable");
  EXPECT_EQ(counts.rounds.count(RoundResult::kNoQuorum), 1u);
}

TEST_F(Counted, AWinThatCameTooLateAsNoOutage) {
  s.Ask("x");
  s.Pass(s.options.ttl - s.options.min_validity);
  s.AnswerAll(ReplyCode::kGranted);
  EXPECT_EQ(s.Events(), "gave-up:too-late");
  EXPECT_EQ(counts.rounds.count(RoundResult::kTimeout), 1u);
  EXPECT_TRUE(counts.failures.empty()) << "a quorum answered";
}

TEST_F(Counted, AKeyThatHoldsNoLockAtAQuorumAsNoOutage) {
  s.Acquire("x", Millis(3'000));
  std::string events;
  for (int turn = 0; turn < 100 && !events.ends_with("gave-up:foreign"); ++turn) {
    s.Send();
    s.AnswerAll(ReplyCode::kForeign);
    events += s.Events();
    s.PassToNext();
  }
  EXPECT_THAT(events, StartsWith("round-failed:foreign"));
  EXPECT_THAT(events, EndsWith("gave-up:foreign"));
  EXPECT_GT(counts.rounds.size(), 2u);
  EXPECT_EQ(counts.rounds.count(RoundResult::kError), counts.rounds.size());
  EXPECT_THAT(counts.failures, IsEmpty());
  EXPECT_THAT(counts.notes, ElementsAre(HasSubstr("foreign_value: the key x holds")))
      << "not one a round";
}

TEST_F(Counted, AKeyThatHoldsNoLockAtTooFewNodesToMatterAsTheOutageThatItIs) {
  s.Ask("x");
  s.Answer('a', ReplyCode::kForeign);
  s.Answer('b', ReplyCode::kConnection);
  s.Answer('c', ReplyCode::kGranted);
  EXPECT_EQ(s.Events(), "gave-up:unavailable");
  EXPECT_THAT(counts.failures, ElementsAre(QuorumFailure::kUnreachable));
  EXPECT_THAT(counts.notes, IsEmpty());
}

TEST_F(Counted, MarksOfAMajorityThatCameLate) {
  s.core.Done(Lease(), 1, Millis(60'000), s.now);
  s.Send();
  s.AnswerAll(ReplyCode::kMarkedLate);
  EXPECT_EQ(counts.late_marks, 1);
}

TEST_F(Counted, NoClockOffsetOfACallOverWhichSomebodyStoodStill) {
  const std::size_t before = counts.offsets.size();
  const Instant sent = s.now.boot;
  s.Pass(Millis(8000));
  s.core.store().OnCall(0, {sent, s.now.boot, s.now.wall - Millis(8000)}, s.now);
  EXPECT_EQ(counts.offsets.size(), before);
  s.core.store().OnCall(0, {s.now.boot, s.now.boot, s.now.wall}, s.now);
  ASSERT_EQ(counts.offsets.size(), before + 1);
  EXPECT_EQ(counts.offsets.back(), Nanos(0));
}

TEST_F(Counted, AGrantToAnotherWhileTheLeaseIsValid) {
  s.Extend(Lease());
  s.Answer("abc", {.code = ReplyCode::kStolen, .token = Token(7)});
  EXPECT_EQ(counts.broken.count(Invariant::kDoubleGrant), 1u);
  EXPECT_EQ(counts.lost.count(LossReason::kStolen), 1u);
}

}  // namespace
}  // namespace fencepost::locking
