// Healing: a node that was wiped, or came back with less than it had, is in quarantine for as long
// as a lease could last that it has forgotten. What it has forgotten is on the others. This
// copies it back and lifts the quarantine. The rules, and why they are enough: PROTOCOL.md, Healing
// (invariant 22).
//
// Sans-IO: Next() says what to do, the answer is handed in, and so on until kFinished or kFailed.
// The host asks over ONE connection a node, made before the first step and not made again: where
// one breaks, healing fails, and nothing was lifted. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "locking/base/error.h"
#include "locking/core/store/sentinel.h"
#include "locking/core/store/store.h"
#include "locking/core/unit_value.h"

namespace fencepost::locking {

// What the script `look` tells of one node, all at one moment.
struct NodeSight {
  struct Value {
    std::string raw;  // empty: absent
    Millis left{0};   // until the node forgets it
  };
  WallTime time;
  std::string sentinel;
  std::vector<Value> values;  // one a name asked for, in order
};

// A write to the healed node, done only where `expected` is still there (empty: absent), under
// the sentinel that was read, and while its quarantine lasts.
struct HealWrite {
  std::string name;
  std::string expected;
  std::string value;
  Millis left{0};  // the node forgets it after that
};

// Part of a scan. Names may come twice; the cursor "0" ends it.
struct HealPage {
  std::string cursor;
  std::vector<std::string> names;
};

struct HealRules {
  int nodes = 0;
  WallTime quarantine_until;  // of the healed node, by its own clock
  Millis max_skew{0};
};

// What the healed node must be given for one name, seen there as `own` at `own_time`, and before
// that on the other nodes as `others` (value i at times[i]). Nothing when it has all that it needs.
std::optional<HealWrite> PlanHeal(const std::string& name, std::span<const NodeSight::Value> others,
                                  std::span<const WallTime> times, const NodeSight::Value& own,
                                  WallTime own_time, const HealRules& rules);

// The holder of a name that is kept for either of two: nobody can free or extend it. It may be any
// nonce, so it counts for each when it is read back.
inline constexpr Nonce kHeldForAnyone{};

class Healing {
 public:
  struct Step {
    enum class Kind : std::uint8_t {
      kWait,      // for `wait`; then OnWaited
      kLook,      // at `names` on each of `nodes`; OnLook with one sight each, in their order
      kScan,      // `node` for names, from `cursor` on; OnScan
      kWrite,     // `writes` to the healed node; OnWritten with one answer a write
      kLift,      // compare-and-set of its sentinel; OnLifted with what is there now
      kFinished,  // the quarantine is lifted
      kFailed,    // `error`; nothing was lifted
    };
    Kind kind = Kind::kLook;
    Millis wait{0};
    NodeIndex node = 0;
    std::string cursor;
    std::vector<std::string> names;  // at most kMaxBatch
    // All but the healed one, at the same time; and then that one: by its clock as it is then, the
    // rest of a lease that was read before ends no sooner than where it was read.
    std::vector<NodeIndex> nodes;
    std::vector<HealWrite> writes;
    std::string sentinel;  // kWrite: of the healed node, as it was read
    SentinelWrite lift;
    Error error;
  };
  struct Counts {
    std::size_t seen = 0;     // names, once a node that has them
    std::size_t written = 0;  // names; not again where only the memory of one was made longer
    std::size_t done = 0;     // of the written
    std::size_t held = 0;
    std::size_t floors = 0;
    std::size_t kept_for_anyone = 0;
  };

  // `run_ids`: of the processes behind the connections, from INFO, one a node.
  // `first_node`: of the group (GroupSpot), for messages.
  Healing(NodeIndex healed, std::vector<std::string> run_ids, Millis max_skew,
          NodeIndex first_node = 0);

  [[nodiscard]] const Step& Next() const { return step_; }
  void OnWaited();
  void OnLook(std::vector<NodeSight> sights);
  void OnScan(HealPage page);
  void OnWritten(const std::vector<bool>& took_effect);
  void OnLifted(const std::optional<std::string>& current);
  void OnFailed(Error why);  // any step: a node does not answer, or refuses

  [[nodiscard]] const Counts& counts() const { return counts_; }
  [[nodiscard]] NodeIndex healed() const { return healed_; }

 private:
  [[nodiscard]] int count() const { return static_cast<int>(run_ids_.size()); }
  [[nodiscard]] std::optional<Error> Refusal(const std::vector<NodeSight>& sights);
  [[nodiscard]] std::optional<Error> Changed(const std::vector<NodeSight>& sights) const;
  void OnLookedAtAll(const std::vector<NodeSight>& sights);
  void Begin(const std::vector<NodeSight>& sights);
  void Look(std::vector<std::string> names);
  void ScanNext();
  void LookNext();
  void Plan(const std::vector<NodeSight>& sights);
  void Lift();
  void Fail(std::string code, std::string what, std::string hint);
  void Go(Step::Kind kind);

  const NodeIndex healed_;
  const NodeIndex first_node_;
  const std::vector<std::string> run_ids_;
  Step step_;
  Counts counts_;
  HealRules rules_;
  std::vector<NodeSight> others_;       // the healed one is still to be looked at
  std::vector<std::string> sentinels_;  // as first read; empty before
  WallTime readable_from_;              // by every node's clock
  bool begun_ = false;
  bool closing_ = false;  // all is copied; the last look is out
  NodeIndex scanned_ = 0;
  std::string cursor_ = "0";
  std::vector<std::string> pending_;  // names of the page, still to be looked at
};

}  // namespace fencepost::locking
