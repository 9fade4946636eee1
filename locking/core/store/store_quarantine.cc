// Quarantine: a node that may have forgotten leases (it restarted, was wiped, or its clock was
// stepped) takes part, but does not count until every lease that it may have forgotten has ended
// (PROTOCOL.md, invariant 12).
#include <algorithm>

#include "locking/core/store/store.h"

namespace fencepost::locking {

// A node is put in quarantine when its server restarted or its clock was stepped, and when the
// sentinel asks for more than a whole quarantine.
void Store::QuarantineIfRestarted(Node& node) {
  const Sentinel& now = *node.sentinel;
  Sentinel repaired = now;
  repaired.run_id = node.run_id;
  // The sentinel may have been written after TIME was read, within the same call.
  const Nanos slack = node.raw_call.received_at - node.raw_call.sent_at;
  const WallTime latest =
      node.raw_call.node_time + QuarantineTime() + std::chrono::ceil<Millis>(slack);
  if (now.run_id != node.run_id || node.stepped || now.quarantine_until > latest) {
    Write(node, repaired, QuarantineTime());
  }
}

std::optional<Instant> Store::QuarantineEnd(const Node& node) const {
  if (!node.sentinel) return std::nullopt;
  return node.clock.SurelyAt(node.sentinel->quarantine_until);
}

void Store::DecideWhichCount() {
  int open = 0;
  int counting = 0;
  bool by_clock = false;
  for (Node& node : nodes_) {
    // What was read may be relied on for as long as a node that was admitted since cannot count.
    const bool fresh = now_.boot - node.raw_call.sent_at <= QuarantineTime();
    node.open = Belongs(node) && node.sentinel->run_id == node.run_id && fresh;
    const std::optional<Instant> end = QuarantineEnd(node);
    node.quarantined = node.open && (node.stepped || (end && *end > now_.boot));
    if (!node.quarantined) node.clock_quarantine = false;
    const bool clock = (node.stepped && node.by_clock) || node.clock_quarantine;
    by_clock = by_clock || (node.open && clock);
    open += node.open ? 1 : 0;
    counting += node.open && !node.quarantined ? 1 : 0;
  }
  DecideProblem(counting >= Quorum(count()));
  available_ = !problem_ && counting >= Quorum(count());
  why_ = QuorumFailure::kUnreachable;
  if (open >= Quorum(count())) {
    why_ = by_clock ? QuorumFailure::kClock : QuorumFailure::kQuarantined;
  }
  if (problem_ && problem_->code != "store_incomplete") why_ = QuorumFailure::kPolicy;
}

}  // namespace fencepost::locking
