// `run --processes 2` on real servers: one port, one process to signal, one exit code.
#include <csignal>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/e2e/trouble/trouble_test.h"

namespace fencepost::testing {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

constexpr int kPartitions = 4;

class Processes : public TroubleTest {
 protected:
  WorkerOptions Two(const PipelineText& text) const {
    WorkerOptions options = Worker(text);
    options.name = "w";
    options.processes = 2;
    return options;
  }
  static json Status(const WorkerProcess& worker) {
    return json::parse(worker.Get("/status").body, nullptr, false);
  }
  static pid_t PidOf(const WorkerProcess& worker, int process) {
    const json pid = Status(worker)["processes"][process]["pid"];
    return pid.is_number() ? pid.get<pid_t>() : -1;
  }
  static MetricsPage::Labels Of(int process) { return {{"process", std::to_string(process)}}; }
  static ::testing::AssertionResult AllReady(const WorkerProcess& worker) {
    return WaitUntil(
        seconds(40), [&] { return worker.Ready(); }, "/ready: " + worker.Readiness());
  }
  ::testing::AssertionResult Shared(WorkerProcess& worker) const {
    const auto owns = [&](int process) {
      return worker.Now("fencepost_partitions_assigned", Of(process)) == kPartitions / 2;
    };
    return WaitUntil(
        seconds(40), [&] { return owns(0) && owns(1); }, "each process to have its share");
  }
  static ::testing::AssertionResult Says(const WorkerProcess& worker, const std::string& text,
                                         int times = 1) {
    return WaitUntil(
        seconds(30), [&] { return Times(worker.Log(), text) >= times; },
        fmt::format("'{}' {} times in the log", text, times));
  }
  static int Times(const std::string& log, const std::string& text) {
    int times = 0;
    for (std::size_t at = 0; (at = log.find(text, at)) != std::string::npos; ++at) ++times;
    return times;
  }
  static bool Exists(pid_t pid) { return kill(pid, 0) == 0; }
};

TEST_F(Processes, ShareThePartitionsAndAreOneToWhoLooks) {
  const PipelineText text = Text(kPartitions);
  Orders orders(Kafka().bootstrap(), name_, kPartitions, 1, 0.05);
  orders.Produce(500);
  WorkerProcess worker(Two(text));
  EXPECT_TRUE(Shared(worker)) << worker.Log();
  EXPECT_TRUE(AllReady(worker)) << worker.Log();
  orders.Produce(500);
  EXPECT_TRUE(Effects(orders.unique())) << worker.Log();
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_EQ(table_->Audit(name_, orders.unique()), "");

  const std::string page = worker.Get("/metrics").body;
  const Finished checked = RunToEnd({.argv = {"promtool", "check", "metrics"}, .stdin_text = page});
  EXPECT_EQ(checked.exit_code, 0) << checked.output;
  EXPECT_EQ(checked.output, "");
  std::set<std::pair<std::string, MetricsPage::Labels>> seen;
  const MetricsPage parsed(page);
  for (const auto& series : parsed.series()) {
    EXPECT_TRUE(seen.emplace(series.name, series.labels).second) << series.name << " twice";
    EXPECT_TRUE(series.labels.contains("process")) << series.name;
  }
  EXPECT_EQ(parsed.Value("fencepost_records_consumed_total"), orders.produced());
  EXPECT_GT(parsed.Value("fencepost_records_consumed_total", Of(0)), 0);
  EXPECT_GT(parsed.Value("fencepost_records_consumed_total", Of(1)), 0);
  EXPECT_EQ(parsed.Value("fencepost_process_up"), 2);
  EXPECT_EQ(parsed.Value("fencepost_process_restarts_total"), 0);
  for (const char* process : {"0", "1", "supervisor"}) {
    EXPECT_GT(parsed.Value("process_start_time_seconds", {{"process", process}}), 1e9) << process;
  }

  const json status = Status(worker);
  EXPECT_EQ(status["worker"], "w");
  EXPECT_EQ(status["ready"], true);
  std::vector<int> partitions;
  for (const json& pipeline : status["pipelines"]) {
    for (const json& row : pipeline["partitions"]) {
      partitions.push_back(row["partition"]);
      EXPECT_EQ(row["lag"], 0);
    }
  }
  EXPECT_THAT(partitions, UnorderedElementsAre(0, 1, 2, 3));
  EXPECT_EQ(worker.Get("/live").status, 200);
  EXPECT_THAT(worker.Get("/").body,
              AllOf(HasSubstr("2 processes are at work."), HasSubstr("id=\"" + name_ + "@0\""),
                    HasSubstr("id=\"" + name_ + "@1\"")));
  EXPECT_EQ(worker.Get("/fragment").status, 404);

  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  EXPECT_THAT(worker.Log(),
              AllOf(HasSubstr("2 processes drain; records in flight: process 0: 0"),
                    HasSubstr("\"worker\":\"w-0\""), HasSubstr("\"worker\":\"w-1\"")));
  EXPECT_EQ(Times(worker.Log(), "ended with exit code 0"), 2);
  EXPECT_THAT(worker.ErrorLines(), ElementsAre());
}

TEST_F(Processes, OneThatIsKilledComesBackUnderItsNameAndNothingIsLostOrDoubled) {
  PipelineText text = Text(kPartitions);
  text.start_from = "earliest\n  static_members: true";
  text.session_ms = 15'000;
  WorkerProcess worker(Two(text));
  EXPECT_TRUE(Shared(worker)) << worker.Log();
  Orders orders(Kafka().bootstrap(), name_, kPartitions, 1, 0.05);
  orders.Produce(1000);
  EXPECT_TRUE(Effects(100)) << worker.Log();
  const double rebalances = worker.Now("fencepost_rebalances_total", Of(0));
  const pid_t killed = PidOf(worker, 1);
  ASSERT_GT(killed, 0);
  kill(killed, SIGKILL);
  EXPECT_TRUE(Shows(worker, "fencepost_process_restarts_total", Of(1), 1)) << worker.Log();
  orders.Produce(1000);
  EXPECT_TRUE(Effects(orders.unique())) << worker.Log();
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_EQ(table_->Audit(name_, orders.unique()), "");
  EXPECT_TRUE(Shared(worker)) << worker.Log();
  EXPECT_EQ(worker.Now("fencepost_rebalances_total", Of(0)), rebalances)
      << "the name was its own, so the group did not notice";
  EXPECT_NE(PidOf(worker, 1), killed);
  EXPECT_EQ(worker.Last("fencepost_process_restarts_total", Of(0)), 0);
  EXPECT_THAT(worker.Log(), HasSubstr("was ended by signal 9 (Killed); it starts again in 0.5 s"));
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
}

TEST_F(Processes, AStopInTheMidstDrainsAllAndWhoComesAfterLosesAndDoublesNothing) {
  const PipelineText text = Text(kPartitions);
  Orders orders(Kafka().bootstrap(), name_, kPartitions, 1, 0.05);
  orders.Produce(4000);
  {
    WorkerProcess worker(Two(text));
    EXPECT_TRUE(Effects(500)) << worker.Log();
    EXPECT_EQ(worker.Stop(), 0) << worker.Log();
    EXPECT_EQ(Times(worker.Log(), "ended with exit code 0"), 2) << worker.Log();
  }
  WorkerProcess worker(Two(text));
  EXPECT_TRUE(Effects(orders.unique())) << worker.Log();
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_EQ(table_->Audit(name_, orders.unique()), "");
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
}

// The terminal sends it to all of them, and the supervisor hands its own on: that is one, which
// drains.
TEST_F(Processes, OneCtrlCDrainsAndASecondEndsAtOnce) {
  PipelineText text = Text(kPartitions);
  text.more = Http();
  HangOn(0);
  WorkerProcess worker(Two(text));
  EXPECT_TRUE(Shared(worker)) << worker.Log();
  SendOrder(0, "o-1", "k");
  EXPECT_TRUE(WaitUntil(
      seconds(20), [&] { return AllCalls() == 1; }, "the call that hangs"));
  const pid_t group = getpgid(PidOf(worker, 0));
  EXPECT_EQ(group, getpgid(PidOf(worker, 1)));
  kill(-group, SIGINT);
  EXPECT_TRUE(Says(worker, "records in flight: process")) << worker.Log();
  EXPECT_TRUE(Says(worker, "ended with exit code 0")) << worker.Log();
  EXPECT_THAT(worker.Readiness(), HasSubstr("draining"));
  EXPECT_TRUE(worker.Running());
  kill(-group, SIGINT);
  EXPECT_EQ(worker.Wait(seconds(20)), 0) << worker.Log();
  EXPECT_EQ(table_->Count(), 0);
  service_.Release();
}

TEST_F(Processes, ARecordThatStopsThePipelineStopsAllOfThemWithItsCode) {
  PipelineText text = Text(kPartitions);
  text.more = "on_bad_record: stop\n";
  WorkerProcess worker(Two(text));
  EXPECT_TRUE(Shared(worker)) << worker.Log();
  Send(0, "{}");
  EXPECT_EQ(worker.Wait(seconds(40)), 1) << worker.Log();
  EXPECT_THAT(worker.ErrorLines(), ElementsAre(StartsWith("fencepost: process ")));
  EXPECT_THAT(worker.Log(),
              AllOf(HasSubstr("ended with exit code 1; all end"),
                    HasSubstr("ended with exit code 0"), Not(HasSubstr("starts again"))));
}

TEST_F(Processes, EndWithTheirSupervisorHoweverItEnds) {
  const PipelineText text = Text(kPartitions);
  pid_t pids[2];
  {
    WorkerProcess worker(Two(text));
    EXPECT_TRUE(Shared(worker)) << worker.Log();
    for (int i = 0; i < 2; ++i) ASSERT_GT(pids[i] = PidOf(worker, i), 0);
    worker.Kill();
    EXPECT_EQ(worker.Wait(seconds(10)), 128 + SIGKILL);
    EXPECT_TRUE(WaitUntil(
        seconds(30), [&] { return !Exists(pids[0]) && !Exists(pids[1]); }, "both to end"))
        << worker.Log();
    EXPECT_GE(Times(worker.Log(), "\"event\":\"stopping\""), 2) << "they drain";
  }
}

TEST_F(Processes, AFrozenOneIsNamedAndDoesNotHideTheOthers) {
  WorkerProcess worker(Two(Text(kPartitions)));
  EXPECT_TRUE(AllReady(worker)) << worker.Log();
  const pid_t frozen = PidOf(worker, 1);
  ASSERT_GT(frozen, 0);
  kill(frozen, SIGSTOP);
  const std::string says = fmt::format("process 1: pid {} does not answer", frozen);
  // Its threads stop one by one, on a busy machine not at once.
  EXPECT_TRUE(WaitUntil(
      seconds(20), [&] { return worker.Readiness().find(says) != std::string::npos; }, says));
  const HttpResponse live = worker.Get("/live");
  EXPECT_EQ(live.status, 503);
  EXPECT_THAT(live.body, HasSubstr(says));
  EXPECT_THAT(Status(worker)["reason"].get<std::string>(), HasSubstr(says));
  EXPECT_EQ(worker.Now("fencepost_process_up", Of(1)), 0);
  EXPECT_EQ(worker.Last("fencepost_process_up", Of(0)), 1);
  EXPECT_EQ(worker.Last("fencepost_lock_ttl_seconds", Of(0)), 3);
  kill(frozen, SIGCONT);
  EXPECT_TRUE(AllReady(worker)) << worker.Log();
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
}

TEST_F(Processes, AFileIsReloadedByAllAndAWrongOneByNone) {
  PipelineText text = Text(kPartitions);
  const WorkerOptions options = Two(text);
  WorkerProcess worker(options);
  EXPECT_TRUE(AllReady(worker)) << worker.Log();
  folder_.Write(text.name + ".yaml", text.Yaml() + "retry: {atempts: 3}\n");
  worker.Hangup();
  EXPECT_TRUE(Says(worker, "the processes go on as they were")) << worker.Log();
  EXPECT_EQ(Times(worker.Log(), "did you mean \"attempts\""), 1);
  folder_.Write(text.name + ".yaml", text.Yaml() + "retry: {attempts: 3}\n");
  worker.Hangup();
  EXPECT_TRUE(Says(worker, "retry.attempts is applied", 2)) << worker.Log();
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
}

TEST_F(Processes, WhatIsSetOverHttpHoldsForAllAndForOneThatIsStartedAgain) {
  PipelineText text = Text(kPartitions);
  text.more = "observe: {control: loopback}\n";
  WorkerProcess worker(Two(text));
  EXPECT_TRUE(Shared(worker)) << worker.Log();
  const auto post = [&](const std::string& path, const std::string& body = "") {
    return HttpPost("127.0.0.1", worker.port(), path, body).status;
  };
  const auto paused = [&] { return Times(worker.Readiness(), "paused") == 2; };
  EXPECT_EQ(post("/pipelines/other/pause"), 404);
  EXPECT_EQ(post("/pipelines/" + name_ + "/pause"), 200);
  EXPECT_TRUE(WaitUntil(seconds(20), paused, "both to say that they are paused"));
  kill(PidOf(worker, 0), SIGKILL);
  EXPECT_TRUE(Shows(worker, "fencepost_process_restarts_total", Of(0), 1)) << worker.Log();
  EXPECT_TRUE(Shared(worker)) << worker.Log();
  for (int i = 0; i < kPartitions; ++i) SendOrder(i, fmt::format("o-{}", i), "k");
  EXPECT_TRUE(Shows(worker, "fencepost_consumer_lag_records", {}, kPartitions)) << worker.Log();
  EXPECT_TRUE(WaitUntil(seconds(20), paused, "both to say that they are paused"));
  EXPECT_EQ(table_->Count(), 0);
  EXPECT_EQ(post("/log/level", "loud"), 400);
  EXPECT_EQ(post("/log/level", "error"), 200);
  EXPECT_EQ(post("/pipelines/" + name_ + "/resume"), 200);
  EXPECT_TRUE(Effects(kPartitions)) << worker.Log();
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  EXPECT_THAT(worker.Log(), Not(HasSubstr("stopping\"")));
}

TEST_F(Processes, AreRefusedInOneLineWhereTheyCannotBe) {
  const PipelineText text = Text(1);
  const std::string file = Two(text).files[0];
  const auto refused = [&](std::vector<std::string> words, std::map<std::string, std::string> env,
                           int code, const std::string& line) {
    words.insert(words.begin(), "run");
    const Finished finished = RunFencepost(words, std::move(env));
    EXPECT_EQ(finished.exit_code, code) << finished.error_output;
    EXPECT_THAT(finished.error_output, HasSubstr(line));
    EXPECT_THAT(finished.error_output, Not(HasSubstr("process_started")));
  };
  refused({file, "--processes", "0"}, {}, 2, "--processes");
  refused({file}, {{"FENCEPOST_PROCESSES", "two"}}, 2, "must be a number from 1 to 64");
  refused({"-", "--processes", "2"}, {}, 2, "standard input can be read once only");
  refused({file, "--processes", "2", "--worker", std::string(254, 'w')}, {}, 2,
          "longer than 255 bytes");
  const WorkerProcess other(Worker(text));
  refused({file, "--http", fmt::format("127.0.0.1:{}", other.port())},
          {{"FENCEPOST_PROCESSES", "2"}}, 1, "cannot listen");
}

}  // namespace
}  // namespace fencepost::testing
