// Repairs a store that exists: completes nodes that were left half made, and takes nodes that were
// wiped back into it, in quarantine.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "locking/base/planted.h"
#include "locking/core/store/raise.h"
#include "locking/core/store/store.h"

namespace fencepost::locking {
namespace {

// An empty node is left that long to clients that have seen it in the store: they need no new
// epoch.
constexpr Millis kBeforeRaise{5'000};
// A raise, by whomever, that nobody has gone on with.
constexpr Millis kAbandonedRaise{10'000};
// An even epoch says by which list the store was raised: a remainder of half the epoch.
constexpr std::uint64_t kTags = 5'000;

}  // namespace

std::uint64_t Store::Tag() const { return std::stoull(MemberHash(), nullptr, 16) % kTags; }

bool Store::OwnRaise(std::uint32_t epoch) const {
  if (epoch % 2 != 0) return false;
  return epoch / 2 % kTags == Tag() || Planted("another_lists_raise_is_own");
}

std::optional<std::uint32_t> Store::NextRaise(std::uint32_t highest) {
  const std::uint64_t tag = Tag();
  std::uint32_t half = highest / 2 + 1;
  while (half % kTags != tag) ++half;
  if (2 * half < kMaxEpoch) return 2 * half;
  for (NodeIndex i = 0; i < size(); ++i) {
    if (!InStore(At(i)) || At(i).sentinel->epoch != highest) continue;
    SetProblem(i, true, "bad_sentinel", fmt::format("its epoch {} is the last of all", highest),
               "stop all clients, then `fencepost locks init --force`");
  }
  return std::nullopt;
}

// All N are members with places of their own, but a raise began and was not needed, or was given
// up: all are lifted to one generation. Who was not of the majority's comes back in quarantine.
void Store::PlanRejoin() {
  std::set<int> places;
  for (const Node& node : nodes_) {
    if (!InStore(node) || !places.insert(node.sentinel->index).second) return;
  }
  const Epochs epochs = EpochsOfMembers();
  const bool own = OwnRaise(epochs.highest);
  if (!epochs.raised || (!own && !epochs.unchanged)) return;
  const std::optional<std::uint32_t> target =
      own ? epochs.highest + (epochs.lowest == epochs.highest ? 1 : 0) : NextRaise(epochs.highest);
  if (!target) return;
  for (Node& node : nodes_) {
    if (node.sentinel->epoch >= *target) continue;
    const bool counts = Generation(node.sentinel->epoch) == generation_;
    WriteEpoch(node, *target, counts ? std::nullopt : std::optional(QuarantineTime()));
  }
}

Store::Epochs Store::EpochsOfMembers() const {
  Epochs epochs;
  for (const Node& node : nodes_) {
    if (!InStore(node)) continue;
    const std::uint32_t epoch = node.sentinel->epoch;
    epochs.lowest = std::min(epochs.lowest, epoch);
    epochs.highest = std::max(epochs.highest, epoch);
    epochs.raised = epochs.raised || epoch % 2 == 0;
    epochs.unchanged = epochs.unchanged && now_.boot - node.raw_since >= kAbandonedRaise;
  }
  return epochs;
}

void Store::PlanRepairs() {
  if (!MayCreate()) return;
  for (NodeIndex i = 0; i < size(); ++i) {
    Node& node = At(i);
    if (InStore(node)) Renew(node);
    if (!node.Forming() || node.sentinel->store_id != store_id_ || Vacant(node)) continue;
    const bool taken = std::ranges::any_of(nodes_, [&](const Node& other) {
      return InStore(other) && other.sentinel->index == node.sentinel->index;
    });
    if (!taken) {
      Complete(node);
    } else {
      SetProblem(i, true, "same_index", "its place in the lock store is taken by another node",
                 fmt::format("DEL {} there", kSentinelKey));
    }
  }
  PlanEmpty();
  PlanRejoin();
}

bool Store::Remembered(const Node& node) const {
  return node.member && node.member->store_id == store_id_ &&
         Generation(node.member->epoch) == generation_;
}

// Nothing of the store is there, so that the node may be given a place.
bool Store::Vacant(const Node& node) const {
  if (store_id_.empty()) return false;
  if (!node.raw) return true;
  if (!node.Forming()) return false;
  if (node.sentinel->store_id == store_id_) return generation_ > 1;
  return OfThisList(node) && Abandoned(node);
}

// Beginnings there, of another store, were made by a client that lists the same nodes: late ones,
// on a node that was wiped. Nothing was ever granted under them.
bool Store::OfThisList(const Node& node) const {
  if (Remembered(node)) return true;
  return node.sentinel->store_id.ends_with(MemberHash()) &&
         !Planted("late_beginnings_are_anothers");
}

// The places that no node is known to have.
std::vector<int> Store::MissingIndexes() const {
  std::set<int> taken;
  for (const Node& node : nodes_) {
    if (InStore(node)) taken.insert(node.sentinel->index);
    const bool away = !node.connected || !node.read;
    if (away && node.member && node.member->store_id == store_id_) taken.insert(node.member->index);
  }
  std::vector<int> missing;
  for (int index = 0; index < size(); ++index) {
    if (!taken.contains(index)) missing.push_back(index);
  }
  return missing;
}

void Store::PlanEmpty() {
  std::vector<NodeIndex> unknown;
  const std::uint32_t highest = EpochsOfMembers().highest;
  int waiting = 0;
  for (NodeIndex i = 0; i < size(); ++i) {
    Node& node = At(i);
    if (!node.Readable() || !Vacant(node)) continue;
    ++waiting;
    const auto known = std::ranges::count_if(nodes_, [&](const Node& other) {
      return &other != &node && other.member && other.member->store_id == store_id_;
    });
    const std::vector<int> missing = MissingIndexes();
    const bool place = Remembered(node) && std::find(missing.begin(), missing.end(),
                                                     node.member->index) != missing.end();
    // max_ttl must have been read from a majority. A store of one has nobody to ask.
    if (known < Quorum(size()) || highest % 2 == 0 || !place) {
      unknown.push_back(i);
      continue;
    }
    Sentinel sentinel = *node.member;
    sentinel.epoch = highest;
    sentinel.run_id = node.run_id;
    sentinel.max_ttl = max_ttl();
    Write(node, sentinel, Planted("wiped_node_counts_at_once") ? Millis(0) : QuarantineTime());
  }
  if (highest % 2 == 1) {  // finish what was raised
    for (Node& node : nodes_) {
      const bool left = InStore(node) && node.sentinel->epoch + 1 == highest;
      if (left) WriteEpoch(node, highest, std::nullopt);
    }
  }
  if (!unknown.empty() && static_cast<int>(unknown.size()) == waiting) PlanRaise();
}

// Nodes are empty that this client never saw in the store: they may be the lost ones, or new at the
// place of ones that others still list. So the store moves to a new generation with them (store.h).
void Store::PlanRaise() {
  std::vector<NodeIndex> empty;
  std::vector<NodeIndex> members;
  for (NodeIndex i = 0; i < size(); ++i) {
    const Node& node = At(i);
    if (node.Readable() && Vacant(node)) empty.push_back(i);
    if (InStore(node)) members.push_back(i);
  }
  const bool all_seen = static_cast<int>(empty.size() + members.size()) == size();
  const bool majority = static_cast<int>(members.size()) >= Quorum(size());
  for (const NodeIndex i : empty) {
    if (all_seen && !majority) {
      SetProblem(i, true, "majority_lost",
                 fmt::format("it is empty, and only {} of {} nodes still know lock store {}",
                             members.size(), size(), store_id_),
                 "stop all clients, then `fencepost locks init --force`");
    } else {
      SetProblem(i, false, "empty", fmt::format("it knows nothing of lock store {}", store_id_),
                 all_seen ? "it is taken in, in quarantine, in a few seconds"
                          : "it is taken in once all other nodes can be reached");
    }
  }
  if (all_seen && majority) Raise(empty, members);
}

void Store::Raise(const std::vector<NodeIndex>& empty, const std::vector<NodeIndex>& members) {
  const auto [lowest, highest, raised, unchanged] = EpochsOfMembers();
  const bool raising = highest % 2 == 0;
  const bool ours = raising && highest == raised_to_;
  if (raising && !ours) raised_from_ = 0;
  RaiseFacts facts{.level = lowest == highest, .idle = unchanged};
  if (raising && !OwnRaise(highest)) {
    facts.seen = RaiseSeen::kOfAnotherList;
  } else if (raising) {
    facts.seen = ours ? RaiseSeen::kOurs : RaiseSeen::kOfOurList;
  }
  facts.waited = std::ranges::all_of(
      empty, [this](NodeIndex i) { return now_.boot - At(i).raw_since >= kBeforeRaise; });
  std::optional<std::uint32_t> target = highest;
  switch (MoveFor(facts)) {
    case RaiseMove::kWait:
      return;
    case RaiseMove::kAdmit:
      return PlanAdmission(empty, highest + 1);
    case RaiseMove::kBegin:
      target = NextRaise(highest);
      if (!target) return;
      if (!raising) raised_from_ = lowest;
      raised_to_ = *target;
      break;
    case RaiseMove::kFinish:
    case RaiseMove::kTakeOver:
      break;
  }
  for (const NodeIndex i : members) {
    const std::uint32_t epoch = At(i).sentinel->epoch;
    if (epoch >= *target) continue;
    // One that another client left behind may be of a generation that has ended long ago.
    const bool known = epoch == raised_from_;
    WriteEpoch(At(i), *target, known ? std::nullopt : std::optional(QuarantineTime()));
  }
}

// Of several missing places, the empty nodes get them by the rank of their run_ids.
void Store::PlanAdmission(const std::vector<NodeIndex>& empty, std::uint32_t epoch) {
  const std::vector<int> missing = MissingIndexes();
  if (missing.size() != empty.size()) return;
  std::vector<NodeIndex> ranked = empty;
  std::sort(ranked.begin(), ranked.end(),
            [this](NodeIndex a, NodeIndex b) { return At(a).run_id < At(b).run_id; });
  for (std::size_t rank = 0; rank < ranked.size(); ++rank) {
    Node& node = At(ranked[rank]);
    const Sentinel sentinel{.complete = true,
                            .store_id = store_id_,
                            .index = missing[rank],
                            .nodes = size(),
                            .epoch = epoch,
                            .run_id = node.run_id,
                            .max_ttl = max_ttl()};
    Write(node, sentinel, QuarantineTime());
  }
}

}  // namespace fencepost::locking
