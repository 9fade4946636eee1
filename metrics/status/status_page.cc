#include "metrics/status/status_page.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "metrics/status/findings.h"
#include "metrics/status/html.h"
#include "metrics/status/page_frame.h"
#include "metrics/status/status_sections.h"

namespace fencepost::metrics {

namespace {

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

// Without JavaScript it is not shown: nothing else may post. Ids have a '_', which no pipeline's
// name has.
std::string ControlBar(const ShownProcess& process, const PageControl& control) {
  if (control.access == consumer::ControlAccess::kOff) return "";
  std::string out =
      fmt::format(R"(<section id="_control" class="control" aria-label="Control" data-page="{}">)",
                  EscapeHtml(control.page_token));
  if (control.access == consumer::ControlAccess::kToken) {
    out += R"(<label>control token <input id="_token" type="password" autocomplete="off"></label>)";
  }
  for (const ShownPipeline& shown : process.pipelines) {
    for (const char* what : {"Pause", "Resume"}) {
      out += fmt::format(R"(<button data-path="pipelines/{1}/{2}">{0} {1}</button>)", what,
                         EscapeHtml(shown.status.pipeline), *what == 'P' ? "pause" : "resume");
    }
  }
  out +=
      R"(<label>record <input id="_record" placeholder="TOPIC/PARTITION/OFFSET or id=ID"></label>)";
  for (const ShownPipeline& shown : process.pipelines) {
    out += fmt::format(
        R"(<button data-path="pipelines/{0}/explain" data-body="_record" data-once>)"
        R"(Explain in {0}</button>)"
        R"(<button data-path="pipelines/{0}/try-replay" data-body="_record" data-once>)"
        R"(Try to replay in {0}</button>)"
        R"(<button data-path="pipelines/{0}/replay" data-body="_record">Replay in {0}</button>)",
        EscapeHtml(shown.status.pipeline));
  }
  out += R"(<label>log level <select id="_level"><option>debug</option><option selected>info)"
         R"(</option><option>warn</option><option>error</option></select></label>)"
         R"(<button data-path="log/level" data-body="_level">Set log level</button>)"
         R"(<span id="_told" role="status"></span></section>)";
  return out;
}

}  // namespace

std::string StatusFragment(const ShownProcess& process) {
  std::string out;
  AppendSummary(out, process);
  for (const ShownPipeline& shown : process.pipelines) AppendPipeline(out, shown);
  return out;
}

std::string StatusPage(const ShownProcess& process, const PageControl& control) {
  return PageOf({.worker = process.worker,
                 .version = process.version,
                 .now = process.now,
                 .title = "fencepost",
                 .fragment = "fragment",
                 .links = R"(<a href="fleet">all workers</a> <a href="metrics">metrics</a> )"
                          R"(<a href="status">status as JSON</a> <a href="ready">ready</a> )"
                          R"(<a href="live">live</a>)",
                 .control = ControlBar(process, control)},
                StatusFragment(process));
}

}  // namespace fencepost::metrics
