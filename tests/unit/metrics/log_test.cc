#include "metrics/log/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/ostream_sink.h>

#include <condition_variable>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "metrics/page.h"

namespace fencepost::metrics {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LogTest : public ::testing::Test {
 protected:
  void Open(LogFormat format = LogFormat::kJson, Severity level = Severity::kInfo) {
    LogOptions options;
    options.worker = "w-1";
    options.level = level;
    options.format = format;
    options.muted = {"muted"};
    options.sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(out_);
    options.clock = [this] { return now_; };
    log_ = std::make_unique<Log>(std::move(options));
  }
  void Pass(std::chrono::milliseconds time) {
    now_.boot += time;
    now_.wall += time;
  }
  // Closes the log, so that everything is written.
  std::vector<std::string> Lines() {
    log_.reset();
    std::vector<std::string> lines;
    std::istringstream text(out_.str());
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }
  // text and suppressed
  std::vector<std::pair<std::string, int>> Told() {
    std::vector<std::pair<std::string, int>> told;
    for (const std::string& line : Lines()) {
      const json one = json::parse(line);
      told.emplace_back(one["text"], one.value("suppressed", 0));
    }
    return told;
  }
  // How many lines there are, and of how many events they tell.
  std::pair<int, int> Counted() {
    std::pair<int, int> counted;
    for (const auto& [text, suppressed] : Told()) {
      ++counted.first;
      counted.second += 1 + suppressed;
    }
    return counted;
  }

  std::ostringstream out_;
  locking::Now now_{locking::Instant(1000s), locking::WallTime(1'763'695'260'123ms)};
  std::unique_ptr<Log> log_;
};

TEST_F(LogTest, WritesOneJsonObjectALine) {
  Open();
  log_->Write(Severity::kWarn, "orders", "node_down", "node b: connection refused");
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(json::parse(lines[0]), json({{"time", "2025-11-21T03:21:00.123Z"},
                                         {"level", "warn"},
                                         {"event", "node_down"},
                                         {"pipeline", "orders"},
                                         {"worker", "w-1"},
                                         {"text", "node b: connection refused"}}));
}

TEST_F(LogTest, EscapesWhateverTheTextHolds) {
  Open();
  const std::string text = "quote \" backslash \\ line\nbell \a percent %s {} bad \xff\xfe end";
  log_->Write(Severity::kError, "orders", "event", text);
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(json::parse(lines[0])["text"],
            "quote \" backslash \\ line\nbell \a percent %s {} bad \xEF\xBF\xBD\xEF\xBF\xBD end");
}

TEST_F(LogTest, WritesTextOnOneLineToo) {
  Open(LogFormat::kText);
  log_->Write(Severity::kInfo, "orders", "assigned", "4 partitions\nforged line\xc2\x9b");
  log_->Write(Severity::kError, "", "http", "stopped");
  EXPECT_THAT(
      Lines(),
      ElementsAre(
          "2025-11-21T03:21:00.123Z info  orders assigned: 4 partitions\\x0aforged line\\u009b",
          "2025-11-21T03:21:00.123Z error http: stopped"));
}

TEST_F(LogTest, LeavesOutWhatIsBelowItsLevelAndWhatIsMuted) {
  Open(LogFormat::kJson, Severity::kWarn);
  log_->Write(Severity::kDebug, "orders", "e", "debug");
  log_->Write(Severity::kInfo, "orders", "e", "info");
  log_->Write(Severity::kWarn, "orders", "e", "warn");
  log_->Write(Severity::kError, "orders", "e", "error");
  log_->Write(Severity::kError, "orders", "muted", "error");
  EXPECT_THAT(Told(), ElementsAre(std::pair("warn", 0), std::pair("error", 0)));
}

TEST_F(LogTest, WritesRepeatsOnceInTenSecondsWithTheirNumber) {
  Open();
  for (int i = 0; i < 25; ++i) {
    log_->Write(Severity::kWarn, "orders", "e", "again");
    Pass(1s);
  }
  EXPECT_THAT(Told(), ElementsAre(std::pair("again", 0), std::pair("again", 9),
                                  std::pair("again", 9), std::pair("again", 3)));
}

TEST_F(LogTest, TellsOfHeldBackRepeatsWhenAnotherEventComesLater) {
  Open();
  for (int i = 0; i < 5; ++i) log_->Write(Severity::kWarn, "orders", "e", "again");
  Pass(11s);
  log_->Write(Severity::kInfo, "orders", "e", "other");
  EXPECT_THAT(Told(),
              ElementsAre(std::pair("again", 0), std::pair("again", 3), std::pair("other", 0)));
}

TEST_F(LogTest, WritesWhatWasHeldBackAfterTenSecondsThoughNoOtherEventComes) {
  Open();
  const auto write = [this] { log_->Write(Severity::kWarn, "orders", "dead_lettered", "bad"); };
  for (int i = 0; i < 3; ++i) write();
  Pass(9s);
  log_->WriteHeldBack();  // too early
  write();
  Pass(1s);
  log_->WriteHeldBack();
  write();
  EXPECT_THAT(Told(), ElementsAre(std::pair("bad", 0), std::pair("bad", 2), std::pair("bad", 0)));
}

// Whoever reads the last lines would take a late "not ready" for how it is.
TEST_F(LogTest, TellsWhatWasHeldBackBeforeAChangeOfState) {
  Open();
  for (int i = 0; i < 3; ++i) log_->Write(Severity::kWarn, "orders", "e", "again");
  log_->Write(Severity::kWarn, "refunds", "e", "of another pipeline");
  log_->Write(Severity::kWarn, "refunds", "e", "of another pipeline");
  Pass(2s);
  log_->Write(Severity::kInfo, "orders", "ready", "ready");
  log_->Write(Severity::kWarn, "orders", "e", "again");
  log_->Write(Severity::kInfo, "orders", "stopped", "stopped");
  EXPECT_THAT(Told(),
              ElementsAre(std::pair("again", 0), std::pair("of another pipeline", 0),
                          std::pair("again", 1), std::pair("ready", 0), std::pair("again", 0),
                          std::pair("stopped", 0), std::pair("of another pipeline", 0)));
}

TEST_F(LogTest, HoldsNoChangeOfStateBack) {
  Open();
  for (int i = 0; i < 2; ++i) {
    log_->Write(Severity::kInfo, "orders", "ready", "ready");
    log_->Write(Severity::kWarn, "orders", "not_ready", "not ready");
    Pass(1s);
  }
  EXPECT_THAT(Told(), ElementsAre(std::pair("ready", 0), std::pair("not ready", 0),
                                  std::pair("ready", 0), std::pair("not ready", 0)));
}

TEST_F(LogTest, HoldsNothingBackThatDiffers) {
  Open();
  log_->Write(Severity::kWarn, "orders", "e", "text");
  log_->Write(Severity::kWarn, "refunds", "e", "text");
  log_->Write(Severity::kWarn, "orders", "f", "text");
  log_->Write(Severity::kWarn, "orders", "e", "other");
  EXPECT_EQ(Told().size(), 4U);
}

TEST_F(LogTest, KeepsTheErrorsOfEachPipelineWithTheirTime) {
  Open();
  for (int i = 0; i < 2; ++i) log_->Write(Severity::kError, "orders", "e", "again");
  log_->Write(Severity::kError, "refunds", "f", "another");
  const auto errors = log_->LastErrors("orders");
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].when, 1'763'695'260'123ms);
  EXPECT_EQ(errors[0].count, 2U);
  EXPECT_EQ(log_->LastErrors("refunds").at(0).event, "f");
}

TEST_F(LogTest, KeepsWarningsForTheStatusThoughTheyAreNotWritten) {
  Open(LogFormat::kJson, Severity::kError);
  log_->Write(Severity::kInfo, "orders", "redis_node_back", "it answers");
  log_->Write(Severity::kWarn, "orders", "redis_node_away", "refused");
  ASSERT_EQ(log_->LastErrors("orders").size(), 1U);
  EXPECT_EQ(log_->LastErrors("orders")[0].level, Severity::kWarn);
  EXPECT_THAT(Lines(), IsEmpty());
}

consumer::AboutRecord About(std::int64_t offset) {
  return {.where = {"orders", 3},
          .offset = offset,
          .record_id = "o-17",
          .token = 9'007'199'254'740'993,
          .attempt = 2};
}

TEST_F(LogTest, NamesTheTraceAndSpanOfARecordWhereThereAreSome) {
  consumer::AboutRecord traced = About(41);
  traced.trace = {.trace_high = 1, .trace_low = 0xab, .span = 0xcd};
  Open();
  log_->Write(Severity::kWarn, "orders", "handler_failed", "503", traced);
  log_->Write(Severity::kWarn, "orders", "handler_failed", "504", About(41));
  auto lines = Lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(json::parse(lines[0])["trace_id"], "000000000000000100000000000000ab");
  EXPECT_EQ(json::parse(lines[0])["span_id"], "00000000000000cd");
  EXPECT_FALSE(json::parse(lines[1]).contains("trace_id"));
  EXPECT_FALSE(json::parse(lines[1]).contains("span_id"));

  Open(LogFormat::kText);
  log_->Write(Severity::kWarn, "orders", "handler_failed", "503", traced);
  lines = Lines();
  EXPECT_THAT(lines.back(), HasSubstr(" trace_id=000000000000000100000000000000ab "
                                      "span_id=00000000000000cd"));
}

TEST_F(LogTest, WritesWhatItKnowsOfARecordAsFieldsOfTheirOwn) {
  Open();
  log_->Write(Severity::kWarn, "orders", "handler_failed", "503", About(41));
  log_->Write(Severity::kWarn, "orders", "dead_lettered", "bad",
              {.where = {"orders", 0}, .offset = 0});
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 2U);
  const json full = json::parse(lines[0]);
  EXPECT_EQ(full["topic"], "orders");
  EXPECT_EQ(full["partition"], 3);
  EXPECT_EQ(full["offset"], 41);
  EXPECT_EQ(full["record_id"], "o-17");
  EXPECT_EQ(full["token"], 9'007'199'254'740'993);
  EXPECT_EQ(full["attempt"], 2);
  EXPECT_EQ(full["text"], "orders/3/41: 503");
  const json bare = json::parse(lines[1]);
  EXPECT_EQ(bare["offset"], 0);
  for (const char* unknown : {"record_id", "token", "attempt"}) {
    EXPECT_FALSE(bare.contains(unknown)) << unknown;
  }
}

TEST_F(LogTest, WritesARecordsFieldsAsPairsInText) {
  Open(LogFormat::kText);
  auto about = About(41);
  log_->Write(Severity::kWarn, "orders", "handler_failed", "503", about);
  about.record_id = "a \"b\"\nc";
  log_->Write(Severity::kWarn, "orders", "fenced", "late", about);
  EXPECT_THAT(
      Lines(),
      ElementsAre("2025-11-21T03:21:00.123Z warn  orders handler_failed: orders/3/41: 503 "
                  "topic=orders partition=3 offset=41 record_id=o-17 token=9007199254740993 "
                  "attempt=2",
                  "2025-11-21T03:21:00.123Z warn  orders fenced: orders/3/41: late "
                  "topic=orders partition=3 offset=41 record_id=\"a \\\"b\\\"\\nc\" "
                  "token=9007199254740993 attempt=2"));
}

TEST_F(LogTest, TheSameOfManyRecordsIsOneLineAndACountWithTheLastRecord) {
  Open();
  for (int i = 0; i < 10'000; ++i) {
    log_->Write(Severity::kWarn, "orders", "dead_lettered", "bad", About(i));
  }
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(json::parse(lines[0])["offset"], 0);
  EXPECT_EQ(json::parse(lines[1])["offset"], 9999);
  EXPECT_EQ(json::parse(lines[1])["suppressed"], 9998);
}

TEST_F(LogTest, TenThousandRecordsThatFailEachInItsOwnWayAreAHundredLinesAndACount) {
  Open();
  for (int i = 0; i < 10'000; ++i) {
    log_->Write(Severity::kError, "orders", "dead_lettered", "row " + std::to_string(i), About(i));
  }
  log_->Write(Severity::kError, "orders", "other", "is not held back by it");
  EXPECT_EQ(log_->LastErrors("orders").back().text, "is not held back by it");
  EXPECT_EQ(log_->LastErrors("orders")[18].text, "orders/3/9999: row 9999");
  const auto [lines, sum] = Counted();
  EXPECT_EQ(sum, 10'001);
  EXPECT_EQ(lines, 102);
}

TEST_F(LogTest, AFloodThatGoesOnIsTenLinesASecond) {
  Open();
  for (int i = 0; i < 3000; ++i) {
    log_->Write(Severity::kWarn, "orders", "e", "text " + std::to_string(i));
    Pass(10ms);  // 30 s in all
  }
  const auto [lines, sum] = Counted();
  EXPECT_EQ(sum, 3000);
  EXPECT_LE(lines, 330);
  EXPECT_GE(lines, 300);
}

TEST_F(LogTest, TakesTheNotesOfAPipeline) {
  Open();
  MetricsPage page({"v", "c"});
  PipelineMetrics* const metrics = page.Add({"orders", 3, 10s, "abc"}, log_.get()).value();
  metrics->OnNote(Severity::kError, "clock_refused", "the clocks disagree");
  ASSERT_EQ(log_->LastErrors("orders").size(), 1U);
  EXPECT_EQ(log_->LastErrors("orders")[0].text, "the clocks disagree");
  EXPECT_THAT(Lines(), ElementsAre(HasSubstr(R"("event":"clock_refused","pipeline":"orders")")));
}

TEST_F(LogTest, LosesNoCountWhenThreadsWriteTogether) {
  Open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 1000; ++i) {
        log_->Write(Severity::kError, "orders", "e", "text " + std::to_string(i % 7));
        EXPECT_LE(log_->LastErrors("orders").size(), LastEvents::kLast);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(Counted().second, 4000);
}

// A sink like a pipe that nobody reads.
class StuckSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void Open() {
    const std::lock_guard lock(gate_);
    open_ = true;
    opened_.notify_all();
  }

 protected:
  void sink_it_(const spdlog::details::log_msg&) override {
    std::unique_lock lock(gate_);
    opened_.wait(lock, [this] { return open_; });
  }
  void flush_() override {}

 private:
  std::mutex gate_;
  std::condition_variable opened_;
  bool open_ = false;
};

TEST(Log, DoesNotWaitForAReaderThatStandsStill) {
  auto sink = std::make_shared<StuckSink>();
  LogOptions options;
  options.sink = sink;
  Log log(std::move(options));
  for (int i = 0; i < 5000; ++i) {
    log.Write(Severity::kError, "orders", "e", "text " + std::to_string(i));
  }
  EXPECT_EQ(log.LastErrors("orders").back().text, "text 4999");
  sink->Open();
}

TEST(Log, KnowsTheNamesOfItsLevels) {
  for (const char* name : {"debug", "info", "warn", "error"}) {
    ASSERT_TRUE(SeverityFromName(name));
    EXPECT_EQ(SeverityName(*SeverityFromName(name)), name);
  }
  EXPECT_FALSE(SeverityFromName("verbose"));
}

}  // namespace
}  // namespace fencepost::metrics
