#include "metrics/status_page.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "locking/check.h"
#include "metrics/log.h"
#include "metrics/status_page_assets.h"

namespace fencepost::metrics {
namespace {

using consumer::LockNodeStatus;
using consumer::PartitionStatus;
using consumer::WorkerStatus;

// 1234567 as 1,234,567.
std::string Number(std::int64_t value) {
  std::string text = fmt::format("{}", value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > first + 3;) text.insert(at -= 3, ",");
  return text;
}
std::string Number(std::uint64_t value) { return Number(static_cast<std::int64_t>(value)); }

std::string Bytes(std::size_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  if (bytes < 1024 * 1024) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1024 * 1024));
}

std::string Duration(std::chrono::milliseconds time) {
  const std::int64_t ms = time.count();
  if (ms < 1000) return fmt::format("{} ms", ms);
  if (ms < 60'000) return fmt::format("{:.1f} s", static_cast<double>(ms) / 1000);
  if (ms < 3'600'000) return fmt::format("{} min {} s", ms / 60'000, ms / 1000 % 60);
  if (ms < 86'400'000) return fmt::format("{} h {} min", ms / 3'600'000, ms / 60'000 % 60);
  return fmt::format("{} d {} h", ms / 86'400'000, ms / 3'600'000 % 24);
}

std::string Tag(std::string_view kind, std::string_view text) {
  return fmt::format(R"(<span class="tag {}">{}</span>)", kind, EscapeHtml(text));
}

void Fact(std::string& out, std::string_view value, std::string_view what, bool off = false) {
  out += fmt::format(R"(<div{}><b>{}</b><span>{}</span></div>)", off ? R"( class="off")" : "",
                     EscapeHtml(value), EscapeHtml(what));
}

// The last minute as a line; the text beside it says the numbers.
void Sparkline(std::string& out, const std::vector<double>& values) {
  if (values.size() < 2) return;
  const double most = std::max(1.0, *std::max_element(values.begin(), values.end()));
  std::string path;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = 100.0 * static_cast<double>(i) / static_cast<double>(values.size() - 1);
    path += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", x, 29 - 28 * values[i] / most);
  }
  out += fmt::format(
      R"(<svg viewBox="0 0 100 30" preserveAspectRatio="none" role="img" )"
      R"(aria-label="records a second in the last minute, at most {:.0f}"><path d="{}"/></svg>)",
      most, path);
}

// --- parts of a pipeline -----------------------------------------------------------------------

void AppendFacts(std::string& out, const ShownPipeline& shown) {
  const WorkerStatus& status = shown.status;
  const Counts& counts = shown.counts;
  std::int64_t lag = 0;
  for (const PartitionStatus& row : status.partitions) lag += row.lag;
  const std::uint64_t expired =
      counts.expired[0] + counts.expired[1] + counts.expired[2] + counts.expired[3];
  const double contention = counts.rounds == 0 ? 0
                                               : 100 * static_cast<double>(counts.contended) /
                                                     static_cast<double>(counts.rounds);
  out += R"(<div class="facts">)";
  Fact(out, fmt::format("{:.1f}/s", shown.rate), "records finished");
  Fact(out, Number(lag), "lag, records");
  Fact(out, Number(static_cast<std::uint64_t>(status.in_flight_records)),
       "in flight, " + Bytes(status.in_flight_bytes));
  Fact(out, Number(static_cast<std::uint64_t>(status.leases_held)), "leases held");
  Fact(out, fmt::format("{:.1f}%", contention),
       fmt::format("lock rounds contended, {} of {}", Number(counts.contended),
                   Number(counts.rounds)));
  Fact(out, Number(expired),
       fmt::format("leases expired; taken over from others: {}", Number(counts.takeovers)));
  Fact(out, Number(counts.fenced_by_output + counts.fenced_by_redis),
       fmt::format("fenced: {} at the output, {} at nodes", Number(counts.fenced_by_output),
                   Number(counts.fenced_by_redis)));
  Fact(out, Number(counts.dead_lettered), "dead letters", counts.dead_letter_errors > 0);
  Fact(out, Number(counts.violations), "invariant violations", counts.violations > 0);
  out += "</div>";
  Sparkline(out, shown.per_second);
}

std::string OldestText(const PartitionStatus& row) {
  if (!row.oldest_offset) return "";
  std::string text = fmt::format("{}, {}", *row.oldest_offset, row.oldest_stage);
  if (row.oldest_age) text += ", " + Duration(*row.oldest_age) + " old";
  return text;
}

void AppendPartitions(std::string& out, const WorkerStatus& status) {
  out += "<h3>Partitions</h3>";
  if (status.partitions.empty()) {
    out += R"(<p class="dim">None is assigned to this worker.</p>)";
    return;
  }
  out += R"(<div class="wide"><table><tr><th>partition</th><th class="num">watermark</th>)"
         R"(<th class="num">lag</th><th class="num">in flight</th><th>oldest record</th></tr>)";
  for (const PartitionStatus& row : status.partitions) {
    out +=
        fmt::format(R"(<tr><td>{}/{} {}</td><td class="num">{}</td><td class="num">{}</td>)"
                    R"(<td class="num">{}</td><td>{}</td></tr>)",
                    EscapeHtml(row.topic), row.partition, row.paused ? Tag("warn", "paused") : "",
                    Number(row.watermark), Number(row.lag),
                    Number(static_cast<std::uint64_t>(row.in_flight)), EscapeHtml(OldestText(row)));
  }
  out += "</table></div>";
}

std::string NodeTag(const LockNodeStatus& node) {
  if (!node.up) return Tag("bad", "down");
  if (node.quarantined) return Tag("warn", "quarantined " + Duration(node.quarantine_left));
  if (!node.open) return Tag("bad", "refused");
  return Tag("good", "ok");
}

void AppendNodes(std::string& out, const WorkerStatus& status) {
  out += R"(<h3>Lock nodes</h3><div class="wide"><table><tr><th>node</th><th>address</th>)"
         R"(<th>state</th><th class="num">clock offset</th><th>problem</th></tr>)";
  for (const LockNodeStatus& node : status.nodes) {
    out += fmt::format(
        R"(<tr><td>{}</td><td><code>{}</code></td><td>{}</td><td class="num">{}</td>)"
        R"(<td>{}</td></tr>)",
        node.letter, EscapeHtml(node.address), NodeTag(node),
        node.clock_offset
            ? fmt::format("{:+.1f} ms", static_cast<double>(node.clock_offset->count()) / 1e6)
            : "",
        EscapeHtml(node.problem));
  }
  out += "</table></div>";
}

void AppendCounts(std::string& out, const Counts& counts) {
  const std::pair<const char*, std::uint64_t> rows[] = {
      {"taken from Kafka", counts.consumed},
      {"done", counts.done},
      {"skipped: the lock nodes knew the id", counts.dedupe_by_lock},
      {"skipped: the ledger knew the id", counts.dedupe_by_ledger},
      {"dead-lettered", counts.dead_lettered},
      {"failed", counts.failed},
      {"id conflicts", counts.id_conflicts},
      {"further tries", counts.retries},
      {"dead letters not published", counts.dead_letter_errors},
      {"leases expired while waiting", counts.expired[0]},
      {"leases expired in the handler", counts.expired[1]},
      {"leases expired in the write", counts.expired[2]},
      {"leases expired at release", counts.expired[3]},
      {"leases lost, all reasons", counts.losses},
      {"rebalances", counts.rebalances}};
  out += "<table>";
  for (const auto& [what, count] : rows) {
    out += fmt::format(R"(<tr><td>{}</td><td class="num">{}</td></tr>)", what, Number(count));
  }
  out += "</table>";
}

void AppendErrors(std::string& out, const WorkerStatus& status) {
  out += "<h3>Last errors</h3>";
  if (status.last_errors.empty()) {
    out += R"(<p class="dim">None.</p>)";
    return;
  }
  out += R"(<div class="wide"><table>)";
  for (auto error = status.last_errors.rbegin(); error != status.last_errors.rend(); ++error) {
    out += fmt::format(R"(<tr><td class="dim">{}</td><td><code>{}</code></td><td>{}</td></tr>)",
                       Rfc3339(error->when), EscapeHtml(error->event), EscapeHtml(error->text));
  }
  out += "</table></div>";
}

void AppendDetails(std::string& out, const ShownPipeline& shown) {
  const std::string id = EscapeHtml(shown.status.pipeline);
  out += fmt::format(R"(<details id="counts-{}"><summary>Since the start</summary>)", id);
  AppendCounts(out, shown.counts);
  out += fmt::format(
      R"(</details><details id="settings-{}"><summary>Settings of the file</summary><table>)", id);
  for (const auto& [path, text] : shown.settings) {
    out += fmt::format("<tr><td><code>{}</code></td><td><code>{}</code></td></tr>",
                       EscapeHtml(path), EscapeHtml(text));
  }
  out += "</table></details>";
}

void AppendPipeline(std::string& out, const ShownPipeline& shown) {
  const WorkerStatus& status = shown.status;
  out += fmt::format(
      R"(<section><div class="top"><h2>{}</h2>{}<span class="dim">up {}</span></div>)",
      EscapeHtml(status.pipeline), status.ready ? Tag("good", "ready") : Tag("bad", "not ready"),
      Duration(status.uptime));
  if (!status.ready) out += fmt::format(R"(<p class="why">{}</p>)", EscapeHtml(status.reason));
  AppendFacts(out, shown);
  AppendPartitions(out, status);
  AppendNodes(out, status);
  AppendErrors(out, status);
  AppendDetails(out, shown);
  out += "</section>";
}

std::string Sha256Base64(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  const int ok = EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr);
  FENCEPOST_CHECK(ok == 1, "SHA-256 is not to be had from OpenSSL");
  std::array<unsigned char, 2 * EVP_MAX_MD_SIZE> base64{};
  const int length = EVP_EncodeBlock(base64.data(), digest.data(), static_cast<int>(size));
  return {reinterpret_cast<const char*>(base64.data()), static_cast<std::size_t>(length)};
}

// JSON cares for line ends and for bytes that are not UTF-8.
std::string AsJson(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string EscapeHtml(std::string_view text) {
  // dump replaces what is not UTF-8; the quotes and escapes around it come off again.
  const std::string clean = nlohmann::json::parse(AsJson(std::string(text))).get<std::string>();
  std::string out;
  out.reserve(clean.size());
  for (const char c : clean) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string StatusFragment(const ShownProcess& process) {
  std::string out;
  if (process.pipelines.empty()) out += "<section><p>Starting.</p></section>";
  for (const ShownPipeline& shown : process.pipelines) AppendPipeline(out, shown);
  return out;
}

std::string StatusEvent(const ShownProcess& process) {
  return "data: " + AsJson(StatusFragment(process)) + "\n\n";
}

std::string StatusPage(const ShownProcess& process) {
  return fmt::format(
      R"(<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">)"
      R"(<meta name="viewport" content="width=device-width,initial-scale=1">)"
      R"(<title>{0} - fencepost</title><link rel="icon" href="data:,"><style>{1}</style></head>)"
      R"(<body><header><h1>fencepost</h1><span>worker <code>{0}</code></span>)"
      R"(<span class="dim">version {2}</span><span id="live" class="dim">)"
      R"(as of this page's loading</span></header><main>{3}</main>)"
      R"(<footer><a href="metrics">metrics</a> · <a href="status">status as JSON</a> · )"
      R"(<a href="ready">ready</a> · <a href="live">live</a></footer>)"
      R"(<script>{4}</script></body></html>)",
      EscapeHtml(process.worker), kStatusStyle, EscapeHtml(process.version),
      StatusFragment(process), kStatusScript);
}

const std::string& StatusPagePolicy() {
  static const std::string policy = fmt::format(
      "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; connect-src 'self'; "
      "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      Sha256Base64(kStatusStyle), Sha256Base64(kStatusScript));
  return policy;
}

}  // namespace fencepost::metrics
