// A worker whose lock nodes the test writes to by hand, as other workers, restores and accidents
// would.
#pragma once

#include <nlohmann/json.hpp>

#include "tests/e2e/trouble/trouble_test.h"
#include "tests/support/stored_locks.h"

namespace fencepost::testing {

class MetricsTest : public TroubleTest {
 protected:
  using Labels = MetricsPage::Labels;
  using Millis = std::chrono::milliseconds;

  static locking::WallTime Wall() { return locking::ReadClocks().wall; }
  static locking::Token TokenAt(Millis from_now) {
    return locking::Token::AtWall(Wall() + from_now);
  }
  static std::string HeldBy(locking::Token token, Millis rest) {
    return HeldValue(token, Wall() + rest);
  }
  [[nodiscard]] std::string Key(const std::string& id) const {
    return "fencepost:{" + name_ + "}:" + id;
  }
  // What stands at this name on the first `count` nodes from now on.
  void Put(RedisServers& nodes, const std::string& id, const std::string& value,
           std::size_t count = 5) const {
    for (std::size_t node = 0; node < count; ++node) {
      nodes[node].Command({"SET", Key(id), value, "PX", "60000"});
    }
  }
  void Remove(RedisServers& nodes, const std::string& id) const {
    for (std::size_t node = 0; node < nodes.size(); ++node) nodes[node].Command({"DEL", Key(id)});
  }
  static void ExpectMoves(WorkerProcess& worker, const std::string& metric,
                          const Labels& labels = {}, double above = 0) {
    std::string series = metric;
    for (const auto& [name, value] : labels) series += fmt::format(" {}={}", name, value);
    EXPECT_TRUE(WaitUntil(
        std::chrono::seconds(60), [&] { return worker.Now("fencepost_" + metric, labels) > above; },
        series))
        << worker.Readiness() << worker.Get("/status").body.substr(0, 300);
  }
  void ExpectViolation(WorkerProcess& worker, const std::string& invariant,
                       const std::string& id) const {
    ExpectMoves(worker, "invariant_violations_total", {{"invariant", invariant}});
    const auto line = [&]() -> nlohmann::json {
      std::istringstream log(worker.Log());
      for (std::string text; std::getline(log, text);) {
        const auto one = nlohmann::json::parse(text, nullptr, false);
        if (!one.is_object()) continue;
        const bool about = one.value("event", "") == "invariant_violated" &&
                           one.value("record_id", "") == id &&
                           one.value("text", "").find(invariant) != std::string::npos;
        if (about) return one;
      }
      return nullptr;
    };
    ASSERT_TRUE(WaitUntil(
        std::chrono::seconds(10), [&] { return line().is_object(); }, "the log to tell it"))
        << worker.Log();
    const auto told = line();
    EXPECT_EQ(told.value("level", ""), "error");
    EXPECT_EQ(told.value("topic", ""), name_);
    EXPECT_GE(told.value("offset", -1), 0);
    EXPECT_GT(told.value("token", std::int64_t{0}), 0);
  }
  // Waits until the service has been called for this order.
  [[nodiscard]] ::testing::AssertionResult Called(const std::string& id, int times = 1) const {
    return WaitUntil(
        std::chrono::seconds(60), [&] { return CallsOf(id) >= times; }, "a call for " + id);
  }
};

}  // namespace fencepost::testing
