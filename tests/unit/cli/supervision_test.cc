// Which process of `run --processes` starts, starts again, stops, and how all of it ends.
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/cli/shared/command.h"
#include "consumer/cli/supervise/supervision.h"

namespace fencepost::cli {
namespace {

using namespace std::chrono_literals;
using Act = Supervision::Act;
using Action = Supervision::Action;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr ProcessEnd kCrash{.by_signal = true, .value = SIGSEGV};
constexpr ProcessEnd Code(int code) { return {.by_signal = false, .value = code}; }

class SupervisionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const Action& action : Due()) Started(action);
  }
  Supervision::Actions Due() { return supervision_.OnTime(now_); }
  void Started(const Action& action) {
    ASSERT_EQ(action.act, Act::kStart);
    supervision_.OnStarted(action.process, now_);
  }
  Supervision::Actions Ends(int process, ProcessEnd end) {
    return supervision_.OnEnded(process, end, now_);
  }
  // From its end to its next start, which is made.
  Supervision::Duration Waits(int process) {
    const auto from = now_;
    EXPECT_THAT(Due(), IsEmpty());
    EXPECT_TRUE(supervision_.next());
    now_ = *supervision_.next();
    EXPECT_THAT(Due(), ElementsAre(Action{Act::kStart, process}));
    supervision_.OnStarted(process, now_);
    return now_ - from;
  }

  Supervision::Time now_{1h};
  Supervision supervision_{{.processes = 3,
                            .first_wait = 500ms,
                            .longest_wait = 3s,
                            .steady = 1min,
                            .stop_limit = 40s,
                            .hurried_limit = 10s}};
};

TEST_F(SupervisionTest, AllAreStartedAtOnceAndThenNothingIsDue) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(supervision_.running(i));
  EXPECT_THAT(Due(), IsEmpty());
  EXPECT_EQ(supervision_.next(), std::nullopt);
  EXPECT_EQ(supervision_.exit_code(), std::nullopt);
  EXPECT_EQ(supervision_.restarts(0), 0u);
}

TEST_F(SupervisionTest, OneThatCrashesIsStartedAgainAloneAndLaterEachTime) {
  for (const auto wait : {500ms, 1000ms, 2000ms, 3000ms, 3000ms}) {
    EXPECT_THAT(Ends(1, kCrash), IsEmpty());
    EXPECT_FALSE(supervision_.running(1));
    EXPECT_EQ(supervision_.starts_at(1), now_ + wait);
    EXPECT_EQ(Waits(1), wait);
  }
  EXPECT_EQ(supervision_.restarts(1), 5u);
  EXPECT_EQ(supervision_.restarts(0), 0u);
  EXPECT_EQ(supervision_.exit_code(), std::nullopt);
}

TEST_F(SupervisionTest, OneThatHasRunForLongIsStartedAgainSoonAfterACrash) {
  for (int i = 0; i < 3; ++i) Ends(1, kCrash), Waits(1);
  now_ += 1min;
  Ends(1, kCrash);
  EXPECT_EQ(Waits(1), 500ms);
}

TEST_F(SupervisionTest, OneThatSomebodyStoppedIsStartedAgain) {
  EXPECT_THAT(Ends(0, Code(0)), IsEmpty());
  EXPECT_EQ(Waits(0), 500ms);
}

TEST_F(SupervisionTest, OneThatEndsByItsOwnDecisionEndsAllWithItsCode) {
  for (const int code : {kFailed, kUsage}) {
    Supervision supervision({.processes = 3});
    for (const Action& start : supervision.OnTime(now_)) supervision.OnStarted(start.process, now_);
    EXPECT_THAT(supervision.OnEnded(1, Code(code), now_),
                ElementsAre(Action{Act::kStop, 0}, Action{Act::kStop, 2}));
    EXPECT_EQ(supervision.exit_code(), std::nullopt);
    supervision.OnEnded(0, Code(0), now_);
    supervision.OnEnded(2, Code(kFailed), now_);
    EXPECT_EQ(supervision.exit_code(), code) << "the first one's";
  }
}

TEST_F(SupervisionTest, ACodeThatNoProcessHasIsAFailure) {
  Ends(0, Code(127));
  Ends(1, Code(0));
  Ends(2, Code(0));
  EXPECT_EQ(supervision_.exit_code(), kFailed);
}

TEST_F(SupervisionTest, AStopIsSentToAllAtOnceAndASecondOneHandedOnToThoseThatStillRun) {
  EXPECT_THAT(
      supervision_.OnStop(now_),
      UnorderedElementsAre(Action{Act::kStop, 0}, Action{Act::kStop, 1}, Action{Act::kStop, 2}));
  Ends(1, Code(0));
  EXPECT_THAT(supervision_.OnStop(now_),
              UnorderedElementsAre(Action{Act::kStop, 0}, Action{Act::kStop, 2}));
  Ends(0, Code(0));
  EXPECT_EQ(supervision_.exit_code(), std::nullopt);
  Ends(2, Code(0));
  EXPECT_EQ(supervision_.exit_code(), kOk);
  EXPECT_EQ(supervision_.next(), std::nullopt) << "nothing is killed that does not run";
}

TEST_F(SupervisionTest, OneThatWaitsForItsStartIsNotStartedAfterAStop) {
  Ends(1, kCrash);
  EXPECT_THAT(supervision_.OnStop(now_), ElementsAre(Action{Act::kStop, 0}, Action{Act::kStop, 2}));
  now_ += 5s;
  EXPECT_THAT(Due(), IsEmpty());
  Ends(0, Code(0));
  Ends(2, Code(0));
  EXPECT_EQ(supervision_.exit_code(), kOk);
}

TEST_F(SupervisionTest, OneThatCrashesOnItsWayOutIsAFailureAndNotStartedAgain) {
  supervision_.OnStop(now_);
  EXPECT_THAT(Ends(1, kCrash), IsEmpty());
  EXPECT_EQ(supervision_.starts_at(1), std::nullopt);
  Ends(0, Code(0));
  Ends(2, Code(0));
  EXPECT_EQ(supervision_.exit_code(), kFailed);
}

TEST_F(SupervisionTest, OneThatDoesNotEndIsKilledWhenItsTimeIsUpAndASecondStopShortensIt) {
  supervision_.OnStop(now_);
  EXPECT_EQ(supervision_.next(), now_ + 40s);
  now_ += 5s;
  supervision_.OnStop(now_);
  EXPECT_EQ(supervision_.next(), now_ + 10s);
  Ends(0, Code(0));
  now_ += 10s;
  EXPECT_THAT(Due(), UnorderedElementsAre(Action{Act::kKill, 1}, Action{Act::kKill, 2}));
  EXPECT_THAT(Due(), IsEmpty()) << "once";
  EXPECT_EQ(supervision_.next(), std::nullopt);
  Ends(1, {.by_signal = true, .value = SIGKILL});
  Ends(2, {.by_signal = true, .value = SIGKILL});
  EXPECT_EQ(supervision_.exit_code(), kFailed);
}

TEST_F(SupervisionTest, ALateSecondStopDoesNotLengthenTheTime) {
  const auto limit = now_ + 40s;
  supervision_.OnStop(now_);
  now_ += 35s;
  supervision_.OnStop(now_);
  EXPECT_EQ(supervision_.next(), limit);
}

TEST(Supervision, AStartThatTheSystemRefusesIsTriedAgain) {
  Supervision supervision({.processes = 1, .first_wait = 500ms});
  const Supervision::Time now{1h};
  EXPECT_THAT(supervision.OnTime(now), ElementsAre(Action{Act::kStart, 0}));
  supervision.OnEnded(0, {.by_signal = true}, now);
  EXPECT_EQ(supervision.starts_at(0), now + 500ms);
}

}  // namespace
}  // namespace fencepost::cli
