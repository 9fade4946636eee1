// What several processes answer, as one: pages of metrics, and /status. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "metrics/metric_definitions.h"

namespace fencepost::cli {

struct PageOfProcess {
  std::string process;  // the value of the label `process`; empty: the series have theirs
  std::string text;     // Prometheus text format, each family in one piece
};
// One page: each family once, in the order in which it first comes, with the series of all pages,
// each with the label `process`. Of a family that is told in different words the first ones count.
std::string MergePages(const std::vector<PageOfProcess>& pages);

// A page of one family, with a series for each process, from 0 on, and each pipeline.
std::string PageOf(const metrics::MetricInfo& metric, const std::vector<std::string>& pipelines,
                   const std::vector<std::uint64_t>& values);

struct ProcessState {
  std::string worker;
  int pid = 0;  // 0: it does not run
  std::uint64_t restarts = 0;
  std::string trouble;                // why it does not answer; empty: it does
  std::optional<std::string> status;  // its /status
};
struct SupervisorState {
  std::string worker, version;
  double uptime_seconds = 0;
  std::vector<ProcessState> processes;
};
// As /status of one process, with `processes`, and with `process` and `worker` in each of
// `pipelines`: each process has one of each name, with the partitions that are its own. Ready if
// all are.
std::string MergeStatus(const SupervisorState& state);

// Of all processes, from their /status: "process 0: 12, process 1: 3".
std::string InFlightText(const SupervisorState& state);

}  // namespace fencepost::cli
