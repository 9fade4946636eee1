#include "metrics/status/fleet_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>

#include "consumer/fleet/fleet_watch.h"

namespace fencepost::metrics {
namespace {

using namespace std::chrono_literals;
using consumer::Fleet;
using consumer::FleetRow;
using consumer::FleetState;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

FleetRow Row(const std::string& worker, FleetState state = FleetState::kReady,
             const std::string& trouble = "") {
  FleetRow row{.worker = worker, .address = "10.0.0.7:9464"};
  row.state = state;
  row.trouble = trouble;
  if (!row.answered()) return row;
  row.version = "1.2.3";
  row.partitions = {{"orders", {0, 1}}};
  row.lag = 1'234'567;
  row.oldest = 125.4;
  row.rate = 812.25;
  row.contended = 3;
  row.expired = 4;
  row.lost = 5;
  row.letters = 6;
  return row;
}

ShownFleet Shown(std::vector<FleetRow> rows) {
  Fleet fleet{.pipeline = "orders",
              .group = "shop",
              .rows = std::move(rows),
              .problem = {},
              .topics = std::map<std::string, int>{{"orders", 2}}};
  return {.worker = "worker-1", .version = "1.2.3", .now = 0ms, .fleets = {std::move(fleet)}};
}

TEST(FleetPage, SaysOfEachWorkerWhatTeamsAskFor) {
  const std::string page = FleetPage(Shown({Row("worker-1"), Row("worker-2")}));
  for (const char* text : {"worker-2", "1.2.3", "group shop", "1,234,567", "2 min 5 s", "812",
                           ">0-1<", ">ready<", "2 workers answer, all ready.",
                           "oldest: 2 min 5 s; records/s: 812; contended: 3; "
                           "expired: 4; lost: 5; dead letters: 6; partitions: 0-1",
                           "2,469,134", "data-from=\"fleet-fragment\"", "href=\"fleet.json\""}) {
    EXPECT_THAT(page, HasSubstr(text));
  }
  EXPECT_THAT(page, Not(HasSubstr("<li class")));
}

TEST(FleetPage, PutsWhatIsWrongFirst) {
  struct Case {
    FleetState state;
    const char *trouble, *tag, *verdict;
  };
  for (const Case& one : {Case{FleetState::kNotReady, "lock: no quorum", "not ready",
                               "1 of 2 workers needs attention."},
                          Case{FleetState::kSilent, "h:1: no answer: timed out", "no answer",
                               "1 of 2 workers needs attention."},
                          Case{FleetState::kOther, "h:1: it has no pipeline orders",
                               "other pipelines", "2 workers answer, all ready."}}) {
    const std::string page =
        FleetFragment(Shown({Row("worker-1"), Row("worker-2", one.state, one.trouble)}));
    EXPECT_THAT(page, AllOf(HasSubstr(one.trouble), HasSubstr(one.tag), HasSubstr(one.verdict)));
    EXPECT_LT(page.find(one.verdict), page.find("<section"));
  }
}

TEST(FleetPage, NamesPartitionsThatNobodyHasVersionsAndWhatIsNotKnown) {
  ShownFleet shown = Shown({Row("worker-1"), Row("worker-2")});
  Fleet& fleet = shown.fleets.front();
  fleet.rows[1].version = "1.3";
  fleet.topics = std::map<std::string, int>{{"orders", 4}};
  const std::string page = FleetFragment(shown);
  EXPECT_THAT(page, HasSubstr("No worker that answered has orders 2-3."));
  EXPECT_THAT(page, HasSubstr("They have several versions: 1.2.3, 1.3."));
  EXPECT_LT(page.find("No worker that"), page.find("They have several"));
  fleet.topics = tl::unexpected<std::string>("no broker answers");
  EXPECT_THAT(FleetFragment(shown),
              HasSubstr("The partitions without a worker are not known: no broker answers."));
  fleet.problem = Error{"kafka_admin", "no answer", "shop", ""};
  EXPECT_THAT(FleetFragment(shown), HasSubstr("The other workers are not known: shop: no answer."));
}

TEST(FleetPage, EscapesWhatOthersSay) {
  FleetRow odd = Row("<script>w</script>", FleetState::kNotReady, "<script>t</script>");
  odd.version = "<script>v</script>";
  odd.partitions = {{"<script>a</script>", {0}}, {"<script>b</script>", {1}}};
  EXPECT_THAT(FleetFragment(Shown({odd})), Not(HasSubstr("<script>")));
}

TEST(FleetPage, IsJsonForPrograms) {
  ShownFleet shown =
      Shown({Row("worker-1"), Row("worker-2", FleetState::kSilent, "h:1: no answer: \xff")});
  shown.fleets.front().rows.front().oldest = {};
  const auto json = nlohmann::json::parse(FleetJson(shown));
  EXPECT_EQ(json.at("worker"), "worker-1");
  const auto& pipeline = json.at("pipelines").at(0);
  EXPECT_EQ(pipeline.at("pipeline"), "orders");
  EXPECT_EQ(pipeline.at("group"), "shop");
  EXPECT_TRUE(pipeline.at("problem").is_null());
  EXPECT_EQ(pipeline.at("without_worker"), nlohmann::json::object());
  EXPECT_EQ(pipeline.at("workers").at(0),
            nlohmann::json::parse(R"({"worker": "worker-1", "address": "10.0.0.7:9464",
                "state": "ready", "trouble": "", "version": "1.2.3", "lag": 1234567,
                "oldest_age_seconds": null, "records_per_second": 812.25,
                "counts": {"lock_contended": 3, "lock_expired": 4, "lock_losses": 5,
                           "dead_lettered": 6}, "partitions": {"orders": [0, 1]}})"));
  EXPECT_EQ(pipeline.at("workers").at(1).at("state"), "no answer");
  EXPECT_FALSE(pipeline.at("workers").at(1).contains("lag"));
  shown.fleets.front().topics = tl::unexpected<std::string>("no broker answers");
  EXPECT_TRUE(
      nlohmann::json::parse(FleetJson(shown)).at("pipelines").at(0).at("without_worker").is_null());
}

TEST(FleetWatch, LooksOnceASecondHoweverManyAsk) {
  consumer::FleetWatch::Clock::time_point now{};
  int looks = 0;
  consumer::FleetWatch watch(
      [&] {
        ++looks;
        now += 5s;  // it takes as long
        return std::vector<Fleet>(static_cast<std::size_t>(looks));
      },
      [&] { return now; });
  EXPECT_EQ(watch.Latest().size(), 1U);
  EXPECT_EQ(watch.Latest().size(), 1U);
  now += 999ms;
  EXPECT_EQ(watch.Latest().size(), 1U);
  now += 1ms;
  EXPECT_EQ(watch.Latest().size(), 2U);
  EXPECT_EQ(looks, 2);
}

}  // namespace
}  // namespace fencepost::metrics
