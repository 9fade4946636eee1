#include "consumer/testing/test_run.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "consumer/testing/expectations.h"
#include "consumer/testing/test_worker.h"
#include "consumer/testing/test_world.h"
#include "consumer/worker/worker_parts.h"

namespace fencepost::consumer {
namespace {

constexpr std::chrono::hours kLimit{1};  // of virtual time, and what giving up takes
constexpr std::size_t kMostGivenUp = 1000;
constexpr std::chrono::seconds kOutageEnds{60};  // of a majority of lock nodes
constexpr Millis kSuccession{3000};         // until the group gives a dead worker's partitions on
constexpr std::int64_t kSteps = 1'000'000;  // in kLimit

class Run {
 public:
  Run(const PipelineOptions& options, const PipelineTest& test) : world_(options, test) {}

  TestReport Do() {
    TestReport report = Play();
    if (world_.handler != nullptr) {
      world_.handler->Stop();
      report.stuck = world_.handler->stuck().has_value();
    }
    report.notes = world_.Notes();
    return report;
  }

 private:
  TestReport Play() {
    auto output = TestOutput::Make(world_.options);
    if (!output) return Failed(output.error());
    world_.output = std::move(*output);
    world_.handler = std::make_unique<TestHandler>(world_.options, world_.test.http, &world_);
    if (const auto started = world_.handler->Start(); !started) {
      return Failed(started.error().Line());
    }
    auto filter = MakeRecordFilter(world_.options.filter);
    if (!filter) return Failed(filter.error().Line());
    world_.filter = std::move(*filter);
    EndOutageLater();
    StartWorker();
    const locking::Nanos limit = Limit();
    const std::int64_t most = kSteps * (1 + limit / kLimit);
    for (std::int64_t steps = 0; !Ended(); ++steps) {
      const bool late = world_.time.now().boot >= locking::Instant() + limit;
      if (late || steps >= most || !world_.time.Step()) return DidNotEnd();
      if (world_.handler->stuck()) return Failed(*world_.handler->stuck());
    }
    TestReport report = Report();
    report.failures = Compare(world_.test, world_);
    CheckStop(report);
    return report;
  }

  // Each of those that may be given up in a row takes its time, and one more that is not.
  [[nodiscard]] locking::Nanos Limit() const {
    const std::size_t in_a_row = world_.options.max_consecutive();
    const std::size_t given_up = in_a_row == 0 ? kMostInARow : std::min(in_a_row, kMostGivenUp);
    return kLimit + static_cast<std::int64_t>(given_up + 1) * world_.options.retry.give_up_after;
  }

  void StartWorker() {
    ++workers_;
    worker_ = std::make_unique<TestWorker>(
        world_, fmt::format("w{}", workers_), static_cast<AssignmentEpoch>(workers_),
        [this] { world_.time.After(kSuccession, [this] { StartWorker(); }); });
    worker_->Start();
  }

  // A minority stays away; a pipeline that has no quorum must only wait, not end.
  void EndOutageLater() {
    const int down = world_.test.faults.redis_nodes_down;
    if (down <= static_cast<int>(world_.nodes.size()) / 2) return;
    world_.time.After(kOutageEnds, [this] {
      for (std::size_t node = 0; node < world_.nodes.size(); ++node) {
        if (world_.node_up[node]) continue;
        world_.node_up[node] = true;
        worker_->OnNodeUp(static_cast<int>(node));
      }
    });
  }

  [[nodiscard]] bool Ended() const { return world_.stopped.has_value() || world_.AllCommitted(); }

  TestReport Report() const {
    TestReport report;
    report.virtual_time =
        std::chrono::duration_cast<Millis>(world_.time.now().boot - locking::Instant());
    for (const TestPartition& partition : world_.partitions) report.records += partition.log.size();
    return report;
  }

  TestReport Failed(std::string text) const {
    TestReport report = Report();
    report.failures.push_back({world_.test.line, std::move(text)});
    return report;
  }

  TestReport DidNotEnd() const {
    return Failed(fmt::format("the pipeline did not finish its records in {} s of virtual time: {}",
                              Report().virtual_time.count() / 1000, worker_->Waiting()));
  }

  void CheckStop(TestReport& report) const {
    const int line = world_.test.line;
    const auto& expected = world_.test.stops_with;
    if (world_.stopped && !expected) {
      report.failures.push_back({line, "the pipeline stopped: " + world_.stopped->Line()});
    } else if (expected && !world_.stopped) {
      report.failures.push_back({line, "expected the pipeline to stop with " + *expected});
    } else if (expected && world_.stopped->code != *expected) {
      report.failures.push_back({line, fmt::format("expected the pipeline to stop with {}, not: {}",
                                                   *expected, world_.stopped->Line())});
    }
  }

  TestWorld world_;
  std::unique_ptr<TestWorker> worker_;
  int workers_ = 0;
};

}  // namespace

TestReport RunPipelineTest(const PipelineOptions& options, const PipelineTest& test) {
  auto run = std::make_unique<Run>(options, test);
  TestReport report = run->Do();
  if (report.stuck) (void)run.release();  // a thread works with it to the end of the process
  return report;
}

}  // namespace fencepost::consumer
