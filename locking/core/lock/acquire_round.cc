#include "locking/core/lock/acquire_round.h"

#include <algorithm>
#include <utility>

#include "locking/base/planted.h"

namespace fencepost::locking {

Verdict AcquireRound::OnReply(NodeIndex node, const Reply& reply) {
  const auto at = static_cast<std::size_t>(node);
  const bool granted =
      reply.code == ReplyCode::kGranted || reply.code == ReplyCode::kGrantedTakeover;
  const bool counts = granted && !reply.quarantined;
  ballot_.Vote(node, counts);
  if (counts && Planted("one_node_votes_twice")) ballot_.Yes((node + 1) % nodes_);
  if (granted && !counts) quarantined_ |= Bit(node);
  if (!granted) said_[static_cast<std::size_t>(reply.code)] |= Bit(node);
  if (reply.code == ReplyCode::kContended) {
    rivals_[at] = reply.quarantined ? Token() : reply.token;
  } else if (reply.code == ReplyCode::kStale) {
    floors_[at] = reply.token;
  } else if (reply.code == ReplyCode::kDone) {
    done_ = reply;
  }
  return Decide();
}

Verdict AcquireRound::Decide() const {
  if (ballot_.Result() == Tally::kWon) return Verdict::kWon;
  const int asked = Count(Without(ballot_.yes() | ballot_.no() | ballot_.pending(), rest_));
  if (Planted("quorum_of_the_asked") && Count(ballot_.yes()) >= Quorum(asked)) {
    return Verdict::kWon;
  }
  if (done_) return Verdict::kDone;
  return MajorityRival() || ballot_.pending() == 0 ? Verdict::kLost : Verdict::kPending;
}

bool AcquireRound::NeedsTheRest() const {
  if (rest_ == 0 || IsMajority(ballot_.yes() | pending(), nodes_)) return false;
  return std::ranges::none_of(rivals_, [this](Token rival) {
    return rival && std::ranges::count(rivals_, rival) + Count(pending()) >= Quorum(nodes_);
  });
}

NodeSet AcquireRound::AskTheRest() {
  if (Planted("late_ones_count_twice")) {
    for (NodeIndex node = 0; node < nodes_; ++node) {
      if ((pending() & Bit(node)) != 0 && ballot_.yes() != 0) ballot_.Yes(node);
    }
  }
  return std::exchange(rest_, 0);
}

bool AcquireRound::WorthAskingAgain() const {
  const NodeSet contended = Said(ReplyCode::kContended);
  if (contended == 0 || ballot_.yes() == 0) return false;
  if (MajorityRival() || *std::max_element(rivals_.begin(), rivals_.end()) > token_) return false;
  return IsMajority(ballot_.yes() | contended, nodes_);
}

NodeSet AcquireRound::AskAgain() {
  const NodeSet again = std::exchange(said_[static_cast<std::size_t>(ReplyCode::kContended)], 0);
  for (NodeIndex node = 0; node < nodes_; ++node) {
    if ((again & Bit(node)) == 0) continue;
    ballot_.Reopen(node);
    rivals_[static_cast<std::size_t>(node)] = Token();
  }
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
  if (Said(ReplyCode::kContended) != 0) return RoundResult::kContended;
  if (Said(ReplyCode::kStale) != 0) return RoundResult::kStale;
  if ((RefusedForClockBy() | Said(ReplyCode::kRefusedTtl)) != 0) return RoundResult::kRefused;
  if (Said(ReplyCode::kTimeout) != 0) return RoundResult::kTimeout;
  const bool other = std::ranges::any_of(said_, [](NodeSet nodes) { return nodes != 0; });
  return other ? RoundResult::kError : RoundResult::kNoQuorum;
}

QuorumFailure AcquireRound::Failure() const {
  if (RefusedForClockBy() != 0) return QuorumFailure::kClock;
  if (quarantined_ != 0) return QuorumFailure::kQuarantined;
  if (Said(ReplyCode::kTimeout) != 0) return QuorumFailure::kTimeout;
  return QuorumFailure::kUnreachable;
}

}  // namespace fencepost::locking
