#include "tests/fault/mutual_exclusion/storm.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "locking/core/store/sentinel.h"
#include "tests/fault/mutual_exclusion/history.h"
#include "tests/fault/mutual_exclusion/worker.h"

namespace fencepost::torture {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::RedisServer;

constexpr milliseconds kMinute{60'000};
constexpr milliseconds kRepairLimit{20'000};
constexpr milliseconds kPatience{10'000};  // beyond the length
constexpr std::size_t kFrozenAtOnce = 3;

std::string SentinelOf(const RedisServer& node) {
  return node.Command({"GET", std::string(locking::kSentinelKey)});
}

}  // namespace

Storm::Storm(StormOptions options, std::string program)
    : options_(options),
      program_(std::move(program)),
      resource_(options.names),
      freezes_(options.seed * 3),
      kills_(options.seed * 3 + 1),
      faults_(options.seed * 3 + 2) {
  for (int i = 0; i < options_.nodes; ++i) {
    nodes_.push_back(std::make_unique<RedisServer>(
        testing::RedisServerOptions{.appendonly = true, .own_clock = true}));
  }
  workers_.resize(static_cast<std::size_t>(options_.workers));
}

Storm::~Storm() = default;

milliseconds Storm::Draw(std::mt19937_64& random, int from, int to) {
  return milliseconds(std::uniform_int_distribution<int>(from, to)(random));
}

std::vector<std::string> Storm::Addresses() const {
  std::vector<std::string> all;
  for (const auto& node : nodes_) all.push_back(node->address());
  return all;
}

StormReport Storm::Run() {
  CreateStore();
  for (Worker& worker : workers_) StartWorker(worker);
  const Time start = Clock::now();
  const Time end = start + options_.length;
  freeze_at_ = start + Draw(freezes_, 200, 600);
  kill_at_ = start + Draw(kills_, 500, 1500);
  node_at_ = start + Draw(faults_, 300, 600);
  (void)testing::WaitUntil(options_.length + kPatience, [&] {
    const Time now = Clock::now();
    LookAfterWorkers();
    if (!options_.calm) Tick(now);
    return now >= end && HasShownSomething();
  });
  EndAll();
  if (!options_.lawless) TakeEachName();
  Judge();
  return report_;
}

// A holder was frozen at the wrong moment, and the fence stopped it: what a run is to show. A short
// one on a busy machine goes on until then.
bool Storm::HasShownSomething() const {
  std::int64_t refused = 0;
  for (int name = 0; name < options_.names; ++name) refused += resource_.Fenced(name).refused;
  return resource_.UnfencedLost() > 0 && refused > 0;
}

void Storm::CreateStore() {
  auto options = LockOptionsFor(Addresses());
  options.creation = locking::StoreCreation::kImmediate;
  const auto lock = locking::QuorumLock::Connect(options);
  if (!lock) throw std::runtime_error(lock.error().Line());
  testing::RequireWithin(seconds(30), "the lock store", [this] {
    return std::all_of(nodes_.begin(), nodes_.end(),
                       [](const auto& node) { return SentinelOf(*node).starts_with("C"); });
  });
}

void Storm::StartWorker(Worker& worker) {
  WorkerOptions options;
  options.nodes = Addresses();
  options.resource = resource_.path();
  options.journal = journals_.File(fmt::format("journal-{}", journal_paths_.size()));
  options.seed = options_.seed * 100'000 + journal_paths_.size();
  options.names = options_.names;
  options.lawless = options_.lawless;
  journal_paths_.push_back(options.journal);
  testing::ProcessOptions process;
  process.argv = WorkerCommand(options);
  process.argv.insert(process.argv.begin(), program_);
  worker.process = std::make_unique<testing::Process>(std::move(process));
  worker.thaw_at = Time::max();
}

void Storm::LookAfterWorkers() {
  for (Worker& worker : workers_) {
    if (worker.process->Running()) continue;
    report_.troubles.push_back(fmt::format("a worker ended by itself with {}: {}",
                                           worker.process->Wait(milliseconds(0)).value_or(-1),
                                           worker.process->Output()));
    StartWorker(worker);
  }
}

void Storm::Tick(Time now) {
  ThawThose(now);
  if (now >= freeze_at_) {
    FreezeOne(now);
    freeze_at_ = now + Draw(freezes_, 200, 700);
  }
  if (now >= kill_at_) {
    KillOne();
    kill_at_ = now + Draw(kills_, 800, 2500);
  }
  if (now >= node_at_) TickNode(now);
}

// --- workers -----------------------------------------------------------------------------------

// Mostly one that is between reading and writing, and always until its leases are over.
void Storm::FreezeOne(Time now) {
  const auto frozen = [](const Worker& worker) { return worker.thaw_at != Time::max(); };
  const auto picked = static_cast<std::size_t>(Draw(freezes_, 0, options_.workers - 1).count());
  const bool aim = Draw(freezes_, 0, 3).count() != 0;
  const milliseconds span = Draw(freezes_, 700, 1600);
  const auto many = std::count_if(workers_.begin(), workers_.end(), frozen);
  if (static_cast<std::size_t>(many) >= kFrozenAtOnce) return;
  const std::vector<pid_t> thinking = resource_.Thinking();
  const pid_t target = aim && !thinking.empty() ? thinking.at(picked % thinking.size()) : -1;
  auto worker = std::find_if(workers_.begin(), workers_.end(),
                             [&](const Worker& w) { return w.process->pid() == target; });
  if (worker == workers_.end()) worker = workers_.begin() + static_cast<std::ptrdiff_t>(picked);
  if (frozen(*worker)) return;
  worker->process->Kill(SIGSTOP);
  worker->thaw_at = now + span;
  ++report_.stops;
}

void Storm::ThawThose(Time now) {
  for (Worker& worker : workers_) {
    if (worker.thaw_at > now) continue;
    worker.process->Kill(SIGCONT);
    worker.thaw_at = Time::max();
  }
}

void Storm::KillOne() {
  const auto picked = static_cast<std::size_t>(Draw(kills_, 0, options_.workers - 1).count());
  Worker& worker = workers_.at(picked);
  worker.process->Kill(SIGKILL);
  if (!worker.process->Wait(seconds(10))) throw std::runtime_error("a worker outlived SIGKILL");
  ++report_.kills;
  StartWorker(worker);
}

// --- nodes -------------------------------------------------------------------------------------

// One at a time, and the next only when the last one counts again (judge.h says why).
void Storm::TickNode(Time now) {
  switch (node_phase_) {
    case NodePhase::kWell:
      BeginFault(now);
      return;
    case NodePhase::kPaused:
      ResumeAll();
      node_phase_ = NodePhase::kRepair;
      return;
    case NodePhase::kThinned:
      WipeSick();
      ResumeAll();
      node_phase_ = NodePhase::kRepair;
      return;
    case NodePhase::kJumped:
      if (!NodeIsRepaired()) return;
      ShiftClock(milliseconds(0));
      node_phase_ = NodePhase::kRepair;
      return;
    case NodePhase::kRepair:
      if (!NodeIsRepaired()) return;
      node_phase_ = NodePhase::kWell;
      // A lone node in quarantine stops everything: it works at least as long as it rests.
      node_at_ = now + (options_.nodes == 1 ? Draw(faults_, 1500, 3000) : Draw(faults_, 100, 500));
      return;
  }
}

void Storm::BeginFault(Time now) {
  if (deck_.empty() && options_.nodes == 1) {
    deck_ = {Fault::kRestart, Fault::kPause};
    std::shuffle(deck_.begin(), deck_.end(), faults_);
  } else if (deck_.empty()) {
    deck_ = {Fault::kRestart, Fault::kThinWipe, Fault::kJump};
    // The first three, in whatever order, are those that every run should have.
    const bool first = report_.restarts + report_.wipes + report_.jumps == 0;
    if (!first) deck_.insert(deck_.end(), {Fault::kThinWipe, Fault::kWipe, Fault::kPause});
    std::shuffle(deck_.begin(), deck_.end(), faults_);
  }
  const Fault fault = deck_.back();
  deck_.pop_back();
  sick_ = static_cast<std::size_t>(Draw(faults_, 0, options_.nodes - 1).count());
  const bool forward = Draw(faults_, 0, 1).count() == 0;
  const milliseconds span = Draw(faults_, 300, 1200);
  sentinel_before_ = SentinelOf(Sick());
  must_be_noticed_ = fault != Fault::kPause;
  node_phase_ = NodePhase::kRepair;
  switch (fault) {
    case Fault::kRestart:
      Sick().Restart(RedisServer::Data::kKeep);
      ++report_.restarts;
      return;
    case Fault::kWipe:
      WipeSick();
      return;
    case Fault::kThinWipe:
      PauseMinority();
      node_phase_ = NodePhase::kThinned;
      node_at_ = now + span;
      return;
    case Fault::kPause:
      Sick().Pause();
      node_phase_ = NodePhase::kPaused;
      node_at_ = now + span;
      ++report_.pauses;
      return;
    case Fault::kJump:
      ShiftClock(forward ? kMinute : -kMinute);
      node_phase_ = NodePhase::kJumped;
      node_at_ = now + span;
      return;
  }
}

// All that a quorum can do without; the leases that are given meanwhile stand on a bare quorum, and
// the sick node is one of it. Its wipe, just when the others are back, would let a second quorum
// come together, were it not for its quarantine.
void Storm::PauseMinority() {
  for (std::size_t i = 1; i <= nodes_.size() / 2; ++i) {
    nodes_.at((sick_ + i) % nodes_.size())->Pause();
    ++report_.pauses;
  }
}

void Storm::ResumeAll() {
  for (const auto& node : nodes_) node->Resume();
}

void Storm::WipeSick() {
  Sick().Restart(RedisServer::Data::kWipe);
  ++report_.wipes;
}

void Storm::ShiftClock(milliseconds shift) {
  sentinel_before_ = SentinelOf(Sick());
  Sick().ShiftClock(shift);
  ++report_.jumps;
}

// Somebody has noticed, and the quarantine is over by the node's own clock.
bool Storm::NodeIsRepaired() const {
  const std::string text = SentinelOf(Sick());
  const auto sentinel = locking::Sentinel::Decode(text);
  if (!sentinel || !sentinel->complete) return false;
  if (must_be_noticed_ && text == sentinel_before_) return false;
  const std::string time = Sick().Command({"TIME"});  // seconds, microseconds
  const std::size_t line = time.find('\n');
  if (line == std::string::npos) return false;
  const locking::WallTime now(seconds(std::stoll(time)) +
                              milliseconds(std::stoll(time.substr(line)) / 1000));
  return now >= sentinel->quarantine_until;
}

// --- the end -----------------------------------------------------------------------------------

void Storm::EndAll() {
  ResumeAll();
  if (node_phase_ == NodePhase::kJumped) ShiftClock(milliseconds(0));
  ThawThose(Time::max());
  for (Worker& worker : workers_) {
    testing::Process& process = *worker.process;
    (void)testing::WaitUntil(seconds(20), [&] {
      return process.Output().find(kCanBeStopped) != std::string::npos || !process.Running();
    });
    process.Kill(SIGTERM);
  }
  for (Worker& worker : workers_) {
    const auto code = worker.process->Wait(seconds(20));
    if (code == 0) continue;
    report_.troubles.push_back(
        fmt::format("a worker ended with {}: {}", code.value_or(-1), worker.process->Output()));
  }
}

// After the storm every name can be had: nothing is left behind that nobody frees.
void Storm::TakeEachName() {
  const auto lock = locking::QuorumLock::Connect(LockOptionsFor(Addresses()));
  if (!lock) throw std::runtime_error(lock.error().Line());
  for (int name = 0; name < options_.names; ++name) {
    const auto lease = (*lock)->Acquire(NameOf(name), {.wait = kRepairLimit});
    if (lease) continue;
    report_.troubles.push_back(NameOf(name) + " afterwards: " + lease.error().Line());
  }
}

void Storm::Judge() {
  torture::Judge judge;
  History history;
  for (const std::string& path : journal_paths_) {
    const std::vector<Entry> journal = ReadJournal(path);
    judge.Hear(journal);
    history.Hear(journal);
  }
  if (!options_.history.empty()) history.WriteTo(options_.history);
  report_.tally = judge.tally();
  report_.overlaps = judge.Overlaps();
  report_.disorders = judge.Disorders();
  for (int name = 0; name < options_.names; ++name) {
    const Counter fenced = resource_.Fenced(name);
    if (const std::string wrong = WrongWith(fenced); !wrong.empty()) {
      report_.troubles.push_back(fmt::format("fenced counter {}: {}", name, wrong));
    }
    report_.increments += fenced.accepted;
    report_.fenced_refusals += fenced.refused;
  }
  report_.unfenced_violations = resource_.UnfencedLost();
}

std::string StormReport::Line(const StormOptions& options) const {
  return fmt::format(
      "seed {}, {} nodes, {} s: leases {}, contended {}, no quorum {}, losses {}, kills {}, "
      "stops {}, restarts {}, wipes {}, jumps {}, node pauses {}, increments {}, "
      "fenced refusals {}, unfenced violations {}, overlaps {}, disorders {}, troubles {}",
      options.seed, options.nodes, options.length.count() / 1000, tally.leases, tally.contended,
      tally.no_quorum, tally.losses, kills, stops, restarts, wipes, jumps, pauses, increments,
      fenced_refusals, unfenced_violations, overlaps.size(), disorders.size(), troubles.size());
}

}  // namespace fencepost::torture
