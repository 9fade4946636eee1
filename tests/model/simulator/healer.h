// Somebody who runs `locks heal` when a node is in quarantine: the shipped Healing over the
// simulated nodes, a step at a time, among everything else that goes on. Has chance of its own, so
// that a seed's other trouble stays as it is.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "locking/core/store/heal.h"
#include "tests/model/simulator/timeline.h"

namespace fencepost::simulator {

class World;
struct SimNode;

class Healer {
 public:
  explicit Healer(World& world);
  void Begin();

 private:
  void LookAround();
  [[nodiscard]] std::optional<int> Patient() const;
  void Start(int patient);
  void Go();
  void Act();
  void LookAt(std::size_t place);
  void Fail(const std::string& why);
  void Finish();
  [[nodiscard]] SimNode& NodeAt(int node) const;  // of the group that is healed
  // Its way is open, and it is the process that was connected to.
  [[nodiscard]] bool Reaches(int node) const;
  [[nodiscard]] Nanos Delay();
  [[nodiscard]] locking::HealPage Page(const locking::Healing::Step& step);

  World& world_;
  Random random_;
  std::unique_ptr<locking::Healing> healing_;
  int first_ = 0;  // node of the group that is healed
  std::vector<int> incarnations_;
  std::vector<locking::NodeSight> sights_;
  std::vector<std::size_t> order_;  // in which the nodes of a look are looked at
};

}  // namespace fencepost::simulator
