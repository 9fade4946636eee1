// Making a new store: all N nodes empty, then forming (epoch 0, may still be outbid), then locked
// in (forming, epoch 1), then complete.
//
// A store id is 64 random bits and a hash of the run_ids of its N nodes, so a client takes up
// another's beginnings only where both list the same nodes; then both also reckon the same index
// for each node. The smallest id wins. A node is locked in only after all N were seen forming one
// id, and completed only after all N were seen locked in; what is locked in is not outbid. So of
// two stores over lists that share a node, that node lets at most one become complete.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "locking/base/digest.h"
#include "locking/core/store/store.h"

namespace fencepost::locking {
namespace {

constexpr std::uint32_t kOpenEpoch = 0;
constexpr std::uint32_t kFirstEpoch = 1;
// Beginnings that no client goes on with: their maker is gone, or a node restarted meanwhile.
constexpr Millis kAbandonedOpen{3'000};
constexpr Millis kAbandonedLocked{10'000};

}  // namespace

bool Store::Abandoned(const Node& node) const {
  const bool locked = node.sentinel && node.sentinel->epoch != kOpenEpoch;
  return now_.boot - node.raw_since >= (locked ? kAbandonedLocked : kAbandonedOpen);
}

std::string Store::MemberHash() const {
  std::set<std::string> run_ids;
  for (const Node& node : nodes_) run_ids.insert(node.run_id);
  std::string all;  // nobody attacks the hash: run_ids are random
  for (const std::string& run_id : run_ids) all += run_id;
  return fmt::format("{:016x}", HashOf(all));
}

bool Store::MayCreate() {
  if (creation_ == StoreCreation::kNever) return false;
  if (creation_ == StoreCreation::kQuarantined || creating_) return true;
  if (creation_ == StoreCreation::kImmediate) {
    for (NodeIndex i = 0; i < size(); ++i) {
      const Node& node = At(i);
      if (!node.Readable() || !node.raw) continue;
      const bool complete = node.Complete();
      SetProblem(i, true, "store_exists",
                 fmt::format("{} lock store {} exists there already",
                             complete ? "the" : "the beginnings of the", node.sentinel->store_id),
                 "use it as it is; or, with all clients stopped, `fencepost locks init --force` "
                 "forgets every lock and DONE mark that it holds");
      return false;
    }
  }
  creating_ = AllReadable();
  return creating_;
}

void Store::PlanCreation() {
  if (!MayCreate() || !AllReadable()) return;
  const bool overwrites = creation_ == StoreCreation::kForced && !overwritten_;
  const bool complete = std::ranges::any_of(nodes_, &Node::Complete);
  if (complete && !overwrites) return;  // they disagree: FindForeignNodes told
  if (AllFormingOneStore()) {
    overwritten_ = creation_ == StoreCreation::kForced;
    PlanAdvance();
  } else {
    PlanForming();
  }
}

bool Store::AllFormingOneStore() const {
  std::set<int> indexes;
  for (const Node& node : nodes_) {
    if (!node.Forming() || !Fits(*node.sentinel)) return false;
    if (node.sentinel->store_id != nodes_.front().sentinel->store_id) return false;
    indexes.insert(node.sentinel->index);
  }
  return static_cast<int>(indexes.size()) == size();
}

// The id that all nodes shall have: one that is locked in, else the smallest, else our own.
std::string Store::FormingTarget(const std::string& hash) const {
  std::set<std::string> open;
  std::set<std::string> locked;
  for (const Node& node : nodes_) {
    if (!node.Forming() || !Fits(*node.sentinel)) continue;
    if (!node.sentinel->store_id.ends_with(hash)) continue;
    (node.sentinel->epoch == kOpenEpoch ? open : locked).insert(node.sentinel->store_id);
  }
  if (!locked.empty()) return *locked.begin();
  if (open.empty() || creation_ == StoreCreation::kForced) {
    open.insert(fmt::format("{:016x}{}", own_id_.bits[0], hash));
  }
  return *open.begin();
}

// The longest lease that the stores which were here allowed: one that they granted may still live.
Millis Store::FormerTtl() const {
  Millis longest{0};
  if (creation_ != StoreCreation::kQuarantined) return longest;
  for (const Node& node : nodes_) {
    if (node.member) longest = std::max(longest, node.member->max_ttl);
  }
  return longest;
}

void Store::PlanForming() {
  const std::string hash = MemberHash();
  const std::string target = FormingTarget(hash);
  Millis ttl = options_.max_ttl;
  for (const Node& node : nodes_) {
    if (node.Forming() && node.sentinel->store_id == target) ttl = node.sentinel->max_ttl;
  }
  ttl = std::max(ttl, FormerTtl());
  for (NodeIndex i = 0; i < size(); ++i) {
    Node& node = At(i);
    if (node.Forming() && node.sentinel->store_id == target) continue;
    const bool ours =
        node.Forming() && Fits(*node.sentinel) && node.sentinel->store_id.ends_with(hash);
    const bool outbid =
        ours && node.sentinel->epoch == kOpenEpoch && target < node.sentinel->store_id;
    const bool forced = creation_ == StoreCreation::kForced && !ours;
    if (node.raw && !outbid && !forced && !Abandoned(node)) {
      if (!ours) {
        SetProblem(
            i, true, "store_forming",
            "it holds the beginnings of a lock store over other nodes, or from before a restart",
            "check that all clients list the same nodes; it is written over in 10 s");
      }
      continue;
    }
    Sentinel sentinel;
    sentinel.store_id = target;
    sentinel.nodes = size();
    sentinel.epoch = kOpenEpoch;
    sentinel.run_id = node.run_id;
    sentinel.max_ttl = ttl;
    sentinel.index = static_cast<int>(std::ranges::count_if(
        nodes_, [&node](const Node& other) { return other.run_id < node.run_id; }));
    // The node's own time makes the text unlike any that was there before a wipe.
    Write(node, sentinel, QuarantineTime());
    formed_ = true;
  }
}

void Store::PlanAdvance() {
  bool locked = true;
  for (Node& node : nodes_) {
    if (node.sentinel->epoch != kOpenEpoch) continue;
    locked = false;
    WriteEpoch(node, kFirstEpoch, QuarantineTime());
  }
  if (!locked) return;
  if (creation_ != StoreCreation::kQuarantined && !SnapshotConfirmed()) return;
  for (Node& node : nodes_) Complete(node);
}

// A node may count at once only if it forgot nothing since the store began to count. Two readings
// of all N in a row with the same texts prove a moment at which none was complete; a text that
// still is there after it was not wiped since.
bool Store::SnapshotConfirmed() {
  const bool same =
      std::ranges::all_of(nodes_, [](const Node& node) { return node.snapshot == node.raw; });
  if (!same) {
    for (Node& node : nodes_) {
      node.snapshot = node.raw;
      node.confirmed = node.probe_confirms = false;
      node.want_probe = true;
    }
  }
  snapshot_agreed_ = same && std::ranges::all_of(nodes_, &Node::confirmed);
  return snapshot_agreed_;
}

void Store::Complete(Node& node) {
  const bool immediate = creating_ && snapshot_agreed_ && node.snapshot == node.raw;
  Sentinel sentinel = *node.sentinel;
  sentinel.complete = true;
  sentinel.epoch = kFirstEpoch;
  sentinel.run_id = node.run_id;
  sentinel.quarantine_until = WallTime{};
  sentinel.max_ttl = std::max(sentinel.max_ttl, FormerTtl());
  formed_ = true;
  const Millis quarantine = std::max(sentinel.max_ttl, max_ttl()) + 2 * options_.max_skew;
  Write(node, sentinel, immediate ? std::nullopt : std::optional(quarantine));
}

void Store::Write(Node& node, const Sentinel& sentinel, std::optional<Millis> quarantine_for) {
  if (node.pending || node.hold_until > now_.boot) return;
  node.pending = SentinelWrite{node.raw, sentinel.Encode(), quarantine_for};
}

void Store::WriteEpoch(Node& node, std::uint32_t epoch, std::optional<Millis> quarantine_for) {
  Sentinel sentinel = *node.sentinel;
  sentinel.epoch = epoch;
  Write(node, sentinel, quarantine_for);
}

}  // namespace fencepost::locking
