#include "tests/model/simulator/shrink.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "tests/model/simulator/world.h"

namespace fencepost::simulator {
namespace {

constexpr int kMostRuns = 500;

class Shrinking {
 public:
  Shrinking(Plan plan, const std::string& invariant)
      : plan_(std::move(plan)), invariant_(invariant) {}

  Plan Run() {
    bool smaller = true;
    while (smaller && runs_ < kMostRuns) {
      smaller = false;
      for (std::size_t i = 0; i < kFaults; ++i) {
        const auto fault = static_cast<Fault>(i);
        if (plan_.Has(fault)) smaller |= Try([fault](Plan& plan) { plan.SwitchOff(fault); });
      }
      smaller |= Lower(&Plan::records, 1);
      smaller |= Lower(&Plan::ids, 1);
      smaller |= Lower(&Plan::workers, 1);
      smaller |= Lower(&Plan::partitions, 1);
      for (int Plan::*const rate : {&Plan::holes, &Plan::conflicts, &Plan::without_id,
                                    &Plan::refused, &Plan::handler_refusals, &Plan::clock_ppm}) {
        smaller |= Lower(rate, 0);
      }
      if (plan_.calls.count() > 0) smaller |= Try([](Plan& plan) { plan.calls = Nanos(0); });
      smaller |= Try([](Plan& plan) { plan.faults_end = plan.faults_end * 2 / 3; });
    }
    return plan_;
  }

 private:
  // To the least, else to half of it, else by one.
  bool Lower(int Plan::*field, int least) {
    const int now = plan_.*field;
    for (const int to : {least, (now + least) / 2, now - 1}) {
      if (to < least || to >= now) continue;
      if (Try([&](Plan& plan) { plan.*field = to; })) return true;
    }
    return false;
  }

  template <typename Change>
  bool Try(Change change) {
    if (++runs_ > kMostRuns) return false;
    Plan smaller = plan_;
    change(smaller);
    smaller.ids = std::min(smaller.ids, smaller.records);
    if (smaller.Replaces() && smaller.faults_end < smaller.produce_for) return false;
    World world(smaller, false);
    const auto violation = world.Run();
    if (!violation || violation->invariant != invariant_) return false;
    plan_ = std::move(smaller);
    return true;
  }

  Plan plan_;
  const std::string& invariant_;
  int runs_ = 0;
};

}  // namespace

Plan Shrink(Plan plan, const std::string& invariant) {
  return Shrinking(std::move(plan), invariant).Run();
}

std::string Describe(const Plan& plan) {
  std::string text =
      fmt::format("{} records, {} ids, {} partitions, {} workers, {} lock nodes", plan.records,
                  plan.ids, plan.AllPartitions(), plan.workers, plan.nodes);
  for (std::size_t i = 0; i < kFaults; ++i) {
    const auto fault = static_cast<Fault>(i);
    if (plan.Has(fault)) text += fmt::format("; {}", KindOf(fault).name);
  }
  return text;
}

}  // namespace fencepost::simulator
