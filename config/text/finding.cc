#include "config/text/finding.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "locking/base/check.h"
#include "locking/base/control_text.h"

namespace fencepost::config {
namespace {

constexpr std::array<Rule, 59> kRules{{
    {"file", "The file can be read, is UTF-8 text and at most 1 MiB."},
    {"yaml", "The text is YAML: one document, a map of keys, not nested too deep."},
    {"quoting", "Inside {} and [] YAML needs values with { or } quoted."},
    {"anchor", "Anchors are not allowed."},
    {"alias", "Aliases are not allowed."},
    {"tag", "Tags are not allowed."},
    {"duplicate-key", "A key is given once: in its map, in the files, by --set."},
    {"unknown-key", "Every key is one of this reference."},
    {"missing", "What has no default must be given."},
    {"type", "A map, a list or a single value, as the key needs it."},
    {"variable", "Every ${VAR} is set, every ${file:PATH} can be read."},
    {"value", "The value has the form that the key needs."},
    {"range", "Numbers, durations and sizes are within their limits."},
    {"selector", "Selectors are well-formed and used where they mean something."},
    {"record-id", "record_id identifies a record."},
    {"nodes", "There are 1, 3, 5 or 7 lock nodes, each once."},
    {"login", "A login is given once, and its secret can be read."},
    {"tls", "TLS has its files, they can be used, and it is not left out by mistake."},
    {"ttl", "The lock store allows lock.ttl."},
    {"min-validity", "A lease of lock.ttl can have lock.min_validity left."},
    {"lock", "What the lock is for here, and so which nodes it needs."},
    {"unavailable", "lock.on_unavailable: proceed only where the ledger decides alone."},
    {"node-timeout", "A call to one lock node ends before a lease does."},
    {"remember-done",
     "lock.remember_done is given without a ledger only, and DONE marks outlive every lease."},
    {"block", "lock.block is given where records share locks."},
    {"ledger-keep", "ledger.keep is given where the ledger grows."},
    {"guarantee", "The output can keep the guarantee that the pipeline declares."},
    {"dsn", "libpq can read the connection string, and takes its password whole."},
    {"failover", "A database with several hosts loses no commit when it fails over."},
    {"one-output", "There is exactly one output."},
    {"one-handler", "There is at most one handler."},
    {"one-auth", "handler.http.auth has exactly one way."},
    {"handler", "The handler's command, headers and body mean something."},
    {"jq", "A jq program compiles, and asks for what there is."},
    {"drain", "processing.revoke_drain has room for processing.timeout."},
    {"retry", "There is something to try again, and waits grow."},
    {"dead-letter", "What goes to a dead letter topic has one."},
    {"loop", "No topic is written to that is read."},
    {"cluster", "Brokers of an output are those of another cluster."},
    {"order", "The output can keep the order that is asked for."},
    {"effects",
     "What effects and records say is said nowhere else; only those of an array read elements."},
    {"rows", "on_conflict, key, fence and on_null_value fit together and to the columns."},
    {"statement", "A statement is all that says what is written; args go with it."},
    {"transaction", "A transaction ends within its timeout."},
    {"table", "The table is not the ledger."},
    {"registry", "There is a schema registry where a format needs it, and its address is one."},
    {"sasl", "A login has what its mechanism needs, and nothing else."},
    {"convert", "convert names columns, and how they are meant."},
    {"types", "types names columns, and a type of SQL for each."},
    {"decode", "kafka.decode decodes something."},
    {"encode", "The keys of output.kafka.encode go together."},
    {"librdkafka", "librdkafka knows the setting; what would break the guarantee is refused."},
    {"control", "observe.control has its token, and no other has one."},
    {"in-flight", "processing.max_in_flight has room for processing.concurrency."},
    {"shutdown", "shutdown_timeout has room for processing.revoke_drain."},
    {"tests", "Tests are named once, and speak of what the pipeline has."},
    {"advice",
     "It works, and will hurt: an end at the first bad record, a ledger that only grows."},
    {"online", "The servers have what the pipeline needs (`lint --online`)."},
    {"duplicate-pipeline",
     "Two files of one process name different pipelines, and read no topic in one group."},
}};

std::string_view SeverityText(Severity severity) {
  constexpr std::array<std::string_view, 3> kTexts = {"error", "warning", "info"};
  return kTexts[static_cast<std::size_t>(severity)];
}

// In a workflow command of GitHub: these characters mean something.
std::string Escaped(std::string_view text, bool property) {
  std::string out;
  for (const char c : text) {
    const bool special = c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','));
    out += special ? fmt::format("%{:02X}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return out;
}

// One line, and not too long a one, whatever the file holds.
std::string OneLine(std::string message) {
  constexpr std::size_t kLongest = 400;
  for (std::size_t at = 0; at < message.size(); ++at) {
    if (const std::size_t size = ControlSize(std::string_view(message).substr(at)); size > 0) {
      message.replace(at, size, " ");
    }
  }
  if (message.size() <= kLongest) return message;
  std::size_t end = kLongest;
  while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xc0) == 0x80) --end;
  return message.substr(0, end) + "…";
}

}  // namespace

std::span<const Rule> Rules() { return kRules; }

std::string PlaceText(const std::string& file, int line, int col) {
  return line == 0 ? file : fmt::format("{}:{}:{}", file, line, col);
}

std::string FormatFinding(const Finding& finding) {
  return fmt::format("{}: {}: {} [{}]", PlaceText(finding.file, finding.line, finding.col),
                     SeverityText(finding.severity), finding.message, finding.rule);
}

std::string FormatFindingGithub(const Finding& finding) {
  const bool info = finding.severity == Severity::kInfo;  // GitHub has another word for it
  const bool in_file = finding.line > 0;
  const std::string place = fmt::format("file={},line={},col={},", Escaped(finding.file, true),
                                        finding.line, finding.col);
  return fmt::format("::{} {}title={}::{}{}", info ? "notice" : SeverityText(finding.severity),
                     in_file ? place : "", Escaped(finding.rule, true),
                     in_file ? "" : Escaped(finding.file + ": ", false),
                     Escaped(finding.message, false));
}

std::string FormatFindingsJson(std::span<const Finding> findings) {
  std::string out = "[";
  for (const Finding& finding : findings) {
    nlohmann::ordered_json object;
    object["file"] = finding.file;
    object["line"] = finding.line;
    object["column"] = finding.col;
    object["severity"] = SeverityText(finding.severity);
    object["message"] = finding.message;
    object["rule"] = finding.rule;
    out += out.size() == 1 ? "\n" : ",\n";
    out += object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  return out + (findings.empty() ? "]" : "\n]");
}

bool HasErrors(std::span<const Finding> findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& f) { return f.severity == Severity::kError; });
}

void AddNew(std::vector<Finding>& all, std::span<const Finding> more) {
  for (const Finding& finding : more) {
    if (std::ranges::find(all, finding) == all.end()) all.push_back(finding);
  }
}

void Findings::Add(Place at, Severity severity, std::string_view rule, std::string message) {
  const auto known = [&](const Rule& r) { return r.name == rule; };
  FENCEPOST_CHECK(std::any_of(kRules.begin(), kRules.end(), known), rule);
  findings_.emplace_back(at, Finding{.file = SourceOf(at),
                                     .line = at.line,
                                     .col = at.col,
                                     .severity = severity,
                                     .message = OneLine(std::move(message)),
                                     .rule = std::string(rule)});
}

std::vector<Finding> Findings::Take() {
  std::ranges::stable_sort(findings_, {}, [](const auto& told) {
    return std::tuple(told.first.source, told.first.line, told.first.col);
  });
  std::vector<Finding> sorted;
  for (auto& [at, finding] : std::exchange(findings_, {})) sorted.push_back(std::move(finding));
  return sorted;
}

}  // namespace fencepost::config
