#include "consumer/pipeline/readiness.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace fencepost::consumer {
namespace {

// By the phase; behind these, kKafka.
constexpr std::array<ReasonCode, 3> kKafkaCodes{
    ReasonCode::kKafkaConnecting, ReasonCode::kKafkaJoining, ReasonCode::kKafkaRebalancing};

// The sentences without the detail, which follows them.
constexpr std::array<std::pair<ReasonCode, std::string_view>, 26> kPrefixes{
    {{ReasonCode::kStarting, "starting"},
     {ReasonCode::kStopping, "stopping: "},
     {ReasonCode::kDraining, "draining"},
     {ReasonCode::kPaused, "paused"},
     {ReasonCode::kLockStore, "lock: "},
     {ReasonCode::kLockTtl, "lock: "},
     {ReasonCode::kLockClock, "lock: clock"},
     {ReasonCode::kLockQuarantine, "lock: "},
     {ReasonCode::kLockNodes, "lock: lock nodes have a problem"},
     {ReasonCode::kNoQuorum, "lock: no quorum of lock nodes"},
     {ReasonCode::kLockConnecting, "lock: connecting"},
     {ReasonCode::kOutput, "output: "},
     {ReasonCode::kOutputConnecting, "output: connecting"},
     {ReasonCode::kHandler, "handler: "},
     {ReasonCode::kDeadLetters, "dead letters: "},
     {ReasonCode::kAllRefused, ""},
     {ReasonCode::kKafka, "kafka: "},
     {ReasonCode::kKafkaConnecting, "kafka: connecting"},
     {ReasonCode::kKafkaJoining, "kafka: joining the group"},
     {ReasonCode::kKafkaRebalancing, "kafka: the group is rebalancing"},
     {ReasonCode::kUnlocked,
      "records are processed without a lock, by the ledger alone (lock.on_unavailable: proceed): "},
     {ReasonCode::kStalled, "stalled: "},
     {ReasonCode::kHandlerRemark, "handler: "},
     {ReasonCode::kOutputRemark, "output: "},
     {ReasonCode::kDeadLettersRemark, "dead letters: "},
     {ReasonCode::kKafkaRemark, "kafka: "}}};
static_assert(std::ranges::is_sorted(kPrefixes) &&
              kPrefixes.size() == static_cast<std::size_t>(ReasonCode::kKafkaRemark) + 1);

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
    const auto phase = static_cast<std::size_t>(state.kafka.phase);
    add(phase < kKafkaCodes.size() ? kKafkaCodes.at(phase) : ReasonCode::kKafka,
        std::move(state.kafka.reason));
  } else if (state.kafka.up() && !state.kafka.reason.empty()) {
    add(ReasonCode::kKafkaRemark, std::move(state.kafka.reason));
  }
  if (!state.failing.empty()) add(ReasonCode::kHandlerRemark, std::move(state.failing));
  if (!state.written_again.empty()) {
    add(ReasonCode::kOutputRemark, std::move(state.written_again));
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
  const auto& prefix = kPrefixes.at(static_cast<std::size_t>(reason.code)).second;
  return std::string(prefix) + Fields(reason);
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
