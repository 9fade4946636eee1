#include "tests/model/simulator/checks.h"

#include <algorithm>

#include <fmt/format.h>

#include "tests/model/simulator/world.h"

namespace fencepost::simulator {
namespace {

using locking::LockEvent;
using locking::NodeModel;
using locking::OpKind;
using locking::ReplyCode;
using Unit = NodeModel::Unit;
using State = NodeModel::State;

std::string IdOf(std::string_view name) { return std::string(name.substr(name.find('}') + 2)); }

std::string Text(const Unit& unit) { return NodeModel::Encode(unit); }

}  // namespace

// --- what happens at nodes ---------------------------------------------------------------------

void Checks::OnSent(const Process& process, const locking::Op& op) {
  if (op.kind == OpKind::kAcquire) drawn_[op.nonce] = {process.index, process.incarnation()};
}

void Checks::OnForgot(const SimNode& node) {
  forgot_ = true;
  Tokens(node).clear();
}

void Checks::OnEvicted(const SimNode& node, const std::string& name) {
  Tokens(node).erase(name);
  evicted_names_.insert(name);
  evicted_ = true;
}

std::map<std::string, locking::Token, std::less<>>& Checks::Tokens(const SimNode& node) {
  const auto at = static_cast<std::size_t>(node.index);
  if (granted_.size() <= at) granted_.resize(at + 1);
  return granted_[at];
}

void Checks::OnOperation(SimNode& node, const Process& process, const locking::Op& op,
                         const Unit& before, const Unit& after, const locking::Reply& reply) {
  world_.Note("w{} node {} op {} {} token {} → {}", process.index, node.index,
              static_cast<int>(op.kind), op.name, op.token.value(), static_cast<int>(reply.code));
  const bool frees = op.kind == OpKind::kAbort || op.kind == OpKind::kRelease;
  const bool others =
      (before.state == State::kHeld && before.nonce != op.nonce) || before.state == State::kDone;
  if ((frees || op.kind == OpKind::kExtend) && others && !(after == before)) {
    world_.Violate("3", fmt::format("{}: what is another's was changed from {} to {}", op.name,
                                    Text(before), Text(after)));
  }
  if (op.kind == OpKind::kExtend && before.state == State::kAbsent &&
      after.state != State::kAbsent) {
    world_.Violate("8", fmt::format("{}: an extension made {}", op.name, Text(after)));
  }
  if (before.state == State::kDone && after.state != State::kDone && op.kind != OpKind::kForget) {
    world_.Violate("10", fmt::format("{}: DONE was undone", op.name));
  }
  const bool marks = reply.code == ReplyCode::kMarked || reply.code == ReplyCode::kMarkedLate;
  if (marks && world_.effects.Of(IdOf(op.name)).empty()) {
    world_.Violate("10", fmt::format("{} is DONE, but took no effect", op.name));
  }
  // The mark came when the lease had run out, and finds the next holder's.
  if (reply.code == ReplyCode::kMarkedLate && before.state == State::kHeld) {
    lost_names_.insert(IdOf(op.name));
  }
  if (after.state == State::kDone) {
    const std::string id = IdOf(op.name);
    auto& nodes = marked_[id];
    if (nodes.empty()) marked_at_[id] = world_.time.now();
    nodes.insert(node.index);
    const bool majority = static_cast<int>(nodes.size()) >= locking::Quorum(world_.plan.nodes);
    if (majority) majority_at_.try_emplace(id, world_.time.now());
  }
  // What a node does not grant leaves no HELD that others would take for a lease, and no floor that
  // is forgotten too early.
  const bool ahead = op.token.wall() > node.Wall(world_.time.now()) + world_.plan.lock.max_skew;
  if (op.kind == OpKind::kAcquire && ahead && !world_.plan.Has(Fault::kNodeClocks) &&
      !(after == before)) {
    world_.Violate("2", fmt::format("node {} has {} by token {}, which is ahead of its clock",
                                    node.index, op.name, op.token.value()));
  }
  auto& tokens = Tokens(node);
  const Millis shortest = world_.plan.lock.max_ttl + 2 * world_.plan.lock.max_skew;
  if (op.kind == OpKind::kDone && op.ttl < shortest) {
    world_.Violate("1", fmt::format("{}: a mark that may be forgotten before a lease that it "
                                    "replaces has ended",
                                    op.name));
  }
  const bool granted =
      reply.code == ReplyCode::kGranted || reply.code == ReplyCode::kGrantedTakeover;
  const bool again = before.state == State::kHeld && before.nonce == op.nonce;
  if (!granted || again) return;
  const auto last = tokens.find(op.name);
  if (last != tokens.end() && op.token <= last->second) {
    world_.Violate("2", fmt::format("node {} granted {} with token {} after {}", node.index,
                                    op.name, op.token.value(), last->second.value()));
  }
  tokens[std::string(op.name)] = op.token;
}

// --- leases ------------------------------------------------------------------------------------

bool Checks::Held(const Lease& lease) const {
  return world_.Lives(lease.worker, lease.life) &&
         world_.worker(lease.worker)->locks().ValidUntil(lease.lock) != locking::Instant::min();
}

void Checks::OnLockEvent(SimWorker& worker, const LockEvent& event, std::string_view name) {
  const Process& process = worker.process();
  const bool held = worker.locks().ValidUntil(event.lock) != locking::Instant::min();
  switch (event.kind) {
    case LockEvent::Kind::kRoundFailed:
    case LockEvent::Kind::kGaveUp:
    case LockEvent::Kind::kDone:
    case LockEvent::Kind::kLost:
      if (held) world_.Violate("6", fmt::format("{} was ended, but is held", name));
      if (event.kind == LockEvent::Kind::kLost) {
        lost_[{process.index, event.token}] = true;
        if (!name.empty()) lost_names_.insert(IdOf(name));
      }
      return;
    case LockEvent::Kind::kLeased:
      break;
    case LockEvent::Kind::kCompleted:
      // It could be told to too few nodes: where it is held, its time ends it.
      if (!event.majority) unmarked_.insert({process.index, event.token});
      return;
    case LockEvent::Kind::kReleased:
    case LockEvent::Kind::kAnswered:
      return;
  }
  if (!held) return;  // it ended in the same step
  auto& leases = leases_[std::string(name)];
  std::erase_if(leases, [this](const Lease& lease) { return !Held(lease); });
  const Lease lease{process.index, process.incarnation(), event.lock, event.token};
  CheckAlone(worker, lease, std::string(name));
  CheckPromise(worker, lease, std::string(name));
  leases.push_back(lease);
}

// Where a ledger decides, a node that has forgotten counts at once.
bool Checks::Promised(const std::string& name) const {
  return !evicted_names_.contains(name) && (world_.plan.lock.quarantine || !forgot_);
}

void Checks::CheckAlone(SimWorker& worker, const Lease& lease, const std::string& name) {
  if (world_.plan.Has(Fault::kNodeClocks) || !Promised(name)) return;
  if (!worker.locks().Valid(lease.lock, worker.process().now())) return;
  for (const Lease& other : leases_[name]) {
    const Process& process = world_.process(other.worker);
    if (!world_.worker(other.worker)->locks().Valid(other.lock, process.now())) continue;
    world_.Violate(
        "1", fmt::format("{} is leased by w{} (token {}) and by w{} (token {})", name, lease.worker,
                         lease.token.value(), other.worker, other.token.value()));
  }
}

// A quorum of nodes keeps others out for as long as the worker believes.
void Checks::CheckPromise(SimWorker& worker, const Lease& lease, const std::string& name) {
  const Nanos now = world_.time.now();
  const Nanos until = worker.process().TrueTime(worker.locks().ValidUntil(lease.lock));
  int keeping = 0;
  for (const auto& one : world_.nodes()) {
    const SimNode& node = *one;
    const Unit unit = node.model.Look(name, node.Wall(now));
    const bool forgetful =
        node.forgot_at.count() >= 0 && now - node.forgot_at < 3 * Nanos(world_.plan.lock.ttl);
    const bool held = unit.state == State::kHeld && unit.token == lease.token;
    if (forgetful || unit.state == State::kDone ||
        (held && node.TrueTime(unit.deadline) >= until)) {
      ++keeping;
    }
  }
  if (keeping >= locking::Quorum(world_.plan.nodes) || !Promised(name)) return;
  world_.Violate("4", fmt::format("w{} believes in {} (token {}) for {} us, but only {} nodes do",
                                  lease.worker, name, lease.token.value(),
                                  (until - now).count() / 1000, keeping));
}

void Checks::OnExtended(SimWorker& worker, locking::LockId lock) {
  if (!worker.locks().Valid(lock, worker.process().now())) return;
  const auto leases = leases_.find(worker.NameOf(lock));
  if (leases == leases_.end()) return;
  for (const Lease& lease : leases->second) {
    if (lease.worker != worker.process().index || lease.lock != lock || !Held(lease)) continue;
    CheckPromise(worker, lease, leases->first);
  }
}

// --- the end -----------------------------------------------------------------------------------

// The lease ended as DONE. A node that was closed just then (it was asked again who it is) still
// has it as held, until its deadline.
bool Checks::Completed(std::string_view name, locking::Token token) const {
  for (const auto& one : world_.nodes()) {
    const SimNode& node = *one;
    const Unit unit = node.model.Look(name, node.Wall(world_.time.now()));
    if (unit.state == State::kDone && unit.token == token) return true;
  }
  return false;
}

// A lease is left behind only where the ledger has the row.
bool Checks::MayBeLeft(std::string_view name) const {
  const auto id = IdOf(name);
  return world_.plan.flow.finality == consumer::Finality::kLedger &&
         (!world_.effects.Of(id).empty() || no_output_.contains(id));
}

// What stands held must have been left behind, or be the lease of somebody who is dead, lost it, or
// lost the way to the node.
void Checks::CheckNothingLeft() {
  const Nanos now = world_.time.now();
  for (const auto& one : world_.nodes()) {
    const SimNode& node = *one;
    if (node.gone) continue;
    node.model.ForEach(node.Wall(now), [&](std::string_view name, const Unit& unit) {
      if (unit.state != State::kHeld || node.Wall(now) >= unit.deadline) return;
      const auto [index, life] = drawn_[unit.nonce];
      if (!world_.Lives(index, life) || lost_.contains({index, unit.token})) return;
      if (unmarked_.contains({index, unit.token})) return;
      if (node.forgot_at.count() >= 0) return;
      if (Completed(name, unit.token)) return;
      if (MayBeLeft(name)) return;
      for (const auto& link : world_.worker(index)->links()) {
        if (&link->node() == &node && link->broke_at().count() >= 0) return;
      }
      world_.Violate("7", fmt::format("node {} still has {} held by w{} (token {})", node.index,
                                      name, index, unit.token.value()));
    });
  }
}

}  // namespace fencepost::simulator
