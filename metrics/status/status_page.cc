#include "metrics/status/status_page.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "locking/base/digest.h"
#include "metrics/status/findings.h"
#include "metrics/status/html.h"
#include "metrics/status/status_sections.h"

namespace fencepost::metrics {

// (name, text) of status_page.css and status_page.js.
std::span<const std::pair<std::string_view, std::string_view>> PageFiles();

namespace {

const std::string_view kStyle = PageFiles()[0].second;
const std::string_view kScript = PageFiles()[1].second;

constexpr std::string_view kKinds[] = {"note", "warn", "bad"};
constexpr std::string_view kWords[] = {"note", "warning", "critical"};

struct Concern {
  Finding finding;
  std::vector<const ShownPipeline*> pipelines;
};

// The worst first; what several pipelines have in common (a lock node that is away) once.
std::vector<Concern> ConcernsOf(const ShownProcess& process) {
  std::vector<Concern> concerns;
  for (const ShownPipeline& shown : process.pipelines) {
    for (Finding& finding : FindingsOf(shown)) {
      const auto same = std::find_if(concerns.begin(), concerns.end(), [&](const Concern& one) {
        return one.finding.what == finding.what && one.finding.todo == finding.todo;
      });
      if (same == concerns.end()) {
        concerns.push_back({std::move(finding), {&shown}});
      } else {
        same->pipelines.push_back(&shown);
      }
    }
  }
  std::stable_sort(concerns.begin(), concerns.end(), [](const Concern& a, const Concern& b) {
    return a.finding.level > b.finding.level;
  });
  return concerns;
}

void AppendConcern(std::string& out, const Concern& concern, bool name_pipelines) {
  const auto level = static_cast<std::size_t>(concern.finding.level);
  out += fmt::format(R"(<li class="{}">{})", kKinds[level], Tag(kKinds[level], kWords[level]));
  for (const ShownPipeline* shown : concern.pipelines) {
    if (!name_pipelines) break;
    out += fmt::format(R"( <a href="#{}">{}</a>)", EscapeHtml(shown->status.pipeline),
                       EscapeHtml(shown->status.pipeline));
  }
  const std::string& what = concern.finding.what;
  out += fmt::format(R"( <b>{}{}</b> <span>{}</span></li>)", EscapeHtml(what),
                     what.ends_with('.') ? "" : ".", CodeInText(concern.finding.todo));
}

std::string Verdict(std::size_t in_need, std::size_t all) {
  if (all == 0) return "Starting.";
  if (in_need == 0) {
    return (all == 1 ? "1 pipeline is" : fmt::format("{} pipelines are", all)) +
           " at work, nothing is wrong.";
  }
  return fmt::format("{} of {} pipeline{} need{} attention.", in_need, all, all == 1 ? "" : "s",
                     in_need == 1 ? "s" : "");
}

// What is wrong comes first, with what to do.
void AppendSummary(std::string& out, const ShownProcess& process) {
  const std::vector<Concern> concerns = ConcernsOf(process);
  std::set<std::string> in_need;
  for (const ShownPipeline& shown : process.pipelines) {
    if (!shown.status.ready) in_need.insert(shown.status.pipeline);
  }
  for (const Concern& concern : concerns) {
    if (concern.finding.level == FindingLevel::kNote) continue;
    for (const ShownPipeline* shown : concern.pipelines) in_need.insert(shown->status.pipeline);
  }
  const auto worst = concerns.empty() ? FindingLevel::kNote : concerns.front().finding.level;
  const bool calm = in_need.empty();
  const bool starting = process.pipelines.empty();
  out += fmt::format(R"(<div id="summary" class="summary {}" data-title="{}">)"
                     R"(<p class="verdict" role="status">{}</p>)",
                     starting ? "note"
                     : calm   ? "good"
                              : kKinds[static_cast<std::size_t>(worst)],
                     calm                          ? ""
                     : worst == FindingLevel::kBad ? "\u2716 "
                                                   : "\u26a0 ",
                     Verdict(in_need.size(), process.pipelines.size()));
  if (!concerns.empty()) out += "<ul>";
  for (const Concern& concern : concerns) AppendConcern(out, concern, process.pipelines.size() > 1);
  out += concerns.empty() ? "</div>" : "</ul></div>";
}

}  // namespace

std::string StatusFragment(const ShownProcess& process) {
  std::string out;
  AppendSummary(out, process);
  for (const ShownPipeline& shown : process.pipelines) AppendPipeline(out, shown);
  return out;
}

std::string StatusPage(const ShownProcess& process) {
  return fmt::format(
      R"(<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">)"
      R"(<meta name="viewport" content="width=device-width,initial-scale=1">)"
      R"(<title>{0} - fencepost</title><link rel="icon" href="data:,"><style>{1}</style></head>)"
      R"(<body><header><h1>fencepost</h1><span>worker <code>{0}</code></span>)"
      R"(<span class="dim">version {2}</span><span class="state">)"
      R"(<span id="live" role="status">as of {3} UTC; reload for newer numbers</span> )"
      R"(<span id="age" aria-hidden="true"></span></span></header><main>{4}</main>)"
      R"(<footer><a href="metrics">metrics</a> <a href="status">status as JSON</a> )"
      R"(<a href="ready">ready</a> <a href="live">live</a></footer>)"
      R"(<script>{5}</script></body></html>)",
      EscapeHtml(process.worker), kStyle, EscapeHtml(process.version), ShowTime(process.now),
      StatusFragment(process), kScript);
}

const std::string& StatusPagePolicy() {
  static const std::string policy = fmt::format(
      "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; connect-src 'self'; "
      "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      Sha256Base64(kStyle), Sha256Base64(kScript));
  return policy;
}

}  // namespace fencepost::metrics
