#include "tests/model/simulator/faults.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "tests/model/simulator/world.h"

namespace fencepost::simulator {

void Faults::Begin() {
  const Plan& plan = world_.plan;
  Again(plan.cuts, [this] { CutOffNode(); });
  Again(plan.freezes, [this] { FreezeNode(); });
  Again(plan.restarts, [this] { RestartNode(); });
  Again(plan.wipes, [this] { WipeNode(); });
  Again(plan.unfit, [this] { UnfitNode(); });
  Again(plan.evictions, [this] { FillNode(); });
  Again(plan.replaced, [this] { ReplaceNode(); });
  Again(plan.node_jumps, [this] {
    world_.Strike(Fault::kNodeClocks);
    StepNodeClock(AnyNode(), DrawOffset());
  });
  Again(plan.pauses, [this] { PauseWorker(); });
  Again(plan.crashes, [this] { CrashWorker(); });
  Again(plan.leaves, [this] { StopWorker(); });
  Again(plan.jumps, [this] { StepWallClock(); });
  Again(plan.boot_jumps, [this] { StepBootClock(); });
  Again(plan.rebalances, [this] {
    world_.Strike(Fault::kRebalances);
    world_.broker.Rebalance();
  });
  Again(plan.letters_refused, [this] { RefuseLetters(); });
  Again(plan.replays, [this] { world_.broker.Replay(); });
  Again(plan.handler_outages, [this] { BreakHandler(); });
  Again(plan.failovers, [this] { FailOver(); });
  Again(plan.cut_offs, [this] { CutOffWorker(); });
  Again(plan.releases, [this] { Release(); });
  Again(plan.deletions, [this] { world_.broker.DeleteOldest(); });
  Again(plan.wipes / 2, [this] { Snapshot(); });
  if (plan.added > 0) {
    world_.time.At(plan.added_at, [this] {
      world_.Strike(Fault::kPartitionsAdded);
      world_.broker.AddPartitions();
    });
  }
  if (plan.Replaces()) {
    world_.time.At(plan.replaced_at, [this] { world_.broker.Replace(); });
  }
  world_.time.At(plan.faults_end, [this] { End(); });
}

void Faults::Again(Nanos mean, std::function<void()> fault) {
  if (mean.count() == 0) return;
  world_.time.In(world_.random.Time(mean / 4, mean * 7 / 4),
                 [this, mean, fault = std::move(fault)] {
                   if (!world_.FaultsOn()) return;
                   fault();
                   Again(mean, fault);
                 });
}

// --- nodes -------------------------------------------------------------------------------------

int Faults::AnyPlace() { return world_.random.Below(world_.plan.nodes); }

SimNode& Faults::AnyNode() { return world_.NodeAt(AnyPlace()); }

Process& Faults::AnyProcess() { return world_.process(world_.random.Below(world_.plan.workers)); }

// The process behind the way lives on, with its data.
void Faults::CutOffNode() {
  SimNode& node = AnyNode();
  if (!node.up || node.frozen) return;
  world_.Note("node {} cannot be reached", node.index);
  world_.Strike(Fault::kCuts);
  node.up = false;
  ++node.incarnation;
  world_.time.In(world_.random.Time(Millis(5), world_.plan.outage),
                 [&node] { node.up = !node.gone; });
}

void Faults::FreezeNode() {
  SimNode& node = AnyNode();
  if (!node.up || node.frozen) return;
  world_.Note("node {} freezes", node.index);
  world_.Strike(Fault::kFreezes);
  node.frozen = true;
  world_.time.In(world_.random.Time(Millis(5), world_.plan.outage), [this, &node] { Thaw(node); });
}

void Faults::Thaw(SimNode& node) {
  node.frozen = false;
  auto backlog = std::exchange(node.backlog, {});
  for (auto& call : backlog) world_.time.In(Nanos(0), std::move(call));
}

std::uint32_t Faults::GenerationOf(const SimNode& node) {
  const auto raw = node.model.sentinel();
  const auto sentinel = raw ? locking::Sentinel::Decode(*raw) : std::nullopt;
  return sentinel ? locking::Generation(sentinel->epoch) : 0;
}

// A majority must go on knowing the store, and what it promised: fewer than half may be forgetful
// until their quarantine is over and their place in the store is found. One that came back with a
// former generation has yet to follow. A single one, where a ledger decides, may do so at any time.
bool Faults::MayForget() const {
  if (world_.plan.nodes == 1 && !world_.plan.lock.quarantine) return true;
  std::uint32_t newest = 0;
  for (int i = 0; i < world_.plan.nodes; ++i) {
    newest = std::max(newest, GenerationOf(world_.NodeAt(i)));
  }
  int forgetful = 0;
  const Nanos repair =
      Nanos(world_.plan.lock.max_ttl) + 2 * world_.plan.lock.max_skew + world_.plan.found;
  for (int i = 0; i < world_.plan.nodes; ++i) {
    const SimNode& node = world_.NodeAt(i);
    const bool recent = node.forgot_at.count() >= 0 && world_.time.now() - node.forgot_at < repair;
    const bool known = node.model.Complete() && GenerationOf(node) == newest &&
                       !node.model.Quarantined(node.Wall(world_.time.now()));
    if (recent || !known || !node.fit) ++forgetful;
  }
  return forgetful + 1 <= (world_.plan.nodes - 1) / 2;
}

// From now on it may have forgotten.
bool Faults::Forget(SimNode& node, Fault fault) {
  if (!MayForget() || !node.model.Complete()) return false;
  world_.Strike(fault);
  node.forgot_at = world_.time.now();
  world_.checks.OnForgot(node);
  return true;
}

void Faults::RestartNode() {
  SimNode& node = AnyNode();
  if (!Forget(node, Fault::kRestarts)) return;
  world_.Note("node {} starts again with its data", node.index);
  ++node.incarnation;
  node.model.Restart(world_.FreshRunId(), true);
  Thaw(node);
}

void Faults::WipeNode() {
  SimNode& node = AnyNode();
  if (!Forget(node, Fault::kWipes)) return;
  const int kind = world_.random.Below(3);
  world_.Note("node {} forgets, kind {}", node.index, kind);
  if (kind == 0) {  // FLUSHALL: connections stay
    node.model.Wipe();
    return;
  }
  ++node.incarnation;
  const bool old_data = kind == 1 && node.snapshot != nullptr;
  if (old_data) node.model = *node.snapshot;  // as a replica that was behind
  if (old_data) world_.Count("nodes that went back");
  node.model.Restart(world_.FreshRunId(), old_data);
  Thaw(node);
}

// CONFIG SET: it would evict what it has if it were full, which it is not.
void Faults::UnfitNode() {
  SimNode& node = AnyNode();
  if (!node.fit || !Forget(node, Fault::kUnfit)) return;  // for all that anybody knows
  world_.Note("node {} may evict", node.index);
  node.fit = false;
  world_.time.In(world_.random.Time(Millis(5), world_.plan.outage), [&node] { node.fit = true; });
}

// … and it is: names go one after the other, and the sentinel as any of them, until it is seen to.
void Faults::FillNode() {
  SimNode& node = AnyNode();
  if (!node.fit || !Forget(node, Fault::kEvictions)) return;
  world_.Note("node {} is full, and evicts", node.index);
  node.fit = false;
  Evict(node);
  world_.time.In(world_.random.Time(Millis(5), world_.plan.outage), [this, &node] {
    world_.Note("node {} evicts no more", node.index);
    node.fit = true;
    node.forgot_at = world_.time.now();
  });
}

void Faults::Evict(SimNode& node) {
  if (node.fit || node.gone) return;
  std::vector<std::string> names;
  node.model.ForEach(node.Wall(world_.time.now()),
                     [&](std::string_view name, const auto&) { names.emplace_back(name); });
  std::ranges::sort(names);
  const int picked = world_.random.Below(static_cast<int>(names.size()) * 4 + 1);
  if (picked / 4 < static_cast<int>(names.size())) {
    const std::string& name = names[static_cast<std::size_t>(picked / 4)];
    world_.Note("node {} evicts {}", node.index, name);
    world_.Count("names evicted");
    world_.checks.OnEvicted(node, name);
    node.model.Remove(name);
  } else if (node.model.Complete()) {
    world_.Note("node {} evicts its sentinel", node.index);
    world_.Count("sentinels evicted");
    node.model.RemoveSentinel();
  }
  world_.time.In(world_.random.Time(Millis(1), Millis(40)), [this, &node] { Evict(node); });
}

// Its host is gone for good. Another, empty one takes its place in the list, which workers read
// when they start: so each is started again, one after the other, and some for long have the former
// list.
void Faults::ReplaceNode() {
  const int place = AnyPlace();
  SimNode& node = world_.NodeAt(place);
  if (!Forget(node, Fault::kReplaced)) return;
  SimNode& next = world_.Replace(place);
  world_.Note("node {} is gone, and node {} comes in its place", node.index, next.index);
  for (int i = 0; i < world_.plan.workers; ++i) {
    const Process& process = world_.process(i);
    world_.time.In(world_.random.Time(Millis(5), 2 * world_.plan.outage),
                   [this, i, life = process.incarnation()] {
                     if (world_.Lives(i, life)) world_.Bury(i, life);
                   });
  }
}

void Faults::Snapshot() {
  SimNode& node = AnyNode();
  if (node.model.Complete()) node.snapshot = std::make_unique<locking::NodeModel>(node.model);
}

// --- workers -----------------------------------------------------------------------------------

void Faults::PauseWorker() {
  Process& process = AnyProcess();
  if (!process.alive() || process.paused()) return;
  const Nanos ttl = world_.plan.lock.ttl;
  const bool past_ttl = world_.random.Chance(500);
  const Nanos length = past_ttl ? world_.random.Time(ttl, ttl * 2 + world_.plan.outage)
                                : world_.random.Time(Millis(1), ttl);
  world_.Note("w{} is stalled for {} ms", process.index, length.count() / 1'000'000);
  world_.Strike(Fault::kPauses);
  world_.NoticeSilence(process.index);
  process.Pause();
  world_.time.In(length, [this, &process, life = process.incarnation()] {
    if (process.incarnation() != life) return;
    world_.Note("w{} goes on", process.index);
    process.Wake();
  });
}

void Faults::CrashWorker() {
  const Process& process = AnyProcess();
  if (!process.alive()) return;
  world_.Strike(Fault::kCrashes);
  world_.Bury(process.index, process.incarnation());
}

void Faults::StopWorker() {
  const Process& process = AnyProcess();
  if (!process.alive() || process.paused()) return;
  world_.Note("w{} is asked to end", process.index);
  world_.Strike(Fault::kLeaves);
  world_.worker(process.index)->Leave();
}

// --- clocks ------------------------------------------------------------------------------------

Nanos Faults::DrawOffset() {
  const Nanos skew = Nanos(world_.plan.lock.max_skew) * 9 / 20;
  const Nanos most = world_.random.Chance(300) ? skew * 10 : skew;
  return world_.random.Time(-most, most);
}

void Faults::StepWallClock() {
  Process& process = AnyProcess();
  process.wall_offset = DrawOffset();
  world_.Note("w{} wall clock steps to {} ms", process.index,
              process.wall_offset.count() / 1'000'000);
  world_.Strike(Fault::kWorkerClocks);
}

// As its host wakes from a sleep that nobody else has had: leases are older than they were.
void Faults::StepBootClock() {
  Process& process = AnyProcess();
  const Nanos slept = world_.random.Time(Millis(1), 2 * Nanos(world_.plan.lock.ttl));
  process.boot_base += slept;
  world_.Note("w{} has slept for {} ms by its clock", process.index, slept.count() / 1'000'000);
  world_.Strike(Fault::kBootClocks);
  if (process.alive() && !process.paused()) world_.worker(process.index)->OnClockStepped();
}

void Faults::StepNodeClock(SimNode& node, Nanos offset) {
  world_.Note("node {} clock steps to {} ms", node.index, offset.count() / 1'000'000);
  node.offset = offset;
  node.forgot_at = world_.time.now();
  world_.checks.OnForgot(node);
}

// --- handler and dead letters ------------------------------------------------------------------

void Faults::BreakHandler() {
  ForAWhile(handler_out_, Fault::kHandlerOutages, "the handler is out", "the handler is back");
}

void Faults::RefuseLetters() {
  ForAWhile(letters_refused_, Fault::kLettersRefused, "dead letters are refused",
            "dead letters are taken again");
}

void Faults::ForAWhile(bool& on, Fault fault, std::string_view begins, std::string_view ends) {
  if (std::exchange(on, true)) return;
  world_.Note("{}", begins);
  world_.Strike(fault);
  world_.time.In(world_.random.Time(Millis(5), world_.plan.outage), [this, &on, ends] {
    world_.Note("{}", ends);
    on = false;
  });
}

// From the output, and perhaps from Kafka, and for longer than rows stay where they are pruned.
void Faults::CutOffWorker() {
  Process& process = AnyProcess();
  if (!process.alive() || process.CutOff()) return;
  const Nanos most = world_.plan.keep ? 2 * Nanos(*world_.plan.keep) : world_.plan.outage;
  process.cut_off_until = world_.time.now() + world_.random.Time(Millis(5), most);
  world_.Note("w{} is cut off from the output", process.index);
  world_.Strike(Fault::kCutOff);
  if (world_.random.Chance(500)) return;
  process.kafka_cut_until = process.cut_off_until;
  world_.time.In(world_.plan.session, [this, &process, life = process.incarnation()] {
    if (world_.time.now() < process.kafka_cut_until) world_.broker.Kick(process.index, life);
  });
}

// To the other version, or back to the one before: half of the workers have it for a while, or for
// good.
void Faults::Release() {
  const bool other = world_.random.Chance(700);
  const int workers = world_.random.Between(1, world_.plan.workers);
  world_.Note("{} workers get {} content rule", workers, other ? "another" : "their former");
  world_.Strike(Fault::kContentRule);
  for (int i = 0; i < workers; ++i) {
    Process& process = world_.process(i);
    process.other_rule = other;
    world_.time.In(world_.random.Time(Millis(0), world_.plan.outage),
                   [this, i, life = process.incarnation()] {
                     if (world_.Lives(i, life)) world_.Bury(i, life);
                   });
  }
}

// A standby that was behind takes over, or a backup is restored.
void Faults::FailOver() {
  const Nanos now = world_.time.now();
  const Nanos behind =
      world_.random.Time(Nanos(0), world_.random.Chance(300) ? world_.plan.outage : Millis(60));
  const Nanos away = world_.random.Time(Nanos(0), world_.plan.outage);
  world_.Strike(Fault::kFailovers);
  const auto lost = world_.ledger.FailOver(now - behind, now + away);
  world_.Note("the output fails over, {} rows are lost", lost.size());
  world_.Count("rows lost", static_cast<int>(lost.size()));
  for (const auto& [id, row] : lost) {
    world_.Note("lost: {} of w{}", id, row.by.worker);
    if (row.token != locking::Token()) {
      world_.checks.OnEffectLost(id, row.source, row.by);
    } else {
      world_.checks.OnRowLost(id);
    }
  }
}

// --- the end -----------------------------------------------------------------------------------

void Faults::End() {
  world_.Note("the trouble ends");
  const Nanos skew = Nanos(world_.plan.lock.max_skew) * 9 / 20;
  for (int i = 0; i < world_.plan.nodes; ++i) {
    SimNode& node = world_.NodeAt(i);
    if (std::chrono::abs(node.offset) > skew) StepNodeClock(node, Nanos(0));
  }
  for (int i = 0; i < world_.plan.workers; ++i) {
    Process& process = world_.process(i);
    process.wall_offset = std::clamp(process.wall_offset, -skew, skew);
  }
  if (world_.plan.replays.count() > 0) world_.broker.Replay();
  world_.OnTroubleEnded();
  world_.time.In(world_.plan.looks, [this] { Operator(); });
}

// A person who does what the workers' problem line says. A node that was taken back by a worker
// that remembered it, while another was already replacing it, can be left between two generations:
// safe, but nobody's to decide except a person's.
void Faults::Operator() {
  for (int i = 0; i < world_.plan.workers; ++i) {
    SimWorker* const worker = world_.worker(i);
    if (worker == nullptr) continue;
    for (const auto& link : worker->links()) {
      const auto problem = link->store().Problem();
      if (!problem || problem->code != "replaced") continue;
      SimNode& node = link->node();
      if (link->Status().problem != problem->Line()) continue;
      world_.Note("the operator wipes node {}", node.index);
      world_.Count("wiped by the operator");
      node.forgot_at = world_.time.now();
      world_.checks.OnForgot(node);
      node.model.Wipe();
      world_.time.In(world_.plan.looks, [this] { Operator(); });
      return;
    }
  }
  world_.time.In(world_.plan.looks, [this] { Operator(); });
}

}  // namespace fencepost::simulator
