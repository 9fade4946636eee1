#include "locking/core/lock/end_rounds.h"

#include "locking/base/planted.h"

namespace fencepost::locking {

void ReleaseRound::OnReply(NodeIndex node, const Reply& reply) {
  if (reply.code == ReplyCode::kStolen) stolen_ |= Bit(node);
  if (reply.code == ReplyCode::kExpired) gone_ |= Bit(node);
  const bool freed = Planted("release_counts_a_rivals_answer") ? NodeAnswered(reply.code)
                                                               : reply.code == ReplyCode::kFreed;
  ballot_.Vote(node, freed);
}

Tally ReleaseRound::Result() const {
  if (ballot_.Result() == Tally::kWon) return Tally::kWon;
  return ballot_.pending() == 0 ? Tally::kLost : Tally::kPending;
}

ReleaseOutcome ReleaseRound::Outcome(bool expired) const {
  if (ballot_.Result() == Tally::kWon) return ReleaseOutcome::kReleased;
  if (stolen_ != 0 && IsMajority(stolen_ | gone_, nodes_)) return ReleaseOutcome::kStolen;
  if (expired || IsMajority(gone_, nodes_)) return ReleaseOutcome::kExpired;
  return ReleaseOutcome::kUnknown;
}

Tally MarkRound::OnReply(NodeIndex node, const Reply& reply) {
  if (reply.code == ReplyCode::kMarkedLate) late_ |= Bit(node);
  ballot_.Vote(node, NodeAnswered(reply.code));
  if (decided_) return Tally::kPending;
  const Tally tally = ballot_.Result();
  decided_ = tally != Tally::kPending;
  return tally;
}

}  // namespace fencepost::locking
