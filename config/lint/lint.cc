#include "config/lint/lint.h"

#include <algorithm>
#include <span>
#include <string>

#include <fmt/format.h>

#include "config/lint/lint_parts.h"
#include "config/read/defaults.h"
#include "config/text/scalar.h"
#include "locking/core/options.h"

namespace fencepost::config {
namespace {

using consumer::Selector;

void LintIdPart(const Selector& selector, Place at, bool alone, Findings& findings) {
  switch (selector.kind) {
    case Selector::Kind::kHeader:
    case Selector::Kind::kJson:
    case Selector::Kind::kKeyJson:
      break;
    case Selector::Kind::kPosition:
      if (alone) break;
      findings.Error(at, "record-id", "record_id: position identifies a record alone");
      return;
    case Selector::Kind::kKey:
      if (alone)
        findings.Warning(at, "record-id",
                         "record_id: key takes every record of a key for the same one; a stream of "
                         "updates repeats its keys");
      break;
    default:
      findings.Error(at, "record-id",
                     "record_id: this does not identify a record; it is one of position, key, "
                     "header:NAME, json:/POINTER, key:/POINTER");
      return;
  }
  if (selector.optional) {
    findings.Error(at, "record-id", "record_id: a record without an id is bad: leave the ? out");
  }
}

void LintRecordId(const Values& values, Findings& findings) {
  const std::span<const Text> parts = values.Texts("record_id");
  for (const Text& part : parts) {
    LintIdPart(part.selector, part.at, parts.size() == 1, findings);
  }
}

// A section that holds one of its keys (one_child in the schema) holds not none, and not several.
void LintOneChild(const Values& values, const Key& section, Findings& findings) {
  if (!section.one_child || !values.Given(section.path)) return;
  const auto names = ChildrenOf(section.path);
  std::vector<std::string> given;
  for (const std::string_view name : names) {
    std::string path = fmt::format("{}.{}", section.path, name);
    if (values.Given(path)) given.push_back(std::move(path));
  }
  if (given.size() == 1) return;
  const std::string empty =
      fmt::format("{} is empty; give one of {}{}", section.path, fmt::join(names, ", "),
                  section.required ? "" : ", or leave it out");
  const std::string several =
      fmt::format("{}: {}, here are {}", section.path,
                  section.required ? "exactly one is needed" : "at most one is possible",
                  fmt::join(given, ", "));
  findings.Error(values.KeyPlace(section.path), fmt::format("one-{}", section.path),
                 given.empty() ? empty : several);
}

// The file alone does not tell the store's max_ttl; a worker that may not lock for so long is not
// ready, and says so.
void LintTtl(const Values& values, Findings& findings) {
  if (values.Find("lock.ttl") == nullptr) return;
  const Milliseconds most = locking::LockOptions{}.max_ttl;
  if (values.Duration("lock.ttl") <= most) return;
  const std::string ttl = DurationText(values.Duration("lock.ttl"));
  findings.Warning(values.ValuePlace("lock.ttl"), "ttl",
                   fmt::format("lock.ttl ({}) is above {}, the max_ttl of a lock store unless it "
                               "was made with `fencepost locks init --max-ttl {}` or more",
                               ttl, DurationText(most), ttl));
}

void LintRememberDone(const Values& values, Findings& findings) {
  if (values.Find("lock.remember_done") == nullptr || values.Wrong("lock.max_skew") ||
      values.Wrong("lock.ttl")) {
    return;
  }
  if (HasLedger(values)) {
    findings.Error(values.KeyPlace("lock.remember_done"), "remember-done",
                   "lock.remember_done is for outputs without a ledger (output.kafka, output.file, "
                   "output.stdout): here the ledger remembers what is done; remove it");
    return;
  }
  if (SharesLocks(values)) {
    findings.Warning(values.ValuePlace("lock.remember_done"), "remember-done",
                     "lock.remember_done has no effect: by position the Kafka transaction decides, "
                     "and no record is marked");
    return;
  }
  const Milliseconds given = values.Duration("lock.remember_done");
  const Milliseconds least = LeastRememberDone(values);
  if (given >= least) return;
  findings.Warning(values.ValuePlace("lock.remember_done"), "remember-done",
                   fmt::format("lock.remember_done ({}) is raised to {}, the store's max_ttl and "
                               "twice lock.max_skew: a mark must outlive every lease",
                               DurationText(given), DurationText(least)));
}

void LintBlock(const Values& values, Findings& findings) {
  if (values.Find("lock.block") == nullptr || values.Wrong("lock.block")) return;
  if (values.Number("lock.block") == 1 || SharesLocks(values)) return;
  findings.Warning(values.KeyPlace("lock.block"), "block",
                   "lock.block has no effect: only with record_id: position, and a ledger or "
                   "output.kafka without accept_replay_ids, do records share a lock");
}

void LintLock(const Values& values, Findings& findings) {
  LintLockNodes(values, findings);
  LintTtl(values, findings);
  LintRememberDone(values, findings);
  LintBlock(values, findings);
  if (AnyWrong(values, {"lock.ttl", "lock.min_validity", "lock.redis.timeout"})) return;
  const Milliseconds ttl = values.Duration("lock.ttl");
  const Milliseconds least = values.Duration("lock.min_validity");
  const auto drift = locking::LockOptions().Drift(ttl);
  if (std::chrono::nanoseconds(least) + drift >= std::chrono::nanoseconds(ttl)) {
    findings.Error(PlaceOfEither(values, "lock.min_validity", "lock.ttl"), "min-validity",
                   fmt::format("lock.min_validity ({}) must be less than lock.ttl ({}) without the "
                               "clock drift of 1% and 2ms, or no lease is ever long enough",
                               DurationText(least), DurationText(ttl)));
  }
  const Milliseconds timeout = values.Duration("lock.redis.timeout");
  if (timeout >= ttl) {
    findings.Error(PlaceOfEither(values, "lock.redis.timeout", "lock.ttl"), "node-timeout",
                   fmt::format("lock.redis.timeout ({}) must be less than lock.ttl ({})",
                               DurationText(timeout), DurationText(ttl)));
  }
}

// Without a lock the ledger decides alone: which effect is written, but not which call is made, nor
// which of two workers came first.
void LintUnavailable(const Values& values, Findings& findings) {
  constexpr std::string_view kKey = "lock.on_unavailable";
  if (values.Wrong(kKey) || values.String(kKey) != "proceed") return;
  const auto refuse = [&](Place at, const std::string& why) {
    findings.Error(at, "unavailable", fmt::format("{}: proceed {}", kKey, why));
  };
  if (!HasLedger(values)) {
    return refuse(values.ValuePlace(kKey),
                  "needs a ledger, which decides without a lock: only output.postgres, "
                  "output.mysql and output.sqlite have one");
  }
  for (const std::string_view handler : {"handler.http", "handler.exec"}) {
    const std::string flag = fmt::format("{}.idempotent", handler);
    if (!values.Given(handler) || values.Wrong(flag) || values.Number(flag) != 0) continue;
    refuse(values.ValuePlace(handler),
           fmt::format("may run {} for one record in two workers at the same time: only with {}: "
                       "true",
                       handler, flag));
  }
  for (const std::string_view path :
       {"output.postgres.columns", "output.postgres.args", "output.postgres.fence_by",
        "output.mysql.columns", "output.mysql.fence_by", "output.sqlite.columns",
        "output.sqlite.fence_by"}) {
    for (const Selector& selector : values.Selectors(path)) {
      if (selector.kind != Selector::Kind::kToken) continue;
      refuse(values.KeyPlace(path),
             fmt::format("makes tokens without a lease, which say nothing of who came first: leave "
                         "the selector token out of {}",
                         path));
      break;
    }
  }
}

void LintProcessing(const Values& values, Findings& findings) {
  if (AnyWrong(values, {"processing.concurrency", "processing.max_in_flight", "shutdown_timeout",
                        "processing.revoke_drain"})) {
    return;
  }
  const std::int64_t concurrency = values.Number("processing.concurrency");
  const std::int64_t in_flight = MaxInFlight(values);
  if (in_flight < concurrency) {
    findings.Warning(
        PlaceOfEither(values, "processing.max_in_flight", "processing.concurrency"), "in-flight",
        fmt::format(
            "processing.max_in_flight ({}) keeps processing.concurrency ({}) from being used",
            in_flight, concurrency));
  }
  const Milliseconds stop = values.Duration("shutdown_timeout");
  const Milliseconds drain = values.Duration("processing.revoke_drain");
  if (stop < drain) {
    findings.Warning(PlaceOfEither(values, "shutdown_timeout", "processing.revoke_drain"),
                     "shutdown",
                     fmt::format("shutdown_timeout ({}) ends before processing.revoke_drain ({})",
                                 DurationText(stop), DurationText(drain)));
  }
}

void LintLedger(const Values& values, Findings& findings) {
  if (!values.Given("ledger.keep") || AnyWrong(values, {"ledger.keep", "record_id"})) {
    return;
  }
  if (!HasLedger(values)) {
    findings.Warning(values.KeyPlace("ledger.keep"), "ledger-keep",
                     "ledger.keep has no effect: only output.postgres, output.mysql and "
                     "output.sqlite have a ledger");
    return;
  }
  if (ByPosition(values)) {
    findings.Warning(values.KeyPlace("ledger.keep"), "ledger-keep",
                     "ledger.keep has no effect: by position the ledger has one row a partition, "
                     "which does not grow");
  }
}

void LintObserve(const Values& values, Findings& findings) {
  constexpr std::string_view kToken = "observe.control_token";
  const bool by_token = values.String("observe.control") == "token";
  if (by_token && values.String(kToken).empty()) {
    findings.Error(values.KeyPlace("observe.control"), "missing",
                   fmt::format("{} is missing or empty: observe.control: token needs it", kToken));
  } else if (!by_token && values.Given(kToken)) {
    findings.Error(values.KeyPlace(kToken), "control",
                   fmt::format("{} is of no use without observe.control: token", kToken));
  }
}

}  // namespace

void Lint(const Values& values, Findings& findings) {
  for (const Key& key : Schema()) LintOneChild(values, key, findings);
  LintRecordId(values, findings);
  LintUnavailable(values, findings);
  LintKafka(values, findings);
  LintDecode(values, findings);
  LintEncode(values, findings);
  LintLock(values, findings);
  LintLockLogin(values, findings);
  LintProcessing(values, findings);
  LintLedger(values, findings);
  LintObserve(values, findings);
  LintHandler(values, findings);
  LintDeadLetter(values, findings);
  LintOutput(values, findings);
  LintRows(values, findings);
}

}  // namespace fencepost::config
