// Which nodes answer fast, which quorum of them an acquire of a name asks first, and when it is
// late. Sans-IO: the caller reports what it waited for and what went wrong; the same reports give
// the same answers. No promise depends on them: whatever is asked first, a lease needs a quorum of
// the configured nodes. One thread.
//
// A node leaves the fast ones when its usual wait is far above that of the q-th fastest node, when
// it says nothing for long although others answer, or when it is away (stalled, disconnected). It
// comes back with a good answer, to a probe at least (each 2 s), once it was left out for a second;
// for twice as long each time that it leaves again soon, so that it does not flap.
//
// Invariant: a node alone is slow compared with a quorum; where all are slow, none is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "locking/base/types.h"

namespace fencepost::locking {

class FastNodes {
 public:
  FastNodes(int nodes, Millis node_timeout);

  // --- what was waited for ---------------------------------------------------------------------
  void OnQueued(NodeIndex node, Now now);              // an operation is to be sent
  void OnTaken(NodeIndex node, bool all, Now now);     // those that were queued go out
  void OnAnswered(NodeIndex node, Now now);            // they were answered
  void OnProbed(NodeIndex node, Nanos took, Now now);  // a question beside them was
  void OnAway(NodeIndex node, Now now);                // stalled or disconnected
  // An acquire has waited as long as Patience says for these. `heard`: another node answered it.
  void OnLate(NodeSet silent, bool heard, Now now);

  // --- what follows ----------------------------------------------------------------------------
  [[nodiscard]] NodeSet fast() const { return fast_; }
  [[nodiscard]] Nanos UsualWait(NodeIndex node) const { return At(node).usual; }  // max(): unknown
  // The quorum of `good` that `name` asks first: the fast ones of them if they are that many; all
  // of `good` if these are too few. `place` tells the nodes apart, in the same way at every client.
  [[nodiscard]] NodeSet First(std::string_view name, NodeSet good,
                              const std::array<std::uint8_t, kMaxNodes>& place) const;
  // How long an acquire waits for the nodes that it asked first: a little above the 99th
  // percentile of the last waits for the slowest of them.
  [[nodiscard]] Nanos Patience(NodeSet asked) const;
  // An acquire asks a quorum first.
  void OnQuorumAsked() { credit_ = credit_ < kMostCredit ? credit_ + 1 : credit_; }
  // One that is late may ask the others, too: always where a node that it waits for is not among
  // the fast ones any more, else as one in ten of those that asked a quorum first, and a few more
  // after a while without. Where all nodes are late together, they have more to do than they can,
  // and asking more of them would only make it worse (Dean and Barroso, "The Tail at Scale", 2013).
  [[nodiscard]] bool MayAskOthers(NodeSet silent);

 private:
  static constexpr int kAskOthersOneOf = 10;
  static constexpr int kMostCredit = 64 * kAskOthersOneOf;
  static constexpr std::size_t kRecent = 100;
  static constexpr Nanos kUnknown = Nanos::max();
  static constexpr Instant kNever = Instant::max();

  struct Node {
    Instant queued = kNever;  // the oldest operation that waits to be sent
    Instant out = kNever;     // the oldest one of those that are out, since it was queued
    Nanos usual = kUnknown;
    std::array<Nanos, kRecent> recent{};  // a ring
    std::size_t waits = 0;                // reported since it came back
    Nanos late{0};                        // the second longest of `recent`
    Instant left = Instant::min();
    Instant back = Instant::min();
    Nanos hold{0};  // how long it is left out at least
  };

  Node& At(NodeIndex node) { return all_[static_cast<std::size_t>(node)]; }
  [[nodiscard]] const Node& At(NodeIndex node) const {
    return all_[static_cast<std::size_t>(node)];
  }
  void Learn(NodeIndex node, Nanos waited, Now now);
  void Leave(NodeIndex node, Now now);
  [[nodiscard]] Nanos Typical() const;  // of the q-th fastest node; kUnknown where it is

  int nodes_;
  Nanos longest_;
  NodeSet fast_;
  int credit_ = kMostCredit;
  std::array<Node, kMaxNodes> all_{};
};

}  // namespace fencepost::locking
