#include "tests/model/simulator/coverage.h"

#include <bitset>

#include <fmt/format.h>

#include "tests/model/simulator/sim_worker.h"
#include "tests/model/simulator/world.h"

namespace fencepost::simulator {
namespace {

using Phases = std::bitset<kPhases>;

constexpr std::array<std::string_view, kPhases> kNames = {"starting",    "acquiring",  "handling",
                                                          "writing",     "committing", "releasing",
                                                          "rebalancing", "draining"};

Phase PhaseOf(consumer::Stage stage) {
  using enum consumer::Stage;
  switch (stage) {
    case kLookup:
    case kWaiting:
    case kHandling:
    case kRetrying:
    case kHandled:
      return Phase::kHandling;
    case kInDoubt:
    case kReady:
    case kWriting:
    case kPublishingDeadLetter:
      return Phase::kWriting;
    default:
      return Phase::kAcquiring;
  }
}

void AddPhases(const SimWorker& worker, Phases& phases) {
  const auto set = [&phases](Phase phase) { phases.set(static_cast<std::size_t>(phase)); };
  if (const auto phase = worker.consumer().PhaseNow()) set(*phase);
  if (worker.consumer().Committing()) set(Phase::kCommitting);
  if (worker.Releasing()) set(Phase::kReleasing);
  worker.flow().ForEachRecord([&](const consumer::InFlight& in) {
    if (in.stage() == consumer::Stage::kLocking || PhaseOf(in.stage()) != Phase::kAcquiring) {
      set(PhaseOf(in.stage()));
    }
  });
}

}  // namespace

std::string_view NameOf(Phase phase) { return kNames[static_cast<std::size_t>(phase)]; }

void Coverage::Strike(World& world, Fault fault) {
  Phases phases;
  for (int i = 0; i < world.plan.workers; ++i) {
    const SimWorker* const worker = world.worker(i);
    if (worker != nullptr) AddPhases(*worker, phases);
  }
  if (world.broker.AnyTransactionOpen()) phases.set(static_cast<std::size_t>(Phase::kCommitting));
  auto& row = struck_[static_cast<std::size_t>(fault)];
  for (std::size_t i = 0; i < kPhases; ++i) row[i] += phases[i] ? 1 : 0;
}

void Coverage::AddTo(Counts& counts) const {
  for (std::size_t fault = 0; fault < kFaults; ++fault) {
    for (std::size_t phase = 0; phase < kPhases; ++phase) {
      const int count = struck_[fault][phase];
      if (count > 0) counts[Key(static_cast<Fault>(fault), static_cast<Phase>(phase))] += count;
    }
  }
}

std::string Key(Fault fault, Phase phase) {
  return fmt::format("{}{} while {}", kStruck, KindOf(fault).name, NameOf(phase));
}

std::string Table(const std::map<std::string, std::int64_t>& counts) {
  std::string text = fmt::format("{:32}", "");
  for (const std::string_view name : kNames) text += fmt::format("{:>12}", name);
  for (std::size_t fault = 0; fault < kFaults; ++fault) {
    text += fmt::format("\n{:32}", KindOf(static_cast<Fault>(fault)).name);
    for (std::size_t phase = 0; phase < kPhases; ++phase) {
      const auto found = counts.find(Key(static_cast<Fault>(fault), static_cast<Phase>(phase)));
      text += fmt::format("{:>12}", found == counts.end() ? 0 : found->second);
    }
  }
  return text + "\n";
}

}  // namespace fencepost::simulator
