// A lock node as a Store sees it: what a probe tells, and the compare-and-set of its sentinel.
// And what a node tells that is a member of a store.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "locking/core/store/sentinel.h"
#include "locking/core/store/store.h"

namespace fencepost::locking {

inline Sentinel CompleteSentinel(std::string run_id, int index, int nodes, Millis max_ttl) {
  return {.complete = true,
          .store_id = std::string(kStoreIdSize, 'a'),
          .index = index,
          .nodes = nodes,
          .run_id = std::move(run_id),
          .max_ttl = max_ttl};
}

// Of a call that took no time.
inline NodeInfo MemberInfo(std::string run_id, std::optional<std::string> sentinel, Now now) {
  return {.run_id = std::move(run_id),
          .maxmemory_policy = "noeviction",
          .role = "master",
          .sentinel = std::move(sentinel),
          .call = {now.boot, now.boot, now.wall}};
}

struct SentinelNode {
  std::string run_id;
  std::string policy = "noeviction";
  std::string role = "master";
  std::string mode = "standalone";
  std::optional<std::string> sentinel;

  // At this time of its own clock. True: it was written.
  bool Write(const SentinelWrite& write, WallTime time) {
    if (sentinel != write.expected) return false;
    sentinel = write.replacement;
    if (write.quarantine_for) {
      const Millis until = (time + *write.quarantine_for).time_since_epoch();
      sentinel->replace(kSentinelQuarantineAt, 13, fmt::format("{:013}", until.count()));
    }
    return true;
  }
  void Describe(WallTime time, NodeInfo& info) const {
    info.run_id = run_id;
    info.maxmemory_policy = policy;
    info.role = role;
    info.mode = mode;
    info.sentinel = sentinel;
    info.call.node_time = time;
  }
};

}  // namespace fencepost::locking
