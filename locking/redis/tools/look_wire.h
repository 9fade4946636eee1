// The call of the script `look` (locking/core/scripts), and its answer. Pure functions; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "locking/base/types.h"

namespace fencepost::locking {

// What one node knows of some names, all at one moment.
struct NodeSight {
  struct Value {
    std::string raw;  // empty: absent
    Millis left{0};   // until the node forgets it
  };
  WallTime time;
  std::string sentinel;
  std::vector<Value> values;  // one a name asked for, in order
};

// Appends the RESP command that looks at `names`: whole keys, at most kMaxBatch, or none.
void FormatLook(std::span<const std::string> names, std::string& out);
// Error: the text is not what the script says.
tl::expected<NodeSight, std::string> ParseLook(std::string_view payload, std::size_t names);

}  // namespace fencepost::locking
