// What operators see of a running worker.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/pipeline_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Observe : public PipelineTest {
 protected:
  Observe() : options_(Worker(Text(4))), worker_(options_) {
    (void)Produced(500, 4);
    EXPECT_TRUE(AllCommitted());
  }

  WorkerOptions options_;
  WorkerProcess worker_;
};

TEST_F(Observe, PromtoolAcceptsTheMetricsPage) {
  ProcessOptions promtool;
  promtool.argv = {"promtool", "check", "metrics"};
  promtool.stdin_text = worker_.Get("/metrics").body;
  const Finished checked = RunToEnd(std::move(promtool));
  EXPECT_EQ(checked.exit_code, 0);
  EXPECT_EQ(checked.output, "");
}

TEST_F(Observe, LiveReadyAndStatusAnswer) {
  EXPECT_EQ(worker_.Get("/live").status, 200);
  EXPECT_EQ(worker_.Get("/ready").status, 200);
  const auto status = nlohmann::json::parse(worker_.Get("/status").body);
  EXPECT_EQ(status["worker"], "worker-1");
  EXPECT_EQ(status["ready"], true);
  const auto& pipeline = status["pipelines"][0];
  EXPECT_EQ(pipeline["pipeline"], name_);
  EXPECT_EQ(pipeline["nodes"].size(), 5U);
  EXPECT_EQ(pipeline["partitions"].size(), 4U);
  EXPECT_THAT(pipeline["last_errors"], IsEmpty());
}

TEST_F(Observe, ATakenPortIsSaidAndNothingRuns) {
  const std::string taken = fmt::format("127.0.0.1:{}", worker_.port());
  const Finished second = RunFencepost({"run", options_.files[0], "--http", taken});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_EQ(second.output, "");
  EXPECT_THAT(second.error_output,
              AllOf(HasSubstr(taken), HasSubstr("in use"), HasSubstr("--http")));
}

class ObserveOutages : public PipelineTest {};

TEST_F(ObserveOutages, ReadyAndStatusNameAllThatIsAwayTheGravestFirst) {
  PipelineText text = Text(1);
  text.topic = name_ + "-missing";
  text.nodes = "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3";
  table_->Exec("DROP TABLE effects");
  WorkerProcess worker(Worker(text));
  const auto three = [&] {
    const std::string all = nlohmann::json::parse(worker.Get("/status").body)["reasons"].dump();
    return all.find("no quorum") != all.npos && all.find("effects") != all.npos &&
           all.find("does not exist (yet)") != all.npos;
  };
  ASSERT_TRUE(WaitUntil(seconds(30), "three reasons", three)) << worker.Readiness();
  const auto pipeline = nlohmann::json::parse(worker.Get("/status").body)["pipelines"][0];
  const auto reasons = pipeline["reasons"].get<std::vector<std::string>>();
  ASSERT_EQ(reasons.size(), 3U);
  EXPECT_THAT(reasons[0], AllOf(HasSubstr("lock: no quorum of lock nodes: 3 of 3 nodes are away "
                                          "(127.0.0.1:1: "),
                                HasSubstr("; 127.0.0.1:3: ")));
  EXPECT_THAT(reasons[1], AllOf(HasSubstr("output: "), HasSubstr("effects")));
  EXPECT_THAT(reasons[2], HasSubstr("kafka: topic '" + text.topic + "' does not exist (yet)"));
  EXPECT_EQ(pipeline["reason"], fmt::format("{}; {}; {}", reasons[0], reasons[1], reasons[2]));
  EXPECT_EQ(worker.Readiness(), fmt::format("not ready: {0}: {1}; {0}: {2}; {0}: {3}\n", name_,
                                            reasons[0], reasons[1], reasons[2]));
  EXPECT_EQ(worker.Get("/live").status, 200);
}

}  // namespace
}  // namespace fencepost::testing
