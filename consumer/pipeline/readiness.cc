#include "consumer/pipeline/readiness.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace fencepost::consumer {
namespace {

ReasonCode OutputCode(std::string_view reason) {
  return reason == kConnecting ? ReasonCode::kOutputConnecting : ReasonCode::kOutput;
}

ReasonCode KafkaCode(std::string_view reason) {
  if (reason == kConnecting) return ReasonCode::kKafkaConnecting;
  return reason == kJoiningTheGroup ? ReasonCode::kKafkaJoining : ReasonCode::kKafka;
}

// What stands before the detail.
std::string_view Prefix(ReasonCode code) {
  switch (code) {
    case ReasonCode::kStarting:
      return "starting";
    case ReasonCode::kStopping:
      return "stopping: ";
    case ReasonCode::kDraining:
      return "draining";
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
    case ReasonCode::kOutputConnecting:
      return "output: ";
    case ReasonCode::kDeadLetters:
    case ReasonCode::kDeadLettersRemark:
      return "dead letters: ";
    case ReasonCode::kAllRefused:
      return "";
    case ReasonCode::kKafka:
    case ReasonCode::kKafkaConnecting:
    case ReasonCode::kKafkaJoining:
    case ReasonCode::kKafkaRemark:
      return "kafka: ";
    case ReasonCode::kStalled:
      return "stalled: ";
  }
  return "";
}

std::string Fields(const Reason& reason) {
  if (reason.code == ReasonCode::kLockTtl) {
    return fmt::format(
        "lock.ttl of {} ms is above the lock store's max_ttl of {} ms: lower lock.ttl, or stop all "
        "workers and make the store anew with `fencepost locks init --force --max-ttl`",
        reason.span.count(), reason.limit.count());
  }
  if (reason.code != ReasonCode::kLockQuarantine) return reason.detail;
  if (reason.span.count() == 0) return "lock nodes are in quarantine";
  return fmt::format("lock nodes are in quarantine for another {} s", reason.span.count() / 1000);
}

}  // namespace

std::vector<Reason> ReasonsOf(PipelineState state) {
  std::vector<Reason> reasons;
  const auto add = [&](ReasonCode code, std::string detail) {
    reasons.push_back({.code = code, .detail = std::move(detail)});
  };
  const bool stopping = !state.failure.empty() || state.draining;
  const bool may_write = !state.lock && state.output.up && !stopping;
  if (!state.failure.empty()) {
    add(ReasonCode::kStopping, std::move(state.failure));
  } else if (state.draining) {
    add(ReasonCode::kDraining, "");
  }
  if (state.lock) reasons.push_back(std::move(*state.lock));
  if (!state.output.up) {
    const ReasonCode code = OutputCode(state.output.reason);
    add(code, std::move(state.output.reason));
  }
  if (!state.dead_letters.up || !state.dead_letters.reason.empty()) {
    add(state.dead_letters.up ? ReasonCode::kDeadLettersRemark : ReasonCode::kDeadLetters,
        std::move(state.dead_letters.reason));
  }
  if (may_write && !state.refused.empty()) add(ReasonCode::kAllRefused, std::move(state.refused));
  if (!state.kafka.up && !stopping) {
    const ReasonCode code = KafkaCode(state.kafka.reason);
    add(code, std::move(state.kafka.reason));
  } else if (state.kafka.up && !state.kafka.reason.empty()) {
    add(ReasonCode::kKafkaRemark, std::move(state.kafka.reason));
  }
  if (!state.stalled.empty()) add(ReasonCode::kStalled, std::move(state.stalled));
  std::ranges::stable_sort(reasons, {}, &Reason::code);
  return reasons;
}

bool IsRemark(const Reason& reason) { return reason.code >= ReasonCode::kStalled; }

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
