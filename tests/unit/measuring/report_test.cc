// RESULTS.md and its charts, from lines as ./dev bench prints them.
#include "tests/bench/report/report.h"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/bench/report/aims.h"
#include "tests/bench/report/chart.h"
#include "tests/bench/report/sizes.h"
#include "tests/support/process.h"

namespace fencepost::bench {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Json Measured(const std::string& bench, Json of, const std::string& side, double per_s,
              double ratio) {
  return {{"bench", bench},
          {"of", std::move(of)},
          {"words", "floor: the least"},
          {"rounds", 5},
          {"load", 0.1},
          {"sides",
           {{{"name", "floor"}, {"figures", {{"records_per_s", 1000.0}}}},
            {{"name", side},
             {"figures", {{"records_per_s", per_s}}},
             {"ratios", {{"floor", {{"records_per_s", ratio}}}}}}}}};
}

Json Point(const std::string& curve, const Json& x, double per_s) {
  return {{"bench", "growth"},
          {"of", {{"curve", curve}, {"x", x}, {"by", "id"}}},
          {"words", ""},
          {"rounds", 1},
          {"load", 0.1},
          {"sides", {{{"name", "1 worker"}, {"figures", {{"records_per_s", per_s}}}}}}};
}

const Aim& PositionAim() { return Aims().front(); }

TEST(Report, ShowsEachSideWithItsFiguresAndRatios) {
  const std::string text =
      Results({Measured("pipeline", {{"records", 300000}}, "by position, 1 worker", 1200, 1.2)});
  EXPECT_THAT(text, HasSubstr("## pipeline\nfloor: the least.\n"));
  EXPECT_THAT(text, HasSubstr("| records | side | records_per_s | records_per_s of floor | rounds "
                              "| load |\n"));
  EXPECT_THAT(text, HasSubstr("| 300000 | by position, 1 worker | 1200 | 1.20 | 5 | 0.1 |\n"));
  EXPECT_THAT(text, HasSubstr("| 300000 | floor | 1000 |  | 5 | 0.1 |\n"));
}

TEST(Report, SaysOfEachAimWhetherItIsReachedMissedOrNotMeasured) {
  const auto row = [](double ratio) {
    return Results({Measured("pipeline", Json::object(), "by position, 1 worker", 1, ratio)});
  };
  EXPECT_THAT(row(1.0), HasSubstr("of the floor | ≥ 1.00 | 1.00 | reached |"));
  EXPECT_THAT(row(0.9), HasSubstr("of the floor | ≥ 1.00 | 0.900 | missed |"));
  EXPECT_THAT(Results({}), HasSubstr("of the floor | ≥ 1.00 | not measured |  |"));
}

TEST(Report, CountsTheBestSideForAnAimAndNoneWithOtherSettings) {
  Json several = Measured("pipeline", Json::object(), "by position, 1 worker", 1, 0.8);
  Json more = several.at("sides").at(1);
  more["name"] = "by position, 1 worker, otherwise";
  more["ratios"]["floor"]["records_per_s"] = 1.1;
  several["sides"].push_back(more);
  const Json other =
      Measured("pipeline", {{"set", "lock.contact=quorum"}}, "by position, 1 worker", 1, 9);
  const Json by_id = Measured("pipeline", Json::object(), "by id, 1 worker", 1, 7);
  EXPECT_EQ(bench::Measured(PositionAim(), {other, several, by_id}), 1.1);
  EXPECT_EQ(bench::Measured(PositionAim(), {other, by_id}), std::nullopt);
}

TEST(Report, ComparesThePointsOfACurveWithItsFirst) {
  const std::string text =
      Results({Point("slow-node", "none", 1000), Point("slow-node", "dead", 900)});
  EXPECT_THAT(text, HasSubstr("## Growth: slow-node\n![slow-node](results/growth-slow-node.svg)"));
  EXPECT_THAT(text, HasSubstr("| none | 1000 | 1.00 |\n| dead | 900 | 0.90 |\n"));
}

TEST(Report, DrawsAChartForEachCurve) {
  const auto charts =
      Charts({Point("nodes", 1, 100), Point("nodes", 3, 50), Point("workers", 1, 7)});
  ASSERT_EQ(charts.size(), 2u);
  EXPECT_THAT(charts.at("growth-nodes.svg"),
              AllOf(HasSubstr("<svg "), HasSubstr(">by id</text>"), HasSubstr(">3</text>")));
}

// The axis goes from 300 (0) to 50 (the highest, rounded up).
TEST(Chart, PutsPointsWhereTheirValuesAre) {
  const Chart chart{.title = "a < b",
                    .x = "",
                    .y = "",
                    .labels = {"1", "2"},
                    .series = {{"s", {100, 50}}, {"gap", {std::nullopt, 0}}}};
  const std::string svg = chart.Svg();
  EXPECT_THAT(svg, HasSubstr("points=\"235.0,50.0 545.0,175.0 \""));
  EXPECT_THAT(svg, HasSubstr("points=\"545.0,300.0 \""));
  EXPECT_THAT(svg, AllOf(HasSubstr("a &lt; b"), Not(HasSubstr("a < b"))));
  EXPECT_EQ(RoundUp(0), 1);
  EXPECT_EQ(RoundUp(31977), 50000);
  EXPECT_EQ(RoundUp(0.21), 0.25);
  EXPECT_EQ(RoundUp(100), 100);
}

TEST(Measurements, AreReadFromFilesAndTheLaterOneOfTheSameCounts) {
  const testing::TempDir dir;
  const Json of = {{"records", 1}};
  const Json run = {{"bench", "run"}, {"command", "./dev bench pipeline"}};
  const std::string first = dir.Write(
      "a.jsonl", run.dump() + "\n" + Measured("pipeline", of, "ours", 1, 1).dump() + "\n");
  const std::string second =
      dir.Write("b.jsonl", run.dump() + "\n" + Measured("pipeline", of, "ours", 2, 1).dump() +
                               "\n" + Measured("kafka", of, "ours", 3, 1).dump() + "\n");
  const auto lines = ReadMeasurements({first, second});
  ASSERT_EQ(lines.size(), 4u);  // two runs
  EXPECT_EQ(lines.at(1).at("sides").at(1).at("figures").at("records_per_s"), 2);
}

TEST(Measurements, OfACurveAreThoseOfTheLastRunOnly) {
  const testing::TempDir dir;
  const std::string first =
      dir.Write("a.jsonl", Point("ledger", 0, 1).dump() + "\n" + Point("ledger", 1, 1).dump() +
                               "\n" + Point("nodes", 1, 1).dump() + "\n");
  const std::string second = dir.Write(
      "b.jsonl", Point("ledger", 0, 2).dump() + "\n" + Point("ledger", 9, 2).dump() + "\n");
  std::vector<std::string> points;
  for (const Json& line : ReadMeasurements({first, second})) points.push_back(line.at("of").dump());
  EXPECT_THAT(points, ElementsAre(Point("nodes", 1, 1).at("of").dump(),
                                  Point("ledger", 0, 2).at("of").dump(),
                                  Point("ledger", 9, 2).at("of").dump()));
}

TEST(Measurements, AreRefusedWithTheLineThatIsNone) {
  const testing::TempDir dir;
  const std::string path = dir.Write("a.jsonl", "{\"bench\":\"run\"}\nKilled\n");
  try {
    ReadMeasurements({path});
    FAIL() << "it was taken";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(error.what(), path + ":2: no measurement");
  }
  EXPECT_THROW(ReadMeasurements({dir.File("gone")}), std::runtime_error);
}

TEST(Report, IsWrittenIntoAFolderWithItsCharts) {
  const testing::TempDir dir;
  const Json run = {
      {"bench", "run"},
      {"command", "./dev bench growth nodes"},
      {"at", "2026-11-24 12:00 UTC"},
      {"version", "fencepost 1"},
      {"machine", {{"cpu", "a cpu"}, {"cores", 2}, {"memory_gib", 23}, {"kernel", "6.1"}}},
      {"librdkafka", "2.0.2"},
      {"redis", "7.0"}};
  WriteReport({dir.Write("g.jsonl", run.dump() + "\n" + Point("nodes", 1, 5).dump() + "\n")},
              dir.path());
  EXPECT_THAT(
      testing::ReadFile(dir.File("RESULTS.md")),
      HasSubstr("| `./dev bench growth nodes` | 2026-11-24 12:00 UTC | fencepost 1 | a cpu, "
                "2 cores, 23 GiB, Linux 6.1 | 2.0.2 | 7.0 |"));
  EXPECT_THAT(testing::ReadFile(dir.File("results/growth-nodes.svg")), HasSubstr("</svg>"));
}

Json Pipeline(const std::string& side, double us) {
  return {{"bench", "pipeline"},
          {"of", {{"records", 1}}},
          {"words", ""},
          {"rounds", 1},
          {"load", 0},
          {"sides",
           {{{"name", side},
             {"figures",
              {{"records_per_s", 50'000.0},
               {"client_us", us},
               {"redis_us", us},
               {"postgres_us", us},
               {"kafka_us", 1.0}}}}}}};
}

TEST(Sizes, AreLaidOutForHalfTheLoad) {
  const auto costs =
      CostsOf("id", {Pipeline("by position, 1 worker", 1), Pipeline("by id, 1 worker", 10)});
  ASSERT_TRUE(costs.has_value());
  const Fleet fleet = FleetFor(1'000'000, *costs, false);
  EXPECT_EQ(fleet.workers, 40);       // of 50,000 a second, half used
  EXPECT_EQ(fleet.worker_cores, 20);  // 10 cores busy
  EXPECT_EQ(fleet.database_cores, 20);
  EXPECT_EQ(fleet.broker_cores, 2);
  EXPECT_EQ(fleet.groups, 4);  // 10 busy cores, 2 a node of five, half used
  EXPECT_EQ(fleet.node_load, 0.5);
  EXPECT_EQ(fleet.connections, 40);
  // 20 s of leases on three nodes of five, in four groups.
  EXPECT_NEAR(fleet.node_mib, 1e6 * 20 * 0.6 * 190 / 4 / (1 << 20), 1);
}

TEST(Sizes, HaveTwoWorkersAndOneGroupAtLeast) {
  const auto costs = CostsOf("position", {Pipeline("by position, 1 worker", 1)});
  ASSERT_TRUE(costs.has_value());
  const Fleet fleet = FleetFor(10, *costs, true);
  EXPECT_EQ(fleet.workers, 2);
  EXPECT_EQ(fleet.groups, 1);
  EXPECT_EQ(fleet.node_mib, 0);
}

TEST(Sizes, StandBetweenTheMarksOfTheDocument) {
  const std::string document = "before\n<!-- sizes -->\nold\n<!-- end of sizes -->\nafter";
  const std::string text = WithSizes(document, {Pipeline("by id, 1 worker", 10)});
  EXPECT_THAT(text, AllOf(HasSubstr("before\n<!-- sizes -->\n| records/s |"),
                          HasSubstr("\n| 1,000,000 | id | 40 | 20.0 | 4 | 50.0 |"),
                          HasSubstr("<!-- end of sizes -->\nafter"), Not(HasSubstr("old"))));
  EXPECT_THROW(WithSizes("no marks", {}), std::runtime_error);
}

}  // namespace
}  // namespace fencepost::bench
