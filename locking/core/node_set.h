// A set of nodes, one bit each, and what makes a majority of the configured ones. Plain values.
#pragma once

#include <bit>
#include <cstdint>

#include "locking/base/types.h"

namespace fencepost::locking {

using NodeSet = std::uint8_t;
constexpr NodeSet Bit(NodeIndex node) { return static_cast<NodeSet>(1u << node); }
constexpr NodeSet AllNodes(int nodes) { return static_cast<NodeSet>((1u << nodes) - 1); }
constexpr NodeSet Without(NodeSet set, NodeSet less) { return static_cast<NodeSet>(set & ~less); }
constexpr int Count(NodeSet set) { return std::popcount(set); }

// Whether `set` is a majority of the configured nodes.
constexpr bool IsMajority(NodeSet set, int nodes) { return Count(set) >= Quorum(nodes); }

}  // namespace fencepost::locking
