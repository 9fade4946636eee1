// A worker's handler: something outside that takes its time, fails, hangs, and can be called off.
// What it promises the flow stands in consumer/handlers/runner.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "consumer/handlers/runner.h"
#include "tests/model/simulator/timeline.h"

namespace fencepost::simulator {

class SimWorker;
class World;

class SimHandler {
 public:
  struct Out {
    std::string source;
    consumer::AssignmentEpoch epoch = 0;
    std::string chain;  // calls of one never overlap; empty: they may
  };

  SimHandler(World& world, SimWorker& worker) : world_(world), worker_(worker) {}

  void Call(const consumer::HandlerCall& call);
  void Cancel(std::uint64_t id);
  // Calls that the flow has not heard the answer of.
  [[nodiscard]] const std::map<std::uint64_t, Out>& out() const { return out_; }
  [[nodiscard]] Out Describe(const consumer::HandlerCall& call) const;

 private:
  [[nodiscard]] consumer::HandlerResult Draw(const consumer::HandlerCall& call);
  void Answer(std::uint64_t id, consumer::HandlerResult result);

  World& world_;
  SimWorker& worker_;
  std::map<std::uint64_t, Out> out_;
};

}  // namespace fencepost::simulator
