// Counting among N nodes: votes with three answers (pending, won, lost), and who holds a majority.
// Plain values. Shaped after etcd raft's quorum package: the count is of the configured nodes,
// however many are reachable.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "locking/base/types.h"
#include "locking/core/node_set.h"

namespace fencepost::locking {

// A token for each node; 0 where there is none.
using NodeTokens = std::array<Token, kMaxNodes>;

// The one token at a majority of the nodes; 0 where none does.
inline Token MajorityToken(const NodeTokens& tokens, int nodes) {
  const auto end = tokens.begin() + nodes;
  for (auto token = tokens.begin(); token != end; ++token) {
    if (*token && std::count(token, end, *token) >= Quorum(nodes)) return *token;
  }
  return Token();
}

enum class Tally : std::uint8_t { kPending, kWon, kLost };

class Ballot {
 public:
  Ballot() = default;
  explicit Ballot(int nodes) : nodes_(static_cast<std::uint8_t>(nodes)) {}
  // The nodes that are not asked count as no.
  Ballot(int nodes, NodeSet asked)
      : nodes_(static_cast<std::uint8_t>(nodes)), no_(Without(AllNodes(nodes), asked)) {}

  // A later answer of a node replaces its earlier one.
  void Yes(NodeIndex node) { yes_ |= Bit(node), no_ &= static_cast<NodeSet>(~Bit(node)); }
  void No(NodeIndex node) { no_ |= Bit(node), yes_ &= static_cast<NodeSet>(~Bit(node)); }
  void Vote(NodeIndex node, bool yes) { yes ? Yes(node) : No(node); }
  void Reopen(NodeIndex node) {
    yes_ &= static_cast<NodeSet>(~Bit(node));
    no_ &= static_cast<NodeSet>(~Bit(node));
  }

  [[nodiscard]] NodeSet yes() const { return yes_; }
  [[nodiscard]] NodeSet no() const { return no_; }
  [[nodiscard]] NodeSet pending() const {
    return static_cast<NodeSet>(AllNodes(nodes_) & ~(yes_ | no_));
  }
  [[nodiscard]] Tally Result() const {
    if (IsMajority(yes_, nodes_)) return Tally::kWon;
    return IsMajority(yes_ | pending(), nodes_) ? Tally::kPending : Tally::kLost;
  }

 private:
  std::uint8_t nodes_ = 0;
  NodeSet yes_ = 0;
  NodeSet no_ = 0;
};

}  // namespace fencepost::locking
