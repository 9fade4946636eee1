// Votes, tokens and one round: the plain values under the core.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "locking/core/lock/rounds.h"
#include "locking/core/lock/token_clock.h"

namespace fencepost::locking {
namespace {

constexpr WallTime kWall{Millis(1'800'000'000'000)};
constexpr Millis kSkew{5000};

// The count, written down once more as slowly as can be.
Tally NaiveTally(int nodes, const std::map<NodeIndex, bool>& votes) {
  int yes = 0;
  int possible = nodes;
  for (const auto& [node, vote] : votes) {
    if (vote) ++yes;
    if (!vote) --possible;
  }
  if (2 * yes > nodes) return Tally::kWon;
  if (2 * possible <= nodes) return Tally::kLost;
  return Tally::kPending;
}

TEST(Ballot, CountsOneVoteANodeOfTheConfiguredNodes) {
  std::mt19937 random(1);
  for (const int nodes : {1, 3, 5, 7}) {
    for (int run = 0; run < 500; ++run) {
      Ballot ballot(nodes);
      std::map<NodeIndex, bool> votes;
      for (int step = 0; step < 12; ++step) {
        const auto node = static_cast<NodeIndex>(random() % static_cast<unsigned>(nodes));
        switch (random() % 3) {
          case 0:
            ballot.Yes(node), votes[node] = true;
            break;
          case 1:
            ballot.No(node), votes[node] = false;
            break;
          default:
            ballot.Reopen(node), votes.erase(node);
            break;
        }
        ASSERT_EQ(ballot.Result(), NaiveTally(nodes, votes)) << "of " << nodes << ", run " << run;
      }
    }
  }
}

TEST(MajorityToken, IsTheOneThatStandsAtMoreThanHalfOfTheConfiguredNodes) {
  std::mt19937 random(2);
  for (const int nodes : {1, 3, 5, 7}) {
    for (int run = 0; run < 500; ++run) {
      NodeTokens tokens{};
      std::map<Token, int> counts;
      for (int node = 0; node < nodes; ++node) {
        tokens[static_cast<std::size_t>(node)] = Token(random() % 3);
        ++counts[tokens[static_cast<std::size_t>(node)]];
      }
      Token expected;
      for (const auto& [token, count] : counts) {
        if (token && 2 * count > nodes) expected = token;
      }
      ASSERT_EQ(MajorityToken(tokens, nodes), expected) << "of " << nodes << ", run " << run;
    }
  }
}

TEST(TokenClock, RisesStrictlyWithinOneMillisecondAndWhenTheWallStepsBack) {
  TokenClock clock(7);
  Token last;
  for (int i = 0; i < 3000; ++i) {
    const Token next = clock.Next(i < 2000 ? kWall : kWall - kSkew + Millis(10), kSkew);
    ASSERT_GT(next, last);
    last = next;
  }
}

TEST(TokenClock, GoesByTheWallAgainWhenThatWasFixedByMoreThanMaxSkew) {
  TokenClock clock(7);
  clock.Next(kWall + 10 * kSkew, kSkew);
  EXPECT_EQ(clock.Next(kWall, kSkew).wall(), kWall);
}

TEST(TokenClock, IsLiftedOnlyByWhatItsOwnWallMakesBelievable) {
  TokenClock clock(7);
  const Token believable = Token::AtWall(kWall + kSkew);
  clock.AdvancePast(believable, kWall, kSkew);
  EXPECT_GT(clock.Next(kWall, kSkew), believable);
  TokenClock other(7);
  other.AdvancePast(Token(believable.value() + 1), kWall, kSkew);
  EXPECT_LT(other.Next(kWall, kSkew), Token::AtWall(kWall + Millis(2)));
}

class Round : public ::testing::Test {
 protected:
  Verdict Hear(NodeIndex node, Reply reply) { return round.OnReply(node, reply); }

  const Token token = Token::AtWall(kWall);
  const Token lower{token.value() - 1};
  const Token higher{token.value() + 1};
  AcquireRound round{3, AllNodes(3), AllNodes(3), token};
};

TEST_F(Round, IsWonByAMajorityAndNotBefore) {
  EXPECT_EQ(Hear(0, {.code = ReplyCode::kGranted}), Verdict::kPending);
  EXPECT_EQ(Hear(0, {.code = ReplyCode::kGranted}), Verdict::kPending);
  EXPECT_EQ(Hear(2, {.code = ReplyCode::kGrantedTakeover}), Verdict::kWon);
}

TEST_F(Round, DoesNotCountAGrantInQuarantine) {
  Hear(0, {.code = ReplyCode::kGranted, .quarantined = true});
  Hear(1, {.code = ReplyCode::kGranted});
  EXPECT_EQ(Hear(2, {.code = ReplyCode::kTimeout}), Verdict::kLost);
}

TEST_F(Round, BelievesADoneInQuarantine) {
  EXPECT_EQ(Hear(0, {.code = ReplyCode::kDone, .quarantined = true, .token = lower, .crc = 9}),
            Verdict::kDone);
  EXPECT_EQ(round.done().crc, 9u);
}

TEST_F(Round, IsLostAsSoonAsOneRivalHasAMajority) {
  EXPECT_EQ(Hear(0, {.code = ReplyCode::kContended, .token = lower}), Verdict::kPending);
  EXPECT_EQ(Hear(1, {.code = ReplyCode::kContended, .token = lower}), Verdict::kLost);
  EXPECT_FALSE(round.WorthAskingAgain());
}

TEST_F(Round, IsWorthAskingAgainOnlyForTheHighestToken) {
  Hear(0, {.code = ReplyCode::kGranted});
  Hear(1, {.code = ReplyCode::kContended, .token = lower});
  EXPECT_EQ(Hear(2, {.code = ReplyCode::kTimeout}), Verdict::kLost);
  EXPECT_TRUE(round.WorthAskingAgain());
  EXPECT_EQ(round.AskAgain(), Bit(1));
  EXPECT_EQ(Hear(1, {.code = ReplyCode::kContended, .token = higher}), Verdict::kLost);
  EXPECT_FALSE(round.WorthAskingAgain());
}

TEST_F(Round, NeedsTheLowestFloorThatAMajorityStaysBelow) {
  const Token far{token.value() + 1000};
  Hear(0, {.code = ReplyCode::kStale, .token = far});
  Hear(1, {.code = ReplyCode::kStale, .token = higher});
  Hear(2, {.code = ReplyCode::kGranted});
  EXPECT_EQ(round.NeededFloor(), higher);
}

}  // namespace
}  // namespace fencepost::locking
