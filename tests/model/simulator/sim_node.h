// One lock node of the simulated world: the memory and rules of NodeModel, and what can befall it.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/model/simulator/timeline.h"
#include "tests/support/node_model.h"

namespace fencepost::simulator {

// The wall clock at virtual time 0.
inline constexpr locking::WallTime kStart{Millis(1'800'000'000'000)};

// By how much a clock is off that runs fast (or slow) by `ppm` for ten seconds, then is slewed back
// for ten: rates differ, but no clock leaves the others for good.
constexpr Nanos Slew(Nanos now, int ppm) {
  constexpr Nanos kPeriod = std::chrono::seconds(20);
  const Nanos phase = now % kPeriod;
  return std::min(phase, kPeriod - phase) / 1'000'000 * ppm;
}

// Who listens to which name: worker and its life. In order, so that a seed is the whole run.
using Subscriptions = std::map<std::string, std::set<std::pair<int, int>>, std::less<>>;

struct SimNode {
  SimNode(int node_index, std::string run_id) : index(node_index), model(std::move(run_id)) {}

  int index;
  locking::NodeModel model;
  std::unique_ptr<locking::NodeModel> snapshot;  // what an append-only file may bring back
  bool up = true;
  bool frozen = false;
  bool gone = false;                           // for good: another has its place
  bool fit = true;                             // else it is set up to evict
  int incarnation = 0;                         // connections belong to one
  int ppm = 0;                                 // how fast its clock runs, by Slew
  Nanos offset{0};                             // of its clock
  Nanos forgot_at{-1};                         // when it last forgot, or its clock last stepped
  std::vector<std::function<void()>> backlog;  // calls that came while it was frozen
  Subscriptions subscriptions;

  [[nodiscard]] locking::WallTime Wall(Nanos now) const {
    return kStart + std::chrono::floor<Millis>(now + Slew(now, ppm) + offset);
  }
  // When its clock shows this time.
  [[nodiscard]] Nanos TrueTime(locking::WallTime wall) const {
    const Nanos shown = Nanos(wall - kStart) - offset;
    return shown - Slew(shown, ppm);
  }
};

}  // namespace fencepost::simulator
