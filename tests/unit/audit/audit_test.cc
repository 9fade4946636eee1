// The audit sees each kind of trouble in histories that were made for it.
#include "tests/support/audit.h"

#include <functional>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost::testing {
namespace {

using ::testing::HasSubstr;

// Four orders, 0 and 2 of one key; o-1 was sent twice, to both partitions.
History Good() {
  History history;
  history.sent = {{{0, {0, 0}}, "a"},
                  {{1, {0, 1}}, "b"},
                  {{2, {0, 2}}, "a"},
                  {{3, {1, 0}}, "c"},
                  {{1, {1, 1}}, "b"}};
  const std::int64_t tokens[] = {10, 20, 30, 40};
  for (int order = 0; order < 4; ++order) {
    const Record& record = history.sent[static_cast<std::size_t>(order)].record;
    const std::int64_t token = tokens[order];
    history.effects.push_back(
        {.record = record, .amount = AmountOf(order), .token = token, .life = 0});
    history.calls.push_back({.record = record,
                             .token = token,
                             .accepted = true,
                             .life = 0,
                             .record_id = "o-" + std::to_string(order),
                             .begin_ns = token,
                             .end_ns = token + 10});
  }
  history.ends = history.committed = {3, 2};
  return history;
}
History ByPosition() {
  History history = Good();
  history.by_position = true;
  history.effects.push_back({.record = {1, {1, 1}}, .amount = AmountOf(1), .token = 50, .life = 0});
  history.calls.push_back({.record = {1, {1, 1}}, .token = 50, .accepted = true, .life = 0});
  for (Call& call : history.calls) {
    const Place& place = call.record.place;
    call.record_id =
        "kafka/t/" + std::to_string(place.partition) + "/" + std::to_string(place.offset);
  }
  history.ranges = {{0, "{[0,3)}"}, {1, "{[0,2)}"}};
  return history;
}

// All that holds of a pipeline whose handler logs its calls.
std::string All(const History& history) {
  Audit audit(history);
  audit.Genuine().Once().InOrder().DeadLetters().EffectsHaveCalls().TokensGoUp();
  audit.CallsAreGenuine().EachCalled().CommittedToTheEnd();
  return history.by_position ? audit.Ledger().text() : audit.text();
}

TEST(AnAudit, IsContentWithOneEffectOfEachInOrder) {
  EXPECT_EQ(All(Good()), "");
  EXPECT_EQ(All(ByPosition()), "");
  History again = Good();  // handled twice, with a later token, and written once with the first
  again.calls.push_back(again.calls[2]);
  again.calls.back().token = 35;
  EXPECT_EQ(All(again), "");
}

TEST(AnAudit, SeesWhatIsLost) {
  History history = Good();
  history.effects.pop_back();
  EXPECT_EQ(All(history), "lost: 1, the first is o-3 of 1/0\n");
  history = ByPosition();  // its order has the effect of another record
  history.effects.pop_back();
  EXPECT_EQ(All(history), "lost: 1, the first is o-1 of 1/1\n");
  history.maybe_never = {{1, {1, 1}}};
  EXPECT_EQ(Audit(history).NoneLost().text(), "");
}

TEST(AnAudit, SeesWhatIsDoubledFromThatRecordOrFromItsRepeat) {
  History history = Good();
  history.effects.push_back(history.effects[3]);
  EXPECT_EQ(Audit(history).Once().counts().at("doubled"), 1);
  history.maybe_twice = {{3, {}}};
  EXPECT_EQ(Audit(history).Once().text(), "");
  history = Good();
  history.effects.push_back({.record = {1, {1, 1}}, .amount = AmountOf(1), .token = 20});
  EXPECT_EQ(Audit(history).Once().counts().at("doubled"), 1);
  history = ByPosition();
  history.effects.push_back(history.effects[3]);
  EXPECT_EQ(Audit(history).Once().counts().at("doubled"), 1);
  history.maybe_twice = {{3, {1, 0}}};
  EXPECT_EQ(Audit(history).Once().text(), "");
  history.effects.push_back(history.effects[3]);
  EXPECT_NE(Audit(history).Once().text(), "");
}

TEST(AnAudit, OfRepeatsBlamesWhoMayNotRepeat) {
  History history = Good();
  history.effects.push_back(history.effects[3]);
  history.effects.back().life = 1;
  EXPECT_EQ(Audit(history).RepeatedOnlyBy({1}).text(), "");
  EXPECT_NE(Audit(history).RepeatedOnlyBy({2}).text(), "");
}

TEST(AnAudit, SeesAnEffectBeforeThatOfAnEarlierRecordOfItsChain) {
  History history = Good();
  std::swap(history.effects[0], history.effects[2]);
  EXPECT_THAT(All(history), HasSubstr("o-0 of 0/0 with token 10 by life 0 after offset 2"));
  history.order = "none";
  EXPECT_EQ(All(history), "");
  history = Good();
  std::swap(history.effects[0], history.effects[1]);  // another key
  EXPECT_EQ(All(history), "");
  EXPECT_EQ(Audit(history).Overtaken(), 1);
  history.order = "partition";
  EXPECT_NE(All(history), "");
  for (Sent& sent : history.sent) sent.log = sent.record.order;  // of another log
  EXPECT_EQ(All(history), "");
  history = Good();  // only the first appearance counts
  history.effects.push_back(history.effects[0]);
  EXPECT_EQ(Audit(history).InOrder().text(), "");
  history.sent.push_back({.record = {4, {1, 2}}, .key = "b"});
  history.effects.push_back({.record = {4, {1, 2}}});
  history.effects.push_back({.record = {1, {1, 1}}});  // of an order, wherever it was read
  EXPECT_EQ(Audit(history).InOrder().text(), "");
}

TEST(AnAudit, CountsTokensThatGoBackAndCallsThoseTroubleThatWereAccepted) {
  History history = Good();
  for (const std::int64_t token : {29, 28}) {
    history.calls.push_back(history.calls[2]);
    history.calls.back().token = token;
    history.calls.back().accepted = false;
  }
  EXPECT_EQ(Audit(history).TokensGoUp().counts().at("tokens back"), 2);
  EXPECT_EQ(All(history), "");
  history.calls.back().accepted = true;
  EXPECT_THAT(All(history), HasSubstr("accepted: 1, the first is o-2 of 0/2"));
}

TEST(AnAudit, SeesAnEffectOfACallThatWasRefused) {
  History history = Good();
  // Another worker has called with 35 since; the late one is refused, and takes effect all the
  // same.
  history.calls[2].token = 25;
  const auto call = [&](std::int64_t token, bool accepted) {
    history.calls.push_back(history.calls[2]);
    history.calls.back().token = token;
    history.calls.back().accepted = accepted;
  };
  call(35, true);
  EXPECT_EQ(All(history), "");  // what the call with 25 made, under a later lease
  call(30, false);
  EXPECT_THAT(All(history), HasSubstr("token 30 by life 0: its calls were refused"));
  call(30, true);
  EXPECT_EQ(Audit(history).EffectsHaveCalls().text(), "");
}

TEST(AnAudit, SeesADeadLetterOfARecordWhoseAnswersWereAllGood) {
  History history = Good();
  history.effects.pop_back();
  history.dead = {{3, {1, 0}}};
  EXPECT_NE(All(history), "");
  history.calls[0].unusable = true;  // of another record
  EXPECT_NE(All(history), "");
  history.calls[3].unusable = true;
  EXPECT_EQ(All(history), "");
  history = Good();  // the first record of o-1 is dead, and its repeat took effect
  history.calls[1].unusable = true;
  history.effects[1].record.place = {1, 1};
  history.dead = {{1, {0, 1}}};
  EXPECT_EQ(All(history), "");
}

TEST(AnAudit, SeesEffectAndDeadLetterOfOneRecordThatNobodyCouldFindAgain) {
  History history = Good();
  history.calls[3].unusable = true;
  history.dead = {{3, {1, 0}}};
  EXPECT_THAT(All(history), HasSubstr("effect and dead letter: 1, the first is o-3"));
  history.moved_from = {0, 1};  // what was given away had been committed beyond it
  EXPECT_NE(All(history), "");
  history.moved_from = {3, 0};  // not yet committed
  EXPECT_EQ(All(history), "");
}

TEST(AnAudit, SeesEffectsThatNothingExplains) {
  for (const auto& spoil : std::vector<void (*)(Effect&)>{
           [](Effect& effect) { effect.amount += 1; }, [](Effect& effect) { effect.token -= 1; },
           [](Effect& effect) { effect.record.place.offset = 7; },
           [](Effect& effect) {
             effect.record.place = {0, 1};
           },
           [](Effect& effect) { effect.record.order = 7; }}) {
    for (History history : {Good(), ByPosition()}) {
      spoil(history.effects[3]);
      EXPECT_NE(All(history), "");
    }
  }
}

TEST(AnAudit, SeesAPartitionThatIsNotCommittedToItsEnd) {
  History history = Good();
  history.committed[1] = 1;
  EXPECT_EQ(All(history),
            "partitions that are not committed to their end: 1, the first is 1 at 1 of 2\n");
  history.committed.pop_back();
  EXPECT_NE(All(history), "");
}

TEST(AnAudit, WantsOneRangeFromTheBeginningToTheEndOfEachPartitionButForDeadLetters) {
  const auto ledger = [](std::map<int, std::string> ranges, std::set<Record> dead = {}) {
    History history;
    history.by_position = true;
    history.ends = {5, 7, 0};
    history.ranges = std::move(ranges);
    history.dead = std::move(dead);
    return Audit(history).Ledger().text();
  };
  EXPECT_EQ(ledger({{0, "{[0,5)}"}, {1, "{[0,7)}"}}), "");
  for (const char* wrong :
       {"{}", "{[0,4)}", "{[0,6)}", "{[1,5)}", "{[0,2),[3,5)}", "{[0,2),[2,5)}"}) {
    EXPECT_NE(ledger({{0, wrong}, {1, "{[0,7)}"}}), "") << wrong;
  }
  EXPECT_NE(ledger({{0, "{[0,5)}"}}), "");
  EXPECT_EQ(ledger({{0, "{[0,2),[3,4)}"}, {1, "{[1,7)}"}}, {{9, {0, 2}}, {8, {0, 4}}, {7, {1, 0}}}),
            "");
}

TEST(AnAudit, SeesTheUnexplainedTheForgedAndTheMissingCall) {
  History history = Good();
  history.calls.push_back(history.calls[1]);
  history.calls.back().record.place = {1, 1};
  history.calls.back().begin_ns = 90;
  history.calls.back().life = 6;
  const auto explained = [&](std::set<int> lost, std::set<int> stale = {}) {
    return Audit(history).CallsExplained(lost, stale).text();
  };
  EXPECT_EQ(explained({0}), "");
  EXPECT_NE(explained({5}), "");
  EXPECT_NE(explained({}, {0}), "");
  EXPECT_EQ(explained({}, {6}), "");
  history.calls[1].accepted = false;
  EXPECT_EQ(explained({}), "");
  for (const auto& spoil : std::vector<void (*)(Call&)>{
           [](Call& call) { call.record_id = "o-7"; }, [](Call& call) { call.token = 0; },
           [](Call& call) { call.record.place.offset = 9; }}) {
    for (History forged : {Good(), ByPosition()}) {
      spoil(forged.calls[3]);
      EXPECT_NE(Audit(forged).CallsAreGenuine().text(), "");
    }
  }
  for (History short_of_one : {Good(), ByPosition()}) {
    short_of_one.calls.pop_back();
    EXPECT_NE(Audit(short_of_one).EachCalled().text(), "");
  }
}

TEST(AnAudit, SeesCallsOfOneChainAtOneTime) {
  History history = Good();
  const auto apart = [&](std::set<int> lost = {}) {
    return Audit(history).CallsApart(lost).text();
  };
  history.calls[2].begin_ns = 25;  // during o-1, of another key
  EXPECT_EQ(apart(), "");
  history.order = "partition";
  EXPECT_NE(apart(), "");
  EXPECT_EQ(apart({0}), "");
  history.order = "key";
  history.calls[2].begin_ns = 15;  // during o-0
  EXPECT_NE(apart(), "");
}

}  // namespace
}  // namespace fencepost::testing
