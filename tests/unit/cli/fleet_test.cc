#include "consumer/fleet/fleet.h"

#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/cli/top/fleet_lines.h"
#include "consumer/fleet/fleet_look.h"

namespace fencepost::cli {
namespace {

using consumer::Fleet;
using consumer::FleetMember;
using consumer::FleetRow;
using consumer::FleetState;
using consumer::RowOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// What a worker's /status has of this, with more than is looked at.
std::string StatusOf(const std::string& worker, const std::string& partitions,
                     const std::string& more = R"("ready": true, "reasons": [])") {
  return fmt::format(
      R"({{"worker": "{}", "version": "1.2", "libraries": {{}}, "pipelines": [)"
      R"({{"pipeline": "other"}}, {{"pipeline": "orders", {}, "lag": 7, "records_per_second": 2.6,)"
      R"("counts": {{"lock_contended": 3, "lock_expired": {{"waiting": 4, "writing": 1}},)"
      R"("lock_losses": 1, "dead_lettered": 2, "done": 9}}, "partitions": [{}]}}]}})",
      worker, more, partitions);
}

std::string Partition(int number, const char* topic = "orders", const char* more = "") {
  return fmt::format(R"({{"topic": "{}", "partition": {}{}}})", topic, number, more);
}

FleetRow Answered(const tl::expected<std::string, std::string>& status) {
  return RowOf({.address = "10.0.0.7:9464", .worker = "worker-7", .status = status}, "orders");
}

FleetRow Row(const std::string& worker, const std::string& partitions) {
  return RowOf({.address = "h:1", .worker = worker, .status = StatusOf(worker, partitions)},
               "orders");
}

Fleet FleetOf(std::vector<FleetRow> rows) {
  return {
      .pipeline = "orders", .group = "shop", .rows = std::move(rows), .problem = {}, .topics = {}};
}

TEST(Fleet, HasALineAWorkerTheTotalsAndWhatNobodyHas) {
  const std::string old = R"(, "oldest_age_seconds": 125.4)";
  Fleet fleet = FleetOf({Row("worker-1", Partition(0) + "," + Partition(1, "orders", old.c_str())),
                         Row("worker-2", Partition(3))});
  fleet.topics = std::map<std::string, int>{{"orders", 5}};
  EXPECT_THAT(
      LinesOf(fleet, 110),
      ElementsAre(
          "pipeline orders, group shop: 2 workers, version 1.2",
          "WORKER    STATE  LAG     OLDEST  REC/S  CONTENDED  EXPIRED  LOST  DEAD  PARTITIONS",
          "worker-1  ready    7  2 min 5 s      3          3        5     1     2  0-1",
          "worker-2  ready    7          -      3          3        5     1     2  3",
          "all               14  2 min 5 s      5          6       10     2     4  0-1,3",
          "no worker that answered has orders 2,4"));
  EXPECT_EQ(ExitCodeOf(fleet), 0);
}

TEST(Fleet, TellsWhoIsInTroubleAndWhoDoesNotAnswer) {
  const std::string unready = R"("ready": false, "reasons": ["kafka: no broker\nserves us", "x"])";
  const Fleet fleet = FleetOf({Answered(StatusOf("worker-7", Partition(0), unready)),
                               Answered(tl::unexpected<std::string>("no answer: timed out"))});
  const auto lines = LinesOf(fleet, 110);
  EXPECT_THAT(lines[2], HasSubstr("worker-7  NOT READY    7"));
  EXPECT_THAT(lines[3], StartsWith("worker-7  ?"));
  EXPECT_EQ(lines[5], "worker-7: kafka: no broker serves us; x");
  EXPECT_EQ(lines[6], "worker-7: 10.0.0.7:9464: no answer: timed out");
}

TEST(Fleet, TakesNothingOfAnAnswerThatIsNone) {
  struct Case {
    const char* status;
    FleetState state;
    const char* why;
  };
  for (const Case& one :
       {Case{"<html>", FleetState::kSilent, "its /status is none of a worker of this version"},
        Case{"{}", FleetState::kSilent, "its /status is none of a worker of this version"},
        Case{R"({"worker": "worker-7", "version": "1", "pipelines": []})", FleetState::kOther,
             "it has no pipeline orders"},
        Case{R"({"worker": "worker-7", "version": "1", "pipelines":
                 [{"pipeline": "orders", "ready": true, "lag": 5}]})",
             FleetState::kSilent, "its /status is none of a worker of this version"}}) {
    const FleetRow row = Answered(one.status);
    EXPECT_EQ(row.trouble, fmt::format("10.0.0.7:9464: {}", one.why));
    EXPECT_EQ(row.state, one.state) << one.status;
    EXPECT_EQ(row.lag, 0);
  }
}

TEST(Fleet, IsAFailureWhereAWorkerIsSilentOrNoneHasThePipeline) {
  const FleetRow ready = Row("w", Partition(0));
  const FleetRow silent = Answered(tl::unexpected<std::string>("no answer"));
  const FleetRow other =
      Answered(R"({"worker": "worker-7", "version": "1", "pipelines": [{"pipeline": "mails"}]})");
  struct Case {
    std::vector<FleetRow> rows;
    int code;
  };
  for (const Case& one : {Case{{ready}, 0}, Case{{ready, silent}, 1}, Case{{silent}, 1},
                          Case{{other}, 1}, Case{{ready, other}, 0}, Case{{}, 1}}) {
    EXPECT_EQ(ExitCodeOf(FleetOf(one.rows)), one.code) << one.rows.size();
  }
}

TEST(Fleet, SaysWhatIsNotKnown) {
  Fleet fleet = FleetOf({Row("w", Partition(0))});
  fleet.topics = tl::unexpected<std::string>("orders: the topic does not exist");
  EXPECT_THAT(LinesOf(fleet, 110).back(),
              "the partitions without a worker are not known: orders: the topic does not exist");
  fleet.problem = Error{"kafka_admin", "no answer", "shop", ""};
  EXPECT_EQ(LinesOf(fleet, 110).back(), "the other workers are not known: shop: no answer");
  EXPECT_EQ(ExitCodeOf(fleet), 1);
}

TEST(Fleet, ShowsNoneOfAnAnswersControlCharactersAndNumbersWithinReason) {
  const std::string odd =
      R"({"worker": "w\u001b[2J", "version": "1\n2\u001b]52;c;", "pipelines": [)"
      R"({"pipeline": "orders", "ready": true, "reasons": ["a\u001b"], "lag": 1e300,)"
      R"( "records_per_second": 1e300, "counts": {"lock_contended": -3, "lock_losses": 1e300,)"
      R"( "lock_expired": 1e300, "dead_lettered": 0}, "partitions":)"
      R"( [{"topic": "o\u0007", "partition": 1e300,)"
      R"( "oldest_age_seconds": 1152921504606846976}]}]})";
  const FleetRow row = RowOf({.address = "h:1", .worker = "", .status = odd}, "orders");
  Fleet fleet = FleetOf({row, row});
  fleet.topics = std::map<std::string, int>{{"a", 1}};
  for (const std::string& line : LinesOf(fleet, 250)) {
    EXPECT_TRUE(std::ranges::none_of(line, [](char c) { return c >= 0 && c < ' '; })) << line;
  }
  EXPECT_TRUE(row.answered());
  EXPECT_EQ(row.contended, 0);
}

TEST(Fleet, CountsNoWorkerTwiceWhoAnswersInAnothersPlace) {
  const FleetRow row =
      RowOf({.address = "h:1", .worker = "worker-2", .status = StatusOf("worker-1", Partition(0))},
            "orders");
  EXPECT_EQ(row.state, FleetState::kSilent);
  EXPECT_EQ(row.worker, "worker-2");
  EXPECT_EQ(row.trouble, "h:1: worker-1 answers there, not worker-2: give each observe.advertise");
}

TEST(Fleet, NamesTopicsWhereThereAreSeveralAndCutsLongLines) {
  const Fleet fleet =
      FleetOf({Row("w", Partition(0, "a") + "," + Partition(2, "a") + "," + Partition(0, "b"))});
  EXPECT_THAT(LinesOf(fleet, 110)[2], HasSubstr("a 0,2; b 0"));
  for (const std::string& line : LinesOf(fleet, 20)) EXPECT_LE(line.size(), 22U) << line;
  EXPECT_THAT(LinesOf(fleet, 20)[0], ::testing::EndsWith("…"));
}

TEST(Fleet, WritesRangesOfPartitions) {
  EXPECT_EQ(consumer::RangesOf({}), "");
  EXPECT_EQ(consumer::RangesOf({4}), "4");
  EXPECT_EQ(consumer::RangesOf({0, 1, 2, 4, 6, 7}), "0-2,4,6-7");
}

TEST(Members, AreAskedOnceEachWhereTheySayElseAtTheHostThatTheGroupSees) {
  const auto at = [](const char* worker, const char* address, const char* trouble = "") {
    return FleetMember{.worker = worker, .address = address, .trouble = trouble};
  };
  EXPECT_THAT(
      consumer::MembersAt({{.name = {"b", ""}, .host = "10.0.0.2"},
                           {.name = {"a", ""}, .host = "fd00::1"},
                           {.name = {"b", ""}, .host = "10.0.0.2"},
                           {.name = {"c", "c.example:9000"}, .host = "10.0.0.2"},
                           {.name = {"kcat", ""}, .host = ""}},
                          "0.0.0.0:9464"),
      ElementsAre(at("a", "[fd00::1]:9464"), at("b", "10.0.0.2:9464"), at("c", "c.example:9000"),
                  at("kcat", "", "the group does not say where it is")));
  EXPECT_THAT(consumer::MembersAt({{.name = {"a", ""}, .host = "h"}}, ""),
              ElementsAre(at("a", "", "its port is not known: give observe.advertise")));
}

TEST(Members, LeadToNothingButAPort) {
  for (const char* odd : {"h:1/x", "h:1?x", "h:1#x", "u:p@h:1", "h", "h:", ":1", "h:1 ", "h:x"}) {
    const auto found =
        consumer::MembersAt({{.name = {"a", odd}, .host = "10.0.0.2"}}, "0.0.0.0:9464");
    EXPECT_EQ(found.front().address, "") << odd;
    EXPECT_EQ(found.front().trouble, "where it says that it is reached is not HOST:PORT");
  }
}

}  // namespace
}  // namespace fencepost::cli
