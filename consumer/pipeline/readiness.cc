#include "consumer/pipeline/readiness.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace fencepost::consumer {
namespace {

ReasonCode KafkaCode(PartPhase phase) {
  switch (phase) {
    case PartPhase::kConnecting:
      return ReasonCode::kKafkaConnecting;
    case PartPhase::kJoining:
      return ReasonCode::kKafkaJoining;
    case PartPhase::kRebalancing:
      return ReasonCode::kKafkaRebalancing;
    case PartPhase::kDown:
    case PartPhase::kUp:
      break;
  }
  return ReasonCode::kKafka;
}

// The sentence without the detail, which follows it.
std::string_view Prefix(ReasonCode code) {
  switch (code) {
    case ReasonCode::kStarting:
      return "starting";
    case ReasonCode::kStopping:
      return "stopping: ";
    case ReasonCode::kDraining:
      return "draining";
    case ReasonCode::kPaused:
      return "paused";
    case ReasonCode::kLockClock:
      return "lock: clock";
    case ReasonCode::kLockNodes:
      return "lock: lock nodes have a problem";
    case ReasonCode::kNoQuorum:
      return "lock: no quorum of lock nodes";
    case ReasonCode::kLockConnecting:
      return "lock: connecting";
    case ReasonCode::kLockStore:
    case ReasonCode::kLockTtl:
    case ReasonCode::kLockQuarantine:
      return "lock: ";
    case ReasonCode::kOutput:
      return "output: ";
    case ReasonCode::kOutputConnecting:
      return "output: connecting";
    case ReasonCode::kHandler:
      return "handler: its service is unavailable: ";
    case ReasonCode::kDeadLetters:
    case ReasonCode::kDeadLettersRemark:
      return "dead letters: ";
    case ReasonCode::kAllRefused:
      return "";
    case ReasonCode::kKafkaConnecting:
      return "kafka: connecting";
    case ReasonCode::kKafkaJoining:
      return "kafka: joining the group";
    case ReasonCode::kKafkaRebalancing:
      return "kafka: the group is rebalancing";
    case ReasonCode::kKafka:
    case ReasonCode::kKafkaRemark:
      return "kafka: ";
    case ReasonCode::kUnlocked:
      return "records are processed without a lock, by the ledger alone (lock.on_unavailable: "
             "proceed): ";
    case ReasonCode::kStalled:
      return "stalled: ";
  }
  return "";
}

std::string Fields(const Reason& reason) {
  if (reason.code == ReasonCode::kLockTtl) {
    return fmt::format(
        "lock.ttl of {} ms is above the lock store's max_ttl of {} ms: lower lock.ttl, or stop all "
        "workers and create the store again with `fencepost locks init --force --max-ttl`",
        reason.span.count(), reason.limit.count());
  }
  if (reason.code == ReasonCode::kNoQuorum && !reason.detail.empty()) return ": " + reason.detail;
  if (reason.code != ReasonCode::kLockQuarantine) return reason.detail;
  const std::string which = reason.detail.empty()
                                ? "lock nodes are in quarantine"
                                : fmt::format("{}, {} in quarantine", reason.detail, reason.nodes);
  if (reason.span.count() == 0) return which;
  return fmt::format("{} for another {} s", which, reason.span.count() / 1000);
}

}  // namespace

std::vector<Reason> ReasonsOf(PipelineState state) {
  std::vector<Reason> reasons;
  const auto add = [&](ReasonCode code, std::string detail) {
    reasons.push_back({.code = code, .detail = std::move(detail)});
  };
  const bool stopping = !state.failure.empty() || state.draining;
  const bool lock = !state.lock || IsRemark(*state.lock);
  const bool may_write = lock && state.output.up() && !stopping;
  if (!state.failure.empty()) {
    add(ReasonCode::kStopping, std::move(state.failure));
  } else if (state.draining) {
    add(ReasonCode::kDraining, "");
  }
  if (state.paused) add(ReasonCode::kPaused, "");
  if (state.lock) reasons.push_back(std::move(*state.lock));
  if (!state.output.up()) {
    const bool connecting = state.output.phase == PartPhase::kConnecting;
    add(connecting ? ReasonCode::kOutputConnecting : ReasonCode::kOutput,
        std::move(state.output.reason));
  }
  if (!state.handler.empty() && !stopping) add(ReasonCode::kHandler, std::move(state.handler));
  if (!state.dead_letters.up() || !state.dead_letters.reason.empty()) {
    add(state.dead_letters.up() ? ReasonCode::kDeadLettersRemark : ReasonCode::kDeadLetters,
        std::move(state.dead_letters.reason));
  }
  if (may_write && !state.refused.empty()) add(ReasonCode::kAllRefused, std::move(state.refused));
  if (!state.kafka.up() && !stopping) {
    add(KafkaCode(state.kafka.phase), std::move(state.kafka.reason));
  } else if (state.kafka.up() && !state.kafka.reason.empty()) {
    add(ReasonCode::kKafkaRemark, std::move(state.kafka.reason));
  }
  if (!state.stalled.empty()) add(ReasonCode::kStalled, std::move(state.stalled));
  std::ranges::stable_sort(reasons, {}, &Reason::code);
  return reasons;
}

bool IsRemark(const Reason& reason) { return reason.code >= ReasonCode::kUnlocked; }

bool IsBeginning(const Reason& reason) {
  return reason.code == ReasonCode::kLockConnecting ||
         reason.code == ReasonCode::kOutputConnecting ||
         reason.code == ReasonCode::kKafkaConnecting || reason.code == ReasonCode::kKafkaJoining;
}

std::string Sentence(const Reason& reason) {
  return std::string(Prefix(reason.code)) + Fields(reason);
}

std::string WhyNotReady(const std::vector<Reason>& reasons) {
  std::string why;
  for (const Reason& reason : reasons) {
    if (IsRemark(reason)) continue;
    why += (why.empty() ? "" : "; ") + Sentence(reason);
  }
  return why;
}

}  // namespace fencepost::consumer
