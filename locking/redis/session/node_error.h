// What a node's error replies mean, and how a person can correct the cause. Pure functions; any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "locking/core/observer.h"
#include "locking/redis/node_unavailable.h"

namespace fencepost::locking {

enum class NodeErrorKind : std::uint8_t { kNoSentinel, kNoScript, kReplica, kOther };

struct NodeError {
  NodeErrorKind kind = NodeErrorKind::kOther;
  CommandError reason = CommandError::kOther;
  std::string hint;  // what to do; may be empty
  std::string text;  // as the node worded it, without what it repeats of the call: passwords, too
  UnavailableReason away =
      UnavailableReason::kOther;  // of a node that answers so while a connection is made
};

// `text` as the node worded it, without the leading '-'.
NodeError ReadNodeError(std::string_view text);

}  // namespace fencepost::locking
