// What all measurements share: processor time by process, medians, and how busy the machine was.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <vector>

namespace fencepost::bench {

using Clock = std::chrono::steady_clock;

inline double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Processor time (user and system), in seconds since their start.
double OwnCpuSeconds();  // this process, all threads
// That process, its children, and those of its children that it has waited for. 0 when it is gone.
double CpuSeconds(pid_t pid);
double CpuSeconds(const std::vector<pid_t>& pids);

double LoadAverage();  // of the last minute

double Median(std::vector<double> values);  // 0 of none

}  // namespace fencepost::bench
