#include "metrics/page.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <prometheus/text_serializer.h>

namespace fencepost::metrics {
namespace {

using prometheus::MetricFamily;

// The numbers of /proc/self/stat, by their number in proc(5). They begin after the command's name,
// which may hold spaces and brackets, and the state.
using ProcStat = std::array<double, 25>;
constexpr std::size_t kThreadCount = 20, kStartTicks = 22, kVirtualBytes = 23, kResidentPages = 24;

ProcStat ReadProcStat() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  ProcStat stat{};
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string state;
  fields >> state;
  for (std::size_t i = 4; i < stat.size() && fields >> stat[i];) ++i;
  return stat;
}

double SecondsOf(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

std::int64_t OpenFds() {
  std::error_code error;
  std::int64_t count = 0;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end;
       it.increment(error)) {
    ++count;
  }
  return count > 0 ? count - 1 : 0;  // without the one that reads the folder
}

std::int64_t MaxFds() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  constexpr rlim_t kMost = std::numeric_limits<std::int64_t>::max();  // RLIM_INFINITY is more
  return static_cast<std::int64_t>(std::min(limit.rlim_cur, kMost));
}

double StartTime() {
  return SecondsOf(CLOCK_REALTIME) - SecondsOf(CLOCK_BOOTTIME) +
         ReadProcStat()[kStartTicks] / static_cast<double>(sysconf(_SC_CLK_TCK));
}

Family FamilyOf(const Metric& metric) {
  const Definition& definition = metric.definition();
  return {{std::string(definition.name), std::string(definition.help), definition.type, {}}, {}};
}

}  // namespace

ProcessCells::ProcessCells(const BuildInfo& build, double start_time)
    : version{"version", {build.version}}, commit{"commit", {build.commit}} {
  const ProcStat stat = ReadProcStat();
  const auto in_nanos = [](double seconds) { return std::llround(seconds * 1e9); };
  build_info.Set(1);
  process_cpu.Set(in_nanos(SecondsOf(CLOCK_PROCESS_CPUTIME_ID)));
  process_open_fds.Set(OpenFds());
  process_max_fds.Set(MaxFds());
  process_virtual_memory.Set(std::llround(stat[kVirtualBytes]));
  process_resident_memory.Set(std::llround(stat[kResidentPages]) * sysconf(_SC_PAGESIZE));
  process_start_time.Set(in_nanos(start_time));
  process_threads.Set(std::llround(stat[kThreadCount]));
}

MetricsPage::MetricsPage(BuildInfo build) : build_(std::move(build)), start_time_(StartTime()) {}

tl::expected<PipelineMetrics*, Error> MetricsPage::Add(PipelineInfo info, Log* log) {
  const std::lock_guard lock(mutex_);
  for (const auto& pipeline : pipelines_) {
    if (pipeline->info().name == info.name) {
      return tl::unexpected(Error{"duplicate_pipeline",
                                  fmt::format("two pipelines are named {}", info.name), "",
                                  "give each pipeline of a process its own name"});
    }
  }
  pipelines_.push_back(std::make_unique<PipelineMetrics>(std::move(info), log));
  return pipelines_.back().get();
}

std::vector<Family> MetricsPage::Families() const {
  std::vector<Family> families;
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; !pipelines_.empty() && i < pipelines_[0]->All().size(); ++i) {
    auto& [numbers, exemplars] = families.emplace_back(FamilyOf(*pipelines_[0]->All()[i]));
    for (const auto& pipeline : pipelines_) {
      pipeline->Collect(*pipeline->All()[i], numbers.metric, exemplars);
    }
  }
  const ProcessCells process(build_, start_time_);
  for (const Metrics* of_process : {&spans_.all, &process.all}) {
    for (const Metric* metric : *of_process) {
      auto& [numbers, exemplars] = families.emplace_back(FamilyOf(*metric));
      metric->Collect("", numbers.metric, exemplars);
    }
  }
  return families;
}

std::vector<MetricFamily> MetricsPage::Collect() const {
  std::vector<MetricFamily> collected;
  for (Family& family : Families()) collected.push_back(std::move(family.numbers));
  return collected;
}

std::string MetricsPage::Render() const {
  return prometheus::TextSerializer().Serialize(Collect());
}

std::string MetricsPage::RenderOpenMetrics() const { return OpenMetricsText(Families()); }

}  // namespace fencepost::metrics
