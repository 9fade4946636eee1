#include "locking/core/contact/fast_nodes.h"

#include <algorithm>
#include <utility>

#include "locking/base/digest.h"
#include "locking/base/planted.h"

namespace fencepost::locking {
namespace {

constexpr Nanos kLeastPatience{Millis(1)};
constexpr Nanos kFirstPatience{Millis(20)};  // before anything is known
constexpr int kUsualOf = 16;                 // waits that the usual one remembers, about
constexpr int kRankEvery = 8;                // waits, once there are enough

// Slow is what lies beyond these, in multiples of the typical wait and more.
constexpr int kSlowTimes = 3;
constexpr Nanos kSlowMore{Millis(2)};
constexpr int kGoodTimes = 2;
constexpr Nanos kGoodMore{Millis(1)};
constexpr int kSilentTimes = 8;
constexpr Nanos kSilentMore{Millis(20)};

constexpr Nanos kFirstHold{Millis(1'000)};
constexpr Nanos kMostHold{Millis(16'000)};
constexpr Nanos kSteady{Millis(60'000)};  // in for so long: the next time is as the first

constexpr Nanos kLongestWait{Millis(3'600'000)};  // beyond, times are of no use here

}  // namespace

FastNodes::FastNodes(int nodes, Millis node_timeout)
    : nodes_(nodes),
      longest_(std::max<Nanos>(kLeastPatience, Nanos(node_timeout) / 2)),
      fast_(AllNodes(nodes)) {}

// --- what was waited for -----------------------------------------------------------------------

void FastNodes::OnQueued(NodeIndex node, Now now) {
  if (At(node).queued == kNever) At(node).queued = now.boot;
}

void FastNodes::OnTaken(NodeIndex index, bool all, Now now) {
  Node& node = At(index);
  node.out = std::exchange(node.queued, all ? kNever : now.boot);
}

void FastNodes::OnAnswered(NodeIndex index, Now now) {
  const Instant since = std::exchange(At(index).out, kNever);
  if (since != kNever) Learn(index, now.boot - since, now);
}

void FastNodes::OnProbed(NodeIndex node, Nanos took, Now now) { Learn(node, took, now); }

void FastNodes::OnAway(NodeIndex node, Now now) {
  At(node).queued = At(node).out = kNever;
  Leave(node, now);
}

// Where no node has answered, it may have been this process that stood still.
void FastNodes::OnLate(NodeSet silent, bool heard, Now now) {
  const Nanos typical = Typical();
  if (!heard || typical == kUnknown) return;
  for (NodeIndex node = 0; node < nodes_; ++node) {
    if ((silent & Bit(node)) == 0) continue;
    const Instant since = std::min(At(node).out, At(node).queued);
    if (since == kNever) continue;
    if (now.boot - since > kSilentTimes * typical + kSilentMore) Leave(node, now);
  }
}

void FastNodes::Learn(NodeIndex index, Nanos waited, Now now) {
  Node& node = At(index);
  waited = std::clamp<Nanos>(waited, Nanos(0), kLongestWait);
  node.usual = node.usual == kUnknown ? waited : node.usual + (waited - node.usual) / kUsualOf;
  node.recent[node.waits++ % kRecent] = waited;
  if (node.waits <= kRecent || node.waits % kRankEvery == 0) {
    auto recent = node.recent;
    const auto end = recent.begin() + static_cast<std::ptrdiff_t>(std::min(node.waits, kRecent));
    const auto second = end - recent.begin() > 1 ? recent.begin() + 1 : recent.begin();
    std::partial_sort(recent.begin(), second + 1, end, std::greater<>());
    node.late = *second;
  }
  const Nanos typical = Typical();
  if (typical == kUnknown) return;
  if ((fast_ & Bit(index)) != 0) {
    if (node.usual > kSlowTimes * typical + kSlowMore) Leave(index, now);
    return;
  }
  const bool good = waited <= kGoodTimes * typical + kGoodMore;
  if (!good) {
    node.usual = kUnknown;
    node.waits = 0;
  } else if (now.boot - node.left >= node.hold) {
    fast_ |= Bit(index);
    node.back = now.boot;
  }
}

void FastNodes::Leave(NodeIndex index, Now now) {
  Node& node = At(index);
  node.usual = kUnknown;
  node.waits = 0;
  if ((fast_ & Bit(index)) == 0) {
    node.left = now.boot;
    return;
  }
  const bool soon = node.hold > Nanos(0) && now.boot - node.back < kSteady;
  node.hold = soon ? std::min(2 * node.hold, kMostHold) : kFirstHold;
  node.left = now.boot;
  fast_ = Without(fast_, Bit(index));
}

Nanos FastNodes::Typical() const {
  std::array<Nanos, kMaxNodes> usual;
  for (std::size_t i = 0; i < kMaxNodes; ++i) usual[i] = all_[i].usual;
  const auto quorum = usual.begin() + Quorum(nodes_) - 1;
  std::nth_element(usual.begin(), quorum, usual.begin() + nodes_);
  return *quorum;
}

// --- what follows ------------------------------------------------------------------------------

// Rendezvous hashing (Thaler and Ravishankar, 1998): where a node leaves, only the names that asked
// it ask another one instead.
NodeSet FastNodes::First(std::string_view name, NodeSet good,
                         const std::array<std::uint8_t, kMaxNodes>& place) const {
  const int quorum = Quorum(nodes_);
  NodeSet from = good & fast_;
  if (Count(from) < quorum) from = good;
  const std::uint64_t hash = HashOf(name);
  std::array<std::uint64_t, kMaxNodes> weights{};
  for (NodeIndex node = 0; node < nodes_; ++node) {
    const auto i = static_cast<std::size_t>(node);
    weights[i] = Mix(hash + 0x9e3779b97f4a7c15U * (place[i] + 1U));
  }
  while (Count(from) > quorum) {
    NodeIndex lightest = -1;
    for (NodeIndex node = 0; node < nodes_; ++node) {
      if ((from & Bit(node)) == 0) continue;
      const bool lighter = lightest < 0 || weights[static_cast<std::size_t>(node)] <
                                               weights[static_cast<std::size_t>(lightest)];
      if (lighter) lightest = node;
    }
    from = Without(from, Bit(lightest));
  }
  return from;
}

Nanos FastNodes::Patience(NodeSet asked) const {
  Nanos patience = kLeastPatience;
  for (NodeIndex node = 0; node < nodes_; ++node) {
    if ((asked & Bit(node)) == 0) continue;
    const Nanos late = At(node).late;
    patience = std::max(patience, At(node).waits < 2 ? kFirstPatience : late + late / 8);
  }
  return std::min(patience, longest_);
}

bool FastNodes::MayAskOthers(NodeSet silent) {
  if (Without(silent, fast_) != 0 || Planted("late_ones_all_ask_the_rest")) return true;
  if (credit_ < kAskOthersOneOf) return false;
  credit_ -= kAskOthersOneOf;
  return true;
}

}  // namespace fencepost::locking
