#include "metrics/status/status_sections.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "locking/base/time_text.h"
#include "metrics/status/html.h"

namespace fencepost::metrics {
namespace {

using consumer::LockNodeStatus;
using consumer::PartitionStatus;
using consumer::WorkerStatus;

constexpr std::size_t kShownPartitions = 24;
constexpr std::size_t kShownEvents = 6;  // the others can be opened
// In a cell without a value: read as nothing, seen as empty on purpose.
constexpr std::string_view kNothing = "<span class=\"dim\" aria-hidden=\"true\">\u2013</span>";

std::uint64_t Unsigned(std::size_t value) { return value; }

// The last minute as a line; the text beside it says the numbers.
std::string Sparkline(const std::vector<double>& values) {
  if (values.size() < 2) return "";
  const double most = std::max(1.0, *std::max_element(values.begin(), values.end()));
  std::string path;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = 100.0 * static_cast<double>(i) / static_cast<double>(values.size() - 1);
    path += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", x, 29 - 28 * values[i] / most);
  }
  return fmt::format(
      R"(<svg viewBox="0 0 100 30" preserveAspectRatio="none" role="img" )"
      R"(aria-label="records a second in the last minute, at most {}"><path d="{}"/></svg>)",
      ShowRate(most), path);
}

struct Fact {
  std::string value;
  std::string what;
  std::string more;
  const char* kind = "";  // good | warn | bad, or none
  std::string picture;
};

void AppendFact(std::string& out, const Fact& fact) {
  out +=
      fmt::format(R"(<div class="fact {}{}"><dt>{}</dt><dd><b>{}</b><span>{}</span>{}</dd></div>)",
                  fact.kind, fact.picture.empty() ? "" : " broad", EscapeHtml(fact.what),
                  EscapeHtml(fact.value), EscapeHtml(fact.more), fact.picture);
}

void AppendRecordFacts(std::string& out, const ShownPipeline& shown) {
  const WorkerStatus& status = shown.status;
  const Counts& counts = shown.counts;
  std::optional<std::chrono::milliseconds> oldest;
  for (const PartitionStatus& row : status.partitions) {
    oldest = std::max(oldest, row.oldest_age);
  }
  AppendFact(out, {.value = ShowRate(shown.rate) + "/s",
                   .what = "finished",
                   .more = shown.per_second.size() < 2
                               ? "records, over 10 s"
                               : fmt::format("records, over 10 s; at most {}/s in the minute shown",
                                             ShowRate(*std::max_element(shown.per_second.begin(),
                                                                        shown.per_second.end()))),
                   .picture = Sparkline(shown.per_second)});
  AppendFact(out, {.value = ShowNumber(LagOf(shown)),
                   .what = "lag",
                   .more = fmt::format("records in {} partition{}", status.partitions.size(),
                                       status.partitions.size() == 1 ? "" : "s")});
  AppendFact(out, {.value = ShowNumber(Unsigned(status.in_flight_records)),
                   .what = "in flight",
                   .more = (status.in_flight_records == 0 ? "records; none waits"
                                                          : ShowBytes(status.in_flight_bytes)) +
                           (oldest ? "; the oldest is " + SpanText(*oldest) + " old" : "")});
  AppendFact(out, {.value = ShowNumber(counts["dead_lettered"]),
                   .what = "dead letters",
                   .more = counts["dead_letter_errors"] == 0
                               ? "since the start"
                               : fmt::format("not published at first: {}",
                                             ShowNumber(counts["dead_letter_errors"])),
                   .kind = counts["dead_lettered"] > 0 ? "warn" : ""});
}

void AppendLockFacts(std::string& out, const ShownPipeline& shown) {
  const Counts& counts = shown.counts;
  const std::uint64_t expired = counts.LeasesExpired();
  const double contention = counts["lock_rounds"] == 0
                                ? 0
                                : 100 * static_cast<double>(counts["lock_contended"]) /
                                      static_cast<double>(counts["lock_rounds"]);
  AppendFact(out, {.value = ShowNumber(Unsigned(shown.status.leases_held)),
                   .what = "leases held",
                   .more = fmt::format("taken over from others: {}",
                                       ShowNumber(counts["lock_takeovers"]))});
  AppendFact(out, {.value = fmt::format("{:.1f}%", contention),
                   .what = "contention",
                   .more = fmt::format("{} of {} lock rounds", ShowNumber(counts["lock_contended"]),
                                       ShowNumber(counts["lock_rounds"]))});
  AppendFact(out, {.value = ShowNumber(expired),
                   .what = "leases expired",
                   .more = fmt::format("lost in all: {}", ShowNumber(counts["lock_losses"])),
                   .kind = expired > 0 ? "warn" : ""});
  AppendFact(out, {.value = ShowNumber(counts["fenced_by_output"] + counts["fenced_by_redis"] +
                                       counts["rows_lost"]),
                   .what = "fenced",
                   .more = fmt::format("{} at the output, {} at nodes; {} rows were older than the "
                                       "table's",
                                       ShowNumber(counts["fenced_by_output"]),
                                       ShowNumber(counts["fenced_by_redis"]),
                                       ShowNumber(counts["rows_lost"]))});
  AppendFact(out, {.value = ShowNumber(counts["invariant_violations"]),
                   .what = "invariant violations",
                   .more = counts["invariant_violations"] == 0 ? "as it should be"
                                                               : "this should never move",
                   .kind = counts["invariant_violations"] > 0 ? "bad" : ""});
}

// A table that may be wider than the page: it scrolls by itself, by keyboard too.
std::string OpenTable(std::string_view name, std::string_view head) {
  return fmt::format(R"(<div class="wide" tabindex="0" role="region" aria-label="{0}"><table>)"
                     R"(<caption>{0}</caption><thead><tr>{1}</tr></thead><tbody>)",
                     EscapeHtml(name), head);
}
constexpr std::string_view kCloseTable = "</tbody></table></div>";

std::string PausedTag(const WorkerStatus& status) {
  const auto paused = std::count_if(status.partitions.begin(), status.partitions.end(),
                                    [](const PartitionStatus& row) { return row.paused; });
  if (paused == 0) return "";
  return " " + Tag("warn", fmt::format("{} of {} paused", paused, status.partitions.size()));
}

// On a narrow screen the oldest record is below the partition's name.
void AppendPartition(std::string& out, const PartitionStatus& row, bool tell_paused) {
  const std::string oldest =
      row.oldest_offset ? EscapeHtml(fmt::format("{}: {}", *row.oldest_offset, OldestText(row)))
                        : "";
  out += fmt::format(
      R"(<tr><th scope="row"><span class="topic" title="{0}">{0}</span>/{1}{2}{3}</th>)"
      R"(<td class="num">{4}</td><td class="num">{5}</td>)"
      R"(<td class="num broadly">{6}</td><td class="broadly">{7}</td></tr>)",
      EscapeHtml(row.topic), row.partition,
      tell_paused && row.paused ? " " + Tag("warn", "paused") : "",
      oldest.empty() ? "" : R"(<span class="narrowly dim">oldest: )" + oldest + "</span>",
      ShowNumber(row.lag), ShowNumber(Unsigned(row.in_flight)), ShowNumber(row.watermark),
      oldest.empty() ? std::string(kNothing) : oldest);
}

void AppendPartitions(std::string& out, const WorkerStatus& status) {
  out += fmt::format("<div><h3>Partitions{}</h3>", PausedTag(status));
  if (status.partitions.empty()) {
    out += R"(<p class="dim">None is assigned to this worker.</p></div>)";
    return;
  }
  std::vector<const PartitionStatus*> rows;
  for (const PartitionStatus& row : status.partitions) rows.push_back(&row);
  if (rows.size() > kShownPartitions) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto* a, const auto* b) { return a->lag > b->lag; });
    out += fmt::format(
        R"(<p class="dim">The {} with the most lag, of {}; <a href="status">all of them</a>.</p>)",
        kShownPartitions, rows.size());
    rows.resize(kShownPartitions);
  }
  out += OpenTable("Partitions of " + status.pipeline,
                   R"(<th scope="col">partition</th><th scope="col" class="num">lag</th>)"
                   R"(<th scope="col" class="num">in flight</th>)"
                   R"(<th scope="col" class="num broadly">watermark</th>)"
                   R"(<th scope="col" class="broadly">oldest record</th>)");
  const bool not_all = std::any_of(status.partitions.begin(), status.partitions.end(),
                                   [](const PartitionStatus& row) { return !row.paused; });
  for (const PartitionStatus* row : rows) AppendPartition(out, *row, not_all);
  out += kCloseTable;
  out += "</div>";
}

std::string NodeTag(const LockNodeStatus& node) {
  if (!node.up) return Tag("bad", "away");
  if (node.quarantined) return Tag("warn", "quarantined " + SpanText(node.quarantine_left));
  if (!node.open) return Tag("bad", "refused");
  return Tag("good", "ok");
}

void AppendNodes(std::string& out, const WorkerStatus& status) {
  out += "<div><h3>Lock nodes</h3>";
  out += OpenTable("Lock nodes of " + status.pipeline,
                   R"(<th scope="col" class="node">node</th><th scope="col">state</th>)"
                   R"(<th scope="col" class="num">clock offset</th>)");
  for (const LockNodeStatus& node : status.nodes) {
    const bool why = !node.problem.empty();
    out += fmt::format(
        R"(<tr{}><th scope="row">{} <code>{}</code></th><td>{}</td><td class="num">{}</td></tr>)",
        why ? R"( class="goes-on")" : "", node.letter, EscapeHtml(node.address), NodeTag(node),
        node.up && node.clock_offset
            ? fmt::format("{:+.1f} ms", static_cast<double>(node.clock_offset->count()) / 1e6)
            : std::string(kNothing));
    if (!why) continue;
    out +=
        fmt::format(R"(<tr class="more"><td colspan="3">{}</td></tr>)", EscapeHtml(node.problem));
  }
  out += kCloseTable;
  out += "</div>";
}

void AppendEvent(std::string& out, const consumer::ErrorStatus& one) {
  const bool error = one.level == locking::Severity::kError;
  out += fmt::format(
      R"(<li><time datetime="{}">{}</time>{}<code>{}</code><span class="what">{}{}</span></li>)",
      Rfc3339(one.when), ShowTime(one.when), error ? Tag("bad", "error") : Tag("warn", "warning"),
      EscapeHtml(one.event), EscapeHtml(one.text),
      one.count > 1
          ? fmt::format(R"( <b>{} times</b> since {})", ShowNumber(one.count), ShowTime(one.first))
          : "");
}

void AppendErrors(std::string& out, const ShownPipeline& shown) {
  const WorkerStatus& status = shown.status;
  out += "<h3>Last errors and warnings</h3>";
  const auto& events = status.last_errors;
  if (events.empty()) {
    out += R"(<p class="dim">None since the start.</p>)";
    return;
  }
  out += R"(<p class="dim">The newest first; times are UTC.</p><ol class="events" role="list">)";
  std::size_t told = 0;
  for (auto one = events.rbegin(); one != events.rend(); ++one) {
    if (told++ == kShownEvents) {
      out += fmt::format(R"(</ol><details id="events-{}"><summary>older ones: {}</summary>)"
                         R"(<ol class="events" role="list">)",
                         EscapeHtml(status.pipeline), events.size() - kShownEvents);
    }
    AppendEvent(out, *one);
  }
  out += events.size() > kShownEvents ? "</ol></details>" : "</ol>";
}

void AppendCounts(std::string& out, const std::string& pipeline, const Counts& counts) {
  out += OpenTable("Counts of " + pipeline,
                   R"(<th scope="col">since the start</th><th scope="col" class="num">count</th>)");
  for (const Counts::Row& row : Counts::Rows()) {
    if (row.words.empty()) continue;
    out += fmt::format(R"(<tr><th scope="row">{}</th><td class="num">{}</td></tr>)", row.words,
                       ShowNumber(counts[row.name]));
  }
  out += kCloseTable;
}

void AppendDetails(std::string& out, const ShownPipeline& shown) {
  const std::string id = EscapeHtml(shown.status.pipeline);
  out += fmt::format(R"(<details id="counts-{}"><summary>Counts since the start</summary>)", id);
  AppendCounts(out, shown.status.pipeline, shown.counts);
  out += fmt::format(
      R"(</details><details id="settings-{}"><summary>Settings of the file</summary>)", id);
  out += OpenTable("Settings of " + shown.status.pipeline,
                   R"(<th scope="col">setting</th><th scope="col">value</th>)");
  for (const auto& [path, text] : shown.settings) {
    out += fmt::format(
        R"(<tr><th scope="row"><code>{}</code></th><td class="long"><code>{}</code></td></tr>)",
        EscapeHtml(path), EscapeHtml(text));
  }
  out += kCloseTable;
  out += "</details>";
}

}  // namespace

void AppendPipeline(std::string& out, const ShownPipeline& shown) {
  const WorkerStatus& status = shown.status;
  out += fmt::format(
      R"(<section id="{0}"><div class="top"><h2>{0}</h2>{1}<span class="dim">up {2}</span></div>)",
      EscapeHtml(status.pipeline), status.ready ? Tag("good", "ready") : Tag("bad", "not ready"),
      SpanText(status.uptime));
  out += R"(<dl class="facts">)";
  AppendRecordFacts(out, shown);
  out += R"(</dl><dl class="facts small">)";
  AppendLockFacts(out, shown);
  out += "</dl>";
  AppendErrors(out, shown);
  out += R"(<div class="pair">)";
  AppendNodes(out, status);
  AppendPartitions(out, status);
  out += "</div>";
  AppendDetails(out, shown);
  out += "</section>";
}

}  // namespace fencepost::metrics
