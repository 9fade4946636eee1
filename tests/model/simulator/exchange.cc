#include "tests/model/simulator/exchange.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

#include "tests/model/simulator/link.h"
#include "tests/model/simulator/world.h"

namespace fencepost::simulator {
namespace {

using Shared = std::shared_ptr<Exchange>;

// Later, to the link, unless its worker is dead by now: nothing of it may be touched here. One
// after the other, as a connection brings them.
void Tell(World& world, const Shared& exchange, std::function<void(Link&)> what) {
  Process& process = *exchange->process;
  if (process.incarnation() != exchange->incarnation) return;
  exchange->answered_at = std::max(exchange->answered_at, world.time.now() + world.NetDelay());
  process.Later(exchange->link->channel(), exchange->answered_at - world.time.now(),
                [exchange, what = std::move(what)] { what(*exchange->link); });
}

void Break(World& world, const Shared& exchange, const char* why) {
  Tell(world, exchange,
       [why, connection = exchange->connection](Link& link) { link.OnBroken(connection, why); });
}

void Deliver(World& world, const Shared& exchange, std::string bytes) {
  Tell(world, exchange, [bytes = std::move(bytes), connection = exchange->connection](Link& link) {
    link.OnBytes(connection, bytes);
  });
}

// A reply may be lost, whole or but for its beginning, or come in pieces.
void Answer(World& world, const Shared& exchange, std::size_t reply) {
  using Kind = Exchange::Kind;
  const bool vanishes = exchange->fate == Exchange::Fate::kAnswerVanishes;
  if (vanishes && !exchange->breaks) return;
  if (exchange->kind == Kind::kConnect) {
    if (vanishes) return Break(world, exchange, "Connection reset by peer");
    return Tell(world, exchange,
                [connection = exchange->connection](Link& link) { link.OnOpen(connection); });
  }
  std::string bytes = exchange->kind == Kind::kPrepare
                          ? "+OK\r\n$1\r\ns\r\n"
                          : fmt::format(":{}\r\n", exchange->Name(reply));
  if (vanishes || world.Strikes(Fault::kPieces, world.plan.pieces)) {
    const auto half = static_cast<std::size_t>(world.random.Below(static_cast<int>(bytes.size())));
    Deliver(world, exchange, bytes.substr(0, half));
    if (vanishes) return Break(world, exchange, "the node closed the connection");
    bytes.erase(0, half);
    world.Count("replies in pieces");
  }
  Deliver(world, exchange, std::move(bytes));
}

// A message may come late, twice or not at all; it comes to whoever listens at this moment.
void Publish(World& world, SimNode& node, std::string_view name) {
  const auto found = node.subscriptions.find(name);
  if (found == node.subscriptions.end()) return;
  for (const auto& [index, life] : found->second) {
    const int copies = world.Strikes(Fault::kWakes, world.plan.wakes_doubled) ? 2 : 1;
    for (int copy = 0; copy < copies; ++copy) {
      if (!world.Lives(index, life)) continue;
      if (world.Strikes(Fault::kWakes, world.plan.wakes_lost)) continue;
      Nanos delay = world.NetDelay();
      if (world.Strikes(Fault::kWakes, world.plan.wakes_late)) {
        delay += world.random.Time(Nanos(0), 5 * Nanos(world.plan.lock.ttl));
      }
      world.process(index).Later(Process::kTimer, delay,
                                 [&world, &node, index, text = std::string(name)] {
                                   world.Count("woken");
                                   world.worker(index)->OnFreed(node, text);
                                 });
    }
  }
}

// Half of what may come by plain commands does, with a deadline somewhat later than the script's.
bool GoesPlain(const Exchange::Call& call, const locking::Op& op) {
  return call.suits_plain && op.nonce.bits[1] % 2 == 0;
}

void ExecuteCall(World& world, Exchange& exchange, Exchange::Call& call) {
  SimNode& node = *exchange.node;
  const locking::WallTime wall = node.Wall(world.time.now());
  call.answered_by_script = node.model.Complete();
  for (const locking::Op& op : call.ops) {
    const auto before = node.model.Look(op.name, wall);
    if (GoesPlain(call, op)) {
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
  } else if (exchange->kind != Exchange::Kind::kConnect) {
    if (exchange->kind == Exchange::Kind::kWrite) {
      node.model.ApplySentinelWrite(exchange->write, wall);
    }
    locking::NodeInfo& info = exchange->info;
    info.run_id = node.model.run_id();
    info.maxmemory_policy = node.fit ? "noeviction" : "allkeys-lru";
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
    if (exchange->breaks) Break(world, exchange, "Broken pipe");
    return;
  }
  const bool connecting = exchange->kind == Exchange::Kind::kConnect;
  SimNode& node = *exchange->node;
  if (!node.up || node.incarnation != exchange->node_incarnation) {
    Break(world, exchange, connecting ? "Connection refused" : "Connection reset by peer");
  } else if (node.frozen && !connecting) {  // its kernel still accepts connections
    node.backlog.push_back([&world, exchange] { Arrive(world, exchange); });
  } else {
    Execute(world, exchange, 0);
  }
}

}  // namespace

void Transmit(World& world, const Shared& exchange, Nanos wait) {
  world.time.In(wait + world.NetDelay(), [&world, exchange] { Arrive(world, exchange); });
}

}  // namespace fencepost::simulator
