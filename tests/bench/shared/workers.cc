#include "tests/bench/shared/workers.h"

#include <stdexcept>

#include <fmt/format.h>

#include "tests/bench/shared/measure.h"
#include "tests/support/http.h"
#include "tests/support/paths.h"

namespace fencepost::bench {
namespace {

constexpr auto kAskEvery = std::chrono::milliseconds(100);  // a scrape costs the worker time
constexpr testing::Deadline kReadyLimit = std::chrono::minutes(3);
constexpr testing::Deadline kProcessedLimit = std::chrono::minutes(10);
constexpr testing::Deadline kStopLimit = std::chrono::minutes(2);

}  // namespace

Workers::Workers(const std::string& pipeline_file, int count, int share) : share_(share) {
  const std::string file = dir_.Write("bench.yaml", pipeline_file);
  for (int i = 0; i < count; ++i) {
    workers_.push_back({std::make_unique<testing::Process>(
        testing::ProcessOptions{.argv = {testing::FencepostBinary(), "run", file, "--http",
                                         "127.0.0.1:0", "--worker", fmt::format("w{}", i)}})});
  }
}

bool Workers::Ready(Worker& worker) const {
  if (!worker.process->Running()) Fail("a worker has ended");
  if (worker.port == 0) {
    constexpr std::string_view kSaid = "listening on http://127.0.0.1:";
    const std::string output = worker.process->Output();
    const std::size_t at = output.find(kSaid);
    if (at == std::string::npos || output.find('\n', at) == std::string::npos) return false;
    worker.port = std::stoi(output.substr(at + kSaid.size()));
  }
  const auto page = testing::Scrape(worker.port);
  return page && page->Value("fencepost_partitions_assigned") == share_ &&
         testing::HttpGet("127.0.0.1", worker.port, "/ready").status == 200;
}

void Workers::WaitUntilReady() {
  const auto ready = [this] {
    for (Worker& worker : workers_) {
      if (!Ready(worker)) return false;
    }
    return true;
  };
  if (!testing::WaitUntil(kReadyLimit, ready)) Fail("the workers are not ready");
}

double Workers::Processed() {
  double sum = 0;
  for (Worker& worker : workers_) {
    if (!worker.process->Running()) Fail("a worker has ended");
    const auto page = testing::Scrape(worker.port);
    if (page) sum += page->Value("fencepost_records_processed_total").value_or(0);
  }
  return sum;
}

void Workers::WaitUntilProcessed(std::int64_t records) {
  Clock::time_point asked;
  const auto processed = [this, records, &asked] {
    if (Clock::now() - asked < kAskEvery) return false;
    asked = Clock::now();
    return Processed() >= static_cast<double>(records);
  };
  if (!testing::WaitUntil(kProcessedLimit, processed)) Fail("not all records were processed");
}

void Workers::Stop() {
  for (Worker& worker : workers_) worker.process->Kill(SIGTERM);
  for (Worker& worker : workers_) {
    if (worker.process->Wait(kStopLimit) != 0) Fail("a worker did not end well");
  }
}

std::vector<pid_t> Workers::Pids() const {
  std::vector<pid_t> pids;
  for (const Worker& worker : workers_) pids.push_back(worker.process->pid());
  return pids;
}

void Workers::Fail(const std::string& what) const {
  std::string text = what;
  for (const Worker& worker : workers_) text += "\n" + worker.process->Output();
  throw std::runtime_error(text);
}

}  // namespace fencepost::bench
