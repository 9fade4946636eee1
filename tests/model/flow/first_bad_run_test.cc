// What makes all records fail is no record's own fault. By a status of a service that has done none
// yet, none becomes a dead letter; else ten in a row at most, whatever it is. The others take
// effect once it is over.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/model/flow/flow_bench.h"

namespace fencepost::consumer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::Values;

struct Cause {
  const char* error_class;
  bool retry;  // as the handler says
  std::size_t letters;
  const char* unavailable;
};

FlowOptions Ten() {
  FlowOptions options = FlowBench::Handling(Order::kNone);
  options.handler.kind = HttpHandlerOptions{};
  options.tuning.retry.attempts = 3;
  options.tuning.retry.give_up_after = Millis(60'000);
  options.tuning.retry.initial = Millis(100);
  options.tuning.retry.max = Millis(2000);
  options.max_consecutive = 10;
  return options;
}

class FirstBadRun : public OneWorker, public ::testing::WithParamInterface<Cause> {
 protected:
  FirstBadRun() : OneWorker(Ten()) {
    std::vector<std::string> records;
    for (int i = 0; i < 100; ++i) records.push_back("r" + std::to_string(i));
    worker.Deliver(0, records);
  }
  HandlerFailure failure{.error_class = GetParam().error_class,
                         .text = "no",
                         .retry = GetParam().retry,
                         .retry_after = {}};
  void FailFor(Millis time) {
    for (const Instant end = world.now.boot + time; world.now.boot < end;) {
      while (!worker.calls.empty()) worker.Fail(worker.calls.front().record_id, failure);
      while (worker.Acknowledge()) {
      }
      worker.Wait(Millis(100));
    }
  }
};

TEST_P(FirstBadRun, MakesAtMostTenDeadLettersIsNamedAndEndsByTheFirstSuccess) {
  FailFor(std::chrono::minutes(5));
  EXPECT_EQ(worker.told.buried.size(), GetParam().letters);
  EXPECT_THAT(worker.flow.HandlerUnavailable(), StartsWith(GetParam().unavailable));
  EXPECT_THAT(worker.flow.HandlerUnavailable(), HasSubstr(GetParam().error_class));
  for (int i = 0; worker.Watermark(0) < 100 && i < 1000; ++i) {
    worker.HandleAll();
    worker.WriteAll();
    worker.Wait(Millis(100));
  }
  EXPECT_EQ(worker.Watermark(0), 100) << "nobody needs to send anything";
  EXPECT_EQ(worker.told.buried.size(), GetParam().letters);
  EXPECT_EQ(worker.flow.HandlerUnavailable(), "");
}

// --- a service that has done no record yet, and few records -------------------------------------

class FirstRecords : public OneWorker {
 protected:
  FirstRecords() : OneWorker(Ten()) {}
  void Refuse(const std::string& id, const char* error_class = "404") {
    worker.Fail(id, {.error_class = error_class, .text = "no", .retry = false});
  }
  // The bad ones are refused, the others succeed.
  void RunFor(Millis time, const std::set<std::string>& bad) {
    for (const Instant end = world.now.boot + time; world.now.boot < end;) {
      for (int i = 0; i < 20 && !worker.calls.empty(); ++i) {
        const std::string id = worker.calls.front().record_id;
        bad.contains(id) ? Refuse(id) : worker.Handle(id);
      }
      worker.WriteAll();
      while (worker.Acknowledge()) {
      }
      worker.Wait(Millis(100));
    }
  }
};

TEST_F(FirstRecords, OneThatIsBadAloneIsGivenUpAfterItsTime) {
  worker.Deliver(0, {"bad"});
  RunFor(Millis(50'000), {"bad"});
  EXPECT_EQ(worker.told.buried.size(), 0u);
  EXPECT_EQ(worker.flow.HandlerUnavailable(), "") << "the worker stays ready";
  EXPECT_THAT(worker.flow.Failing(), StartsWith("only t/0/0 fails: 404"));
  RunFor(Millis(30'000), {"bad"});
  EXPECT_EQ(worker.told.buried.size(), 1u);
  EXPECT_EQ(worker.Watermark(0), 1);
}

TEST_F(FirstRecords, AreDeadLettersOnceOneSucceeds) {
  worker.Deliver(0, {"bad1", "bad2"});
  RunFor(Millis(60'000), {"bad1", "bad2"});
  EXPECT_EQ(worker.told.buried.size(), 0u);
  EXPECT_THAT(worker.flow.HandlerUnavailable(),
              AllOf(StartsWith("its service is unavailable: 404"),
                    HasSubstr("check handler.http's url and credentials")));
  worker.Deliver(0, {"good", "bad3"});
  RunFor(Millis(20'000), {"bad1", "bad2", "bad3"});
  EXPECT_EQ(worker.told.buried.size(), 3u);
  EXPECT_EQ(worker.Watermark(0), 4);
  EXPECT_EQ(worker.flow.HandlerUnavailable(), "");
}

TEST_F(FirstRecords, AreDeadLettersWhereNeverNamesTheStatusOrTheServiceWorkedBefore) {
  Tuning tuning = Ten().tuning;
  tuning.retry.never = {"4xx"};
  worker.Tune(tuning);
  worker.Deliver(0, {"bad"});
  Refuse("bad");
  EXPECT_EQ(worker.Letters(), "bad:404");
  worker.Deliver(0, {"good"});
  worker.Handle("good");
  worker.Tune(Ten().tuning);
  worker.Deliver(0, {"worse"});
  Refuse("worse");
  EXPECT_EQ(worker.Letters(), "bad:404 worse:404");
}

TEST_F(FirstRecords, BehindOneThatSucceededMakeAtMostTenDeadLetters) {
  std::set<std::string> bad;
  worker.Deliver(0, {"good"});
  worker.Handle("good");
  worker.WriteAll();
  for (int i = 0; i < 100; ++i) bad.insert("bad" + std::to_string(i));
  worker.Deliver(0, {bad.begin(), bad.end()});
  RunFor(Millis(60'000), bad);
  EXPECT_EQ(worker.told.buried.size(), 10u);
  EXPECT_THAT(worker.flow.HandlerUnavailable(),
              StartsWith("every record is refused (10 in a row)"));
}

// After it the worker has seen nothing of the service.
TEST_F(FirstRecords, AfterARestartOneThatHoldsTheOffsetHoldsNoOther) {
  for (const char* done : {"done1", "done2"}) world.WriteRow(done);
  worker.Deliver(0, {"bad", "done1", "done2", "good1", "good2"});
  RunFor(Millis(1000), {"bad"});
  EXPECT_EQ(worker.told.buried.size(), 1u);
  EXPECT_EQ(worker.Watermark(0), 5);
}

// --- a proxy answers some calls itself: a page that the output cannot take
// ------------------------

FlowOptions TenInARow() {
  FlowOptions options = FlowBench::Handling(Order::kNone);
  options.tuning.retry.attempts = 3;
  options.max_consecutive = 10;
  options.tuning.concurrency = 4;
  return options;
}

// So many calls of it are refused with 404, then so many answers by the output.
class Interleaved : public WorkerWith<TenInARow>,
                    public ::testing::WithParamInterface<std::pair<int, int>> {};

TEST_P(Interleaved, RefusalsOfTheHandlerAndOfTheOutputMakeAtMostTenDeadLettersInAll) {
  std::vector<std::string> records;
  for (int i = 0; i < 100; ++i) records.push_back("r" + std::to_string(i));
  worker.Deliver(0, records);
  const WriteOutcome bad{WriteResult::kBadRecord, "<html>", DeadLetterReason::kBadRecord, "json"};
  const auto [refused, answered] = GetParam();
  for (int i = 0; i < 2000; ++i) {
    if (!worker.calls.empty()) {
      const std::string id = worker.calls.front().record_id;
      i % (refused + answered) < refused
          ? worker.Fail(id, {.error_class = "404", .text = "no", .retry = false})
          : worker.Handle(id);
    }
    while (!worker.writes.empty()) {
      worker.Answer(std::vector<WriteOutcome>(worker.writes.front()->records.size(), bad));
    }
    while (worker.Acknowledge()) {
    }
    worker.Wait(Millis(50));
  }
  EXPECT_EQ(worker.told.buried.size(), 10u);
  for (int i = 0; worker.Watermark(0) < 100 && i < 1000; ++i) {
    worker.HandleAll();
    worker.WriteAll();
    worker.Wait(Millis(100));
  }
  EXPECT_EQ(worker.Watermark(0), 100);
  EXPECT_EQ(worker.told.buried.size(), 10u);
}

INSTANTIATE_TEST_SUITE_P(Pairs, Interleaved,
                         Values(std::pair(1, 1), std::pair(9, 1), std::pair(1, 3), std::pair(3, 2)),
                         [](const auto& test) {
                           return std::to_string(test.param.first) + "and" +
                                  std::to_string(test.param.second);
                         });

constexpr const char* kAway = "its service is unavailable: ";
constexpr const char* kRefused = "every record is refused (10 in a row): ";
INSTANTIATE_TEST_SUITE_P(
    Causes, FirstBadRun,
    Values(
        // Of the caller: no record's own.
        Cause{"301", true, 0, kAway}, Cause{"302", true, 0, kAway}, Cause{"307", true, 0, kAway},
        Cause{"401", true, 0, kAway}, Cause{"403", true, 0, kAway}, Cause{"405", true, 0, kAway},
        Cause{"407", true, 0, kAway}, Cause{"421", true, 0, kAway}, Cause{"426", true, 0, kAway},
        // Of the service.
        Cause{"408", true, 0, kAway}, Cause{"429", true, 0, kAway}, Cause{"500", true, 0, kAway},
        Cause{"502", true, 0, kAway}, Cause{"503", true, 0, kAway}, Cause{"504", true, 0, kAway},
        Cause{"timeout", true, 0, kAway}, Cause{"connection", true, 0, kAway},
        Cause{"exec", true, 0, kAway}, Cause{"exec_protocol", true, 0, kAway},
        // Refused for good: by a service that has done no record yet, and before it is asked.
        Cause{"101", false, 0, kAway}, Cause{"400", false, 0, kAway}, Cause{"404", false, 0, kAway},
        Cause{"409", false, 0, kAway}, Cause{"410", false, 0, kAway}, Cause{"413", false, 0, kAway},
        Cause{"415", false, 0, kAway}, Cause{"422", false, 0, kAway}, Cause{"451", false, 0, kAway},
        Cause{"501", false, 0, kAway}, Cause{"jq", false, 10, kRefused},
        Cause{"bad_record", false, 10, kRefused}, Cause{"too_large", false, 10, kRefused},
        Cause{"exec_error", false, 10, kRefused}),
    [](const auto& test) { return std::string(test.param.error_class); });

}  // namespace
}  // namespace fencepost::consumer
