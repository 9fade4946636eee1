#include "config/lint/lint.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include <fmt/format.h>

#include "config/lint/lint_parts.h"
#include "config/text/scalar.h"
#include "consumer/pipeline/record_filter.h"
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
  findings.Error(values.KeyPlace(section.path), fmt::format("one-{}", NameOf(section.path)),
                 given.empty() ? empty : several);
}

// The file alone does not tell the store's max_ttl; a worker that may not lock for so long is not
// ready, and says so.
void LintTtl(const Values& values, Findings& findings) {
  const Milliseconds ttl = values.options().lock.lock.ttl;
  const Milliseconds usual = locking::LockOptions().max_ttl;
  if (ttl <= usual) return;
  findings.Warning(values.ValuePlace("lock.ttl"), "ttl",
                   "lock.ttl ({0}) is above {1}, the max_ttl of a lock store unless it was made by "
                   "this pipeline or with `fencepost locks init --max-ttl {0}` or more",
                   DurationText(ttl), DurationText(usual));
}

void LintRememberDone(const Values& values, Findings& findings) {
  constexpr std::string_view kKey = "lock.remember_done";
  if (values.Find(kKey) == nullptr || AnyWrong(values, {"lock.max_skew", "lock.ttl"})) return;
  if (HasLedger(values.options())) {
    return findings.Error(values.KeyPlace(kKey), "remember-done",
                          "{} is for outputs without a ledger (output.kafka, output.file, "
                          "output.stdout): here the ledger remembers what is done; remove it",
                          kKey);
  }
  if (SharesLocks(values.options())) {
    return findings.Warning(
        values.ValuePlace(kKey), "remember-done",
        "{} has no effect: by position the Kafka transaction decides, and no record is marked",
        kKey);
  }
  const locking::LockOptions& lock = values.options().lock.lock;
  const Milliseconds least = std::max(lock.max_ttl, lock.ttl) + 2 * lock.max_skew;
  if (lock.remember_done >= least) return;
  findings.Warning(values.ValuePlace(kKey), "remember-done",
                   "{} ({}) is raised to {}, the store's max_ttl and twice lock.max_skew: a mark "
                   "must outlive every lease",
                   kKey, DurationText(lock.remember_done), DurationText(least));
}

void LintBlock(const Values& values, Findings& findings) {
  if (values.options().lock.block == 1 || SharesLocks(values.options())) return;
  findings.Warning(values.KeyPlace("lock.block"), "block",
                   "lock.block has no effect: only with record_id: position, and a ledger or "
                   "output.kafka without accept_replay_ids, do records share a lock");
}

void LintMinValidity(const Values& values, Findings& findings) {
  if (AnyWrong(values, {"lock.ttl", "lock.min_validity"})) return;
  const locking::LockOptions& lock = values.options().lock.lock;
  if (lock.min_validity < lock.Validity(lock.ttl)) return;
  findings.Error(PlaceOfEither(values, "lock.min_validity", "lock.ttl"), "min-validity",
                 "lock.min_validity ({}) must be less than lock.ttl ({}) without the clock drift "
                 "of 1% and 2ms, or no lease is ever long enough",
                 DurationText(lock.min_validity), DurationText(lock.ttl));
}

// Without a lock the ledger decides alone: which effect is written, but not which call is made, nor
// which of two workers came first.
void LintUnavailable(const Values& values, Findings& findings) {
  constexpr std::string_view kKey = "lock.on_unavailable";
  if (values.Wrong(kKey) || values.String(kKey) != "proceed") return;
  const auto refuse = [&](Place at, const std::string& why) {
    findings.Error(at, "unavailable", "{}: proceed {}", kKey, why);
  };
  if (!HasLedger(values.options())) {
    return refuse(values.ValuePlace(kKey),
                  "needs a ledger, which decides without a lock: only output.postgres, "
                  "output.mysql and output.sqlite have one");
  }
  for (const std::string_view handler : {"handler.http", "handler.exec"}) {
    const std::string flag = fmt::format("{}.idempotent", handler);
    if (!values.Given(handler) || values.Wrong(flag) || values.Number(flag) != 0) continue;
    refuse(
        values.ValuePlace(handler),
        fmt::format("may run {} for one record in two workers at the same time: only with {}: true",
                    handler, flag));
  }
  for (const auto& [path, text] : OutputSelectors(values)) {
    if (text->selector.kind != Selector::Kind::kToken) continue;
    refuse(text->at, fmt::format("makes tokens without a lease, which say nothing of who came "
                                 "first: leave the selector token out of {}",
                                 path));
  }
}

void LintInFlight(const Values& values, Findings& findings) {
  const consumer::ProcessingOptions& processing = values.options().processing;
  if (AnyWrong(values, {"processing.concurrency", "processing.max_in_flight"}) ||
      processing.max_in_flight >= processing.concurrency) {
    return;
  }
  findings.Warning(
      PlaceOfEither(values, "processing.max_in_flight", "processing.concurrency"), "in-flight",
      "processing.max_in_flight ({}) keeps processing.concurrency ({}) from being used",
      processing.max_in_flight, processing.concurrency);
}

void LintLedger(const Values& values, Findings& findings) {
  constexpr std::string_view kKey = "ledger.keep";
  if (!values.Given(kKey) || AnyWrong(values, {kKey, "record_id"})) return;
  const bool ledger = HasLedger(values.options());
  if (ledger && (!values.options().identity.ByPosition() || values.options().dead_letter)) return;
  findings.Warning(values.KeyPlace(kKey), "ledger-keep", "{} has no effect: {}", kKey,
                   ledger ? "by position the ledger grows by dead letters only, and there is no "
                            "dead_letter"
                          : "only output.postgres, output.mysql and output.sqlite have a ledger");
}

// A Secret may be mounted later.
void LintSecretFiles(const Values& values, Findings& findings) {
  for (const Key& key : Schema()) {
    const Entry* entry = key.type == Type::kSecret ? values.Find(key.path) : nullptr;
    if (entry == nullptr || !entry->is_file) continue;
    const auto secret = Secret::OfFile(entry->texts.front().value).Read();
    if (secret) continue;
    findings.Warning(entry->texts.front().at, "login", "{}: {}; it is read again at each login",
                     key.path, secret.error());
  }
}

void LintPort(const Values& values, Findings& findings) {
  const bool credentials =
      values.Given("observe.auth.bearer") || values.Given("observe.auth.basic");
  if (!values.Given("observe.auth") || credentials || values.Given("observe.tls.client_ca")) return;
  findings.Error(
      values.KeyPlace("observe.auth"), "missing",
      "observe.auth keeps nobody out: it needs bearer or basic, or observe.tls.client_ca");
}

void LintObserve(const Values& values, Findings& findings) {
  LintPort(values, findings);
  constexpr std::string_view kToken = "observe.control_token";
  const bool by_token = values.String("observe.control") == "token";
  if (values.Wrong(kToken)) {
    // It was told.
  } else if (by_token && values.String(kToken).empty()) {
    findings.Error(values.KeyPlace("observe.control"), "missing",
                   "{} is missing or empty: observe.control: token needs it", kToken);
  } else if (!by_token && values.Given(kToken)) {
    findings.Error(values.KeyPlace(kToken), "control",
                   "{} is of no use without observe.control: token", kToken);
  }
  for (const Text& header : values.Texts("observe.traces.headers")) {
    if (header.value.find_first_of("\r\n") == std::string::npos) continue;
    findings.Error(header.at, "value", "observe.traces.headers.{}: a header is one line",
                   header.name);
  }
}

constexpr std::array<Relation, 5> kRelations{{
    {"lock.redis.timeout", "lock.ttl", [](auto& a, auto& b) { return a < b; }, Severity::kError,
     "node-timeout", "{} ({}) must be less than {} ({})"},
    {"output.kafka.linger", "output.kafka.transaction_timeout",
     [](auto& a, auto& b) { return a < b; }, Severity::kError, "transaction",
     "{} ({}) must be less than {} ({}), or no transaction ends in time"},
    {"retry.backoff.initial", "retry.backoff.max", [](auto& a, auto& b) { return a <= b; },
     Severity::kError, "retry", "{} ({}) is more than {} ({})"},
    {"processing.timeout", "processing.revoke_drain", [](auto& a, auto& b) { return a < b; },
     Severity::kWarning, "drain",
     "{} ({}) is not less than {} ({}): a rebalance cancels calls that would have ended",
     "handler"},
    {"shutdown_timeout", "processing.revoke_drain", [](auto& a, auto& b) { return a >= b; },
     Severity::kWarning, "shutdown", "{} ({}) ends before {} ({})"},
}};

}  // namespace

void LintWhen(const Values& values, std::string_view path, Findings& findings) {
  const Entry* const when = values.Find(path);
  if (when == nullptr) return;
  for (const Text& text : when->texts) {
    const auto condition = consumer::ParseCondition(text.value);
    if (when->is_list && !condition) {
      findings.Error(text.at, "selector", "{}: {}: {}", path, text.shown, condition.error());
    } else if (!when->is_list && condition) {
      findings.Error(text.at, "jq",
                     "{}: {}: a condition goes into a list, as in when: [key exists]", path,
                     text.shown);
    } else if (path == "when" && !when->is_list &&
               text.value.find("$record_id") != std::string::npos) {
      findings.Error(text.at, "jq", "when: $record_id is not known yet; use what it is made of");
    }
  }
}

void LintRelation(const Relation& relation, const Values& values, Findings& findings) {
  const auto& [first, second, holds, severity, rule, text, only_with] = relation;
  if (!only_with.empty() && !values.Given(only_with)) return;
  const Milliseconds one = values.Duration(first);
  const Milliseconds other = values.Duration(second);
  if (AnyWrong(values, {first, second}) || holds(one, other)) return;
  findings.Add(
      PlaceOfEither(values, first, second), severity, rule,
      fmt::format(fmt::runtime(text), first, DurationText(one), second, DurationText(other)));
}

void Lint(const Values& values, Findings& findings) {
  for (const Key& key : Schema()) LintOneChild(values, key, findings);
  LintRecordId(values, findings);
  LintWhen(values, "when", findings);
  LintUnavailable(values, findings);
  LintKafka(values, findings);
  LintDecode(values, findings);
  LintEncode(values, findings);
  LintLockNodes(values, findings);
  LintTtl(values, findings);
  LintRememberDone(values, findings);
  LintBlock(values, findings);
  LintMinValidity(values, findings);
  LintLockLogin(values, findings);
  LintInFlight(values, findings);
  for (const Relation& relation : kRelations) LintRelation(relation, values, findings);
  LintLedger(values, findings);
  LintObserve(values, findings);
  LintSecretFiles(values, findings);
  LintHandler(values, findings);
  LintDeadLetter(values, findings);
  LintOutput(values, findings);
}

}  // namespace fencepost::config
