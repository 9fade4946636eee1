#include "metrics/status_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace fencepost::metrics {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

ShownProcess Process() {
  ShownPipeline shown;
  shown.status.pipeline = "orders";
  shown.status.ready = false;
  shown.status.reason = "lock: no quorum of lock nodes";
  shown.status.uptime = 3'725'000ms;
  shown.status.partitions = {
      {"orders", 3, 1'234'567, 1'234'600, 33, 4, 1'234'567, true, "handling", 3400ms}};
  shown.status.nodes = {
      {'a', "redis-a:6379", true, true, false, 0ms, 1500us, ""},
      {'b', "redis-b:6379", false, false, false, 0ms, std::nullopt, "connection refused"}};
  shown.status.last_errors = {{1'763'695'260'123ms, "redis_node_away", "<script>x</script> \xff"}};
  shown.counts.rounds = 200;
  shown.counts.contended = 5;
  shown.counts.expired = {1, 2, 3, 4};
  shown.counts.violations = 1;
  shown.rate = 812.25;
  shown.per_second = {1, 5, 3};
  shown.settings = {{"lock.ttl", "10s"}, {"output.postgres.dsn", "(not shown)"}};
  return {.worker = "pod-1", .version = "1.2.3", .pipelines = {shown}};
}

TEST(StatusPage, SaysTheEssentialsWithoutAnyScript) {
  const std::string page = StatusPage(Process());
  for (const char* text :
       {"pod-1", "1.2.3", "orders/3", "1,234,567", "1234567, handling, 3.4 s old", "812.2/s",
        "lock: no quorum of lock nodes", "redis-b:6379", "connection refused", "+1.5 ms", "2.5%",
        "not ready", "1 h 2 min", "paused", "redis_node_away", "lock.ttl", "(not shown)"}) {
    EXPECT_THAT(page, HasSubstr(text));
  }
}

TEST(StatusPage, EscapesWhatCameFromElsewhere) {
  const std::string page = StatusPage(Process());
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;x&lt;/script&gt; \xEF\xBF\xBD"));
  EXPECT_EQ(EscapeHtml("a&b\"c'd"), "a&amp;b&quot;c&#39;d");
}

TEST(StatusPage, LoadsNothingFromElsewhere) {
  const std::string page = StatusPage(Process());
  EXPECT_THAT(page, Not(HasSubstr("http://")));
  EXPECT_THAT(page, Not(HasSubstr("https://")));
  EXPECT_THAT(page, Not(HasSubstr("src=")));
}

TEST(StatusPage, AnEventIsOneLineOfJson) {
  const std::string event = StatusEvent(Process());
  EXPECT_TRUE(event.starts_with("data: \""));
  EXPECT_TRUE(event.ends_with("\"\n\n"));
  EXPECT_EQ(std::count(event.begin(), event.end(), '\n'), 2);
}

TEST(StatusPage, SaysThatItStartsBeforeThereIsAPipeline) {
  EXPECT_THAT(StatusPage({}), HasSubstr("Starting."));
}

}  // namespace
}  // namespace fencepost::metrics
