#include "tests/bench/shared/workers.h"

#include <stdexcept>

namespace fencepost::bench {
namespace {

constexpr testing::Deadline kLimit = std::chrono::minutes(10);
constexpr testing::Deadline kStopLimit = std::chrono::minutes(2);

}  // namespace

Workers::Workers(const PipelineFile& file, int count, int partitions)
    : team_({.files = {dir_.Write("bench.yaml", file.Text())}}) {
  team_.Start(count);
  const int share = partitions / count;
  const auto ready = [&] {
    team_.Look();
    for (std::size_t i = 0; i < team_.size(); ++i) {
      if (team_[i].Last("fencepost_partitions_assigned") != share) return false;
    }
    return team_.AllReady();
  };
  Await(ready, "the workers to be ready");
}

double Workers::Processed() {
  team_.Look();
  return team_.Sum("fencepost_records_processed_total");
}

void Workers::Await(const std::function<bool()>& condition, const std::string& what) {
  const auto fail = [&](const std::string& why) {
    throw std::runtime_error(why + "\n" + team_.Tails());
  };
  const auto result = testing::WaitUntil(kLimit, what, [&] {
    if (team_.Running().size() < team_.size()) fail("a worker has ended");
    return condition();
  });
  if (!result) fail(result.message());
}

void Workers::Stop() {
  const std::string trouble = team_.StopAll(kStopLimit);
  if (!trouble.empty()) throw std::runtime_error(trouble);
}

std::vector<pid_t> Workers::Pids() {
  std::vector<pid_t> pids;
  for (std::size_t i = 0; i < team_.size(); ++i) pids.push_back(team_[i].pid());
  return pids;
}

}  // namespace fencepost::bench
