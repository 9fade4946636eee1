#include "metrics/status/fleet_page.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "locking/base/time_text.h"
#include "metrics/status/html.h"
#include "metrics/status/page_frame.h"

namespace fencepost::metrics {
namespace {

using consumer::Fleet;
using consumer::FleetRow;
using consumer::FleetState;
using nlohmann::ordered_json;

constexpr int kEverySeconds = 2;

struct StateWords {
  std::string_view kind, text;
};
StateWords WordsOf(FleetState state) {
  switch (state) {
    case FleetState::kSilent:
      return {"bad", "no answer"};
    case FleetState::kOther:
      return {"note", "other pipelines"};
    case FleetState::kNotReady:
      return {"bad", "not ready"};
    case FleetState::kReady:
      break;
  }
  return {"good", "ready"};
}

// --- what is wrong ------------------------------------------------------------------------------

struct Remark {
  std::string_view kind;  // warn | note
  std::string text;
};

std::vector<Remark> RemarksOn(const Fleet& fleet) {
  std::vector<Remark> remarks;
  if (fleet.problem) {
    remarks.push_back({"warn", "The other workers are not known: " + fleet.problem->Line() + "."});
  } else if (!fleet.topics) {
    remarks.push_back(
        {"warn", "The partitions without a worker are not known: " + fleet.topics.error() + "."});
  }
  if (const auto left = WithoutAWorker(fleet); !left.empty()) {
    remarks.push_back(
        {"warn", "No worker that answered has " + consumer::PartitionsText(left, true) + "."});
  }
  std::set<std::string> versions;
  for (const FleetRow& row : fleet.rows) {
    if (row.answered()) versions.insert(row.version);
  }
  if (versions.size() > 1) {
    remarks.push_back(
        {"note", fmt::format("They have several versions: {}.", fmt::join(versions, ", "))});
  }
  return remarks;
}

// Of all pipelines.
std::vector<std::pair<std::string, Remark>> RemarksOn(const ShownFleet& shown) {
  std::vector<std::pair<std::string, Remark>> all;
  for (const Fleet& fleet : shown.fleets) {
    for (Remark& remark : RemarksOn(fleet)) all.emplace_back(fleet.pipeline, std::move(remark));
  }
  std::ranges::stable_sort(all, [](const auto& one, const auto& other) {
    return one.second.kind > other.second.kind;  // warn before note
  });
  return all;
}

void AppendSummary(std::string& out, const ShownFleet& shown) {
  const auto remarks = RemarksOn(shown);
  std::set<std::string> workers, in_need;
  for (const Fleet& fleet : shown.fleets) {
    for (const FleetRow& row : fleet.rows) {
      workers.insert(row.worker);
      if (row.state == FleetState::kSilent || row.state == FleetState::kNotReady) {
        in_need.insert(row.worker);
      }
    }
  }
  const bool warned = !remarks.empty() && remarks.front().second.kind == "warn";
  const std::string_view kind = !in_need.empty() ? "bad" : warned ? "warn" : "good";
  const std::string verdict =
      in_need.empty()
          ? fmt::format("{} worker{} answer{}, all ready.", workers.size(),
                        workers.size() == 1 ? "" : "s", workers.size() == 1 ? "s" : "")
          : fmt::format("{} of {} worker{} need{} attention.", in_need.size(), workers.size(),
                        workers.size() == 1 ? "" : "s", in_need.size() == 1 ? "s" : "");
  out += fmt::format(R"(<div id="summary" class="summary {}" data-title="{}">)"
                     R"(<p class="verdict" role="status">{}</p>)",
                     kind,
                     kind == "bad"    ? "\u2716 "
                     : kind == "warn" ? "\u26a0 "
                                      : "",
                     verdict);
  if (!remarks.empty()) out += "<ul>";
  for (const auto& [pipeline, remark] : remarks) {
    out += fmt::format(R"(<li class="{0}">{1} <a href="#{2}">{2}</a> <b>{3}</b></li>)", remark.kind,
                       Tag(remark.kind, remark.kind == "warn" ? "warning" : "note"),
                       EscapeHtml(pipeline), EscapeHtml(remark.text));
  }
  out += remarks.empty() ? "</div>" : "</ul></div>";
}

// --- the table ----------------------------------------------------------------------------------

struct Column {
  std::string_view head;
  std::string text;
};

std::string SecondsText(const std::optional<double>& seconds) {
  if (!seconds) return "";
  return SpanText(std::chrono::round<std::chrono::milliseconds>(
      std::chrono::duration<double>(*seconds < 1 ? *seconds : std::round(*seconds))));
}

// Behind the lag; on a narrow screen they stand below the row.
std::vector<Column> ColumnsOf(const FleetRow& row) {
  return {{"oldest", SecondsText(row.oldest)},      {"records/s", ShowRate(row.rate)},
          {"contended", ShowNumber(row.contended)}, {"expired", ShowNumber(row.expired)},
          {"lost", ShowNumber(row.lost)},           {"dead letters", ShowNumber(row.letters)}};
}

std::string InOneLine(const FleetRow& row, const std::string& partitions) {
  std::string text;
  for (const Column& column : ColumnsOf(row)) {
    if (column.text.empty()) continue;
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", column.head, column.text);
  }
  return fmt::format("{}; partitions: {}", text, partitions.empty() ? "none" : partitions);
}

void AppendRow(std::string& out, const FleetRow& row, bool several, bool total) {
  const StateWords state = WordsOf(row.state);
  const std::string_view goes_on = row.trouble.empty() ? "" : " goes-on";
  const std::string partitions = consumer::PartitionsText(row.partitions, several);
  out += fmt::format(
      R"(<tr class="row{}"><th scope="row">{}{}</th><td>{}</td>)", goes_on, EscapeHtml(row.worker),
      row.version.empty() ? ""
                          : fmt::format(R"( <span class="dim">{}</span>)", EscapeHtml(row.version)),
      total ? "" : Tag(state.kind, state.text));
  if (row.answered()) {
    out += fmt::format(R"(<td class="num">{}</td>)", ShowNumber(row.lag));
    for (const Column& column : ColumnsOf(row)) {
      out += fmt::format(R"(<td class="num broadly">{}</td>)", column.text);
    }
    out += fmt::format(R"(<td class="broadly">{}</td></tr>)", EscapeHtml(partitions));
    out += fmt::format(R"(<tr class="more narrowly{}"><td colspan="10" class="dim">{}</td></tr>)",
                       goes_on, EscapeHtml(InOneLine(row, partitions)));
  } else {
    out += R"(<td></td><td class="broadly" colspan="7"></td></tr>)";
  }
  if (row.trouble.empty()) return;
  out += fmt::format(R"(<tr class="more"><td colspan="10">{}</td></tr>)", EscapeHtml(row.trouble));
}

void AppendFleet(std::string& out, const Fleet& fleet) {
  const FleetRow total = TotalOf(fleet);
  const bool several = total.partitions.size() > 1;
  out += fmt::format(
      R"(<section id="{0}"><div class="top"><h2>{0}</h2><span class="dim">group {1}</span></div>)"
      R"(<div class="wide" tabindex="0" role="region" aria-label="Workers of {0}"><table>)"
      R"(<caption>Workers of {0}</caption><thead><tr><th scope="col">worker</th>)"
      R"(<th scope="col">state</th><th scope="col" class="num">lag</th>)",
      EscapeHtml(fleet.pipeline), EscapeHtml(fleet.group));
  for (const Column& column : ColumnsOf(total)) {
    out += fmt::format(R"(<th scope="col" class="num broadly">{}</th>)", column.head);
  }
  out += R"(<th scope="col" class="broadly">partitions</th></tr></thead><tbody>)";
  for (const FleetRow& row : fleet.rows) AppendRow(out, row, several, false);
  if (total.answered()) AppendRow(out, total, several, true);
  out += "</tbody></table></div></section>";
}

// --- JSON ---------------------------------------------------------------------------------------

ordered_json JsonOf(const consumer::PartitionsByTopic& partitions) {
  ordered_json json = ordered_json::object();
  for (const auto& [topic, numbers] : partitions) json[topic] = numbers;
  return json;
}

ordered_json JsonOf(const FleetRow& row) {
  ordered_json json = {{"worker", row.worker},
                       {"address", row.address},
                       {"state", WordsOf(row.state).text},
                       {"trouble", row.trouble},
                       {"version", row.version}};
  if (!row.answered()) return json;
  json["lag"] = row.lag;
  json["oldest_age_seconds"] = row.oldest ? ordered_json(*row.oldest) : ordered_json();
  json["records_per_second"] = row.rate;
  json["counts"] = {{"lock_contended", row.contended},
                    {"lock_expired", row.expired},
                    {"lock_losses", row.lost},
                    {"dead_lettered", row.letters}};
  json["partitions"] = JsonOf(row.partitions);
  return json;
}

ordered_json JsonOf(const Fleet& fleet) {
  ordered_json workers = ordered_json::array();
  for (const FleetRow& row : fleet.rows) workers.push_back(JsonOf(row));
  return {{"pipeline", fleet.pipeline},
          {"group", fleet.group},
          {"problem", fleet.problem ? ordered_json(fleet.problem->Line()) : ordered_json()},
          {"workers", std::move(workers)},
          {"without_worker", fleet.topics ? JsonOf(WithoutAWorker(fleet)) : ordered_json()}};
}

}  // namespace

std::string FleetFragment(const ShownFleet& shown) {
  std::string out;
  AppendSummary(out, shown);
  for (const Fleet& fleet : shown.fleets) AppendFleet(out, fleet);
  return out;
}

std::string FleetPage(const ShownFleet& shown) {
  return PageOf({.worker = shown.worker,
                 .version = shown.version,
                 .now = shown.now,
                 .title = "all workers",
                 .fragment = "fleet-fragment",
                 .every = kEverySeconds,
                 .links = R"(<a href="./">this worker</a> <a href="fleet.json">as JSON</a>)"},
                FleetFragment(shown));
}

std::string FleetJson(const ShownFleet& shown) {
  ordered_json pipelines = ordered_json::array();
  for (const Fleet& fleet : shown.fleets) pipelines.push_back(JsonOf(fleet));
  const ordered_json json = {
      {"worker", shown.worker}, {"version", shown.version}, {"pipelines", std::move(pipelines)}};
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace fencepost::metrics
