#include "tests/model/simulator/world.h"

#include <algorithm>

#include "tests/support/sentinel_node.h"

namespace fencepost::simulator {
namespace {

// Of a thousand.
int Share(std::uint64_t hash, std::string_view of) {
  for (const char c : of) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return static_cast<int>((hash >> 20) % 1000);
}

using std::chrono::seconds;

constexpr std::size_t kTraceLines = 150;
constexpr std::uint64_t kMostEvents = 3'000'000;
constexpr std::uint64_t kMostOfAnHour = 30'000'000;  // a name that is held is asked for all along
constexpr Nanos kBetweenLooks = Millis(2);

Promise PromiseOf(const Plan& plan) {
  switch (plan.flow.finality) {
    case consumer::Finality::kLedger:
      return Promise::kOnce;
    case consumer::Finality::kWrite:
      return Promise::kAtLeastOnce;
    case consumer::Finality::kTransaction:
      return plan.flow.letters_apart ? Promise::kLettersApart : Promise::kOncePerSource;
  }
  return Promise::kOnce;
}

// Lost commits that are older than half of ledger.keep are not looked for, and a record may have
// had its token for as long again before it was committed.
std::optional<Nanos> ToldWithin(const Plan& plan) {
  return plan.keep ? std::optional<Nanos>(Nanos(*plan.keep) / 4) : std::nullopt;
}

}  // namespace

World::World(Plan world_plan, bool tracing)
    : plan(std::move(world_plan)),
      random(plan.seed),
      checks(*this, PromiseOf(plan), ToldWithin(plan)),
      broker(*this),
      tracing_(tracing),
      faults_(*this),
      operator_(*this) {
  const Nanos skew = Nanos(plan.lock.max_skew) * 9 / 20;  // any two stay within max_skew
  for (int i = 0; i < plan.nodes; ++i) {
    nodes_.push_back(std::make_unique<SimNode>(i, FreshRunId()));
    places_.push_back(nodes_.back().get());
    nodes_.back()->offset = random.Time(-skew, skew);
    nodes_.back()->ppm = random.Between(-plan.clock_ppm, plan.clock_ppm);
  }
  for (int i = 0; i < plan.workers; ++i) {
    processes_.push_back(std::make_unique<Process>(time, random, i));
    Process& process = *processes_.back();
    process.boot_base = random.Time(seconds(1), seconds(100'000));
    process.wall_offset = random.Time(-skew, skew);
    process.ppm = random.Between(-plan.clock_ppm, plan.clock_ppm);
    workers_.push_back(nullptr);
  }
  if (plan.store_exists) CreateStore();
  broker.Fill();
}

World::~World() = default;

// As `locks init` leaves it.
void World::CreateStore() {
  std::vector<SimNode*> ranked;
  for (int i = 0; i < plan.nodes; ++i) ranked.push_back(&NodeAt(i));
  std::sort(ranked.begin(), ranked.end(), [](const SimNode* a, const SimNode* b) {
    return a->model.run_id() < b->model.run_id();
  });
  for (std::size_t rank = 0; rank < ranked.size(); ++rank) {
    const auto sentinel = locking::CompleteSentinel(
        ranked[rank]->model.run_id(), static_cast<int>(rank), plan.nodes, plan.lock.max_ttl);
    ranked[rank]->model.ApplySentinelWrite({std::nullopt, sentinel.Encode(), std::nullopt}, kStart);
  }
}

// The new one is empty, and of its own clock.
SimNode& World::Replace(int place) {
  SimNode& old = NodeAt(place);
  old.up = false;
  old.gone = true;
  ++old.incarnation;
  const int index = static_cast<int>(nodes_.size());
  nodes_.push_back(std::make_unique<SimNode>(index, FreshRunId()));
  SimNode& next = *nodes_.back();
  const Nanos skew = Nanos(plan.lock.max_skew) * 9 / 20;
  next.offset = random.Time(-skew, skew);
  next.ppm = random.Between(-plan.clock_ppm, plan.clock_ppm);
  next.incarnation = old.incarnation;
  next.forgot_at = time.now();
  places_[static_cast<std::size_t>(place)] = &next;
  return next;
}

std::optional<Violation> World::Run() {
  for (int i = 0; i < plan.workers; ++i) {
    time.In(random.Time(Nanos(0), Millis(500)), [this, i] { Raise(i); });
  }
  faults_.Begin();
  time.In(plan.faults_end + plan.produce_for + plan.looks, [this] { LookAfterWithheld(); });
  const Nanos deadline = plan.faults_end + plan.produce_for + plan.comes_to_its_end;
  const auto most_events = plan.size == Size::kLasting ? kMostOfAnHour : kMostEvents;
  Nanos settled_at = Nanos::max();
  Nanos look_at = plan.faults_end;
  // A connection whose answer was lost is given up after ten timeouts, and what it was to free is
  // freed on the next one; a stalled worker does so once it has woken.
  const Nanos giving_up = 12 * Nanos(plan.lock.node_timeout) + plan.handshake;
  Nanos given_up = plan.faults_end + giving_up;
  const auto paused = [](const auto& process) { return process->paused(); };
  while (!violation_ && time.Step()) {
    if (time.now() < look_at) continue;
    look_at = time.now() + kBetweenLooks;
    if (std::ranges::any_of(processes_, paused)) given_up = time.now() + giving_up;
    if (Settled()) {
      settled_at = std::min(settled_at, time.now());
      if (time.now() - settled_at > plan.quiet && time.now() > given_up) {
        broker.BeginTheRest();
        checks.AtTheEnd();
        if (plan.Calm()) CheckCalm();
        break;
      }
      continue;
    }
    settled_at = Nanos::max();  // an operator may have set the work back
    if (time.now() > deadline || time.events() > most_events) {
      NoteWhatStands();
      Violate("progress", "the work does not come to its end: " + broker.Lag());
    }
  }
  Count("events", static_cast<int>(time.events()));
  Count("virtual milliseconds", static_cast<int>(time.now() / Millis(1)));
  coverage_.AddTo(counts_);
  return violation_;
}

// Where bad records wait and nothing comes any more that could take effect, somebody looks at them
// and lifts the limit.
void World::LookAfterWithheld() {
  bool any = false;
  for (const auto& worker : workers_) {
    if (worker == nullptr) continue;
    any = any || worker->writer().refuses_all();
    worker->flow().ForEachRecord([&any](const consumer::InFlight& in) {
      any = any || in.stage() == consumer::Stage::kWithheld;
    });
  }
  if (!any) return time.In(plan.looks, [this] { LookAfterWithheld(); });
  Count("limits lifted");
  lifted_ = true;
  for (int i = 0; i < plan.workers; ++i) Bury(i, process(i).incarnation());
}

void World::NoteWhatStands() {
  for (const auto& worker : workers_) {
    if (worker == nullptr) continue;
    const int index = worker->process().index;
    Note("w{}: {} in flight, room {}, available {}, held {}", index, worker->flow().in_flight(),
         worker->flow().backpressure().Room(), worker->locks().Available(), worker->locks().held());
    const auto problem = worker->locks().store().Problem();
    if (problem) Note("w{}: {}", index, problem->Line());
    for (const auto& node : nodes_) {
      for (const auto& link : worker->links()) {
        if (&link->node() != node.get()) continue;
        const auto status = link->Status();
        Note("w{} node {}: connected {} open {} quarantined {} for {} ms {} {}", index, node->index,
             status.connected, status.open, status.quarantined, status.quarantine_left.count(),
             status.sentinel ? status.sentinel->Encode() : "-", status.problem);
      }
    }
    worker->flow().ForEachRecord([&](const consumer::InFlight& in) {
      Note("w{}: {}/{} {} {}; leased {} hinted {} failed {} before {}", index, in.where->partition,
           in.record.offset, in.identity.id, StageName(in.stage()), Leased(in), FoundDone(in),
           in.unit != nullptr && in.unit->round_failed(),
           in.chain_before == nullptr ? "-" : in.chain_before->identity.id);
    });
  }
}

// Where nothing goes wrong, nothing is lost, however tight the times are.
void World::CheckCalm() {
  for (const std::string_view what :
       {"stalls", "restarts detected", "unlocked", "producers fenced"}) {
    // While a store is created nothing can be locked.
    if (what == "unlocked" && !plan.store_exists) continue;
    if (counts_.contains(what)) Violate("calm", fmt::format("nothing went wrong, but: {}", what));
  }
}

bool World::Settled() const {
  if (!broker.Finished() || operator_.Expected()) return false;
  // Where a log is another one with as many records, a worker has yet to find out.
  if (plan.Replaces() && !EachIsRead()) return false;
  return std::all_of(workers_.begin(), workers_.end(), [](const auto& worker) {
    return worker != nullptr && worker->flow().in_flight() == 0 && worker->caller().Idle();
  });
}

bool World::EachIsRead() const {
  for (consumer::PartitionIndex p = 0; p < broker.logs.size(); ++p) {
    const bool read = std::ranges::any_of(workers_, [p](const auto& worker) {
      return worker != nullptr && worker->consumer().Reads(p);
    });
    if (!read) return false;
  }
  return true;
}

void World::Violate(std::string invariant, std::string text) {
  if (violation_) return;
  Note("VIOLATION {}: {}", invariant, text);
  violation_ = Violation{std::move(invariant), std::move(text)};
}

void World::Keep(std::string line) {
  trace_.push_back(fmt::format("{:12.6f} {}", static_cast<double>(time.now().count()) / 1e9, line));
  if (trace_.size() > kTraceLines) trace_.pop_front();
}

// --- the weather -------------------------------------------------------------------------------

Nanos World::NetDelay() {
  const Nanos usual = random.Time(plan.delay / 2, plan.delay * 2);
  const bool slow = Strikes(Fault::kSlowCalls, plan.slow_calls);
  return slow ? usual + random.Time(Nanos(0), Nanos(plan.lock.node_timeout) * 3) : usual;
}

void World::DrawFate(Exchange& exchange) {
  if (!Strikes(Fault::kLosses, plan.losses)) return;
  exchange.fate =
      random.Chance(500) ? Exchange::Fate::kRequestVanishes : Exchange::Fate::kAnswerVanishes;
  exchange.breaks = random.Chance(600);
}

std::size_t World::Refuses(const std::string& source) const {
  if (Share(plan.seed, source) >= plan.refused) return 0;
  return Share(~plan.seed, source) < 500 ? 1 : 2;
}

bool World::MakesNoRow(std::string_view record_id, std::string_view value) const {
  return Share(~plan.seed, fmt::format("{}={}", record_id, value)) < plan.filtered;
}

std::string World::FreshRunId() {
  return fmt::format("{:020}{:020}", random.Bits() % 1'000'000'000, next_run_id_++);
}

// --- workers -----------------------------------------------------------------------------------

bool World::Lives(int index, int life) const {
  const auto at = static_cast<std::size_t>(index);
  return workers_[at] != nullptr && processes_[at]->incarnation() == life;
}

void World::ToConsumer(int index, int life, std::function<void(SimConsumer&)> message) {
  if (!Lives(index, life)) return;
  process(index).Later(Process::kKafka, Nanos(0), [this, index, message = std::move(message)] {
    message(worker(index)->consumer());
  });
}

void World::Raise(int index) {
  if (worker(index) != nullptr || operator_.HoldsWorkers()) return;
  Note("w{} starts", index);
  process(index).Start();
  workers_[static_cast<std::size_t>(index)] = std::make_unique<SimWorker>(*this, process(index));
  worker(index)->Start();
}

void World::Bury(int index, int life) {
  if (!Lives(index, life)) return;
  Note("w{} is dead", index);
  NoticeSilence(index);
  process(index).Die();
  workers_[static_cast<std::size_t>(index)] = nullptr;
  time.In(random.Time(Millis(10), plan.restart_within), [this, index] { Raise(index); });
}

void World::OnFailure(SimWorker& worker, const fencepost::Error& error) {
  const Process& process = worker.process();
  Note("w{} ends: {}", process.index, error.Line());
  operator_.OnStopped(error, {process.index, process.incarnation(), 0, time.now()});
}

// Called before the process stops: a change after this one means that it came back.
void World::NoticeSilence(int index) {
  Process& silent = process(index);
  const int changes = silent.changes() + 1;
  time.In(plan.session, [this, &silent, changes, life = silent.incarnation()] {
    const bool another = silent.incarnation() != life;
    if (another || silent.changes() == changes) broker.Kick(silent.index, life);
  });
}

}  // namespace fencepost::simulator
