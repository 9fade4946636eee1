// The person who follows the last words of workers that have ended by themselves: stops all workers
// of the group, does what the words say, and starts them again. Until then whatever restarts
// workers does so.
//
// Lost commits: the group's offsets are set back to the lowest that any worker has named, never
// forward. An offset that is not in its log: it is set to where the words say.
#pragma once

#include <map>
#include <string>

#include "consumer/record/record.h"
#include "locking/base/error.h"
#include "tests/model/simulator/effects.h"

namespace fencepost::simulator {

class World;

class Operator {
 public:
  explicit Operator(World& world) : world_(world) {}

  void OnStopped(const fencepost::Error& error, const By& by);
  [[nodiscard]] bool Expected() const { return expected_; }   // there is something to be done
  [[nodiscard]] bool HoldsWorkers() const { return holds_; }  // none is started

 private:
  bool Read(const fencepost::Error& error, const By& by);
  bool ReadLostCommits(const std::string& hint);
  bool ReadOutOfRange(const std::string& hint, const By& by);
  void StopAll();
  void SetOffsets();
  void SetBack();
  void Reset();

  World& world_;
  bool expected_ = false;
  bool holds_ = false;
  std::map<consumer::PartitionIndex, consumer::Offset> back_to_;
  std::map<consumer::PartitionIndex, bool> reset_;  // to the earliest, else to the latest
};

}  // namespace fencepost::simulator
