// What a round of asking nodes comes to: acquiring a name; extending a lease, releasing it, marking
// its name DONE. Plain values: replies in, a verdict out. They read no clock. One thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "locking/base/types.h"
#include "locking/core/observer.h"
#include "locking/core/ops.h"

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

// Votes with three answers. Shaped after etcd raft's quorum package: the count is of the configured
// nodes, however many are reachable.
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

enum class Verdict : std::uint8_t { kPending, kWon, kDone, kLost };

// One round of asking nodes for one lock with one (token, nonce): some at first, the rest where
// these cannot decide it. It decides nothing about time: the caller checks the validity that is
// left of a win, and says when the first ones are late.
//
// Invariant: a node that may still be asked is as one that has not answered: it keeps the round
// open, and gives no vote.
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

// The extensions of one lease, one round after another, and what they learn of it at the nodes. The
// caller ignores a win that comes after the lease's own end (PROTOCOL.md, 4 and 6).
//
// A majority of extended nodes wins. Where a node has dropped the lease, another client may have
// had the name meanwhile: then only a majority of nodes that have kept it all along wins, since
// filling the nodes again must not bring the lease back (PROTOCOL.md, 8).
class ExtendRound {
 public:
  ExtendRound() = default;
  // Of a lease that `granted` gave; no round is out.
  ExtendRound(int nodes, NodeSet granted) : nodes_(nodes), holds_(granted) {}

  // Begins a round and returns the nodes that an extend goes to: those of `open` that hold the
  // lease; the others count as no. Where there is none, the round is lost, and there is no reply to
  // say so.
  NodeSet Begin(NodeSet open);
  // The reply to an extend of the last round. Pending until a majority extended it, or every node
  // that was asked has answered or timed out; what comes later is only learnt from.
  Tally OnReply(NodeIndex node, const Reply& reply);
  // The win came in time: what was missing before it no longer matters.
  void Accept();

  void OnGranted(NodeIndex node) { holds_ |= Bit(node); }  // late, by the acquire round
  void OnFilled(NodeIndex node);
  // A fill of the last round found the name held by another.
  void OnContended(NodeIndex node, const Reply& reply);

  // A round is out.
  [[nodiscard]] bool open() const { return open_; }
  // An extension since the last win found a node without the lease.
  [[nodiscard]] bool SeenWiped() const { return seen_wiped_; }
  // After kLost: why the lease is over; nothing where it goes on to its own end, and may be
  // extended again.
  [[nodiscard]] std::optional<LossReason> Loss() const;
  // The other token by which a majority holds the name, none of it in quarantine; 0 where none
  // does.
  [[nodiscard]] Token MajorityRival() const { return MajorityToken(rivals_, nodes_); }

 private:
  [[nodiscard]] Tally Decide() const;
  [[nodiscard]] bool Won() const;

  int nodes_ = 0;
  // --- of the lease ---
  NodeSet holds_ = 0;   // nodes known to hold it
  NodeSet filled_ = 0;  // filled since the last win. Invariant: none of them kept it all along
  NodeSet forgot_ = 0;  // count, and were found without it since the last win
  bool seen_wiped_ = false;
  // --- of the round ---
  bool open_ = false;    // Invariant: false once a verdict was given
  Ballot ballot_;        // yes: extended, and not in quarantine
  NodeSet stolen_ = 0;   // another's, by what an extension or a fill of this round found
  NodeTokens rivals_{};  // who holds it there; 0 where nobody does, or in quarantine
};

class ReleaseRound {
 public:
  ReleaseRound() = default;
  // `asked`: the nodes that a release goes to; the others count as no.
  ReleaseRound(int nodes, NodeSet asked) : nodes_(nodes), ballot_(nodes, asked) {}

  void OnReply(NodeIndex node, const Reply& reply);
  // The release could not be sent after all.
  void OnUnreachable(NodeIndex node) { ballot_.No(node); }

  // Won as soon as a majority freed it, lost when every node that was asked has answered or timed
  // out: a slow node does not delay the answer, and what the others say is heard.
  [[nodiscard]] Tally Result() const;
  // Once it is won or lost: how the release went. `expired`: the lease's own end has passed.
  [[nodiscard]] ReleaseOutcome Outcome(bool expired) const;

 private:
  int nodes_ = 0;
  Ballot ballot_;  // yes: freed
  // Invariant: disjoint, and among ballot_.no().
  NodeSet stolen_ = 0;
  NodeSet gone_ = 0;
};

class MarkRound {
 public:
  MarkRound() = default;
  // `asked`: the nodes that a mark goes to; the others count as no.
  MarkRound(int nodes, NodeSet asked) : nodes_(nodes), ballot_(nodes, asked) {}

  // Won or lost once, as soon as it is known; pending before and after. A conflict is a mark, too:
  // the name is DONE there, by other content, and remains so.
  Tally OnReply(NodeIndex node, const Reply& reply);
  // Every node that was asked has answered or timed out.
  [[nodiscard]] bool Complete() const { return ballot_.pending() == 0; }
  // A majority had marked it after the caller's lease had ended there.
  [[nodiscard]] bool Late() const { return IsMajority(late_, nodes_); }

 private:
  int nodes_ = 0;
  Ballot ballot_;     // yes: DONE there
  NodeSet late_ = 0;  // Invariant: among ballot_.yes()
  bool decided_ = false;
};

}  // namespace fencepost::locking
