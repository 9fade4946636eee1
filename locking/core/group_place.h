// Node groups: independent lock stores over which names are spread, and the place of one of them.
// A name (the whole key) belongs to one group for as long as there are that many, in that order.
// Pure functions and values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "locking/base/stable_hash.h"
#include "locking/base/types.h"

namespace fencepost::locking {

inline constexpr int kMaxGroups = 8;
inline constexpr int kMaxNodesInAll = 26;  // of all groups: a node has a letter

// The group of a name, 0-based: the finalizer of SplitMix64 over the FNV-1a hash (64 bits) of the
// key's bytes, modulo the number of groups (PROTOCOL.md, Node groups).
constexpr int GroupOf(std::string_view key, int groups) {
  if (groups == 1) return 0;
  return static_cast<int>(Mix(HashOf(key)) % static_cast<std::uint64_t>(groups));
}

// Which of how many. What the list says, and what a sentinel says.
struct GroupPlace {
  int group = 0;  // 0-based
  int groups = 1;
  constexpr bool operator==(const GroupPlace&) const = default;
};
inline std::string PlaceText(GroupPlace place) {  // "group 2 of 4"
  return fmt::format("group {} of {}", place.group + 1, place.groups);
}

// One group in a list of several.
struct GroupSpot {
  GroupPlace place{};
  NodeIndex first_node = 0;  // of its nodes, counted through all groups: what letters begin at
};

}  // namespace fencepost::locking
