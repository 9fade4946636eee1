// Which kinds of faults have struck while a record or a worker was in which phase: a fault that
// never meets a phase shows nothing about it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "tests/model/simulator/fault_kinds.h"

namespace fencepost::simulator {

class SimWorker;
class World;

enum class Phase : std::uint8_t {
  kStarting,     // a worker that has not been assigned anything yet
  kAcquiring,    // a lock is asked for
  kHandling,     // looked up, or at the handler
  kWriting,      // at the output or the dead letter publisher
  kCommitting,   // an offset is on its way
  kReleasing,    // a lock is given back, or a mark is out
  kRebalancing,  // a worker waits for its assignment
  kDraining,
  kCount
};
inline constexpr auto kPhases = static_cast<std::size_t>(Phase::kCount);
std::string_view NameOf(Phase phase);

// What happened, and how often.
using Counts = std::map<std::string, int, std::less<>>;

class Coverage {
 public:
  void Strike(World& world, Fault fault);
  // Adds them, by Key.
  void AddTo(Counts& counts) const;

 private:
  std::array<std::array<int, kPhases>, kFaults> struck_{};
};

inline constexpr std::string_view kStruck = "struck: ";
std::string Key(Fault fault, Phase phase);  // begins with kStruck
// Faults down, phases across.
std::string Table(const std::map<std::string, std::int64_t>& counts);

}  // namespace fencepost::simulator
