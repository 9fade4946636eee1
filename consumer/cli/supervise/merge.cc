#include "consumer/cli/supervise/merge.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace fencepost::cli {
namespace {

using nlohmann::ordered_json;

struct Family {
  std::vector<std::string> head;  // # HELP and # TYPE
  std::string series;
};

// `name{a="b"} 1` and `name 1` with the label, before all others: a value may hold any character, a
// name none of these.
std::string WithLabel(std::string_view line, const std::string& process) {
  const std::size_t end = line.find_first_of("{ ");
  if (process.empty() || end == std::string_view::npos) return std::string(line);
  const std::string_view name = line.substr(0, end);
  if (line[end] == ' ')
    return fmt::format("{}{{process=\"{}\"}}{}", name, process, line.substr(end));
  const std::string_view rest = line.substr(end + 1);
  return fmt::format("{}{{process=\"{}\"{}{}", name, process, rest.starts_with('}') ? "" : ",",
                     rest);
}

// The name in `# HELP name …` and `# TYPE name …`; empty for other lines.
std::string_view FamilyOf(std::string_view line) {
  constexpr std::size_t kName = 7;
  if (!line.starts_with('#') || line.size() <= kName) return {};
  const std::string_view word = line.substr(2, 4);
  if (word != "HELP" && word != "TYPE") return {};
  line.remove_prefix(kName);
  return line.substr(0, line.find(' '));
}

class Merged {
 public:
  void Add(const PageOfProcess& page) {
    const std::size_t known = families_.size();
    Family* family = nullptr;
    std::size_t index = 0;
    std::string_view text = page.text;
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(line.size() + 1, text.size()));
      if (line.empty()) continue;
      if (const std::string_view name = FamilyOf(line); !name.empty()) {
        index = IndexOf(name);
        family = &families_[index];
        if (index >= known) family->head.emplace_back(line);
      } else if (family != nullptr) {
        family->series += WithLabel(line, page.process) + "\n";
      }
    }
  }
  [[nodiscard]] std::string Text() const {
    std::string text;
    for (const Family& family : families_) {
      for (const std::string& line : family.head) text += line + "\n";
      text += family.series;
    }
    return text;
  }

 private:
  std::size_t IndexOf(std::string_view name) {
    const auto [at, fresh] = places_.try_emplace(std::string(name), families_.size());
    if (fresh) families_.emplace_back();
    return at->second;
  }

  std::vector<Family> families_;
  std::map<std::string, std::size_t> places_;
};

// Its /status, or null where there is none that can be read.
ordered_json StatusOf(const ProcessState& process) {
  if (!process.status) return nullptr;
  ordered_json json = ordered_json::parse(*process.status, nullptr, false);
  return json.is_object() ? json : ordered_json(nullptr);
}

// Where there is no status, why.
std::vector<std::string> ReasonsOf(const ProcessState& process, const ordered_json& status) {
  if (status.is_null()) return {process.trouble.empty() ? "no answer" : process.trouble};
  std::vector<std::string> reasons;
  for (const auto& reason : status.value("reasons", ordered_json::array())) {
    if (reason.is_string()) reasons.push_back(reason.get<std::string>());
  }
  return reasons;
}

std::uint64_t InFlight(const ordered_json& status) {
  const ordered_json::json_pointer records("/in_flight/records");
  std::uint64_t sum = 0;
  for (const auto& pipeline : status.value("pipelines", ordered_json::array())) {
    sum += pipeline.value(records, std::uint64_t{0});
  }
  return sum;
}

}  // namespace

std::string MergePages(const std::vector<PageOfProcess>& pages) {
  Merged merged;
  for (const PageOfProcess& page : pages) merged.Add(page);
  return merged.Text();
}

std::string PageOf(const metrics::MetricInfo& metric, const std::vector<std::string>& pipelines,
                   const std::vector<std::uint64_t>& values) {
  const bool counter = metric.kind == metrics::MetricKind::kCounter;
  std::string text = fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", metric.name, metric.help,
                                 counter ? "counter" : "gauge");
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (const std::string& pipeline : pipelines) {
      text += fmt::format("{}{{process=\"{}\",pipeline=\"{}\"}} {}\n", metric.name, i, pipeline,
                          values[i]);
    }
  }
  return text;
}

std::string MergeStatus(const SupervisorState& state) {
  ordered_json processes = ordered_json::array();
  ordered_json pipelines = ordered_json::array();
  ordered_json libraries = ordered_json::object();
  std::vector<std::string> reasons;
  bool ready = true;
  for (std::size_t i = 0; i < state.processes.size(); ++i) {
    const ProcessState& process = state.processes[i];
    const ordered_json status = StatusOf(process);
    const bool is_ready = status.is_object() && status.value("ready", false);
    ready = ready && is_ready;
    const std::string name = std::to_string(i);
    processes.push_back(
        {{"process", name},
         {"worker", process.worker},
         {"pid", process.pid == 0 ? ordered_json(nullptr) : ordered_json(process.pid)},
         {"ready", is_ready},
         {"restarts", process.restarts}});
    for (const std::string& reason : ReasonsOf(process, status)) {
      reasons.push_back(fmt::format("process {}: {}", name, reason));
    }
    if (!status.is_object()) continue;
    libraries = status.value("libraries", libraries);
    for (const auto& pipeline : status.value("pipelines", ordered_json::array())) {
      ordered_json told = {{"process", name}, {"worker", process.worker}};
      told.update(pipeline);
      pipelines.push_back(std::move(told));
    }
  }
  const ordered_json json = {{"worker", state.worker},
                             {"version", state.version},
                             {"libraries", std::move(libraries)},
                             {"ready", ready},
                             {"reason", ready ? "" : fmt::format("{}", fmt::join(reasons, "; "))},
                             {"reasons", reasons},
                             {"uptime_seconds", state.uptime_seconds},
                             {"processes", std::move(processes)},
                             {"pipelines", std::move(pipelines)}};
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

std::string InFlightText(const SupervisorState& state) {
  std::string text;
  for (std::size_t i = 0; i < state.processes.size(); ++i) {
    const ordered_json status = StatusOf(state.processes[i]);
    text += fmt::format("{}process {}: {}", i == 0 ? "" : ", ", i,
                        status.is_null() ? "unknown" : std::to_string(InFlight(status)));
  }
  return text;
}

}  // namespace fencepost::cli
