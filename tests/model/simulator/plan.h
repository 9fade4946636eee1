// What a seed says: the world, the work and the trouble.
#pragma once

#include <cstdint>
#include <string>

#include "consumer/flow/flow.h"
#include "locking/core/options.h"
#include "tests/model/simulator/timeline.h"

namespace fencepost::simulator {

inline constexpr char kPipeline[] = "sim";
inline constexpr char kCluster[] = "cluster";
inline constexpr char kTopic[] = "t";
inline constexpr int kMixes = 8;  // of faults
inline constexpr int kKinds = 4;  // of pipelines

struct Plan {
  std::uint64_t seed = 0;
  std::string mix;   // its name
  std::string kind;  // its name

  // The world.
  int nodes = 3;
  int workers = 2;
  int partitions = 2;
  bool store_exists = true;  // else the workers create it, and wait for its quarantine
  Nanos delay{0};            // one way, the usual
  int slow_calls = 0;        // of a thousand: slower than the node timeout
  int clock_ppm = 0;         // the most that a clock runs fast or slow

  // The work.
  int records = 100;
  int ids = 80;
  bool by_position = false;
  int conflicts = 0;  // of a thousand duplicates: with other content
  Nanos produce_for{0};
  int holes = 0;  // of a thousand records: followed by offsets that nobody will see

  locking::LockOptions lock;
  consumer::FlowOptions flow;
  Nanos revoke_drain{0};
  Nanos session{0};
  Nanos write_takes{0};  // at most
  Nanos transaction_timeout{0};
  int without_id = 0;          // of a thousand records: without an id
  int refused = 0;           // of a thousand records: the output does not take them
  Nanos handler_takes{0};    // at most, unless it hangs
  int handler_refusals = 0;  // of a thousand calls: it says that it would never help

  // What is told of freed locks (lock.wake_up); of a thousand messages.
  int wakes_lost = 0;
  int wakes_late = 0;
  int wakes_doubled = 0;
  Nanos calls{0};  // beside the flow, a worker's: the mean time between two; 0: none

  // The trouble; each 0 for never, else the mean time between two.
  Nanos faults_end{0};
  Nanos node_stops{0};  // a node is down, or frozen, for a while
  Nanos pauses{0};      // a worker is stalled, often past its ttl
  Nanos crashes{0};     // a worker dies, or leaves in order
  Nanos wipes{0};       // a node forgets
  Nanos jumps{0};       // a clock steps
  Nanos rebalances{0};
  consumer::OnUnavailable on_unavailable = consumer::OnUnavailable::kPause;

  int losses = 0;            // of a thousand calls: vanish, often with their connection
  int output_faults = 0;     // of a thousand transactions
  int table_faults = 0;      // of a thousand moments: the table refuses all, is locked or slow
  int commit_faults = 0;     // of a thousand offset commits
  int letter_faults = 0;     // of a thousand dead letters
  int aborts = 0;            // of a thousand transactions
  int handler_failures = 0;  // of a thousand calls: it may be tried again
  int handler_hangs = 0;     // of a thousand calls: longer than the ttl

  [[nodiscard]] bool Calm() const { return mix == "calm"; }
};

Plan MakePlan(std::uint64_t seed);

}  // namespace fencepost::simulator
