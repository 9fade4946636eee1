// The extensions of one lease, one round after another, and what they learn of it at the nodes. A
// plain value: replies in, pending / won / lost out. It reads no clock: the caller ignores a win
// that comes after the lease's own end (PROTOCOL.md, 4 and 6). One thread.
//
// A majority of extended nodes wins. Where a node has dropped the lease, another client may have
// had the name meanwhile: then only a majority of nodes that have kept it all along wins, since
// filling the nodes again must not bring the lease back (PROTOCOL.md, 8).
#pragma once

#include <optional>

#include "locking/core/lock/ballot.h"
#include "locking/core/observer.h"
#include "locking/core/ops.h"

namespace fencepost::locking {

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

}  // namespace fencepost::locking
