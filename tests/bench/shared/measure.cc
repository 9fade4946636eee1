#include "tests/bench/shared/measure.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "tests/support/process.h"

namespace fencepost::bench {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

struct Ticks {
  long own = 0;
  long waited_for = 0;
};

// proc(5): utime, stime, cutime and cstime are fields 14 to 17; the name in field 2 may hold
// spaces.
Ticks TicksOf(pid_t pid) {
  const std::string text = testing::ReadFile(fmt::format("/proc/{}/stat", pid));
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  long utime = 0, stime = 0, cutime = 0, cstime = 0;
  fields >> utime >> stime >> cutime >> cstime;
  return {utime + stime, cutime + cstime};
}

// A line "NAME: 1234 kB" of proc(5)'s status.
double StatusMib(pid_t pid, const std::string& name) {
  std::istringstream lines(testing::ReadFile(fmt::format("/proc/{}/status", pid)));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + ":")) return std::stod(line.substr(name.size() + 1)) / 1024;
  }
  return 0;
}

}  // namespace

double EpochSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Figures operator+(Figures figures, const Figures& more) {
  figures.insert(figures.end(), more.begin(), more.end());
  return figures;
}

double OwnCpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
}

double CpuSeconds(pid_t pid) {
  const Ticks process = TicksOf(pid);
  long ticks = process.own + process.waited_for;
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", pid));
  for (pid_t child = 0; children >> child;) ticks += TicksOf(child).own;
  return static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double CpuSeconds(const std::vector<pid_t>& pids) {
  double sum = 0;
  for (const pid_t pid : pids) sum += CpuSeconds(pid);
  return sum;
}

void CpuMeter::Start() {
  for (Group& group : groups_) group.before = group.seconds();
}

Figures CpuMeter::PerRecord(double records) const {
  Figures figures;
  for (const Group& group : groups_) {
    figures.emplace_back(group.name, (group.seconds() - group.before) * 1e6 / records);
  }
  return figures;
}

double ResidentMib(pid_t pid) { return StatusMib(pid, "VmRSS"); }
double PeakResidentMib(pid_t pid) { return StatusMib(pid, "VmHWM"); }

double LoadAverage() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0;
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace fencepost::bench
