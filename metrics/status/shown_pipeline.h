// One pipeline as people are shown it: /status and the status page. Plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "consumer/pipeline/status.h"
#include "metrics/pipeline_metrics.h"

namespace fencepost::metrics {

struct ShownPipeline {
  consumer::WorkerStatus status;
  Counts counts;
  double rate = 0;                 // records finished a second, over the last ten
  std::vector<double> per_second;  // the last minute, oldest first
  // Of `counts`, in the last minute.
  std::uint64_t new_dead_letters = 0, new_conflicts = 0;
  std::chrono::milliseconds lock_ttl{0};
  std::vector<std::pair<std::string, std::string>> settings;  // the file's, without secrets
};

// The process as a whole.
struct ShownProcess {
  std::string worker;
  std::string version;
  std::vector<std::pair<std::string, std::string>> libraries{};  // (name, version)
  std::vector<ShownPipeline> pipelines;
  std::chrono::milliseconds now{0};  // unix time of all this
};

// Records that wait in the partitions of this worker.
inline std::int64_t LagOf(const ShownPipeline& shown) {
  std::int64_t lag = 0;
  for (const consumer::PartitionStatus& row : shown.status.partitions) lag += row.lag;
  return lag;
}

// All reasons why some pipeline is not ready, each with its name.
inline std::vector<std::string> ReasonsOf(const ShownProcess& process) {
  if (process.pipelines.empty()) return {"starting"};
  std::vector<std::string> all;
  for (const ShownPipeline& shown : process.pipelines) {
    for (const consumer::Reason& one : shown.status.reasons) {
      all.push_back(shown.status.pipeline + ": " + Sentence(one));
    }
  }
  return all;
}

// Ready only if there is a pipeline and all are; the reason names those that are not.
inline ProbeResult ReadyOf(const ShownProcess& process) {
  if (process.pipelines.empty()) return {false, "starting"};
  ProbeResult all{true, ""};
  for (const ShownPipeline& shown : process.pipelines) {
    if (shown.status.ready) continue;
    if (!all.ready) all.reason += "; ";
    all.reason += shown.status.pipeline + ": " + shown.status.reason;
    all.ready = false;
  }
  return all;
}

}  // namespace fencepost::metrics
