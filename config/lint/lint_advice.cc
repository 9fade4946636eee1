// What works, and will hurt: warnings. Each names what silences it: a choice that is written down.
#include <map>

#include <fmt/format.h>

#include "config/lint/lint.h"
#include "config/lint/lint_parts.h"
#include "locking/redis/address.h"

namespace fencepost::config {
namespace {

constexpr std::string_view kRule = "advice";

void AdviseDeadLetters(const Values& values, Findings& findings) {
  if (values.Given("dead_letter") || values.Given("on_bad_record")) return;
  findings.Warning(
      {}, kRule,
      "there is no dead_letter: the first record without an id, or that the output refuses, ends "
      "the pipeline; give dead_letter: {topic: …}, or say on_bad_record: stop");
}

void AdviseRecordId(const Values& values, Findings& findings) {
  if (!HasLedger(values.options()) || values.Given("record_id")) return;
  findings.Warning({}, kRule,
                   "there is no record_id: a record is identified by its position in the topic, "
                   "and what a producer sends again is a new record with an effect of its own; "
                   "give record_id: json:/POINTER, or say record_id: position");
}

void AdviseKeep(const Values& values, Findings& findings) {
  if (!HasLedger(values.options()) || values.options().identity.ByPosition() ||
      values.Given("ledger.keep"))
    return;
  findings.Warning(
      values.KeyPlace("output"), kRule,
      "there is no ledger.keep: the ledger grows by a row for each id, for ever; say how long an "
      "id may come again, as in ledger: {keep: 30d}, or ledger: {keep: forever}");
}

// A call that outlives the lease of a worker that was killed or frozen runs beside the next one's.
constexpr Relation kCallWithinLease{"processing.timeout",
                                    "lock.ttl",
                                    [](auto& a, auto& b) { return a <= b; },
                                    Severity::kWarning,
                                    kRule,
                                    "{} ({}) is above {} ({}): a call of a worker that was killed "
                                    "or frozen may still run when another worker makes it again"};

bool IsLoopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

void AdviseNodes(const Values& values, Findings& findings) {
  const auto nodes = values.Texts("lock.redis.nodes");
  if (nodes.size() == 1) {
    findings.Warning(
        nodes.front().at, kRule,
        "lock.redis.nodes: one node is no quorum: while it is away nothing is processed, and a "
        "node that lost its data forgets all locks; take three or five");
  }
  std::map<std::string, const Text*> seen;  // by host
  for (const Text& node : nodes) {
    const auto address = locking::ParseNodeAddress(node.value);
    if (!address || !address->path.empty()) continue;
    const bool loopback = IsLoopback(address->host);
    // Several servers on one's own machine are how everybody begins; two names of it are a mistake.
    const auto [first, is_new] =
        seen.emplace(loopback ? ":" + address->port : address->host, &node);
    if (is_new) continue;
    const std::string& other = first->second->shown;
    findings.Warning(
        node.at, kRule,
        loopback
            ? fmt::format("lock.redis.nodes: {} and {} are one server: localhost has several names",
                          other, node.shown)
            : fmt::format("lock.redis.nodes: {} and {} are on one host: they fail together, and "
                          "count as two of the quorum",
                          other, node.shown));
  }
}

}  // namespace

void Advise(const Values& values, Findings& findings) {
  AdviseDeadLetters(values, findings);
  AdviseRecordId(values, findings);
  AdviseKeep(values, findings);
  if (values.options().handler.outside()) LintRelation(kCallWithinLease, values, findings);
  AdviseNodes(values, findings);
}

}  // namespace fencepost::config
