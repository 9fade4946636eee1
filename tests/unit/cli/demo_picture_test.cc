// What the demo shows: a picture for a terminal, lines for all else, and what was proved.
#include <gmock/gmock.h>

#include "consumer/cli/demo/orders.h"
#include "consumer/cli/demo/picture.h"

namespace fencepost::cli {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::Not;
using ::testing::ResultOf;
using ::testing::SizeIs;
using ::testing::StartsWith;

Terminal Ordinary() {
  return {.is_one = true, .columns = 80, .rows = 24, .term = "xterm", .locale = "C.UTF-8"};
}

Picture AfterTheKill(int workers = 3) {
  Picture picture{.sum = {.skipped = 597, .contended = 202, .expired = 1431, .late_writes = 2},
                  .rows = 11833,
                  .orders = 19023,
                  .rows_per_second = 3214.4,
                  .age = std::chrono::seconds(14),
                  .step = "waiting until 12,000 records are done"};
  for (int i = 1; i <= workers; ++i) {
    picture.workers.push_back(
        {.name = "worker-" + std::to_string(i),
         .last = {.processed = 8000, .skipped = 301, .held = 1204, .partitions = 4}});
  }
  picture.workers[1].state = WorkerState::kKilled;
  return picture;
}

TEST(DemoStyle, IsWhatTheTerminalAndItsUserAdmit) {
  struct Case {
    std::string name;
    std::function<void(Terminal&)> change;
    bool live, color, blocks;
    int width;
  };
  for (const Case& one : std::vector<Case>{
           {"ordinary", [](Terminal&) {}, true, true, true, 80},
           {"a pipe", [](Terminal& t) { t.is_one = false; }, false, false, true, 80},
           {"NO_COLOR", [](Terminal& t) { t.no_color = "1"; }, true, false, true, 80},
           {"dumb", [](Terminal& t) { t.term = "dumb"; }, false, false, true, 80},
           {"no TERM", [](Terminal& t) { t.term = ""; }, false, false, true, 80},
           {"Latin", [](Terminal& t) { t.locale = "de_DE.ISO-8859-1"; }, true, true, false, 80},
           {"no locale", [](Terminal& t) { t.locale = ""; }, true, true, false, 80},
           {"utf8", [](Terminal& t) { t.locale = "en_US.utf8"; }, true, true, true, 80},
           {"narrow", [](Terminal& t) { t.columns = 40; }, true, true, true, 40},
           {"too narrow", [](Terminal& t) { t.columns = 39; }, false, false, true, 39},
           {"too low", [](Terminal& t) { t.rows = 9; }, false, false, true, 80},
           {"of no known size", [](Terminal& t) { t.columns = t.rows = 0; }, true, true, true, 80},
           {"COLUMNS", [](Terminal& t) { t.columns_variable = "60"; }, true, true, true, 60},
           {"COLUMNS too few", [](Terminal& t) { t.columns_variable = "9"; }, false, false, true,
            9},
           {"COLUMNS too many", [](Terminal& t) { t.columns_variable = "200"; }, true, true, true,
            80},
           {"COLUMNS of an unknown size",
            [](Terminal& t) { t.columns = 0, t.columns_variable = "200"; }, true, true, true, 200},
           {"COLUMNS no number", [](Terminal& t) { t.columns_variable = "8o"; }, true, true, true,
            80},
           {"COLUMNS negative", [](Terminal& t) { t.columns_variable = "-5"; }, true, true, true,
            80},
           {"COLUMNS zero", [](Terminal& t) { t.columns_variable = "0"; }, true, true, true, 80},
           {"COLUMNS huge", [](Terminal& t) { t.columns_variable = "99999999999"; }, true, true,
            true, 80}}) {
    Terminal terminal = Ordinary();
    one.change(terminal);
    const Style style = StyleOf(terminal);
    EXPECT_EQ(style.live, one.live) << one.name;
    EXPECT_EQ(style.color, one.color) << one.name;
    EXPECT_EQ(style.blocks, one.blocks) << one.name;
    EXPECT_EQ(style.width, one.width) << one.name;
  }
}

TEST(DemoPicture, ShowsEachWorkerTheTableAndTheLocks) {
  Style style{.live = true};
  EXPECT_THAT(
      Draw(AfterTheKill(), style),
      ElementsAre("",
                  "  worker-1  running    4 partitions   1,204 locks held     8,301 records done",
                  "  worker-2  killed    held 1,204 locks when it was killed",
                  "  worker-3  running    4 partitions   1,204 locks held     8,301 records done",
                  "  #############.........   62 %  11,833 of 19,023 orders in the table, 3,214/s",
                  "  skipped 597, contended 202, expired 1,431, taken over 0, refused 2",
                  "   14 s  waiting until 12,000 records are done"));
}

TEST(DemoPicture, LeavesOutWhatANarrowTerminalHasNoRoomFor) {
  EXPECT_THAT(
      Draw(AfterTheKill(), {.live = true, .width = 40}),
      ElementsAre("", "  worker-1  running    4 partitions",
                  "  worker-2  killed    held 1,204 locks", "  worker-3  running    4 partitions",
                  "  ######....   62 %  11,833 of 19,023", "  skipped 597, contended 202",
                  "   14 s  waiting until 12,000 record..."));
}

TEST(DemoPicture, SaysOfAWorkerWhatItDoes) {
  Picture picture = AfterTheKill(1);
  picture.workers = {{.name = "worker-1"}};
  const auto said = [&picture](WorkerState state, std::int64_t partitions) {
    picture.workers[0].state = state;
    picture.workers[0].last.partitions = partitions;
    return Draw(picture, {})[1];
  };
  EXPECT_THAT(said(WorkerState::kRunning, 0), HasSubstr("joining"));
  EXPECT_THAT(said(WorkerState::kRunning, 4), HasSubstr("running"));
  EXPECT_THAT(said(WorkerState::kFrozen, 4),
              HasSubstr("frozen    held 0 locks when it was frozen"));
  EXPECT_THAT(said(WorkerState::kStopping, 4), HasSubstr("stopping"));
  EXPECT_THAT(said(WorkerState::kEnded, 4), HasSubstr("ended"));
}

TEST(DemoPicture, FitsEveryTerminalThatItIsDrawnOn) {
  for (const bool color : {false, true}) {
    for (const int width : {40, 41, 60, 79, 80, 132, 400}) {
      for (const int height : {10, 24}) {
        const Style style{
            .live = true, .color = color, .blocks = color, .width = width, .height = height};
        const auto lines = Draw(AfterTheKill(40), style);
        EXPECT_THAT(lines, Each(ResultOf(ColumnsOf, Lt(width)))) << width;
        EXPECT_THAT(lines, SizeIs(Lt(static_cast<std::size_t>(height))));
      }
    }
  }
}

TEST(DemoPicture, HasNoEscapesWithoutColorAndTheSameWordsWithIt) {
  Style style{.live = true};
  const auto plain = Draw(AfterTheKill(), style);
  EXPECT_THAT(plain, Each(Not(HasSubstr("\x1b"))));
  style.color = true;
  const auto colored = Draw(AfterTheKill(), style);
  EXPECT_THAT(colored, Contains(HasSubstr("\x1b[31mkilled    \x1b[0m")));
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(ColumnsOf(colored[i]), ColumnsOf(plain[i])) << i;
  }
}

TEST(DemoPicture, HasABarThatIsNeverMoreThanFull) {
  Picture picture = AfterTheKill();
  for (const auto& [rows, orders, bar] :
       std::vector<std::tuple<std::size_t, std::size_t, std::string>>{
           {0, 0, "  ..............................    0 %"},
           {0, 10, "  ..............................    0 %"},
           {10, 10, "  ##############################  100 %"},
           {11, 10, "  ##############################  100 %"}}) {
    picture.rows = rows;
    picture.orders = orders;
    EXPECT_THAT(Draw(picture, {.width = 120}), Contains(StartsWith(bar)));
  }
}

TEST(DemoPicture, IsOneLineWhereThereIsNoTerminal) {
  EXPECT_EQ(
      ProgressLine(AfterTheKill()),
      " 14 s  11,833 of 19,023 orders in the table, 3,214/s; waiting until 12,000 records are "
      "done");
}

TEST(DemoWords, SayWhatWasProved) {
  EXPECT_THAT(
      WordsOf({.orders = 19023, .late_writes = 2}),
      ElementsAre("19,023 orders, one worker killed, one frozen while it held locks: none lost, "
                  "none doubled.",
                  "The frozen worker's 2 late writes were refused."));
  EXPECT_THAT(WordsOf({.late_writes = 1})[1], "The frozen worker's 1 late write was refused.");
  EXPECT_THAT(WordsOf({})[1],
              "The frozen worker saw that its locks were over, and wrote nothing late.");
}

TEST(DemoWords, SayWhatWasNotProved) {
  EXPECT_THAT(WordsOf({.orders = 8, .lost = 1, .doubled = 1200, .foreign = 3})[0],
              "8 orders, one worker killed, one frozen while it held locks: 1 lost, "
              "1,200 doubled, 3 that nobody sent.");
}

TEST(DemoOrders, AreTheSameForASeedAndSomeComeTwice) {
  EXPECT_EQ(Orders::DistinctOf(20'000, 1), 19'023U);
  EXPECT_EQ(Orders::DistinctOf(1000, 7), Orders::DistinctOf(1000, 7));
}

TEST(Grouped, HasACommaEveryThreeDigits) {
  for (const auto& [number, text] : std::vector<std::pair<std::int64_t, std::string>>{
           {0, "0"}, {999, "999"}, {1000, "1,000"}, {123456, "123,456"}, {1234567, "1,234,567"}}) {
    EXPECT_EQ(Grouped(number), text);
  }
}

}  // namespace
}  // namespace fencepost::cli
