// How a lease ends: one round of releasing it, or of marking its name DONE. Plain values: replies
// in, pending / won / lost out. They read no clock. One thread.
#pragma once

#include "locking/core/lock/ballot.h"
#include "locking/core/observer.h"
#include "locking/core/ops.h"

namespace fencepost::locking {

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
