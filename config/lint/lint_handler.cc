// handler, retry, dead_letter.
#include <fmt/format.h>

#include "config/lint/lint_parts.h"

namespace fencepost::config {
namespace {

void LintIdempotent(const Values& values, Findings& findings) {
  if (!ExactlyOnce(values)) return;
  for (const std::string_view handler : {"handler.http", "handler.exec"}) {
    const std::string flag = fmt::format("{}.idempotent", handler);
    if (!values.Given(handler) || values.Wrong(flag) || values.Number(flag) != 0) continue;
    findings.Error(values.ValuePlace(flag), "guarantee",
                   "guarantee: exactly-once speaks of the output, and {} may run more than once "
                   "for a record; with idempotent: true you promise that a second {} has no second "
                   "effect; otherwise write guarantee: at-least-once",
                   handler,
                   handler == "handler.http" ? "call with the same Idempotency-Key"
                                             : "run with the same record_id");
  }
}

void LintRetry(const Values& values, Findings& findings) {
  if (values.Given("retry") && !values.Given("handler")) {
    findings.Warning(values.KeyPlace("retry"), "retry",
                     "retry has nothing to try again: there is no handler; outputs are tried again "
                     "by themselves");
  }
  const bool outside = values.Given("handler.http") || values.Given("handler.exec");
  if (outside && values.Given("retry.attempts") && values.Number("retry.attempts") == 1) {
    findings.Warning(values.ValuePlace("retry.attempts"), "retry",
                     "retry.attempts is 1: a failed call is not retried, so a service that fails "
                     "for a second costs a dead letter for each record of that second");
  }
}

}  // namespace

void LintHandler(const Values& values, Findings& findings) {
  LintIdempotent(values, findings);
  LintHttp(values, findings);
  LintRetry(values, findings);
  const Entry* take = values.Find("handler.take");
  if (take != nullptr && take->texts.front().selector.kind != consumer::Selector::Kind::kJson) {
    findings.Error(take->texts.front().at, "handler",
                   "handler.take: is a part of the value, json:/POINTER");
  }
  const Entry* command = values.Find("handler.exec.command");
  if (command != nullptr && command->texts.front().value.empty()) {
    findings.Error(command->texts.front().at, "handler",
                   "handler.exec.command: the program's name is empty");
  }
}

void LintDeadLetter(const Values& values, Findings& findings) {
  for (const std::string_view path : {"on_id_conflict", "on_bad_record"}) {
    if (values.Given("dead_letter") || values.Find(path) == nullptr) continue;
    if (values.String(path) != "dead_letter") continue;
    findings.Error(
        values.ValuePlace(path), "dead-letter",
        "{}: dead_letter needs a dead_letter section, as in dead_letter: {{topic: orders.dead}}",
        path);
  }
  const consumer::PipelineOptions& o = values.options();
  if (o.dead_letter) LintOtherCluster(values, "dead_letter", o.dead_letter->cluster, findings);
  const std::string topic = values.String("dead_letter.topic");
  if (topic.empty()) return;
  const std::string by = values.Given("dead_letter.brokers") ? "" : ReadBy(values, topic);
  if (!by.empty()) {
    findings.Error(values.ValuePlace("dead_letter.topic"), "loop",
                   "dead_letter.topic: {} is {} kafka.topics: its dead letters would come back "
                   "for ever; take a topic of their own",
                   Shown(values, "dead_letter.topic"), by);
  }
  if (!OneCluster(LetterCluster(o), OutputCluster(o))) return;
  for (const auto& [path, written] : OutputTopics(values)) {
    if (topic != written->value) continue;
    findings.Error(values.ValuePlace("dead_letter.topic"), "loop",
                   "dead_letter.topic: {} is {} too; take a topic of their own",
                   Shown(values, "dead_letter.topic"), path);
    return;
  }
}

}  // namespace fencepost::config
