#include "consumer/cli/top/fleet.h"

#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What a worker's /status has of this, with more than is looked at.
std::string StatusOf(const std::string& worker, const std::string& partitions,
                     const std::string& more = R"("ready": true, "reason": "")") {
  return fmt::format(
      R"({{"worker": "{}", "version": "1.2", "libraries": {{}}, "pipelines": [)"
      R"({{"pipeline": "other"}}, {{"pipeline": "orders", {}, "lag": 7, "records_per_second": 2.6,)"
      R"("counts": {{"lock_contended": 3, "lock_losses": 1, "dead_lettered": 2, "done": 9}},)"
      R"("partitions": [{}]}}]}})",
      worker, more, partitions);
}

std::string Partition(int number, const char* topic = "orders", const char* more = "") {
  return fmt::format(R"({{"topic": "{}", "partition": {}{}}})", topic, number, more);
}

FleetRow Row(const std::string& worker, const std::string& partitions) {
  return RowOf({.address = "h:1", .client = worker, .status = StatusOf(worker, partitions)},
               "orders");
}

TEST(Fleet, HasALineAWorkerTheTotalsAndWhatNobodyHas) {
  const std::string old = R"(, "oldest_age_seconds": 125.4)";
  Fleet fleet{.pipeline = "orders",
              .group = "shop",
              .rows = {Row("worker-2", Partition(3)),
                       Row("worker-1", Partition(0) + "," + Partition(1, "orders", old.c_str()))},
              .topics = {{{"orders", 5}}}};
  EXPECT_THAT(
      LinesOf(fleet, 100),
      ElementsAre("pipeline orders, group shop: 2 workers, version 1.2",
                  "WORKER    STATE  LAG     OLDEST  REC/S  CONTENDED  LOST  DEAD  PARTITIONS",
                  "worker-1  ready    7  2 min 5 s      3          3     1     2  0-1",
                  "worker-2  ready    7          -      3          3     1     2  3",
                  "all               14  2 min 5 s      5          6     2     4  0-1,3",
                  "no worker that answered has orders 2,4"));
}

TEST(Fleet, TellsWhoIsInTroubleAndWhoDoesNotAnswer) {
  const auto row = [](const tl::expected<std::string, std::string>& status) {
    return RowOf({.address = "10.0.0.7:9464", .client = "worker-7", .status = status}, "orders");
  };
  const std::string unready = R"("ready": false, "reason": "kafka: no broker\nserves us")";
  Fleet fleet{.pipeline = "orders",
              .group = "shop",
              .rows = {row(StatusOf("worker-7", Partition(0), unready)),
                       row(tl::unexpected<std::string>("no answer: timed out"))},
              .topics = {}};
  const auto lines = LinesOf(fleet, 100);
  EXPECT_THAT(lines[2], HasSubstr("worker-7  NOT READY    7"));
  EXPECT_THAT(lines[3], ::testing::StartsWith("worker-7  ?"));
  EXPECT_EQ(lines[5], "worker-7: kafka: no broker serves us");
  EXPECT_EQ(lines[6], "worker-7: 10.0.0.7:9464: no answer: timed out");
  for (const auto& [status, why] :
       {std::pair("<html>", "10.0.0.7:9464: its /status is none of a worker of this version"),
        std::pair("{}", "10.0.0.7:9464: its /status is none of a worker of this version"),
        std::pair(R"({"worker": "worker-7", "version": "1", "pipelines": []})",
                  "10.0.0.7:9464: it has no pipeline orders")}) {
    EXPECT_EQ(row(status).trouble, why);
    EXPECT_FALSE(row(status).answered);
  }
}

TEST(Fleet, ShowsNoneOfAnAnswersControlCharactersAndNumbersWithinReason) {
  const std::string odd =
      R"({"worker": "w\u001b[2J", "version": "1\n2\u001b]52;c;", "pipelines": [)"
      R"({"pipeline": "orders", "ready": true, "reason": "", "lag": 1e300,)"
      R"( "records_per_second": 0, "counts": {"lock_contended": -3, "lock_losses": 1e300,)"
      R"( "dead_lettered": 0}, "partitions":)"
      R"( [{"topic": "o\u0007", "partition": 0, "oldest_age_seconds": 1152921504606846976}]}]})";
  const FleetRow row = RowOf({.address = "h:1", .client = "", .status = odd}, "orders");
  Fleet fleet{.pipeline = "orders", .group = "shop", .rows = {row, row}, .topics = {{{"a", 1}}}};
  for (const std::string& line : LinesOf(fleet, 200)) {
    EXPECT_TRUE(std::ranges::none_of(line, [](char c) { return c >= 0 && c < ' '; })) << line;
  }
  EXPECT_EQ(row.contended, 0);
}

TEST(Fleet, CountsNoWorkerTwiceWhoAnswersInAnothersPlace) {
  const FleetRow row =
      RowOf({.address = "h:1", .client = "worker-2", .status = StatusOf("worker-1", Partition(0))},
            "orders");
  EXPECT_FALSE(row.answered);
  EXPECT_EQ(row.trouble,
            "h:1: worker-1 answers there, not worker-2; name the workers with --worker");
}

TEST(Fleet, NamesTopicsWhereThereAreSeveralAndCutsLongLines) {
  Fleet fleet{
      .pipeline = "orders",
      .group = "shop",
      .rows = {Row("w", Partition(0, "a") + "," + Partition(2, "a") + "," + Partition(0, "b"))},
      .topics = {}};
  EXPECT_THAT(LinesOf(fleet, 100)[2], HasSubstr("a 0,2; b 0"));
  for (const std::string& line : LinesOf(fleet, 20)) EXPECT_LE(line.size(), 22U) << line;
  EXPECT_THAT(LinesOf(fleet, 20)[0], ::testing::EndsWith("…"));
}

TEST(Fleet, WritesRangesOfPartitions) {
  EXPECT_EQ(RangesOf({}), "");
  EXPECT_EQ(RangesOf({4}), "4");
  EXPECT_EQ(RangesOf({0, 1, 2, 4, 6, 7}), "0-2,4,6-7");
}

}  // namespace
}  // namespace fencepost::cli
