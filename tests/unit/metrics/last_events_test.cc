#include "metrics/log/last_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost::metrics {
namespace {

using namespace std::chrono_literals;
using locking::Severity;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LastEventsTest : public ::testing::Test {
 protected:
  void Keep(Severity level, const std::string& event, const std::string& text,
            const std::string& record = "") {
    now_ += 1s;
    events_.Keep(level, "orders", event, text, record + text, now_);
  }
  std::vector<std::string> Texts() {
    std::vector<std::string> texts;
    for (const auto& one : events_.Of("orders")) texts.push_back(one.text);
    return texts;
  }

  std::chrono::milliseconds now_ = 100s;
  LastEvents events_;
};

TEST_F(LastEventsTest, AreErrorsAndWarningsInTheOrderOfTheirTime) {
  Keep(Severity::kWarn, "redis_node_away", "refused");
  Keep(Severity::kError, "commit_failed", "no");
  Keep(Severity::kInfo, "redis_node_back", "not kept");
  Keep(Severity::kWarn, "handler_failed", "503");
  EXPECT_THAT(Texts(), ElementsAre("refused", "no", "503"));
  EXPECT_EQ(events_.Of("orders")[0].level, Severity::kWarn);
  EXPECT_EQ(events_.Of("orders")[1].level, Severity::kError);
  EXPECT_THAT(events_.Of("mails"), IsEmpty());
}

TEST_F(LastEventsTest, FoldRepeatsIntoTheLastOne) {
  Keep(Severity::kWarn, "handler_failed", "503", "orders/0/1: ");
  Keep(Severity::kWarn, "handler_failed", "504");
  Keep(Severity::kWarn, "handler_failed", "503", "orders/0/2: ");
  EXPECT_THAT(Texts(), ElementsAre("504", "orders/0/2: 503"));
  const auto last = events_.Of("orders").back();
  EXPECT_EQ(last.count, 2U);
  EXPECT_EQ(last.first, 101s);
  EXPECT_EQ(last.when, 103s);
}

TEST_F(LastEventsTest, KeepAnErrorHoweverManyWarningsCome) {
  Keep(Severity::kError, "commit_failed", "no");
  for (int i = 0; i < 1000; ++i) Keep(Severity::kWarn, "e", std::to_string(i));
  EXPECT_EQ(Texts().size(), 1 + LastEvents::kLast);
  EXPECT_EQ(Texts().front(), "no");
  EXPECT_EQ(Texts().back(), "999");
}

TEST_F(LastEventsTest, LetAFloodPushOutOnlyItself) {
  Keep(Severity::kWarn, "redis_node_away", "a");
  Keep(Severity::kWarn, "redis_node_away", "b");
  for (int i = 0; i < 1000; ++i) Keep(Severity::kWarn, "dead_lettered", std::to_string(i));
  const auto texts = Texts();
  EXPECT_EQ(texts[0], "a");
  EXPECT_EQ(texts[1], "b");
  EXPECT_EQ(texts[2], "982");
}

TEST_F(LastEventsTest, DropTheOldestWhereAllEventsAreDifferent) {
  for (int i = 0; i < 25; ++i) Keep(Severity::kError, "e" + std::to_string(i), std::to_string(i));
  EXPECT_EQ(Texts().front(), "5");
  EXPECT_EQ(Texts().back(), "24");
}

}  // namespace
}  // namespace fencepost::metrics
