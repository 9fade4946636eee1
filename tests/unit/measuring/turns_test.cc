// The arithmetic of ./dev bench: who runs when, medians, and ratios.
#include "tests/bench/shared/turns.h"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A side whose rounds measure these one after the other.
Side Measuring(std::string name, bool reference, std::vector<double> rounds) {
  return {.name = std::move(name), .reference = reference, .turn = [rounds, next = 0]() mutable {
            const double value = rounds.at(static_cast<std::size_t>(next++));
            return Figures{{"records_per_s", value}, {"p50_ms", 1000 / value}};
          }};
}

TEST(Median, IsTheMiddleOneOrTheMeanOfTheTwoInTheMiddle) {
  EXPECT_EQ(Median({}), 0);
  EXPECT_EQ(Median({7}), 7);
  EXPECT_EQ(Median({9, 1, 5}), 5);
  EXPECT_EQ(Median({100, 1, 2, 3}), 2.5);
}

TEST(Turns, AreTakenRoundByRound) {
  std::vector<std::string> order;
  const auto side = [&order](const std::string& name) {
    return Side{.name = name, .turn = [&order, name] {
                  order.push_back(name);
                  return Figures{{"n", 1.0}};
                }};
  };
  const Json told = TakeTurns({.bench = "b", .of = Json::object(), .words = "", .rounds = 2},
                              {side("floor"), side("ours")});
  EXPECT_THAT(order, ElementsAre("floor", "ours", "floor", "ours"));
  EXPECT_EQ(told.at("rounds"), 2);
}

// What slows both sides of a round does not move their ratio. The ratio of the medians would be 1.
TEST(Turns, TellTheMedianOfTheRatiosNotTheRatioOfTheMedians) {
  const Json told =
      TakeTurns({.bench = "b", .of = Json::object(), .words = "", .rounds = 3},
                {Measuring("floor", true, {100, 10, 50}), Measuring("ours", false, {50, 200, 25})});
  const Json& ours = told.at("sides").at(1);
  EXPECT_EQ(told.at("sides").at(0).at("figures").at("records_per_s"), 50);
  EXPECT_EQ(ours.at("figures").at("records_per_s"), 50);
  EXPECT_EQ(ours.at("ratios").at("floor").at("records_per_s"), 0.5);
  EXPECT_FALSE(ours.at("ratios").at("floor").contains("p50_ms"));
  EXPECT_FALSE(told.at("sides").at(0).contains("ratios"));
}

TEST(Turns, CompareTheFiguresThatAreAskedForWithEachReference) {
  const Json told = TakeTurns(
      {.bench = "b", .of = Json::object(), .words = "", .rounds = 1, .compared = {"p50_ms"}},
      {Measuring("floor", true, {100}), Measuring("peer", true, {10}),
       Measuring("ours", false, {50})});
  const Json& ratios = told.at("sides").at(2).at("ratios");
  EXPECT_EQ(ratios.at("floor").at("p50_ms"), 2);
  EXPECT_EQ(ratios.at("peer").at("p50_ms"), 0.2);
  EXPECT_FALSE(ratios.at("floor").contains("records_per_s"));
}

TEST(Turns, LeaveOursOutWhereTheReferencesAloneAreWanted) {
  const Json told = TakeTurns(
      {.bench = "b", .of = Json::object(), .words = "", .rounds = 1, .references_only = true},
      {Measuring("floor", true, {1}), Measuring("ours", false, {})});
  EXPECT_EQ(told.at("sides").size(), 1);
}

TEST(Turns, EndWithWhatATurnThrows) {
  const Side broken{.name = "ours",
                    .turn = []() -> Figures { throw std::runtime_error("2 effects for 1 ids"); }};
  EXPECT_THROW(TakeTurns({.bench = "b", .of = Json::object(), .words = "", .rounds = 1}, {broken}),
               std::runtime_error);
}

TEST(Turns, AreATableThatNamesWhatWasMeasured) {
  const std::string table = Table(
      TakeTurns({.bench = "locks", .of = {{"in_flight", 256}}, .words = "five nodes", .rounds = 1},
                {Measuring("floor", true, {200}), Measuring("ours", false, {150})}));
  EXPECT_THAT(table, HasSubstr("locks in_flight=256; five nodes; medians of 1; load "));
  EXPECT_THAT(table, HasSubstr("0.75 of floor's records_per_s\n"));
}

TEST(CpuMeter, TellsMicrosecondsARecordSinceItsStart) {
  double spent = 3;
  CpuMeter meter;
  meter.Add("client_us", [&spent] { return spent; });
  meter.Start();
  spent = 5;
  EXPECT_THAT(meter.PerRecord(1e6), ElementsAre(::testing::Pair("client_us", 2.0)));
}

TEST(Number, HasAboutThreeDigits) {
  EXPECT_EQ(Number(31977.4), "31977");
  EXPECT_EQ(Number(12.34), "12.3");
  EXPECT_EQ(Number(5.024), "5.02");
  EXPECT_EQ(Number(0.4321), "0.432");
  EXPECT_EQ(Number(0), "0");
}

}  // namespace
}  // namespace fencepost::bench
