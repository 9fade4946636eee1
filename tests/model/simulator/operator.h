// The person who follows the last words of workers that have ended by themselves: stops all workers
// of the group, does what the words say, and starts them again. Until then whatever restarts
// workers does so.
//
// Lost commits: the group's offsets are set back to the lowest that any worker has named, never
// forward. An offset that is not in its log, or a log that is another one: it is set to where the
// words say. A ledger by position that knows another log: all of its partition is taken back.
#pragma once

#include <map>
#include <set>
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
  // Each worker once, as for a new release: a log that is another one is noticed then at the
  // latest.
  void RestartAll();
  [[nodiscard]] bool Expected() const;                        // there is something to be done
  [[nodiscard]] bool HoldsWorkers() const { return holds_; }  // none is started

 private:
  bool Read(const fencepost::Error& error, const By& by);
  bool ReadLostCommits(const std::string& hint);
  bool ReadOfLog(const fencepost::Error& error, const By& by);
  void StopAll();
  [[nodiscard]] bool Quiet() const;
  void Repair();
  struct ResetTo {
    bool to_earliest = true;     // else to the latest
    consumer::Offset below = 0;  // where the group's offset is below it
  };

  void SetBack();
  void Reset();
  void TakeBack();
  void Restart(int index);

  World& world_;
  bool expected_ = false;
  int to_restart_ = 0;
  bool holds_ = false;
  std::map<consumer::PartitionIndex, consumer::Offset> back_to_;
  std::map<consumer::PartitionIndex, ResetTo> resets_;
  std::set<consumer::PartitionIndex> to_forget_;
};

}  // namespace fencepost::simulator
