// What goes wrong, and when. Within what the protocol promises to live with, except for the clock
// jumps of nodes.
#pragma once

#include <functional>
#include <string_view>

#include "tests/model/simulator/fault_kinds.h"
#include "tests/model/simulator/timeline.h"

namespace fencepost::simulator {

class Process;
class World;
struct SimNode;

class Faults {
 public:
  explicit Faults(World& world) : world_(world) {}
  void Begin();
  // For a while: every handler call fails; no letter is taken, by its topic's rights.
  [[nodiscard]] bool handler_out() const { return handler_out_; }
  [[nodiscard]] bool letters_refused() const { return letters_refused_; }

 private:
  void Again(Nanos mean, std::function<void()> fault);
  [[nodiscard]] int AnyPlace();
  [[nodiscard]] SimNode& AnyNode();
  [[nodiscard]] Process& AnyProcess();
  void CutOffNode();
  void FreezeNode();
  void Thaw(SimNode& node);
  void RestartNode();
  void WipeNode();
  void UnfitNode();
  void FillNode();
  void Evict(SimNode& node);
  void ReplaceNode();
  [[nodiscard]] bool Forget(SimNode& node, Fault fault);
  void PauseWorker();
  void CrashWorker();
  void StopWorker();
  [[nodiscard]] Nanos DrawOffset();
  void StepWallClock();
  void StepBootClock();
  void StepNodeClock(SimNode& node, Nanos offset);
  void BreakHandler();
  void RefuseLetters();
  void ForAWhile(bool& on, Fault fault, std::string_view begins, std::string_view ends);
  void FailOver();
  void CutOffWorker();
  void Release();
  void Snapshot();
  static std::uint32_t GenerationOf(const SimNode& node);
  [[nodiscard]] bool MayForget() const;
  void End();
  void Operator();

  World& world_;
  bool handler_out_ = false;
  bool letters_refused_ = false;
};

}  // namespace fencepost::simulator
