#include "tests/model/simulator/exchange.h"

#include <algorithm>
#include <span>

#include "tests/model/simulator/link.h"
#include "tests/model/simulator/world.h"

namespace fencepost::simulator {
namespace {

using Shared = std::shared_ptr<Exchange>;

// From here on nothing of the worker may be touched: it may be dead.
void Answer(World& world, const Shared& exchange, std::size_t call) {
  Process& process = *exchange->process;
  if (exchange->fate == Exchange::Fate::kAnswerVanishes) {
    if (exchange->breaks) BreakConnection(world, *exchange);
    return;
  }
  if (process.incarnation() != exchange->incarnation) return;
  // One after the other, as a connection brings them.
  exchange->answered_at = std::max(exchange->answered_at, world.time.now() + world.NetDelay());
  const Link& link = *exchange->link;
  process.Later(link.channel(), exchange->answered_at - world.time.now(),
                [exchange, call] { exchange->link->OnAnswer(exchange, call); });
}

// A message may come late, twice or not at all; it comes to whoever listens at this moment.
void Publish(World& world, SimNode& node, std::string_view name) {
  const auto found = node.subscriptions.find(name);
  if (found == node.subscriptions.end()) return;
  for (const auto& [index, life] : found->second) {
    const int copies = world.random.Chance(world.plan.wakes_doubled) ? 2 : 1;
    for (int copy = 0; copy < copies; ++copy) {
      if (world.random.Chance(world.plan.wakes_lost) || !world.Lives(index, life)) continue;
      Nanos delay = world.NetDelay();
      if (world.random.Chance(world.plan.wakes_late)) {
        delay += world.random.Time(Nanos(0), std::chrono::seconds(3));
      }
      world.process(index).Later(Process::kTimer, delay,
                                 [&world, &node, index, text = std::string(name)] {
                                   world.Count("woken");
                                   world.worker(index)->OnFreed(node, text);
                                 });
    }
  }
}

// Half of the attempts come by plain commands, with a deadline somewhat later than the script's.
bool GoesPlain(const locking::Op& op) {
  return op.kind == locking::OpKind::kAcquire && op.nonce.bits[1] % 2 == 0;
}

void ExecuteCall(World& world, Exchange& exchange, Exchange::Call& call) {
  SimNode& node = *exchange.node;
  const locking::WallTime wall = node.Wall(world.time.now());
  call.answered_by_script = node.model.Complete();
  for (const locking::Op& op : call.ops) {
    const auto before = node.model.Look(op.name, wall);
    if (GoesPlain(op)) {
      const locking::WallTime deadline = wall + op.ttl + Millis(op.nonce.bits[0] % 21);
      call.replies.push_back(
          node.model.AcquirePlainly(op, world.plan.lock, deadline, wall, &call.header));
    } else {
      node.model.Apply(op.kind, std::span(&op, 1), world.plan.lock, wall, wall, &call.header,
                       call.replies);
    }
    const auto after = node.model.Look(op.name, wall);
    world.checks.OnOperation(node, *exchange.process, op, before, after, call.replies.back());
    const bool freed = before.state == locking::NodeModel::State::kHeld &&
                       after.state == locking::NodeModel::State::kFree;
    if (freed && op.kind == locking::OpKind::kRelease && world.plan.lock.wake_up) {
      Publish(world, node, op.name);
    }
  }
}

void Execute(World& world, const Shared& exchange, std::size_t at) {
  SimNode& node = *exchange->node;
  if (!node.up || node.incarnation != exchange->node_incarnation) return;
  const locking::WallTime wall = node.Wall(world.time.now());
  if (exchange->kind == Exchange::Kind::kBatch) {
    ExecuteCall(world, *exchange, exchange->calls[at]);
  } else {
    if (exchange->kind == Exchange::Kind::kWrite) {
      node.model.ApplySentinelWrite(exchange->write, wall);
    }
    locking::NodeInfo& info = exchange->info;
    info.run_id = node.model.run_id();
    info.maxmemory_policy = "noeviction";
    info.role = "master";
    info.sentinel = node.model.sentinel();
    info.call.node_time = wall;
  }
  Answer(world, exchange, at);
  if (at + 1 >= exchange->calls.size()) return;
  // Other clients' calls may come between two of one batch.
  world.time.In(world.HostDelay(), [&world, exchange, at] { Execute(world, exchange, at + 1); });
}

void Arrive(World& world, const Shared& exchange) {
  if (exchange->fate == Exchange::Fate::kRequestVanishes) {
    if (exchange->breaks) BreakConnection(world, *exchange);
    return;
  }
  SimNode& node = *exchange->node;
  if (!node.up || node.incarnation != exchange->node_incarnation) {
    BreakConnection(world, *exchange);
  } else if (node.frozen) {
    node.backlog.push_back([&world, exchange] { Arrive(world, exchange); });
  } else {
    Execute(world, exchange, 0);
  }
}

}  // namespace

void Transmit(World& world, const Shared& exchange) {
  world.time.In(world.NetDelay(), [&world, exchange] { Arrive(world, exchange); });
}

void BreakConnection(World& world, const Exchange& exchange) {
  Process& process = *exchange.process;
  if (process.incarnation() != exchange.incarnation) return;
  Link* const link = exchange.link;
  process.Later(link->channel(), world.NetDelay(),
                [link, connection = exchange.connection] { link->OnBroken(connection); });
}

}  // namespace fencepost::simulator
