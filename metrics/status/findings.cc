#include "metrics/status/findings.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include <fmt/format.h>

#include "locking/base/time_text.h"
#include "metrics/status/html.h"

namespace fencepost::metrics {
namespace {

using consumer::LockNodeStatus;
using consumer::PartitionStatus;
using consumer::Reason;
using consumer::ReasonCode;
using locking::UnavailableReason;
using enum FindingLevel;

// Without a record finished for so long, though some wait, something holds them up.
constexpr std::ptrdiff_t kStillSeconds = 30;
// Of the leases, above which FencepostLocksExpiring would fire; never for a handful.
constexpr double kExpiredShare = 0.001;
constexpr std::uint64_t kExpiredLeast = 10;

struct Advice {
  FindingLevel level = kBad;
  std::string_view todo;
};

Advice AdviceFor(ReasonCode code) {
  using enum ReasonCode;
  switch (code) {
    case kStarting:
      return {kWarn, ""};
    case kStopping:
      return {
          kBad,
          "The worker ends with exit code 1. Correct what the reason names, and start it again."};
    case kDraining:
      return {kWarn, "It is stopping: it finishes what it began and releases its locks."};
    case kPaused:
      return {kWarn,
              "Somebody paused it over HTTP: POST /pipelines/NAME/resume, or start the worker "
              "again. Its records wait; none is lost."};
    case kLockQuarantine:
      return {kWarn, "Wait: the nodes count again when it is over. Nothing else has to be done."};
    case kNoQuorum:
      return {kBad,
              "Start the lock nodes that are down, as they were, or restore the network to them. "
              "Records wait meanwhile; none is lost. Runbook FencepostQuorumLost."};
    case kLockClock:
      return {
          kBad,
          "Correct the clock of this host, or of the nodes whose offset is large below. Runbook "
          "FencepostQuorumLost."};
    case kLockTtl:
      return {kBad,
              "The lock nodes are well: lower lock.ttl in the file and start the worker again. "
              "Records wait meanwhile; none is lost."};
    case kLockStore:
    case kLockNodes:
    case kLockConnecting:
      return {kBad,
              "Correct what the reason names; the nodes are looked at again every second. Runbook "
              "FencepostQuorumLost."};
    case kOutput:
    case kOutputConnecting:
      return {kBad, "Restore the output: the worker retries, and what waits is written then."};
    case kHandler:
      return {kBad,
              "Restore the service: one call at a time is tried, with growing waits, and the "
              "pipeline resumes when one succeeds. Records wait meanwhile; none becomes a dead "
              "letter."};
    case kDeadLetters:
    case kDeadLettersRemark:
      return {kBad,
              "Make the dead letter topic take them: publishing is tried again every few seconds. "
              "Runbook FencepostDeadLettersFailing."};
    case kAllRefused:
      return {
          kBad,
          "Records wait; none is lost. Correct what it names and start the worker again. Runbook "
          "FencepostPipelineStalled."};
    case kKafkaRebalancing:
      return {kWarn, "Wait: it passes when every worker has finished what it began."};
    case kKafka:
    case kKafkaConnecting:
    case kKafkaJoining:
    case kKafkaRemark:
      return {kBad, "Restore the connection to the brokers; the worker resumes when they answer."};
    case kUnlocked:
      return {kWarn,
              "Restore the lock nodes: until then handlers may run twice for one record; effects "
              "are still written once. Runbook FencepostQuorumLost."};
    case kHandlerRemark:
      return {kWarn,
              "See why the handler fails for it: it is tried again until retry.give_up_after. "
              "Runbook FencepostRecordStuck."};
    case kOutputRemark:
      return {kWarn,
              "See which row has the value, or which one is missing: it becomes a bad record "
              "unless another record mends it. Runbook FencepostRecordStuck."};
    case kStalled:
      return {
          kWarn,
          "A restart does not end it: correct what it waits for; `fencepost explain` says more. "
          "Runbook FencepostRecordStuck."};
  }
  return {};
}

struct Quorum {
  std::size_t counting, needed, all;
};
Quorum QuorumOf(const ShownPipeline& shown) {
  const auto& nodes = shown.status.nodes;
  const auto counting = std::ranges::count_if(
      nodes, [](const LockNodeStatus& node) { return node.open && !node.quarantined; });
  return {static_cast<std::size_t>(counting), nodes.size() / 2 + 1, nodes.size()};
}

Finding OfReason(const Reason& reason, const ShownPipeline& shown) {
  const Advice advice = AdviceFor(reason.code);
  std::string what = Sentence(reason);
  if (reason.code == ReasonCode::kStarting) {
    what = "It is starting.";
  } else if (IsRemark(reason)) {
    what.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(what.front())));
  } else {
    what = "Not ready: " + what;
  }
  if (reason.code == ReasonCode::kNoQuorum) {
    const Quorum quorum = QuorumOf(shown);
    what +=
        fmt::format(" ({} of {} count, {} are needed)", quorum.counting, quorum.all, quorum.needed);
  }
  return {advice.level, std::move(what), std::string(advice.todo)};
}

// What to do about a node that is away.
std::string_view AdviceFor(UnavailableReason away) {
  using enum UnavailableReason;
  switch (away) {
    case kRefused:
      return "Start its redis-server, as it was, or correct address and port";
    case kLoading:
      return "Wait: it loads its data and comes back; watch that it does";
    case kLogin:
      return "Correct the login, in the file or at the node";
    case kNoRight:
      return "Give its ACL user the right that the problem names";
    case kReplica:
      return "List an independent primary in lock.redis.nodes";
    case kTls:
      return "Correct its certificate or lock.redis.tls";
    case kNameUnknown:
      return "Correct the name in lock.redis.nodes or in the DNS";
    case kNameTimeout:
      return "See why the DNS does not answer this host, or give the node's address in "
             "lock.redis.nodes";
    case kTimeout:
      return "See whether its host runs, whether its redis-server answers PING, and what the "
             "network between drops";
    case kNotYet:
    case kOther:
      break;
  }
  return "Bring it back";
}

// What it costs that a node does not count. Without a quorum the pipeline is not ready: said there.
std::string Stakes(const Quorum& quorum) {
  if (quorum.counting < quorum.needed) return "";
  return fmt::format("Nothing is lost: {} of {} nodes count, {} {} enough. ", quorum.counting,
                     quorum.all, quorum.needed, quorum.needed == 1 ? "is" : "are");
}

void OfNode(std::vector<Finding>& out, const LockNodeStatus& node, const ShownPipeline& shown) {
  const Quorum quorum = QuorumOf(shown);
  const std::string stakes = Stakes(quorum);
  const std::string name = fmt::format("Lock node {} ({})", node.letter, node.address);
  const std::string problem = node.problem.empty() ? "" : ": " + node.problem;
  if (!node.up) {
    out.push_back(
        {kWarn, name + " is away" + problem,
         fmt::format("{}{}{}. Runbook FencepostRedisNodeDown.", stakes, AdviceFor(node.away),
                     quorum.counting >= quorum.needed ? ", before another one goes" : "")});
  } else if (node.quarantined) {
    out.push_back({kNote,
                   fmt::format("{} was restarted or wiped and counts again in {}", name,
                               SpanText(node.quarantine_left)),
                   "Wait, and touch no other node meanwhile."});
  } else if (!node.open) {
    out.push_back({kWarn, name + " takes no part" + problem,
                   stakes + "Correct what the problem names. Runbook FencepostRedisNodeDown."});
  }
  if (node.clock_offset && shown.lock_ttl.count() > 0 &&
      std::chrono::abs(*node.clock_offset) > shown.lock_ttl / 10) {
    out.push_back({kWarn,
                   fmt::format("The clocks of {} and of this host are {:+.1f} s apart", name,
                               static_cast<double>(node.clock_offset->count()) / 1e9),
                   "Look which of them is wrong, and slew it. Runbook FencepostRedisClockOff."});
  }
}

void NothingMoves(std::vector<Finding>& out, const ShownPipeline& shown) {
  const auto& rates = shown.per_second;
  const auto count = static_cast<std::ptrdiff_t>(rates.size());
  const std::int64_t lag = LagOf(shown);
  if (!shown.status.ready || lag == 0 || count < kStillSeconds) return;
  if (std::any_of(rates.end() - kStillSeconds, rates.end(), [](double rate) { return rate > 0; })) {
    return;
  }
  std::string todo = "Runbook FencepostPipelineStalled.";
  const PartitionStatus* oldest = nullptr;
  for (const PartitionStatus& row : shown.status.partitions) {
    if (!row.oldest_offset) continue;
    if (oldest == nullptr || row.oldest_age > oldest->oldest_age) oldest = &row;
  }
  if (oldest != nullptr) {
    todo = fmt::format("The oldest record is {}: `fencepost explain FILE {} {} {}`. {}",
                       oldest->oldest_stage, oldest->topic, oldest->partition,
                       *oldest->oldest_offset, todo);
  }
  out.push_back({kBad,
                 fmt::format("No record was finished in the last {} s, though {} wait",
                             kStillSeconds, ShowNumber(lag)),
                 std::move(todo)});
}

void SinceTheStart(std::vector<Finding>& out, const Counts& counts) {
  if (counts["invariant_violations"] > 0) {
    out.push_back({kBad,
                   fmt::format("Invariants were violated {} times since the start",
                               ShowNumber(counts["invariant_violations"])),
                   "Stop rollouts and keep the logs of all workers. Runbook "
                   "FencepostInvariantViolated."});
  }
  const std::uint64_t expired = counts.LeasesExpired();
  if (expired >= kExpiredLeast &&
      static_cast<double>(expired) > kExpiredShare * static_cast<double>(counts["lock_acquired"])) {
    out.push_back({kNote,
                   fmt::format("{} of {} leases ran out while their record was under way",
                               ShowNumber(expired), ShowNumber(counts["lock_acquired"])),
                   "This worker was stalled, or lock.ttl is short. Runbook "
                   "FencepostLocksExpiring."});
  }
}

// A warning while new ones come, then a note.
void OfRecords(std::vector<Finding>& out, std::uint64_t all, std::uint64_t fresh,
               std::string_view what, std::string_view todo) {
  if (all == 0) return;
  const auto records = [](std::uint64_t count) {
    return count == 1 ? "1 record" : ShowNumber(count) + " records";
  };
  out.push_back({fresh > 0 ? kWarn : kNote,
                 fmt::format("{} {} {}", records(fresh > 0 ? fresh : all), what,
                             fresh > 0 ? fmt::format("in the last minute, {} since the start",
                                                     ShowNumber(all))
                                       : "since the start"),
                 std::string(todo)});
}

}  // namespace

std::vector<Finding> FindingsOf(const ShownPipeline& shown) {
  std::vector<Finding> out;
  for (const Reason& one : shown.status.reasons) out.push_back(OfReason(one, shown));
  NothingMoves(out, shown);
  for (const LockNodeStatus& node : shown.status.nodes) OfNode(out, node, shown);
  SinceTheStart(out, shown.counts);
  OfRecords(out, shown.counts["dead_lettered"], shown.new_dead_letters, "became dead letters",
            "`fencepost dlq list FILE` says why. Runbook FencepostDeadLettersNew.");
  OfRecords(out, shown.counts["id_conflicts"], shown.new_conflicts,
            "had an earlier record's id and other content",
            "`id_conflict` in the log names both. Runbook FencepostIdConflicts.");
  return out;
}

}  // namespace fencepost::metrics
