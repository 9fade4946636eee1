// One round of asking nodes for one lock with one (token, nonce): some at first, the rest where
// these cannot decide it. A plain value: replies in, a verdict out. It decides nothing about time:
// the caller checks the validity that is left of a win, and says when the first ones are late.
//
// Invariant: a node that may still be asked is as one that has not answered: it keeps the round
// open, and gives no vote.
#pragma once

#include <algorithm>
#include <array>
#include <optional>

#include "locking/core/lock/ballot.h"
#include "locking/core/observer.h"
#include "locking/core/ops.h"

namespace fencepost::locking {

enum class Verdict : std::uint8_t { kPending, kWon, kDone, kLost };

class AcquireRound {
 public:
  AcquireRound() = default;
  // `candidates`: the nodes that may be asked; the others count as no. `first`: those of them that
  // an acquire goes to at once.
  AcquireRound(int nodes, NodeSet candidates, NodeSet first, Token token)
      : nodes_(nodes),
        token_(token),
        ballot_(nodes, candidates),
        rest_(Without(candidates, first)) {}

  // The node's reply to the acquire. Pending until a majority granted, one said DONE, a majority is
  // held under one other token, or every candidate has been asked and has answered or timed out (so
  // that a DONE on a slow node is heard, and even splits are decided by the tokens rather than by
  // the network).
  Verdict OnReply(NodeIndex node, const Reply& reply);

  // While pending: those that were asked cannot decide it among themselves any more, neither for us
  // nor for one rival.
  [[nodiscard]] bool NeedsTheRest() const;
  // Every candidate is asked from here on. Returns those that were not.
  NodeSet AskTheRest();
  [[nodiscard]] NodeSet rest() const { return rest_; }  // not asked yet
  // Asked, and not answered.
  [[nodiscard]] NodeSet pending() const { return Without(ballot_.pending(), rest_); }

  // After kLost: nobody else has a majority, and no higher token than ours was seen: asking the
  // nodes in the way again can still win, since the others will abort (an even split resolves).
  [[nodiscard]] bool WorthAskingAgain() const;
  // The contended nodes, asked again: their answers count again.
  NodeSet AskAgain();

  // After kDone: the reply that said so.
  [[nodiscard]] const Reply& done() const { return *done_; }
  // The lowest floor that a majority's floors stay at or below: T must exceed it to be grantable.
  [[nodiscard]] Token NeededFloor() const;
  // The other token by which a majority holds the name, none of it in quarantine; 0 where none
  // does.
  [[nodiscard]] Token MajorityRival() const { return MajorityToken(rivals_, nodes_); }
  [[nodiscard]] Token floor_at(NodeIndex node) const {
    return floors_[static_cast<std::size_t>(node)];
  }
  // A majority refused the token for its distance from their clocks.
  [[nodiscard]] bool RefusedForClock() const { return IsMajority(RefusedForClockBy(), nodes_); }
  // At a majority the key holds something that is no lock.
  [[nodiscard]] bool Foreign() const { return IsMajority(Said(ReplyCode::kForeign), nodes_); }
  [[nodiscard]] RoundResult Result(Verdict verdict) const;
  // A node has answered, whatever it said.
  [[nodiscard]] bool Heard() const {
    const auto said = [](NodeSet nodes) { return nodes != 0; };
    return (ballot_.yes() | quarantined_) != 0 || std::ranges::any_of(said_, said);
  }
  // Why there was no quorum to ask, for results other than acquired, contended, done, stale,
  // refused, and where it is not Foreign().
  [[nodiscard]] QuorumFailure Failure() const;

 private:
  Verdict Decide() const;
  [[nodiscard]] NodeSet Said(ReplyCode code) const { return said_[static_cast<std::size_t>(code)]; }
  [[nodiscard]] NodeSet RefusedForClockBy() const {
    return Said(ReplyCode::kRefusedAhead) | Said(ReplyCode::kRefusedBehind);
  }

  int nodes_ = 0;
  Token token_;
  Ballot ballot_;
  NodeSet rest_ = 0;  // candidates that were not asked. Invariant: among ballot_.pending()
  std::array<NodeSet, kReplyCodes> said_{};  // by code: the nodes that said so, grants apart
  NodeSet quarantined_ = 0;                  // granted, but in quarantine
  std::optional<Reply> done_;
  NodeTokens rivals_{};  // who holds the name there; 0 where nobody does, or in quarantine
  NodeTokens floors_{};
};

}  // namespace fencepost::locking
