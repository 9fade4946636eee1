// What a node's error replies mean, and how a person can correct the cause. Pure functions; any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "locking/core/observer.h"
#include "locking/redis/node_unavailable.h"

namespace fencepost::locking {

enum class NodeErrorKind : std::uint8_t { kNoSentinel, kNoScript, kNotPrimary, kOther };

struct NodeError {
  NodeErrorKind kind = NodeErrorKind::kOther;
  CommandError reason = CommandError::kOther;
  std::string hint;  // what to do; may be empty
  // As the node worded it, without what it repeats of the call: passwords, too. Fit to print.
  std::string text;
  UnavailableReason away =
      UnavailableReason::kOther;  // of a node that answers so while a connection is made
};

// What a node sent, on one line: at most 300 characters of ASCII, others as '?'.
std::string ShownOfNode(std::string_view text);

// `text` as the node worded it, without the leading '-'.
NodeError ReadNodeError(std::string_view text);

}  // namespace fencepost::locking
