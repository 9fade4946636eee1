#include "metrics/page.h"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <prometheus/text_serializer.h>

namespace fencepost::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;

// The numbers of /proc/self/stat, by their number in proc(5). They begin after the command's name,
// which may hold spaces and brackets, and the state.
using ProcStat = std::array<double, 25>;
constexpr std::size_t kThreads = 20, kStartTicks = 22, kVirtualBytes = 23, kResidentPages = 24;

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

double Seconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

double OpenFds() {
  std::error_code error;
  double count = 0;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end;
       it.increment(error)) {
    ++count;
  }
  return count > 0 ? count - 1 : 0;  // without the one that reads the folder
}

double MaxFds() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<double>(limit.rlim_cur) : 0;
}

double StartTime() {
  return Seconds(CLOCK_REALTIME) - Seconds(CLOCK_BOOTTIME) +
         ReadProcStat()[kStartTicks] / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double ProcessValue(Metric metric, const ProcStat& stat, double start_time) {
  switch (metric) {
    case Metric::kProcessCpu:
      return Seconds(CLOCK_PROCESS_CPUTIME_ID);
    case Metric::kProcessOpenFds:
      return OpenFds();
    case Metric::kProcessMaxFds:
      return MaxFds();
    case Metric::kProcessVirtualMemory:
      return stat[kVirtualBytes];
    case Metric::kProcessResidentMemory:
      return stat[kResidentPages] * static_cast<double>(sysconf(_SC_PAGESIZE));
    case Metric::kProcessStartTime:
      return start_time;
    case Metric::kProcessThreads:
      return stat[kThreads];
    default:
      return 1;  // the info metrics
  }
}

ClientMetric ProcessSeries(const MetricInfo& metric, const BuildInfo& build, const ProcStat& stat,
                           double start_time) {
  ClientMetric series;
  if (metric.id == Metric::kBuildInfo) {
    series.label = {{std::string(metric.labels[0].name), build.version},
                    {std::string(metric.labels[1].name), build.commit}};
  }
  series.counter.value = series.gauge.value = ProcessValue(metric.id, stat, start_time);
  return series;
}

prometheus::MetricType TypeOf(MetricKind kind) {
  switch (kind) {
    case MetricKind::kCounter:
      return prometheus::MetricType::Counter;
    case MetricKind::kHistogram:
      return prometheus::MetricType::Histogram;
    case MetricKind::kGauge:
      break;
  }
  return prometheus::MetricType::Gauge;
}

}  // namespace

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

std::vector<MetricFamily> MetricsPage::Collect() const {
  const ProcStat stat = ReadProcStat();
  const std::lock_guard lock(mutex_);
  std::vector<MetricFamily> families;
  families.reserve(AllMetrics().size());
  for (const MetricInfo& metric : AllMetrics()) {
    MetricFamily family;
    family.name = metric.name;
    family.help = metric.help;
    family.type = TypeOf(metric.kind);
    if (metric.scope == Scope::kProcess) {
      family.metric.push_back(ProcessSeries(metric, build_, stat, start_time_));
    } else {
      for (const auto& pipeline : pipelines_) pipeline->Collect(metric, family.metric);
    }
    families.push_back(std::move(family));
  }
  return families;
}

std::string MetricsPage::Render() const {
  return prometheus::TextSerializer().Serialize(Collect());
}

}  // namespace fencepost::metrics
