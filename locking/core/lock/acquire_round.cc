#include "locking/core/lock/acquire_round.h"

#include <algorithm>

#include "locking/base/planted.h"

namespace fencepost::locking {

Verdict AcquireRound::OnReply(NodeIndex node, const Reply& reply) {
  const auto at = static_cast<std::size_t>(node);
  const NodeSet bit = Bit(node);
  const auto refuse = [&](NodeSet& why) {
    why |= bit;
    ballot_.No(node);
  };
  switch (reply.code) {
    case ReplyCode::kGranted:
    case ReplyCode::kGrantedTakeover:
      if (reply.quarantined) {
        quarantined_ |= bit;
        ballot_.No(node);
      } else {
        ballot_.Yes(node);
        if (Planted("one_node_votes_twice")) ballot_.Yes((node + 1) % nodes_);
      }
      break;
    case ReplyCode::kContended:
      rivals_[at] = reply.quarantined ? Token() : reply.token;
      refuse(contended_);
      break;
    case ReplyCode::kStale:
      floors_[at] = reply.token;
      refuse(stale_);
      break;
    case ReplyCode::kRefusedAhead:
    case ReplyCode::kRefusedBehind:
      refuse(refused_clock_);
      break;
    case ReplyCode::kRefusedTtl:
      refuse(refused_);
      break;
    case ReplyCode::kDone:
      done_ = reply;
      refuse(contended_);
      break;
    case ReplyCode::kForeign:
      refuse(foreign_);
      break;
    case ReplyCode::kTimeout:
      refuse(timeout_);
      break;
    default:
      refuse(error_);
      break;
  }
  return Decide();
}

Verdict AcquireRound::Decide() const {
  if (ballot_.Result() == Tally::kWon) return Verdict::kWon;
  if (done_) return Verdict::kDone;
  return MajorityRival() || ballot_.pending() == 0 ? Verdict::kLost : Verdict::kPending;
}

bool AcquireRound::WorthAskingAgain() const {
  if (contended_ == 0 || ballot_.yes() == 0) return false;
  if (MajorityRival() || *std::max_element(rivals_.begin(), rivals_.end()) > token_) return false;
  return IsMajority(ballot_.yes() | contended_, nodes_);
}

NodeSet AcquireRound::AskAgain() {
  const NodeSet again = contended_;
  for (NodeIndex node = 0; node < nodes_; ++node) {
    if ((again & Bit(node)) == 0) continue;
    ballot_.Reopen(node);
    rivals_[static_cast<std::size_t>(node)] = Token();
  }
  contended_ = 0;
  return again;
}

Token AcquireRound::NeededFloor() const {
  NodeTokens sorted = floors_;
  std::fill(sorted.begin() + nodes_, sorted.end(), Token(~std::uint64_t{0}));
  std::sort(sorted.begin(), sorted.end());
  return sorted[static_cast<std::size_t>(Quorum(nodes_) - 1)];
}

RoundResult AcquireRound::Result(Verdict verdict) const {
  if (verdict == Verdict::kWon) return RoundResult::kAcquired;
  if (verdict == Verdict::kDone) return RoundResult::kDone;
  if (Foreign()) return RoundResult::kError;
  if (contended_ != 0) return RoundResult::kContended;
  if (stale_ != 0) return RoundResult::kStale;
  if ((refused_ | refused_clock_) != 0) return RoundResult::kRefused;
  if (timeout_ != 0) return RoundResult::kTimeout;
  if ((error_ | foreign_) != 0) return RoundResult::kError;
  return RoundResult::kNoQuorum;
}

QuorumFailure AcquireRound::Failure() const {
  if (refused_clock_ != 0) return QuorumFailure::kClock;
  if (quarantined_ != 0) return QuorumFailure::kQuarantined;
  if (timeout_ != 0) return QuorumFailure::kTimeout;
  return QuorumFailure::kUnreachable;
}

}  // namespace fencepost::locking
