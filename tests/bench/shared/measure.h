// What all measurements share: processor time by process, memory, and numbers of several rounds.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace fencepost::bench {

using Clock = std::chrono::steady_clock;

inline double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}
double EpochSeconds();  // by the machine's clock, which its servers have too

// In the order in which they are shown. A name ends in its unit: records_per_s, client_us,
// peak_mib.
using Figures = std::vector<std::pair<std::string, double>>;
Figures operator+(Figures figures, const Figures& more);

// Processor time (user and system), in seconds since their start.
double OwnCpuSeconds();  // this process, all threads
// That process, its children, and those of its children that it has waited for. 0 when it is gone.
double CpuSeconds(pid_t pid);
double CpuSeconds(const std::vector<pid_t>& pids);

// What each group of processes spends between Start and PerRecord.
class CpuMeter {
 public:
  using Seconds = std::function<double()>;
  void Add(std::string name, Seconds seconds) { groups_.push_back({std::move(name), seconds, 0}); }
  void Start();
  [[nodiscard]] Figures PerRecord(double records) const;  // in microseconds

 private:
  struct Group {
    std::string name;
    Seconds seconds;
    double before;
  };
  std::vector<Group> groups_;
};

// Resident memory in MiB; 0 when the process is gone.
double ResidentMib(pid_t pid);      // now
double PeakResidentMib(pid_t pid);  // at most since its start

double LoadAverage();  // of the last minute

double Median(std::vector<double> values);  // 0 of none

}  // namespace fencepost::bench
