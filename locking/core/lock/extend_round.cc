#include "locking/core/lock/extend_round.h"

#include "locking/base/planted.h"

namespace fencepost::locking {

NodeSet ExtendRound::Begin(NodeSet open) {
  const NodeSet asked = open & holds_;
  open_ = asked != 0;
  ballot_ = Ballot(nodes_, asked);
  stolen_ = 0;
  rivals_ = {};
  return asked;
}

Tally ExtendRound::OnReply(NodeIndex node, const Reply& reply) {
  const NodeSet bit = Bit(node);
  switch (reply.code) {
    case ReplyCode::kStolen:
      if (!reply.quarantined) rivals_[static_cast<std::size_t>(node)] = reply.token;
      [[fallthrough]];
    case ReplyCode::kDone:
      stolen_ |= bit;
      holds_ = Without(holds_, bit);
      break;
    case ReplyCode::kExpired:
      if (!reply.quarantined) forgot_ |= bit;
      [[fallthrough]];
    case ReplyCode::kNoSentinel:
      seen_wiped_ = true;
      holds_ = Without(holds_, bit);
      break;
    default:
      break;
  }
  if (!open_) return Tally::kPending;
  ballot_.Vote(node, reply.code == ReplyCode::kExtended && !reply.quarantined);
  const Tally tally = Decide();
  open_ = tally == Tally::kPending;
  return tally;
}

void ExtendRound::OnFilled(NodeIndex node) {
  holds_ |= Bit(node);
  filled_ |= Bit(node);
}

void ExtendRound::OnContended(NodeIndex node, const Reply& reply) {
  if (reply.quarantined) return;
  rivals_[static_cast<std::size_t>(node)] = reply.token;
  stolen_ |= Bit(node);
}

void ExtendRound::Accept() {
  seen_wiped_ = false;
  forgot_ = filled_ = 0;
}

bool ExtendRound::Won() const {
  if (ballot_.Result() != Tally::kWon) return false;
  return forgot_ == 0 || Planted("filled_lease_comes_back") ||
         IsMajority(Without(ballot_.yes(), filled_), nodes_);
}

Tally ExtendRound::Decide() const {
  if (Won()) return Tally::kWon;
  return ballot_.pending() == 0 ? Tally::kLost : Tally::kPending;
}

std::optional<LossReason> ExtendRound::Loss() const {
  // No majority is left that could have kept it.
  if (Count(stolen_) > nodes_ - Quorum(nodes_)) return LossReason::kStolen;
  // Nodes that count have dropped it, and no majority has kept it all along. Where a node was
  // wiped, its quarantine keeps others out, and the lease goes on until its own end.
  const bool forgotten = forgot_ != 0 && !IsMajority(Without(holds_, filled_), nodes_);
  return forgotten ? std::optional(LossReason::kNodeWiped) : std::nullopt;
}

}  // namespace fencepost::locking
