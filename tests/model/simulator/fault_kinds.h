// What can go wrong, kind by kind. A seed switches a random subset of them on (swarm testing:
// Groce et al., ISSTA 2012), each with a rate of its own; whoever looks for the cause of a failure
// switches them off again, one by one.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tests/model/simulator/timeline.h"

namespace fencepost::simulator {

struct Plan;

enum class Fault : std::uint8_t {
  // The way to the lock nodes, and the nodes.
  kLosses,
  kSlowCalls,
  kPieces,
  kCuts,
  kFreezes,
  kRestarts,
  kWipes,
  kUnfit,
  kEvictions,
  kReplaced,
  kNodeClocks,
  kWakes,
  // Workers.
  kPauses,
  kCrashes,
  kCrashesAtActions,
  kLeaves,
  kWorkerClocks,
  kBootClocks,
  // Kafka.
  kRebalances,
  kCommits,
  kAborts,
  kPartitionsAdded,
  kOffsetsLost,
  kLetters,
  kLettersRefused,
  kReplays,
  // The handler.
  kHandlerFailures,
  kHandlerHangs,
  kHandlerOutages,
  // The output.
  kUnanswered,
  kConflicts,
  kTableRefuses,
  kTableLocked,
  kTableSlow,
  kTableFull,
  kFailovers,
  kPruned,
  kCutOff,
  // The logs of Kafka.
  kRetention,
  kTopicRemade,
  kTailLost,
  // A release.
  kContentRule,
  kCount
};
inline constexpr auto kFaults = static_cast<std::size_t>(Fault::kCount);
using FaultSet = std::bitset<kFaults>;

struct FaultKind {
  std::string_view name;
  void (*on)(Plan&, Random&);  // draws its rate
  void (*off)(Plan&);          // as if it had not been drawn
};
const FaultKind& KindOf(Fault fault);

}  // namespace fencepost::simulator
