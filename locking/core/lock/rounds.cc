#include "locking/core/lock/rounds.h"

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
