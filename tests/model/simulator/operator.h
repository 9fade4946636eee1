// The person who follows the last words of workers that have ended because their output lost
// commits: stops all workers of the group, sets its offsets back to the lowest that any of them has
// named, never forward, and starts them again. Until then whatever restarts workers does so.
#pragma once

#include <map>

#include "consumer/record/record.h"
#include "locking/base/error.h"

namespace fencepost::simulator {

class World;

class Operator {
 public:
  explicit Operator(World& world) : world_(world) {}

  void OnStopped(const fencepost::Error& error);
  [[nodiscard]] bool Expected() const { return expected_; }   // there is something to be done
  [[nodiscard]] bool HoldsWorkers() const { return holds_; }  // none is started

 private:
  void StopAll();
  void SetBack();

  World& world_;
  bool expected_ = false;
  bool holds_ = false;
  std::map<consumer::PartitionIndex, consumer::Offset> back_to_;
};

}  // namespace fencepost::simulator
