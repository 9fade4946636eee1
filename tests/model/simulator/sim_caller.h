// What users of the lock library do beside the flow, on the same locks: they ask for a few names
// in every way there is (tries, delays, a validity of their own), call attempts off at any moment,
// hold, extend by hand, and give back.
#pragma once

#include <cstdint>
#include <map>

#include "locking/core/lock/lock_core.h"
#include "tests/model/simulator/process.h"

namespace fencepost::simulator {

class SimWorker;
class World;

class SimCaller {
 public:
  SimCaller(World& world, SimWorker& worker);

  void Start();
  // Only takes notes: what follows from it happens later.
  void OnLockEvent(const locking::LockEvent& event);
  [[nodiscard]] bool Idle() const { return locks_.empty(); }

 private:
  void Ask();
  void HoldOrRelease(std::uint64_t cookie);

  World& world_;
  SimWorker& worker_;
  Process& process_;
  std::uint64_t last_;                              // above all cookies of the flow
  std::map<std::uint64_t, locking::LockId> locks_;  // asked for or held
};

}  // namespace fencepost::simulator
