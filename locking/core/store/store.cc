#include "locking/core/store/store.h"

#include <algorithm>
#include <utility>

#include "locking/base/check.h"

namespace fencepost::locking {
namespace {

using std::chrono::milliseconds;

constexpr Millis kProbeWell{2'000};     // CONFIG SET can change a policy while connected
constexpr Millis kProbeProblem{1'000};  // what a person must fix
constexpr Millis kProbeCreation{250};   // other clients are at it
constexpr Millis kHold{1'000};          // after a write without effect
constexpr Millis kTellOffset{1'000};

}  // namespace

Store::Store(int nodes, const LockOptions& options, StoreCreation creation, Nonce own_id,
             LockObserver* observer)
    : options_(options),
      creation_(creation),
      own_id_(own_id),
      observer_(ObserverOrNone(observer)),
      nodes_(static_cast<std::size_t>(nodes), Node(options.ttl)) {
  FENCEPOST_CHECK(nodes >= 1 && nodes <= kMaxNodes, "number of lock nodes");
  Evaluate(Now{Instant::min(), WallTime{}});
}

Store::Node& Store::At(NodeIndex node) {
  FENCEPOST_CHECK(node >= 0 && node < size(), "node index");
  return nodes_[static_cast<std::size_t>(node)];
}

const Store::Node& Store::At(NodeIndex node) const {
  FENCEPOST_CHECK(node >= 0 && node < size(), "node index");
  return nodes_[static_cast<std::size_t>(node)];
}

// --- what happened ----------------------------------------------------------------------------

void Store::OnConnected(NodeIndex index, const NodeInfo& info, Now now) {
  Node& node = At(index);
  now_ = now;
  if (!node.connected) {
    node.want_probe = false;
    node.raw_since = now.boot;
  }
  const bool was_probe = node.out == Out::kProbe;
  node.out = Out::kNothing;
  node.connected = true;
  node.read = true;
  node.probed_at = info.call.sent_at;  // what was read is as old as that
  node.run_id = info.run_id;
  node.policy = info.maxmemory_policy;
  node.role = info.role;
  node.mode = info.mode;
  node.names_itself = true;
  if (!options_.quarantine && size() == 1) {  // nothing rests on what its INFO leaves out
    node.names_itself = IsRunId(node.run_id);
    if (!node.names_itself) node.run_id.assign(kRunIdSize, '0');
    if (node.role.empty()) node.role = "master";
  }
  Learn(node, info.sentinel, info.call);
  if (was_probe && node.probe_confirms) node.confirmed = node.snapshot == node.raw;
  node.probe_confirms = false;

  const bool changed =
      node.names_itself && !node.last_run_id.empty() && node.last_run_id != node.run_id;
  const bool restarted_unseen = node.sentinel && node.sentinel->complete && Fits(*node.sentinel) &&
                                node.sentinel->run_id != node.run_id;
  if ((changed || restarted_unseen) && node.counted_run_id != node.run_id) {
    node.counted_run_id = node.run_id;
    observer_->OnRestartDetected(index);
  }
  if (changed) {  // the quarantine that follows a restart covers what its clock did meanwhile
    node.clock.Forget();
    node.stepped.reset();
  }
  if (node.names_itself) node.last_run_id = node.run_id;
  ObserveClock(index, info.call);
  // It evicts, or has another's data: it may have forgotten, and comes back in quarantine.
  const bool unknown = node.policy.empty() && !options_.quarantine;
  const bool forgets = node.role != "master" || (node.policy != "noeviction" && !unknown);
  if (forgets) {
    node.stepped = info.call.node_time;
    node.by_clock = false;
  }
  Evaluate(now);
}

void Store::OnDisconnected(NodeIndex index, Now now) {
  Node& node = At(index);
  node.connected = false;
  node.read = false;
  node.out = Out::kNothing;
  node.want_probe = false;
  node.pending.reset();
  if (!snapshot_agreed_) node.snapshot.reset();
  Evaluate(now);
}

void Store::OnSentinel(NodeIndex index, std::optional<std::string> current, const CallInfo& call,
                       Now now) {
  Node& node = At(index);
  now_ = now;
  const bool no_effect = node.out == Out::kWrite && current == node.written.expected;
  if (no_effect) node.hold_until = now.boot + kHold;
  if (node.out == Out::kWrite) node.out = Out::kNothing;
  Learn(node, std::move(current), call);
  ObserveClock(index, call);
  Evaluate(now);
}

void Store::OnNoSentinel(NodeIndex index, Now now) {
  Node& node = At(index);
  // Late answers of one wipe must not make a probe each; a probe that is out may be older than it.
  if (node.open || node.out == Out::kProbe) node.want_probe = true;
  node.read = false;
  Evaluate(now);
}

void Store::OnCall(NodeIndex index, const CallInfo& call, Now now) {
  now_ = now;
  const bool was_stepped = At(index).stepped.has_value();
  ObserveClock(index, call);
  if (At(index).stepped.has_value() != was_stepped) Evaluate(now);
}

void Store::OnTime(Now now) {
  for (Node& node : nodes_) {
    if (node.Idle() && node.probed_at + ProbeInterval() <= now.boot) node.want_probe = true;
  }
  Evaluate(now);
}

void Store::Learn(Node& node, std::optional<std::string> raw, const CallInfo& call) {
  if (raw != node.raw) node.raw_since = now_.boot;
  node.raw = std::move(raw);
  node.raw_call = call;
  node.sentinel = node.raw ? Sentinel::Decode(*node.raw) : std::nullopt;
  if (node.sentinel && !node.names_itself) node.run_id = node.sentinel->run_id;
  if (!node.sentinel || !node.sentinel->complete || !Fits(*node.sentinel)) return;
  node.member = node.sentinel;
  if (node.stepped && node.sentinel->quarantine_until >= *node.stepped + QuarantineTime()) {
    node.stepped.reset();
    node.clock_quarantine = node.by_clock;
  }
}

void Store::ObserveClock(NodeIndex index, const CallInfo& call) {
  Node& node = At(index);
  if (node.clock.Observe(call) && node.sentinel && node.sentinel->complete) {
    node.stepped = call.node_time;
    node.by_clock = true;
    observer_->OnNote(Severity::kWarn, "node_clock_stepped",
                      std::string("the clock of node ") + NodeLetter(index) +
                          " was stepped; it is put in quarantine");
  }
  // A call over which this process or the node was stalled says nothing about the offset.
  if (call.received_at - call.sent_at > options_.node_timeout) return;
  const Instant middle = call.sent_at + (call.received_at - call.sent_at) / 2;
  const Nanos client = Nanos(now_.wall.time_since_epoch()) - (now_.boot - middle);
  node.clock_offset = Nanos(call.node_time.time_since_epoch()) - client;
  if (node.offset_told != Instant::min() && now_.boot - node.offset_told < kTellOffset) return;
  node.offset_told = now_.boot;
  observer_->OnClockOffset(index, *node.clock_offset);
}

// --- what to do -------------------------------------------------------------------------------

std::optional<StoreCommand> Store::TakeCommand(NodeIndex index) {
  Node& node = At(index);
  if (!node.connected || node.out != Out::kNothing) return std::nullopt;
  if (node.want_probe) {
    node.want_probe = false;
    node.probe_confirms = node.snapshot.has_value();
    node.out = Out::kProbe;
    return StoreCommand{};
  }
  if (!node.pending) return std::nullopt;
  node.out = Out::kWrite;
  node.written = *std::exchange(node.pending, std::nullopt);
  return StoreCommand{StoreCommand::Kind::kWrite, node.written};
}

Millis Store::ProbeInterval() const {
  const bool creates = store_id_.empty() && !problem_;
  if (creates && AllReadable()) return kProbeCreation;
  const bool well = !problem_ && std::ranges::all_of(nodes_, [](const Node& node) {
    return !node.connected || node.open;
  });
  // What was read is no longer relied on after QuarantineTime (DecideWhichCount).
  return std::min(well ? kProbeWell : kProbeProblem, QuarantineTime() / 4);
}

// Asked after every step of every lock: what costs a look at all nodes is looked at once.
Instant Store::NextTime() const {
  const Millis probe_interval = ProbeInterval();
  const Millis quarantine_time = QuarantineTime();
  Instant next = Instant::max();
  for (const Node& node : nodes_) {
    if (!node.connected) continue;
    if (node.Idle() && !node.want_probe) {
      next = std::min(next, node.probed_at + probe_interval);
    }
    if (node.hold_until > now_.boot) next = std::min(next, node.hold_until);
    if (!node.open) continue;
    next = std::min(next, node.raw_call.sent_at + quarantine_time + milliseconds(1));
    const std::optional<Instant> end = QuarantineEnd(node);
    if (end && *end > now_.boot) next = std::min(next, *end);
  }
  return next;
}

// --- what is so -------------------------------------------------------------------------------

Millis Store::max_ttl() const {
  Millis highest{0};
  for (const Node& node : nodes_) {
    if (node.member && node.member->store_id == store_id_) {
      highest = std::max(highest, node.member->max_ttl);
    }
  }
  return highest > Millis(0) ? highest : options_.max_ttl;
}

bool Store::Created() const {
  const bool forced = creation_ == StoreCreation::kForced;
  return creating_ && (!forced || overwritten_) && !problem_ &&
         std::ranges::all_of(nodes_, &Node::open);
}

NodeStatus Store::Status(NodeIndex index, Now now) const {
  const Node& node = At(index);
  NodeStatus status;
  status.connected = node.connected;
  status.open = node.open;
  status.quarantined = node.quarantined;
  const std::optional<WallTime> node_now = node.clock.Estimate(now.boot);
  if (node.quarantined && node.sentinel && node_now) {
    status.quarantine_left = std::max(Millis(0), node.sentinel->quarantine_until - *node_now);
  }
  status.clock_offset = node.clock_offset;
  status.run_id = node.run_id;
  if (node.read) status.sentinel = node.sentinel;
  if (node.problem) status.problem = node.problem->Line();
  return status;
}

}  // namespace fencepost::locking
