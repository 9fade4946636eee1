// Workers that are asked over HTTP, and the port that asks them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <vector>

#include "consumer/fleet/fleet_look.h"
#include "metrics/http/http_server.h"
#include "tests/component/metrics_http/raw_client.h"
#include "tests/support/process.h"

namespace fencepost::metrics {
namespace {

using namespace std::chrono_literals;
using consumer::Fleet;
using consumer::FleetLook;
using consumer::FleetRow;
using consumer::FleetState;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Status(const std::string& worker) {
  return fmt::format(
      R"({{"worker": "{}", "version": "1", "pipelines": [{{"pipeline": "orders", "ready": true,)"
      R"("reasons": [], "lag": 1, "records_per_second": 0, "counts": {{"lock_contended": 0,)"
      R"("lock_expired": {{}}, "lock_losses": 0, "dead_lettered": 0}}, "partitions": []}}]}})",
      worker);
}

class AskedWorkers : public ::testing::Test {
 protected:
  // Where a worker with this /status is asked.
  std::string Worker(std::function<std::string()> status, const std::string& token = "") {
    Endpoints endpoints;
    endpoints.status = std::move(status);
    if (!token.empty()) endpoints.auth.bearer = token;
    auto server = HttpServer::Start("127.0.0.1:0", std::move(endpoints));
    EXPECT_TRUE(server);
    servers_.push_back(std::move(*server));
    return servers_.back()->bound();
  }
  std::map<std::string, FleetRow> Look(const std::vector<std::string>& addresses,
                                       std::chrono::milliseconds limit = 20s) const {
    consumer::PipelineOptions pipeline;
    pipeline.name = "orders";
    FleetLook look({pipeline}, port_, {.workers = limit});
    std::map<std::string, FleetRow> rows;
    const Fleet fleet = look.Look(addresses).front();
    for (const FleetRow& row : fleet.rows) rows[row.address] = row;
    EXPECT_EQ(rows.size(), addresses.size());
    return rows;
  }

  consumer::ObserveOptions port_;
  std::vector<std::unique_ptr<HttpServer>> servers_;
};

// Each waits until all have been asked.
TEST_F(AskedWorkers, AreAskedAllAtOnce) {
  constexpr int kWorkers = 12;
  std::atomic<int> asked{0};
  std::vector<std::string> addresses;
  for (int i = 0; i < kWorkers; ++i) {
    addresses.push_back(Worker([&asked, i] {
      ++asked;
      EXPECT_TRUE(testing::WaitUntil(20s, [&] { return asked == kWorkers; }));
      return Status(fmt::format("worker-{}", i));
    }));
  }
  for (const auto& [address, row] : Look(addresses, 60s)) {
    EXPECT_EQ(row.state, FleetState::kReady) << address << row.trouble;
  }
}

TEST_F(AskedWorkers, ThatDoNotAnswerAreRowsThatSayWhyAndHoldUpNobody) {
  std::promise<void> release;
  const auto released = release.get_future().share();
  const std::string good = Worker([] { return Status("worker-1"); });
  const std::string slow = Worker([released] {
    released.wait();
    return Status("worker-2");
  });
  const std::string long_one = Worker([] { return std::string((4UL << 20) + 1, ' '); });
  const std::string shut = Worker([] { return Status("worker-4"); }, "token");
  const std::string none = fmt::format("127.0.0.1:{}", testing::FreePort());
  const auto rows = Look({good, slow, long_one, shut, none}, 2s);
  release.set_value();
  EXPECT_EQ(rows.at(good).state, FleetState::kReady) << rows.at(good).trouble;
  for (const auto& [address, why] :
       {std::pair(slow, "no answer: Timeout"), std::pair(long_one, "no answer: its answer is too"),
        std::pair(shut, "HTTP 401"), std::pair(none, "no answer: Could")}) {
    EXPECT_EQ(rows.at(address).state, FleetState::kSilent);
    EXPECT_THAT(rows.at(address).trouble, StartsWith(fmt::format("{}: {}", address, why)));
  }
}

TEST_F(AskedWorkers, AreToldTheTokenOfTheFile) {
  const std::string shut = Worker([] { return Status("worker-1"); }, "token");
  port_.auth.bearer = "token";
  EXPECT_EQ(Look({shut}).at(shut).state, FleetState::kReady);
}

// Any member of the group chooses where it is asked.
TEST_F(AskedWorkers, AreToldNoCredentialsInClearByAWorker) {
  std::atomic<int> asked{0};
  const std::string member = Worker([&] {
    ++asked;
    return Status("worker-2");
  });
  port_.auth.bearer = "token";
  consumer::PipelineOptions pipeline;
  pipeline.name = "orders";
  const FleetLook look({pipeline}, port_, {},
                       FleetLook::Own{"worker-1", [] { return Status("worker-1"); }});
  std::vector<Fleet> fleets = look.Empty();
  look.Ask(fleets, {{{.worker = "worker-1", .address = "10.0.0.1:9464", .trouble = ""},
                     {.worker = "worker-2", .address = member, .trouble = ""}}});
  ASSERT_EQ(fleets.front().rows.size(), 2U);
  EXPECT_EQ(fleets.front().rows[0].state, FleetState::kReady) << fleets.front().rows[0].trouble;
  EXPECT_EQ(fleets.front().rows[1].state, FleetState::kSilent);
  EXPECT_THAT(fleets.front().rows[1].trouble, HasSubstr("would be sent observe.auth in clear"));
  EXPECT_EQ(asked, 0);
}

TEST_F(AskedWorkers, OfSeveralPipelinesAreAskedOnceAndThoseOfOneNameAreTold) {
  std::atomic<int> asked{0};
  const std::string address = Worker([&] {
    ++asked;
    return Status("worker-2");
  });
  consumer::PipelineOptions orders, mails;
  orders.name = "orders";
  mails.name = "mails";
  const FleetLook look({orders, mails}, port_, {.workers = 20s},
                       FleetLook::Own{"worker-1", [] { return Status("worker-1"); }});
  std::vector<Fleet> fleets = look.Empty();
  const consumer::FleetMember one{.worker = "worker-2", .address = address, .trouble = ""};
  look.Ask(fleets, {{one,
                     {.worker = "worker-1", .address = "10.0.0.1:1", .trouble = ""},
                     {.worker = "worker-1", .address = "10.0.0.2:1", .trouble = ""}},
                    {one}});
  EXPECT_EQ(asked, 1);
  ASSERT_EQ(fleets[0].rows.size(), 3U);
  EXPECT_EQ(fleets[0].rows[1].trouble, "10.0.0.2:1: another worker has this name, too");
  EXPECT_EQ(fleets[0].rows[2].state, FleetState::kReady) << fleets[0].rows[2].trouble;
  ASSERT_EQ(fleets[1].rows.size(), 2U);
  EXPECT_EQ(fleets[1].rows[1].state, FleetState::kOther);
}

class FleetOfThePort : public ::testing::Test {
 protected:
  void SetUp() override {
    Endpoints endpoints;
    endpoints.status = [] { return std::string("{}"); };
    endpoints.fleet = [this] {
      ++looks_;
      released_.wait();
      return std::string("<p>fleet</p>");
    };
    endpoints.fleet_fragment = [] { return std::string("<p>middle</p>"); };
    endpoints.fleet_json = [] { return std::string("{\"worker\":1}"); };
    auto server = HttpServer::Start("127.0.0.1:0", std::move(endpoints));
    ASSERT_TRUE(server) << server.error().Line();
    server_ = std::move(*server);
  }
  std::string Get(const std::string& path) { return Ask(server_->port(), "GET", path); }

  std::promise<void> release_;
  std::shared_future<void> released_ = release_.get_future().share();
  std::atomic<int> looks_{0};
  std::unique_ptr<HttpServer> server_;
};

TEST_F(FleetOfThePort, IsAPageAndJson) {
  release_.set_value();
  const std::string page = Get("/fleet");
  EXPECT_THAT(page, HasSubstr("\r\nContent-Type: text/html; charset=utf-8\r\n"));
  EXPECT_THAT(page, HasSubstr("\r\nContent-Security-Policy: default-src 'none'; style-src 'sha"));
  EXPECT_EQ(BodyOf(page), "<p>fleet</p>");
  EXPECT_EQ(BodyOf(Get("/fleet-fragment")), "<p>middle</p>");
  const std::string json = Get("/fleet.json?x=1");
  EXPECT_THAT(json, HasSubstr("\r\nContent-Type: application/json\r\n"));
  EXPECT_EQ(BodyOf(json), "{\"worker\":1}");
  EXPECT_EQ(StatusOf(Get("/fleet/")), "404");
}

TEST_F(FleetOfThePort, HoldsUpNoOtherPageHoweverManyWaitForIt) {
  std::vector<int> waiting;
  for (const char* path : {"/fleet", "/%66leet", "/fleet?a", "/fleet", "/fleet", "/%66leet"}) {
    waiting.push_back(Connect("127.0.0.1", server_->port()));
    Say(waiting.back(), fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", path));
  }
  EXPECT_TRUE(testing::WaitUntil(20s, [this] { return looks_ == 2; }));
  EXPECT_EQ(StatusOf(Get("/status")), "200");
  EXPECT_EQ(looks_, 2);
  release_.set_value();
  for (const int fd : waiting) {
    EXPECT_EQ(BodyOf(Hear(fd)), "<p>fleet</p>");
    close(fd);
  }
}

}  // namespace
}  // namespace fencepost::metrics
