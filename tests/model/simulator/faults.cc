#include "tests/model/simulator/faults.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "tests/model/simulator/world.h"

namespace fencepost::simulator {

using std::chrono::seconds;

namespace {

constexpr Nanos kOperator = seconds(10);  // how often somebody looks

}  // namespace

void Faults::Begin() {
  const Plan& plan = world_.plan;
  node_clocks_step_ = plan.jumps.count() > 0 && world_.random.Chance(500);
  Again(plan.node_stops, [this] { StopNode(); });
  Again(plan.wipes, [this] { Wipe(); });
  Again(plan.pauses, [this] { PauseWorker(); });
  Again(plan.crashes, [this] { EndWorker(); });
  Again(plan.jumps, [this] { StepClock(); });
  Again(plan.rebalances, [this] { world_.broker.Rebalance(); });
  Again(plan.wipes.count() > 0 ? seconds(1) : Nanos(0), [this] { Snapshot(); });
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

void Faults::StopNode() {
  SimNode& node = world_.node(world_.random.Below(world_.plan.nodes));
  if (!node.up || node.frozen) return;
  const Nanos wait = world_.random.Time(Millis(20), Millis(2500));
  if (world_.random.Chance(500)) {
    world_.Note("node {} freezes", node.index);
    node.frozen = true;
    world_.time.In(wait, [this, &node] { Thaw(node); });
    return;
  }
  // Its way is cut: the process behind it lives on, with its data.
  world_.Note("node {} cannot be reached", node.index);
  node.up = false;
  ++node.incarnation;
  world_.time.In(wait, [&node] { node.up = true; });
}

void Faults::Thaw(SimNode& node) {
  node.frozen = false;
  auto backlog = std::exchange(node.backlog, {});
  for (auto& call : backlog) world_.time.In(Nanos(0), std::move(call));
}

// A majority must go on knowing the store, and what it promised: fewer than half may be forgetful
// until their quarantine is over and their place in the store is found.
bool Faults::MayForget() const {
  int forgetful = 0;
  const Nanos repair = Nanos(world_.plan.lock.max_ttl) + 2 * world_.plan.lock.max_skew + seconds(9);
  for (int i = 0; i < world_.plan.nodes; ++i) {
    const SimNode& node = world_.node(i);
    const bool recent =
        node.forgot_at.count() >= 0 && !node.healed && world_.time.now() - node.forgot_at < repair;
    if (recent || !node.model.Complete()) ++forgetful;
  }
  return forgetful + 1 <= (world_.plan.nodes - 1) / 2;
}

void Faults::Wipe() {
  SimNode& node = world_.node(world_.random.Below(world_.plan.nodes));
  if (!MayForget() || !node.model.Complete()) return;
  const int kind = world_.random.Below(4);
  world_.Note("node {} forgets, kind {}", node.index, kind);
  node.forgot_at = world_.time.now();
  node.healed = false;
  world_.checks.OnForgot(node);
  if (kind == 0) {  // FLUSHALL: connections stay
    node.model.Wipe();
    return;
  }
  ++node.incarnation;
  const bool old_data = kind == 1 && node.snapshot != nullptr;
  if (old_data) node.model = *node.snapshot;
  node.model.Restart(world_.FreshRunId(), old_data || kind == 2);
  Thaw(node);
}

void Faults::Snapshot() {
  SimNode& node = world_.node(world_.random.Below(world_.plan.nodes));
  if (node.model.Complete()) node.snapshot = std::make_unique<locking::NodeModel>(node.model);
}

// --- workers -----------------------------------------------------------------------------------

void Faults::PauseWorker() {
  const int index = world_.random.Below(world_.plan.workers);
  Process& process = world_.process(index);
  if (!process.alive() || process.paused()) return;
  const Nanos ttl = world_.plan.lock.ttl;
  const bool past_ttl = world_.random.Chance(500);
  const Nanos length =
      past_ttl ? world_.random.Time(ttl, ttl * 2 + seconds(2)) : world_.random.Time(Millis(1), ttl);
  world_.Note("w{} is stalled for {} ms", index, length.count() / 1'000'000);
  world_.NoticeSilence(index);
  process.Pause();
  world_.time.In(length, [this, &process, life = process.incarnation()] {
    if (process.incarnation() != life) return;
    world_.Note("w{} goes on", process.index);
    process.Wake();
  });
}

void Faults::EndWorker() {
  const int index = world_.random.Below(world_.plan.workers);
  const Process& process = world_.process(index);
  if (!process.alive()) return;
  if (world_.random.Chance(700) || process.paused())
    return world_.Bury(index, process.incarnation());
  world_.Note("w{} is asked to end", index);
  world_.worker(index)->Leave();
}

// --- clocks ------------------------------------------------------------------------------------

void Faults::StepClock() {
  const Nanos skew = Nanos(world_.plan.lock.max_skew) * 9 / 20;
  const bool wild = world_.random.Chance(300);
  const Nanos most = wild ? skew * 10 : skew;
  const Nanos offset = world_.random.Time(-most, most);
  if (node_clocks_step_ && world_.random.Chance(500)) {
    StepNodeClock(world_.node(world_.random.Below(world_.plan.nodes)), offset);
    return;
  }
  Process& process = world_.process(world_.random.Below(world_.plan.workers));
  world_.Note("w{} wall clock steps to {} ms", process.index, offset.count() / 1'000'000);
  process.wall_offset = offset;
}

void Faults::StepNodeClock(SimNode& node, Nanos offset) {
  world_.Note("node {} clock steps to {} ms", node.index, offset.count() / 1'000'000);
  node.offset = offset;
  node.forgot_at = world_.time.now();
  node.healed = false;
  world_.checks.OnForgot(node);
}

// --- the end -----------------------------------------------------------------------------------

void Faults::End() {
  world_.Note("the trouble ends");
  const Nanos skew = Nanos(world_.plan.lock.max_skew) * 9 / 20;
  for (int i = 0; i < world_.plan.nodes; ++i) {
    SimNode& node = world_.node(i);
    if (std::chrono::abs(node.offset) > skew) StepNodeClock(node, Nanos(0));
  }
  for (int i = 0; i < world_.plan.workers; ++i) {
    Process& process = world_.process(i);
    process.wall_offset = std::clamp(process.wall_offset, -skew, skew);
  }
  world_.time.In(kOperator, [this] { Operator(); });
}

// A person who does what the workers' problem line says. A node that was taken back by a worker
// that remembered it, while another was already replacing it, can be left between two generations:
// safe, but nobody's to decide except a person's.
void Faults::Operator() {
  for (int i = 0; i < world_.plan.workers; ++i) {
    SimWorker* const worker = world_.worker(i);
    if (worker == nullptr) continue;
    const auto problem = worker->locks().store().Problem();
    if (!problem || problem->code != "replaced") continue;
    for (std::size_t place = 0; place < worker->links().size(); ++place) {
      SimNode& node = world_.node(worker->links()[place]->node().index);
      const auto status =
          worker->locks().store().Status(static_cast<int>(place), worker->process().now());
      if (status.problem != problem->Line()) continue;
      world_.Note("the operator wipes node {}", node.index);
      world_.Count("wiped by the operator");
      node.forgot_at = world_.time.now();
      node.healed = false;
      world_.checks.OnForgot(node);
      node.model.Wipe();
      world_.time.In(kOperator, [this] { Operator(); });
      return;
    }
  }
  world_.time.In(kOperator, [this] { Operator(); });
}

}  // namespace fencepost::simulator
