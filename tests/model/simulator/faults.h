// What goes wrong, and when. Within what the protocol promises to live with, except for the clock
// jumps of nodes.
#pragma once

#include <functional>

#include "tests/model/simulator/timeline.h"

namespace fencepost::simulator {

class Process;
class World;
struct SimNode;

class Faults {
 public:
  explicit Faults(World& world) : world_(world) {}
  void Begin();
  // The clocks of nodes step: another's lease may end early there (PROTOCOL.md, windows).
  [[nodiscard]] bool NodeClocksStep() const { return node_clocks_step_; }

 private:
  void Again(Nanos mean, std::function<void()> fault);
  void StopNode();
  void Thaw(SimNode& node);
  void Wipe();
  void PauseWorker();
  void EndWorker();
  void StepClock();
  void StepNodeClock(SimNode& node, Nanos offset);
  void Snapshot();
  [[nodiscard]] bool MayForget() const;
  void End();
  void Operator();

  World& world_;
  bool node_clocks_step_ = false;
};

}  // namespace fencepost::simulator
