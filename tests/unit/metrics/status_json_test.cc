#include "metrics/status/status_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace fencepost::metrics {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

consumer::WorkerStatus Worker(const std::string& pipeline) {
  consumer::WorkerStatus status;
  status.pipeline = pipeline;
  status.worker = "w-1";
  status.version = "1.0";
  status.ready = true;
  status.uptime = 90'500ms;
  status.partitions = {{"orders", 0, 10, 25, 15, 4, 11, false, "waiting for the next attempt",
                        312'900ms, 4012, 3400ms},
                       {"orders", 1, 7, 7, 0, 0, std::nullopt, true, "", 0ms, 0, std::nullopt}};
  status.in_flight_records = 4;
  status.in_flight_bytes = 4096;
  status.leases_held = 3;
  status.nodes = {
      {'a', "127.0.0.1:7001", true, true, false, 0ms, 1500us, ""},
      {'b', "127.0.0.1:7002", false, false, true, 12s, std::nullopt, "connection refused"}};
  status.last_errors = {
      {1'763'695'260'123ms, "node_down", "a quote \" and a bad byte \xff"},
      {1'763'695'270'123ms, "fenced", "late", locking::Severity::kWarn, 7, 1'763'695'260'123ms}};
  return status;
}

ShownProcess Process(std::vector<consumer::WorkerStatus> rows) {
  ShownProcess process{
      .worker = "w-1", .version = "1.0", .libraries = {{"librdkafka", "2.0.2"}}, .pipelines = {}};
  for (auto& row : rows) {
    process.pipelines.push_back({.status = std::move(row),
                                 .counts = {},
                                 .rate = 2.5,
                                 .per_second = {},
                                 .settings = {{"name", "orders"}}});
  }
  return process;
}

TEST(StatusJson, SaysHowAPipelineStands) {
  const json page = json::parse(StatusJson(Process({Worker("orders")})));
  EXPECT_EQ(page["worker"], "w-1");
  EXPECT_EQ(page["version"], "1.0");
  EXPECT_EQ(page["libraries"]["librdkafka"], "2.0.2");
  EXPECT_EQ(page["ready"], true);
  EXPECT_EQ(page["uptime_seconds"], 90.5);
  const json& pipeline = page["pipelines"][0];
  EXPECT_EQ(pipeline["pipeline"], "orders");
  EXPECT_EQ(pipeline["lag"], 15);
  EXPECT_EQ(pipeline["leases_held"], 3);
  EXPECT_EQ(pipeline["in_flight"], json({{"records", 4}, {"bytes", 4096}}));
  EXPECT_EQ(pipeline["partitions"][0], json({{"topic", "orders"},
                                             {"partition", 0},
                                             {"watermark", 10},
                                             {"end", 25},
                                             {"lag", 15},
                                             {"in_flight", 4},
                                             {"oldest_offset", 11},
                                             {"paused", false},
                                             {"oldest_stage", "waiting for the next attempt"},
                                             {"oldest_for_seconds", 312.9},
                                             {"finished_behind", 4012},
                                             {"waits_for",
                                              "orders/0/11: waiting for the next attempt, for 312 "
                                              "s; 4,012 finished records behind it"},
                                             {"oldest_age_seconds", 3.4}}));
  EXPECT_EQ(pipeline["records_per_second"], 2.5);
  EXPECT_EQ(pipeline["settings"]["name"], "orders");
  EXPECT_TRUE(pipeline["partitions"][1]["oldest_offset"].is_null());
}

TEST(StatusJson, SaysWhatIsWrongWithANode) {
  const json page = json::parse(StatusJson(Process({Worker("orders")})));
  const json& nodes = page["pipelines"][0]["nodes"];
  EXPECT_EQ(nodes[0]["clock_offset_ms"], 1.5);
  EXPECT_EQ(nodes[1], json({{"node", "b"},
                            {"address", "127.0.0.1:7002"},
                            {"up", false},
                            {"open", false},
                            {"quarantined", true},
                            {"quarantine_left_ms", 12000},
                            {"clock_offset_ms", nullptr},
                            {"problem", "connection refused"}}));
}

TEST(StatusJson, StaysJsonWhateverAnErrorSays) {
  const json page = json::parse(StatusJson(Process({Worker("orders")})));
  const json& error = page["pipelines"][0]["last_errors"][0];
  EXPECT_EQ(error["when"], 1'763'695'260'123);
  EXPECT_EQ(error["time"], "2025-11-21T03:21:00.123Z");
  EXPECT_EQ(error["text"], "a quote \" and a bad byte \xEF\xBF\xBD");
  EXPECT_EQ(error["level"], "error");
  EXPECT_EQ(error["count"], 1);
  EXPECT_EQ(error["first_time"], error["time"]);
}

TEST(StatusJson, SaysHowOftenAWarningCameAndSinceWhen) {
  const json page = json::parse(StatusJson(Process({Worker("orders")})));
  EXPECT_EQ(page["pipelines"][0]["last_errors"][1],
            json({{"when", 1'763'695'270'123},
                  {"time", "2025-11-21T03:21:10.123Z"},
                  {"level", "warn"},
                  {"event", "fenced"},
                  {"text", "late"},
                  {"count", 7},
                  {"first_time", "2025-11-21T03:21:00.123Z"}}));
}

TEST(StatusJson, IsReadyOnlyIfAllPipelinesAre) {
  auto refunds = Worker("refunds");
  refunds.ready = false;
  refunds.reason = "lock: clock; kafka: joining the group";
  refunds.reasons = {{.code = consumer::ReasonCode::kLockClock},
                     {.code = consumer::ReasonCode::kKafkaJoining}};
  const json page = json::parse(StatusJson(Process({Worker("orders"), refunds})));
  EXPECT_EQ(page["ready"], false);
  EXPECT_EQ(page["reason"], "refunds: lock: clock; kafka: joining the group");
  EXPECT_EQ(page["reasons"], json({"refunds: lock: clock", "refunds: kafka: joining the group"}));
  EXPECT_EQ(page["pipelines"].size(), 2U);
  EXPECT_EQ(page["pipelines"][1]["reasons"], json({"lock: clock", "kafka: joining the group"}));
  EXPECT_EQ(json::parse(StatusJson({}))["ready"], false);
}

TEST(StatusJson, NamesAStallThatLeavesThePipelineReady) {
  auto orders = Worker("orders");
  orders.reasons = {
      {.code = consumer::ReasonCode::kStalled, .detail = "orders/0/11: handling for 301 s"}};
  const json page = json::parse(StatusJson(Process({orders})));
  EXPECT_EQ(page["ready"], true);
  EXPECT_EQ(page["reason"], "");
  EXPECT_EQ(page["reasons"], json({"orders: stalled: orders/0/11: handling for 301 s"}));
}

}  // namespace
}  // namespace fencepost::metrics
