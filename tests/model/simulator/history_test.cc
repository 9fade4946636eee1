// The judge of the simulator, judged: planted histories.
#include <gtest/gtest.h>

#include <string>

#include "tests/model/simulator/history_checker.h"

namespace fencepost::simulator {
namespace {

using enum Seen::Kind;

Sent Record(int offset, std::string id = "") {
  if (id.empty()) id = "id-" + std::to_string(offset);
  return {"t/0/" + std::to_string(offset), std::move(id), "key", 0, offset};
}

Seen Effect(const Sent& sent, int assignment = 1) {
  return {.kind = kEffect,
          .source = sent.source,
          .id = sent.id,
          .assignment = static_cast<std::uint64_t>(assignment)};
}

Seen Letter(const Sent& sent, int assignment = 1) {
  return {
      .kind = kLetter, .source = sent.source, .assignment = static_cast<std::uint64_t>(assignment)};
}

Seen Call(const Sent& sent, std::uint64_t token, int life = 0) {
  return {.kind = kCall, .source = sent.source, .id = sent.id, .token = token, .life = life};
}

Seen Offset(std::int64_t next) { return {.kind = kOffset, .next = next}; }

// What the first complaint is about; "" where there is none.
std::string Judge(Promise promise, const std::vector<Sent>& sent, const std::vector<Seen>& seen,
                  std::optional<std::int64_t> told_within = std::nullopt) {
  HistoryChecker checker(promise, told_within);
  for (const Sent& one : sent) checker.Send(one);
  for (const Seen& one : seen) {
    if (const auto complaint = checker.See(one)) return std::string(complaint->what);
  }
  const auto complaint = checker.AtTheEnd();
  return complaint ? std::string(complaint->what) : "";
}

const std::vector<Sent> kTwo{Record(0), Record(1)};
constexpr auto kAll = {Promise::kOnce, Promise::kAtLeastOnce, Promise::kOncePerSource,
                       Promise::kLettersApart};

TEST(AHistory, OfWhatWasPromisedIsGood) {
  for (const Promise promise : kAll) {
    EXPECT_EQ(Judge(promise, kTwo, {Call(kTwo[0], 1), Effect(kTwo[0]), Letter(kTwo[1]), Offset(2)}),
              "");
  }
}

TEST(AHistory, WithARecordWithoutEffectHasLostIt) {
  for (const Promise promise : kAll) EXPECT_EQ(Judge(promise, kTwo, {Effect(kTwo[0])}), "lost");
  const std::vector<Sent> same{Record(0, "same"), Record(1, "same")};
  EXPECT_EQ(Judge(Promise::kOnce, same, {Effect(same[0])}), "");
}

TEST(AHistory, WithTwoEffectsOfAnIdHasDoubledIt) {
  const std::vector<Seen> seen{Effect(kTwo[0], 1), Effect(kTwo[0], 2), Effect(kTwo[1], 2)};
  EXPECT_EQ(Judge(Promise::kOnce, kTwo, seen), "doubled");
  EXPECT_EQ(Judge(Promise::kOncePerSource, kTwo, seen), "doubled");
  EXPECT_EQ(Judge(Promise::kAtLeastOnce, kTwo, seen), "");
  const std::vector<Sent> same{Record(0, "same"), Record(1, "same")};
  EXPECT_EQ(Judge(Promise::kOnce, same, {Effect(same[0]), Effect(same[1])}), "doubled");
  EXPECT_EQ(Judge(Promise::kOncePerSource, same, {Effect(same[0]), Effect(same[1])}), "");
}

TEST(AHistory, WithWhatWasNeverSentHasAPhantom) {
  EXPECT_EQ(Judge(Promise::kOnce, kTwo, {Effect(Record(7))}), "phantom");
  EXPECT_EQ(Judge(Promise::kOnce, kTwo, {Letter(Record(7))}), "phantom");
  EXPECT_EQ(Judge(Promise::kOnce, kTwo, {Effect(Record(0, "other"))}), "phantom");
}

TEST(AHistory, WithAnOlderEffectBehindANewerOneIsOutOfOrder) {
  EXPECT_EQ(Judge(Promise::kAtLeastOnce, kTwo, {Effect(kTwo[1]), Effect(kTwo[0])}), "order");
  const std::vector<Seen> by_another{Effect(kTwo[1], 1), Effect(kTwo[0], 2)};
  EXPECT_EQ(Judge(Promise::kOnce, kTwo, by_another), "order");
  EXPECT_EQ(Judge(Promise::kAtLeastOnce, kTwo, by_another), "");
  // It was a dead letter, and came again.
  EXPECT_EQ(
      Judge(Promise::kOnce, kTwo, {Letter(kTwo[0], 1), Effect(kTwo[1], 1), Effect(kTwo[0], 2)}),
      "");
}

TEST(AHistory, WithATokenThatGoesBackInOneLifeIsWrong) {
  EXPECT_EQ(Judge(Promise::kOnce, kTwo, {Call(kTwo[0], 5), Call(kTwo[0], 4)}), "token");
  EXPECT_EQ(Judge(Promise::kOnce, kTwo,
                  {Call(kTwo[0], 5, 1), Call(kTwo[0], 4, 2), Effect(kTwo[0]), Effect(kTwo[1])}),
            "");
}

TEST(AHistory, WithAnOffsetBeforeItsEffectIsWrong) {
  for (const Promise promise : kAll) {
    EXPECT_EQ(Judge(promise, kTwo, {Effect(kTwo[0]), Offset(2), Effect(kTwo[1])}), "early");
  }
  EXPECT_EQ(Judge(Promise::kOnce, kTwo, {Effect(kTwo[0]), Offset(1), Offset(0)}), "early");
  EXPECT_EQ(Judge(Promise::kOnce, kTwo,
                  {Effect(kTwo[0]), Offset(1), {.kind = kOffsetLost}, Offset(0), Effect(kTwo[1])}),
            "");
}

TEST(AHistory, WithALetterAndAnEffectOfOneRecordIsWrong) {
  for (const Promise promise : kAll) {
    EXPECT_EQ(Judge(promise, kTwo, {Effect(kTwo[0]), Letter(kTwo[0])}), "both");
    EXPECT_EQ(Judge(promise, kTwo, {Letter(kTwo[0]), Effect(kTwo[0])}), "both");
  }
  EXPECT_EQ(Judge(Promise::kOncePerSource, kTwo, {Letter(kTwo[0], 1), Effect(kTwo[0], 2)}), "both");
  EXPECT_NE(Judge(Promise::kLettersApart, kTwo, {Letter(kTwo[0], 1), Effect(kTwo[0], 2)}), "both");
}

Seen Of(Seen::Kind kind, const Sent& sent, int life = 0) {
  return {.kind = kind, .source = sent.source, .id = sent.id, .life = life};
}

TEST(AHistory, OfAnOutputThatHasLostAnEffectAndWhoeverMadeItSaysSoIsGoodOnceItIsDoneAgain) {
  std::vector<Seen> seen{Effect(kTwo[0]),
                         Of(kAcknowledged, kTwo[0]),
                         Effect(kTwo[1]),
                         Of(kAcknowledged, kTwo[1]),
                         Offset(2),
                         Of(kEffectLost, kTwo[0]),
                         Of(kEffectLost, kTwo[1]),
                         {.kind = kStopped},
                         {.kind = kOffsetSet, .next = 0}};
  EXPECT_EQ(Judge(Promise::kOnce, kTwo, seen), "lost");
  for (const Sent& sent : {kTwo[1], kTwo[0]}) {
    Seen again = Effect(sent, 2);
    again.life = 1;
    seen.push_back(again);
  }
  EXPECT_EQ(Judge(Promise::kOnce, kTwo, seen), "");
  seen.push_back(Effect(kTwo[0], 2));
  EXPECT_EQ(Judge(Promise::kOnce, kTwo, seen), "doubled");
}

TEST(AHistory, WhereALostEffectIsADeadLetterWhenItIsDoneAgainIsGoodForAllRecordsOfItsId) {
  const std::vector<Sent> same{Record(0, "same"), Record(1, "same")};
  std::vector<Seen> seen{Effect(same[0]),    Of(kAcknowledged, same[0]),
                         Offset(2),          Of(kEffectLost, same[0]),
                         {.kind = kStopped}, {.kind = kOffsetSet, .next = 0}};
  EXPECT_EQ(Judge(Promise::kOnce, same, seen), "lost");
  seen.push_back(Letter(same[0], 2));
  EXPECT_EQ(Judge(Promise::kOnce, same, seen), "");
}

TEST(AHistory, WhereAWorkerGoesOnWithAnOutputThatHasLostItsEffectIsSilent) {
  std::vector<Seen> seen{Effect(kTwo[0]), Of(kAcknowledged, kTwo[0]), Of(kEffectLost, kTwo[0]),
                         Effect(kTwo[1])};
  EXPECT_EQ(Judge(Promise::kOnce, kTwo, seen), "");  // it has not met the output since
  seen.push_back({.kind = kUsed, .life = 1});        // nor has this one ever heard of it
  EXPECT_EQ(Judge(Promise::kOnce, kTwo, seen), "");
  seen.push_back({.kind = kUsed});
  EXPECT_EQ(Judge(Promise::kOnce, kTwo, seen), "silent");
  // Nobody had told it of this effect: it writes it again.
  EXPECT_EQ(Judge(Promise::kOnce, kTwo,
                  {Effect(kTwo[0]),
                   Of(kEffectLost, kTwo[0]),
                   {.kind = kUsed},
                   Effect(kTwo[0], 2),
                   Effect(kTwo[1], 2)}),
            "");
}

TEST(AHistory, WhereALateReplayIsPutOverANewerChangeBringsBackThePast) {
  std::vector<Sent> sent{Record(0), Record(1), Record(2, "id-0")};
  for (Sent& one : sent) one.row = "k";
  sent[0].made = sent[2].made = 1;
  sent[1].made = 2;
  Seen replay = Effect(sent[2], 2);
  std::vector<Seen> seen{Letter(sent[0]), Effect(sent[1]), replay};
  EXPECT_EQ(Judge(Promise::kOnce, sent, seen), "past");
  seen.back().lost_to_newer = true;
  EXPECT_EQ(Judge(Promise::kOnce, sent, seen), "");
  seen[1].lost_to_newer = true;
  EXPECT_EQ(Judge(Promise::kOnce, sent, seen), "past") << "there is no newer one";
}

// It was told that its dead letter is there, not the effect that was lost before.
TEST(AHistory, WhereALostRecordBecomesADeadLetterNeedsNoWordOfWhoeverMadeIt) {
  Seen letter = Letter(kTwo[0], 2);
  letter.life = 1;
  EXPECT_EQ(Judge(Promise::kOnce, kTwo,
                  {Effect(kTwo[0]),
                   Of(kAcknowledged, kTwo[0]),
                   Of(kEffectLost, kTwo[0]),
                   {.kind = kStopped},
                   letter,
                   Of(kAcknowledged, kTwo[0], 1),
                   {.kind = kUsed, .life = 1},
                   Effect(kTwo[1], 2)}),
            "");
}

TEST(AHistory, WhereAWorkerGoesOnThoughAnEffectIsLostThatItHadFoundIsSilent) {
  EXPECT_EQ(Judge(Promise::kOnce, kTwo,
                  {Effect(kTwo[0]),
                   Of(kAcknowledged, kTwo[0], 1),
                   Of(kEffectLost, kTwo[0]),
                   {.kind = kUsed, .life = 1}}),
            "silent");
}

TEST(AHistory, OfAnOutputThatHasPrunedAnEffectIsWrongWhereItsRecordTakesEffectForNoReason) {
  const std::vector<Sent> same{Record(0, "same"), Record(1, "same")};
  std::vector<Seen> seen{Effect(same[0]), Of(kPruned, same[0])};
  EXPECT_EQ(Judge(Promise::kOnce, same, seen), "forgotten");
  seen = {Effect(same[0]), Offset(1), Of(kPruned, same[0]), Effect(same[1], 2), Offset(2)};
  EXPECT_EQ(Judge(Promise::kOnce, same, seen), "") << "it was sent again";
  seen.push_back(Of(kPruned, same[1]));
  seen.push_back(Effect(same[0], 3));
  EXPECT_EQ(Judge(Promise::kOnce, same, seen), "doubled");
  seen.insert(seen.end() - 1, Seen{.kind = kOffsetSet, .next = 0});
  EXPECT_EQ(Judge(Promise::kOnce, same, seen), "");
}

TEST(AHistory, OfAWorkerThatEndedWithWordOfAYoungerLossMayLackWhatItWasToldLongAgo) {
  Seen told = Of(kAcknowledged, kTwo[0]);
  told.at = 10;
  const std::vector<Seen> seen{Effect(kTwo[0]),
                               told,
                               Effect(kTwo[1]),
                               Of(kEffectLost, kTwo[0]),
                               {.kind = kStopped, .at = 30},
                               Offset(2)};
  EXPECT_EQ(Judge(Promise::kOnce, kTwo, seen, 19), "");
  EXPECT_EQ(Judge(Promise::kOnce, kTwo, seen, 20), "lost");
  EXPECT_EQ(Judge(Promise::kOnce, kTwo, seen), "lost");
}

TEST(AHistory, WhereAWorkerEndsForALossOfWhichItHadNothingIsAFalseAlarm) {
  std::vector<Seen> seen{Effect(kTwo[0]),
                         Of(kAcknowledged, kTwo[0]),
                         Effect(kTwo[1]),
                         Of(kEffectLost, kTwo[1]),
                         {.kind = kStopped}};
  EXPECT_EQ(Judge(Promise::kOnce, kTwo, seen), "alarm");
}

TEST(AHistory, InWhichADeletedRecordIsPassedIsGoodOnlyWhereAPersonHasSetTheOffsetBehindIt) {
  const Seen told{.kind = kToldOfLog};
  const Seen set{.kind = kOffsetSet, .next = 1};
  const Seen gone = Of(kGone, kTwo[0]);
  for (const Promise promise : kAll) {
    EXPECT_EQ(Judge(promise, kTwo, {gone, Effect(kTwo[1]), Offset(2)}), "early");
    EXPECT_EQ(Judge(promise, kTwo, {gone, told, set, Effect(kTwo[1]), Offset(2)}), "");
    EXPECT_EQ(Judge(promise, kTwo, {set, gone, Effect(kTwo[1]), Offset(2)}), "lost");
    EXPECT_EQ(Judge(promise, kTwo, {gone, {.kind = kOffsetSet, .next = 2}}), "lost");
    EXPECT_EQ(Judge(promise, kTwo, {gone, {.kind = kBegins, .next = 1}, Effect(kTwo[1])}), "");
    EXPECT_EQ(Judge(promise, kTwo, {Effect(kTwo[0]), gone, Effect(kTwo[1]), Offset(2)}), "");
  }
}

TEST(AHistory, WhereAWorkerEndsForALogThatIsWhatItWasIsAFalseAlarm) {
  const Seen other{.kind = kToldOfLog, .partition = 1};
  EXPECT_EQ(Judge(Promise::kOnce, kTwo, {Of(kGone, kTwo[0]), other}), "alarm");
  EXPECT_EQ(Judge(Promise::kOnce, kTwo, {{.kind = kToldOfLog}}), "alarm");
}

// What stands at offset 0 of the log that came in the first one's place.
Sent OfNextLog(int offset, std::string id = "") {
  Sent sent = Record(offset, std::move(id));
  sent.source += "'";
  sent.chain += "'";
  sent.log = 1;
  return sent;
}

const Sent kOld = Record(0, "old");
const Sent kNew = OfNextLog(0, "new");
const Seen kAnother{.kind = kAnotherLog};

TEST(AHistory, OfATopicThatIsMadeAgainHasTwoRecordsAtOnePlace) {
  const std::vector<Sent> both{kOld, kNew};
  const std::vector<Seen> before{Effect(kOld), Offset(1), Of(kReplaced, kOld), kAnother};
  for (const Promise promise : kAll) {
    std::vector<Seen> seen = before;
    EXPECT_EQ(Judge(promise, both, seen), "lost") << "the new one was never read";
    seen.push_back({.kind = kToldOfLog});
    seen.push_back({.kind = kOffsetSet, .next = 0});
    EXPECT_EQ(Judge(promise, both, seen), "lost");
    seen.push_back(Offset(1));
    EXPECT_EQ(Judge(promise, both, seen), "early") << "somebody has set the offset";
    seen.back() = Effect(kNew);
    seen.push_back(Offset(1));
    EXPECT_EQ(Judge(promise, both, seen), "");
  }
  EXPECT_EQ(Judge(Promise::kOnce, {kOld, OfNextLog(0, "old")}, before), "") << "it was sent again";
}

TEST(AHistory, OfATopicThatIsMadeAgainMayPassWhatIsNotReadUntilSomebodySetsTheOffset) {
  const std::vector<Sent> sent{kOld, kNew, OfNextLog(1)};
  EXPECT_EQ(Judge(Promise::kOnce, sent,
                  {Effect(kOld),
                   Offset(1),
                   Of(kReplaced, kOld),
                   kAnother,
                   Effect(sent[2], 2),
                   Offset(2),
                   {.kind = kOffsetSet, .next = 0},
                   Effect(kNew, 3),
                   Offset(2)}),
            "");
}

TEST(AHistory, InWhichAPersonTakesAPartitionBackMayHaveItsEffectsOnceMore) {
  const std::vector<Sent> sent{kNew};
  std::vector<Seen> seen{kAnother, Effect(kNew, 1)};
  seen.push_back({.kind = kForgotten, .partition = 1});
  seen.push_back(Effect(kNew, 2));
  EXPECT_EQ(Judge(Promise::kOnce, sent, seen), "doubled");
  seen[2].partition = 0;
  EXPECT_EQ(Judge(Promise::kOnce, sent, seen), "");
  seen.push_back(Effect(kNew, 3));
  EXPECT_EQ(Judge(Promise::kOnce, sent, seen), "doubled");
}

TEST(AHistory, OfALogThatHasLostItsEndMayLoseOnlyWhatNobodyNeededToNotice) {
  const std::vector<Sent> sent{kOld, kNew};
  std::vector<Seen> seen{Effect(kOld), Offset(1), Of(kReplaced, kOld), kAnother};
  seen.back().next = 1;
  EXPECT_EQ(Judge(Promise::kOnce, sent, seen), "");
  seen.push_back({.kind = kToldOfLog});
  EXPECT_EQ(Judge(Promise::kOnce, sent, seen), "lost");
}

}  // namespace
}  // namespace fencepost::simulator
