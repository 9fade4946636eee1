#include "tests/model/simulator/sim_worker.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "tests/model/simulator/world.h"

namespace fencepost::simulator {
namespace {

using consumer::DeadLetterReason;
using consumer::WorkerActions;
using locking::Instant;
using locking::LockEvent;

constexpr Millis kTick{1000};
constexpr Millis kMarksLimit{1000};

consumer::WorkerCoreOptions OptionsOf(const World& world, const Process& process) {
  consumer::WorkerCoreOptions options{.flow = world.plan.flow,
                                      .nodes = world.plan.nodes,
                                      .lock = world.plan.lock,
                                      .on_unavailable = world.plan.on_unavailable,
                                      .revoke_drain = world.plan.revoke_drain,
                                      .shutdown_timeout = world.plan.revoke_drain};
  options.flow.max_consecutive = world.MostInARow();
  if (world.plan.seed % 2 == 1) options.flow.traces = {.endpoint = "http://otel", .sample = 1};
  // The value too, but it has another name, and what it stores is not to be compared with the rest.
  if (process.other_rule) {
    options.flow.identity.content = {.kind = consumer::ContentRule::Kind::kSelectors,
                                     .selectors = {{consumer::Selector::Kind::kValue, "", false}}};
  }
  return options;
}

std::uint64_t Key(locking::LockId lock) {
  return (static_cast<std::uint64_t>(lock.generation) << 32) | lock.slot;
}

}  // namespace

SimWorker::SimWorker(World& world, Process& process)
    : world_(world),
      process_(process),
      core_(
          OptionsOf(world, process), [&world] { return world.random.Bits(); }, this, this),
      consumer_(world, *this),
      writer_(world, *this),
      transactions_(world, *this),
      handler_(world, *this),
      letters_(world, *this),
      caller_(world, *this),
      most_in_a_row_(world.MostInARow()) {
  // Every worker lists the nodes in an order of its own.
  std::vector<int> order(static_cast<std::size_t>(world.plan.nodes));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1],
              order[static_cast<std::size_t>(world.random.Below(static_cast<int>(i)))]);
  }
  for (int i = 0; i < world.plan.nodes; ++i) {
    SimNode& node = world.NodeAt(order[static_cast<std::size_t>(i)]);
    links_.push_back(std::make_unique<Link>(world, *this, i, node));
  }
}

SimWorker::~SimWorker() = default;

void SimWorker::Start() {
  for (const auto& link : links_) link->Start();
  core_.OnClusterId(kCluster);
  core_.OnOutputState({consumer::PartPhase::kUp, ""}, process_.now());
  world_.broker.StartProducer(process_.index, process_.incarnation());
  consumer_.Start();
  caller_.Start();
  Arm();
}

void SimWorker::Leave() {
  core_.RequestStop(process_.now());
  Act();
  consumer_.Leave([this] {
    writer_.Stop();
    transactions_.Stop();
    core_.OnOutputEnded(process_.now());
    AwaitMarks(world_.time.now() + kMarksLimit);
  });
}

// The last DONE and release calls are waited for, but not for ever.
void SimWorker::AwaitMarks(Nanos until) {
  if (!Quiet() && world_.time.now() < until) {
    process_.Later(Process::kTimer, Millis(10), [this, until] { AwaitMarks(until); });
    return;
  }
  world_.time.In(Nanos(0), [&world = world_, index = process_.index,
                            life = process_.incarnation()] { world.Bury(index, life); });
}

bool SimWorker::Quiet() const {
  return std::ranges::all_of(links_, [](const auto& link) { return link->Idle(); });
}

bool SimWorker::Releasing() const {
  return std::ranges::any_of(links_, [](const auto& link) { return link->Releasing(); });
}

void SimWorker::OnClockStepped() {
  core_armed_ = flow_armed_ = Instant::max();
  for (const auto& link : links_) link->OnClockStepped();
  Kick();
  Arm();
}

// --- the engine's thread -----------------------------------------------------------------------

void SimWorker::HandedIn() {
  Watch();
  handed_in_ = true;
  Kick();
}

void SimWorker::Kick() {
  if (std::exchange(kicked_, true)) return;
  process_.Later(Process::kTimer, Nanos(0), [this] { Pass(); });
}

void SimWorker::Pass() {
  const locking::Now now = process_.now();
  if (locks().NextTime() <= now.boot) {
    locks().OnTime(now);
    Watch();
    handed_in_ = true;
  }
  if (std::exchange(handed_in_, false) || !locks().events().empty()) {
    watched_ = 0;
    core_.OnLockEvents(now);
    Act();
  }
  kicked_ = false;
  Subscribe();
  for (const auto& link : links_) link->Pump();
  Arm();
}

// What a node is asked to tell of takes effect there a little later, even when this worker is gone.
void SimWorker::Subscribe() {
  for (const locking::WatchChange& change : std::exchange(locks().watch_changes(), {})) {
    for (const auto& link : links_) {
      SimNode& node = link->node();
      const std::pair<int, int> who(process_.index, process_.incarnation());
      world_.time.In(world_.plan.delay, [&node, who, change] {
        if (change.on) {
          node.subscriptions[change.name].insert(who);
        } else {
          node.subscriptions[change.name].erase(who);
        }
      });
    }
  }
}

void SimWorker::OnFreed(const SimNode& node, const std::string& name) {
  for (const auto& link : links_) {
    if (&link->node() == &node) link->OnFreed(name);
  }
  HandedIn();
}

void SimWorker::Act() {
  CarryOut(core_.TakeActions());
  consumer_.Nudge();
  Watch();
  world_.checks.OnStep(*this);
  Kick();
  Arm();
}

// It may die before one of its actions, or right behind it.
template <typename Do>
void SimWorker::CarryOut(bool any, Do carry_out) {
  if (!any) return;
  CrashPerhaps();
  if (process_.paused()) return;
  carry_out();
  CrashPerhaps();
}

// Nothing of it runs any more; it is buried once its code has returned.
void SimWorker::CrashPerhaps() {
  if (process_.paused()) return;
  if (!world_.Strikes(Fault::kCrashesAtActions, world_.plan.crashes_at_actions)) return;
  world_.Note("w{} dies at an action", process_.index);
  world_.NoticeSilence(process_.index);
  process_.Pause();
  world_.time.In(Nanos(0), [&world = world_, index = process_.index,
                            life = process_.incarnation()] { world.Bury(index, life); });
}

void SimWorker::CarryOut(WorkerActions actions) {
  CarryOut(!actions.pause.empty(), [&] { consumer_.Pause(actions.pause); });
  CarryOut(!actions.resume.empty(), [&] { consumer_.Resume(actions.resume); });
  CarryOut(!actions.commit.empty(), [&] { consumer_.Commit(std::move(actions.commit)); });
  for (auto& lookup : actions.lookups) {
    CarryOut(true, [&] { writer_.LookUp(std::move(lookup)); });
  }
  for (const auto& call : actions.calls) {
    CarryOut(true, [&] {
      world_.checks.OnCall(*this, call);
      handler_.Call(call);
    });
  }
  CarryOut(!actions.cancels.empty(), [&] {
    for (const std::uint64_t call : actions.cancels) handler_.Cancel(call);
  });
  for (auto& batch : actions.writes) {
    CarryOut(true, [&] { Write(std::move(batch)); });
  }
  CarryOut(!actions.dead_letters.empty(), [&] {
    for (const auto& letter : actions.dead_letters) {
      world_.checks.OnLetter(*this, letter);
      LetterOut(letter);
    }
    letters_.Publish(actions.dead_letters);
  });
  CarryOut(!actions.dropped_letters.empty(), [&] { letters_.Drop(actions.dropped_letters); });
  CarryOut(actions.drained.has_value(), [&] { consumer_.OnDrained(std::move(*actions.drained)); });
  CarryOut(actions.prunable && world_.plan.keep,
           [&] { writer_.SetPrunable(std::move(*actions.prunable)); });
  if (!actions.failure) return;
  world_.OnFailure(*this, *actions.failure);
  process_.Later(Process::kTimer, Nanos(0), [this] { Leave(); });
}

void SimWorker::Write(std::unique_ptr<consumer::WriteBatch> batch) {
  for (const consumer::WriteItem& item : batch->request.items) {
    if (item.dead_letter != nullptr) LetterOut(*item.dead_letter);
  }
  const bool transaction = world_.plan.flow.finality == consumer::Finality::kTransaction;
  transaction ? transactions_.Write(std::move(batch)) : writer_.Write(std::move(batch));
}

void SimWorker::LetterOut(const consumer::DeadLetter& letter) {
  const bool counts = letter.record_id.empty() || letter.reason == DeadLetterReason::kBadRecord ||
                      letter.reason == DeadLetterReason::kOutput ||
                      letter.reason == DeadLetterReason::kIdConflict;
  if (!counts) return;
  const std::size_t row = row_.Out(consumer::SourceText(letter.where, letter.record.offset));
  if (most_in_a_row_ == 0 || row <= most_in_a_row_) return;
  world_.Violate("23", fmt::format("w{} makes {} dead letters in a row", process_.index, row));
}

void SimWorker::Arm() {
  const locking::Now now = process_.now();
  const auto in = [&](Instant at) {
    return std::max(Nanos(0), process_.TrueTime(at) - world_.time.now());
  };
  const Instant core_next = locks().NextTime();
  if (core_next < core_armed_) {
    core_armed_ = core_next;
    process_.Later(Process::kTimer, in(core_next), [this, core_next] {
      if (core_armed_ != core_next) return;
      core_armed_ = Instant::max();
      Kick();
    });
  }
  const Instant flow_next = std::min(core_.NextTime(), now.boot + kTick);
  if (flow_next >= flow_armed_) return;
  flow_armed_ = flow_next;
  process_.Later(Process::kTimer, in(flow_next), [this, flow_next] {
    if (flow_armed_ != flow_next) return;
    flow_armed_ = Instant::max();
    core_.OnTime(process_.now());
    Act();
  });
}

// --- what the checks want to know --------------------------------------------------------------

void SimWorker::OnSending(const std::vector<locking::Op>& ops) {
  for (const locking::Op& op : ops) {
    world_.checks.OnSent(process_, op);
    if (op.kind == locking::OpKind::kAcquire) names_[Key(op.lock)] = op.name;
  }
}

std::string_view SimWorker::NameOf(locking::LockId lock) const {
  const auto found = names_.find(Key(lock));
  return found == names_.end() ? std::string_view() : found->second;
}

void SimWorker::OnAnswered(const std::vector<locking::Reply>& replies) {
  for (const locking::Reply& reply : replies) {
    if (reply.kind == locking::OpKind::kExtend) world_.checks.OnExtended(*this, reply.lock);
  }
}

// Events that came since the last look; the flow drains them later.
void SimWorker::Watch() {
  const auto& events = locks().events();
  for (; watched_ < events.size(); ++watched_) {
    const LockEvent& event = events[watched_];
    const std::string_view name = NameOf(event.lock);
    world_.Note("w{} lock {} {} event {} token {}", process_.index, event.lock.slot, name,
                static_cast<int>(event.kind), event.token.value());
    world_.checks.OnLockEvent(*this, event, name);
    caller_.OnLockEvent(event);
  }
  if (events.empty()) watched_ = 0;
}

void SimWorker::OnInvariant(locking::Invariant invariant) {
  switch (invariant) {
    case locking::Invariant::kCommitPastHole:
      return world_.Violate("16", "the flow would commit past a hole");
    case locking::Invariant::kLeaseAfterLoss:  // a window (PROTOCOL.md): its worker was stalled
      return world_.Count("effects after the lease");
    case locking::Invariant::kDoubleGrant:  // a window (PROTOCOL.md): before anyone has seen a step
      if (world_.plan.Has(Fault::kNodeClocks)) return world_.Count("two holders over a step");
      [[fallthrough]];
    case locking::Invariant::kTokenRegressed:  // what a node has evicted it gives to another
      if (world_.checks.AnyEvicted()) return world_.Count("seen of what was evicted");
      return world_.Violate("shipped", "the shipped code reports two holders, or an old token");
    default:
      return world_.Violate("shipped", "the shipped code reports a broken invariant");
  }
}

// --- what is counted ---------------------------------------------------------------------------

void SimWorker::OnTakeover() { world_.Count("takeovers"); }
void SimWorker::OnCompletedAfterExpiry() { world_.Count("completed after expiry"); }
void SimWorker::OnRestartDetected(locking::NodeIndex) { world_.Count("restarts detected"); }
void SimWorker::OnUnlocked() { world_.Count("unlocked"); }
void SimWorker::OnOutputFencing() { world_.Count("fenced by the output"); }
void SimWorker::OnIdConflict() {
  world_.Count("id conflicts");
  if (world_.plan.conflicts > 0) return;
  world_.Violate("17", "an id conflict, but no two records of an id differ");
}

void SimWorker::OnProcessed(consumer::ProcessedResult result, const consumer::WriteItem&, bool) {
  using enum consumer::ProcessedResult;
  if (result == kDone || result == kSkipped || result == kNoOutput) row_.TookEffect();
  if (result == kFiltered) world_.Count("filtered");
  ++ended_;
}

// In half of the worlds each record leaves its spans.
void SimWorker::OnSpans(std::vector<consumer::Span> spans) {
  const auto broken = [this](const consumer::Span& span, const char* why) {
    world_.Violate("trace", fmt::format("{}: {}", span.name, why));
  };
  for (const consumer::Span& span : spans) {
    if (!span.context.there()) broken(span, "no context");
    if (span.start > span.end) broken(span, "it ends before it begins");
    if (!spans_.insert(span.context.span).second) broken(span, "its id comes twice");
    for (const auto& link : span.links) {
      if (!link.there()) broken(span, "a link to nothing");
    }
    if (span.kind != consumer::SpanKind::kConsumer) continue;
    const auto result = std::ranges::find(span.attributes, std::string_view("fencepost.result"),
                                          &consumer::SpanAttributes::value_type::first);
    if (std::get<std::string>(result->second) != "given_back" && ++traced_ > ended_) {
      broken(span, "a record ends twice");
    }
  }
}

void SimWorker::OnDeadLetter(consumer::DeadLetterReason) { world_.Count("dead letters"); }

void SimWorker::OnRetry(consumer::RetryStage stage) {
  if (stage == consumer::RetryStage::kHandler) world_.Count("handler retries");
}

void SimWorker::OnLoss(locking::LossReason reason) {
  world_.Count(reason == locking::LossReason::kExpired ? "losses by own clock" : "other losses");
}
void SimWorker::OnRound(locking::RoundResult result, Nanos) {
  if (result == locking::RoundResult::kStale) world_.Count("rounds stale");
}
void SimWorker::OnExtension(locking::ExtensionResult result) {
  const bool extended = result == locking::ExtensionResult::kExtended;
  world_.Count(extended ? "extensions" : "extensions failed");
}
void SimWorker::OnDedupeSkip(consumer::DedupeSource source) {
  world_.Count(source == consumer::DedupeSource::kLock ? "skips by the lock"
                                                       : "skips by the ledger");
}

}  // namespace fencepost::simulator
