// What a seed says: the world, the work and the trouble. Most worlds are small: a few records, some
// seconds of trouble, in which a fault finds its moment as well as in a large one, many times as
// fast. One in forty is large. Those from kFirstLasting on have up to an hour of trouble, with the
// times that the program has when nobody sets them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "consumer/flow/flow.h"
#include "locking/core/options.h"
#include "tests/model/simulator/fault_kinds.h"
#include "tests/model/simulator/timeline.h"

namespace fencepost::simulator {

inline constexpr char kPipeline[] = "sim";
inline constexpr char kCluster[] = "cluster";
inline constexpr char kTopic[] = "t";
inline constexpr char kGroup[] = "group";
inline constexpr int kKinds = 4;  // of pipelines
inline constexpr std::uint64_t kFirstLasting = 1'000'000'000;

// How the table is just now.
enum class Mood : std::uint8_t { kUsual, kRefusesAll, kLocked, kSlow, kFull, kCount };

enum class Size : std::uint8_t { kSmall, kLarge, kLasting };

struct Plan {
  std::uint64_t seed = 0;
  std::string kind;  // its name
  Size size = Size::kSmall;
  FaultSet faults;  // that are on

  // The world.
  int nodes = 3;  // of the lock
  int workers = 2;
  int partitions = 2;
  bool store_exists = true;  // else the workers create it, and wait for its quarantine
  bool static_members = false;
  Nanos delay{0};     // one way, the usual
  int clock_ppm = 0;  // the most that a clock runs fast or slow

  // The work.
  int records = 100;
  int ids = 80;
  bool by_position = false;
  int conflicts = 0;  // of a thousand duplicates: with other content
  Nanos produce_for{0};
  bool filters = false;  // some records are left out (`when`)
  int holes = 0;         // of a thousand records: followed by offsets that nobody will see

  locking::LockOptions lock;
  consumer::FlowOptions flow;
  consumer::OnUnavailable on_unavailable = consumer::OnUnavailable::kPause;
  Nanos revoke_drain{0};
  Nanos session{0};
  Nanos restart_within{0};  // a worker that has ended
  Nanos handshake{0};       // with a lock node, at most
  Nanos write_takes{0};     // at most
  Nanos transaction_timeout{0};
  int without_id = 0;         // of a thousand records: without an id
  int refused = 0;            // of a thousand records: the output does not take them
  Nanos handler_takes{0};     // at most, unless it hangs
  int filtered = 0;           // of a thousand contents: the handler makes no row of them
  int handler_refusals = 0;   // of a thousand calls: it says that it would never help
  Nanos calls{0};             // beside the flow, a worker's: the mean time between two; 0: none
  Nanos call_waits{0};        // at most
  Nanos looks{0};             // how often somebody looks after it
  Nanos quiet{0};             // for how long nothing more may happen at the end
  Nanos comes_to_its_end{0};  // at most, once trouble and work have ended

  // The trouble (fault_kinds.cc): until then.
  Nanos faults_end{0};
  Nanos outage{0};  // at most: of a node, or the handler
  Nanos found{0};   // at most, where a node forgot: until its place in the store is known again

  // The mean time between two; 0: never.
  Nanos cuts{0};       // a node cannot be reached for a while
  Nanos freezes{0};    // a node stands still
  Nanos restarts{0};   // a node comes again with its data
  Nanos wipes{0};      // a node forgets
  Nanos unfit{0};      // a node is set up to evict what it has, but is not full
  Nanos evictions{0};  // … and is full
  Nanos replaced{0};   // a node is gone for good, and another host takes its place in the lists
  Nanos node_jumps{0};
  Nanos pauses{0};   // a worker is stalled, often past its ttl
  Nanos crashes{0};  // a worker dies
  Nanos leaves{0};   // a worker ends in order
  Nanos jumps{0};    // the wall clock of a worker steps
  Nanos boot_jumps{0};
  Nanos rebalances{0};
  Nanos letters_refused{0};
  Nanos replays{0};  // a person replays a dead letter
  Nanos handler_outages{0};
  Nanos cut_offs{0};   // one worker cannot reach the output, and perhaps Kafka, for a while
  Nanos failovers{0};  // the output goes back to an earlier moment, and all connections break
  Nanos releases{0};   // workers are started again, one by one, with another id_content
  Nanos deletions{0};  // the oldest records of a partition are deleted

  // Of a thousand.
  int losses = 0;  // calls: vanish, often with their connection
  int slow_calls = 0;
  int pieces = 0;
  int wakes_lost = 0;
  int wakes_late = 0;
  int wakes_doubled = 0;
  int crashes_at_actions = 0;  // before one, or behind it
  int output_faults = 0;       // transactions: without an answer
  int serializations = 0;
  std::array<int, static_cast<std::size_t>(Mood::kCount)> moods{};  // moments
  int commit_faults = 0;
  int offsets_lost = 0;  // assignments: before them all offsets of the group are forgotten
  int letter_faults = 0;
  int aborts = 0;
  int handler_failures = 0;  // calls: it may be tried again
  int handler_hangs = 0;     // calls: longer than the ttl

  std::optional<std::chrono::seconds> keep;  // ledger.keep

  int added = 0;  // partitions, later
  Nanos added_at{0};

  // Then the logs become others, from some offset on; 0: never.
  Nanos replaced_at{0};
  bool refilled_at_once = false;  // with all that is still to come
  bool offsets_go = false;        // those of the group, with the logs

  // From its sending until it happens, at most: four times what a worker waits for an answer.
  [[nodiscard]] Nanos LongestWrite() const { return 4 * (write_takes + Millis(200)); }
  [[nodiscard]] int AllPartitions() const { return partitions + added; }
  [[nodiscard]] bool Replaces() const { return replaced_at.count() > 0; }
  [[nodiscard]] bool Calm() const { return faults.none(); }
  [[nodiscard]] bool Has(Fault fault) const { return faults[static_cast<std::size_t>(fault)]; }
  void SwitchOff(Fault fault) {
    faults.reset(static_cast<std::size_t>(fault));
    KindOf(fault).off(*this);
  }
};

Plan MakePlan(std::uint64_t seed);

}  // namespace fencepost::simulator
