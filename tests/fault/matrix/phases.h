// What a worker is at, seen from outside: by the bytes that it sends, which are then held until a
// fault has begun, or by what was just done to it.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "tests/fault/matrix/trial.h"

namespace fencepost::matrix {

enum class Phase : std::uint8_t {
  kAcquiring,    // its acquire is on its way to a lock node
  kHandling,     // the handler was called, its answer is on its way
  kWriting,      // its transaction is on its way to the database, or between two effects, or the
                 // answer to COMMIT back; or the end of its transaction to Kafka
  kCommitting,   // its offsets are on their way to Kafka
  kReleasing,    // a lock that it gives back is on its way to a node
  kRebalancing,  // its JoinGroup is on its way to Kafka, after the group was emptied
  kDraining,     // it was told to stop while a call of the handler was out
  kStarting,     // it loads its scripts on a lock node
};

inline constexpr std::array kPhaseNames = {"acquiring", "handling",    "writing",  "committing",
                                           "releasing", "rebalancing", "draining", "starting"};
inline constexpr std::string_view NameOf(Phase phase) {
  return kPhaseNames.at(static_cast<std::size_t>(phase));
}

class PhaseWatch {
 public:
  PhaseWatch(System& system, Trial& trial, Phase phase, std::uint64_t seed);
  ~PhaseWatch();  // releases
  PhaseWatch(const PhaseWatch&) = delete;
  PhaseWatch& operator=(const PhaseWatch&) = delete;

  // Feeds until a worker is in the phase and held there. False when none was within the limit.
  [[nodiscard]] bool Await(testing::Deadline limit);
  void Release();

  [[nodiscard]] testing::WorkerProcess* worker() const { return worker_; }
  [[nodiscard]] int node() const;  // where it was seen, else -1

 private:
  struct State;

  void WatchProxies();
  void Provoke();
  bool Identify();
  bool FindWriter();
  testing::TcpProxy* ReceiverProxy();

  System& system_;
  Trial& trial_;
  const Phase phase_;
  const std::uint64_t seed_;
  std::shared_ptr<State> state_;
  std::unique_ptr<testing::TableLock> lock_;  // of a table that is written
  testing::WorkerProcess* worker_ = nullptr;
};

}  // namespace fencepost::matrix
