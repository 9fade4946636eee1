#include "locking/core/store/heal.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "locking/base/check.h"
#include "locking/base/planted.h"
#include "locking/core/ops.h"

namespace fencepost::locking {
namespace {

constexpr const char* kAgain = "nothing was lifted; run it again when it is well";

}  // namespace

Healing::Healing(NodeIndex healed, std::vector<std::string> run_ids, Millis max_skew,
                 NodeIndex first_node)
    : healed_(healed), first_node_(first_node), run_ids_(std::move(run_ids)) {
  FENCEPOST_CHECK(healed >= 0 && healed < count() && count() <= kMaxNodes, "the node to heal");
  rules_.nodes = count();
  rules_.max_skew = max_skew;
  if (count() == 1) {
    Fail("one_node", "a store of one node has no other to copy from", "wait for its quarantine");
  } else {
    Look({});
  }
}

void Healing::Go(Step::Kind kind) {
  step_ = Step();
  step_.kind = kind;
}

void Healing::Fail(std::string code, std::string what, std::string hint) {
  OnFailed({std::move(code), std::move(what), "", std::move(hint)});
}

void Healing::OnFailed(Error why) {
  Go(Step::Kind::kFailed);
  step_.error = std::move(why);
}

void Healing::OnWaited() { Look({}); }

void Healing::Look(std::vector<std::string> names) {
  Go(Step::Kind::kLook);
  step_.names = std::move(names);
  for (NodeIndex node = 0; node < count(); ++node) {
    if (node != healed_) step_.nodes.push_back(node);
  }
}

// Before anything is copied: the healed node is in quarantine, all others count.
std::optional<Error> Healing::Refusal(const std::vector<NodeSight>& sights) {
  std::optional<Sentinel> own =
      Sentinel::Decode(sights[static_cast<std::size_t>(healed_)].sentinel);
  if (!own) return Error{"not_ready", "the node to heal knows no lock store", "", kAgain};
  std::set<int> places;
  Millis shortest = Millis::max();
  for (NodeIndex node = 0; node < count(); ++node) {
    const NodeSight& sight = sights[static_cast<std::size_t>(node)];
    const auto sentinel = Sentinel::Decode(sight.sentinel);
    const auto refuse = [this, node](std::string what) {
      return Error{"not_ready",
                   fmt::format("lock node {} {}", NodeLetter(first_node_ + node), what), "",
                   kAgain};
    };
    if (!sentinel || !sentinel->complete) return refuse("is not a member of a lock store");
    if (sentinel->nodes != count() || sentinel->store_id != own->store_id ||
        (sentinel->epoch | 1U) != (own->epoch | 1U) || !places.insert(sentinel->index).second) {
      return refuse("is not a member of the same lock store as the one to be healed");
    }
    if (sentinel->run_id != run_ids_[static_cast<std::size_t>(node)]) {
      return refuse("was restarted, and no client has seen it since");
    }
    const bool quarantined = sight.time < sentinel->quarantine_until;
    if (node != healed_ && quarantined) return refuse("is in quarantine itself");
    if (node == healed_ && !quarantined) return refuse("is not in quarantine any more");
    shortest = std::min(shortest, sentinel->max_ttl);
  }
  rules_.quarantine_until = own->quarantine_until;
  readable_from_ = own->quarantine_until - shortest + rules_.max_skew + Millis(1);
  return std::nullopt;
}

// A sentinel that was written again means that its node has forgotten.
std::optional<Error> Healing::Changed(const std::vector<NodeSight>& sights) const {
  for (NodeIndex node = 0; node < count(); ++node) {
    const auto at = static_cast<std::size_t>(node);
    if (sights[at].sentinel == sentinels_[at] || Planted("healing_lifts_over_a_wipe")) continue;
    return Error{"changed",
                 fmt::format("lock node {} forgot what it knew, or was changed by a client, while "
                             "lock node {} was being healed",
                             NodeLetter(first_node_ + node), NodeLetter(first_node_ + healed_)),
                 "", kAgain};
  }
  if (sights[static_cast<std::size_t>(healed_)].time >= rules_.quarantine_until) {
    return Error{"over",
                 fmt::format("the quarantine of lock node {} ended by itself",
                             NodeLetter(first_node_ + healed_)),
                 "", "nothing is left to be done"};
  }
  return std::nullopt;
}

void Healing::OnLook(std::vector<NodeSight> sights) {
  FENCEPOST_CHECK(step_.kind == Step::Kind::kLook && sights.size() == step_.nodes.size(),
                  "one sight a node");
  if (others_.empty()) {
    others_ = std::move(sights);
    step_.nodes = {healed_};
    return;
  }
  std::vector<NodeSight> all = std::exchange(others_, {});
  all.insert(all.begin() + healed_, std::move(sights.front()));
  OnLookedAtAll(all);
}

void Healing::OnLookedAtAll(const std::vector<NodeSight>& sights) {
  if (sentinels_.empty()) {
    if (auto refusal = Refusal(sights)) return OnFailed(std::move(*refusal));
    for (const NodeSight& sight : sights) sentinels_.push_back(sight.sentinel);
  } else if (auto changed = Changed(sights)) {
    return OnFailed(std::move(*changed));
  }
  if (!begun_) return Begin(sights);
  if (closing_) return Lift();
  Plan(sights);
}

// What was granted by the healed node before it forgot may still be on its way to the others, until
// they refuse its token as being from before their clock.
void Healing::Begin(const std::vector<NodeSight>& sights) {
  Millis wait{0};
  for (const NodeSight& sight : sights) wait = std::max(wait, readable_from_ - sight.time);
  if (wait > Millis(0) && !Planted("healing_reads_at_once")) {
    Go(Step::Kind::kWait);
    step_.wait = wait;
    return;
  }
  begun_ = true;
  scanned_ = healed_ == 0 ? 1 : 0;
  ScanNext();
}

void Healing::ScanNext() {
  Go(Step::Kind::kScan);
  step_.node = scanned_;
  step_.cursor = cursor_;
}

void Healing::OnScan(HealPage page) {
  FENCEPOST_CHECK(step_.kind == Step::Kind::kScan, "no scan is out");
  cursor_ = std::move(page.cursor);
  std::sort(page.names.begin(), page.names.end());
  page.names.erase(std::unique(page.names.begin(), page.names.end()), page.names.end());
  std::erase(page.names, kSentinelKey);
  counts_.seen += page.names.size();
  pending_ = std::move(page.names);
  LookNext();
}

void Healing::LookNext() {
  if (pending_.empty()) {
    if (cursor_ != "0") return ScanNext();
    do {
      ++scanned_;
    } while (scanned_ == healed_);
    if (scanned_ < count()) return ScanNext();
    closing_ = true;
    return Look({});
  }
  const auto batch = static_cast<std::ptrdiff_t>(std::min(pending_.size(), kMaxBatch));
  Look({pending_.end() - batch, pending_.end()});
  pending_.erase(pending_.end() - batch, pending_.end());
}

void Healing::Plan(const std::vector<NodeSight>& sights) {
  const NodeSight& own = sights[static_cast<std::size_t>(healed_)];
  std::vector<HealWrite> writes;
  std::vector<WallTime> times;
  for (NodeIndex node = 0; node < count(); ++node) {
    if (node != healed_) times.push_back(sights[static_cast<std::size_t>(node)].time);
  }
  for (std::size_t i = 0; i < step_.names.size(); ++i) {
    std::vector<NodeSight::Value> others;
    for (NodeIndex node = 0; node < count(); ++node) {
      if (node != healed_) others.push_back(sights[static_cast<std::size_t>(node)].values[i]);
    }
    const auto unreadable = [](const NodeSight::Value& seen) {
      return !seen.raw.empty() && !UnitValue::Decode(seen.raw);
    };
    if (unreadable(own.values[i]) || std::any_of(others.begin(), others.end(), unreadable)) {
      return Fail("unreadable",
                  "the value at " + step_.names[i] + " is not one of a lock of this version",
                  "delete it if nobody needs it, or let the quarantine end by itself");
    }
    auto write = PlanHeal(step_.names[i], others, times, own.values[i], own.time, rules_);
    if (write) writes.push_back(std::move(*write));
  }
  if (writes.empty()) return LookNext();
  Go(Step::Kind::kWrite);
  step_.node = healed_;
  step_.writes = std::move(writes);
  step_.sentinel = sentinels_[static_cast<std::size_t>(healed_)];
}

// What a client changed in between is looked at again.
void Healing::OnWritten(const std::vector<bool>& took_effect) {
  FENCEPOST_CHECK(step_.kind == Step::Kind::kWrite && took_effect.size() == step_.writes.size(),
                  "one answer a write");
  for (std::size_t i = 0; i < took_effect.size(); ++i) {
    const HealWrite& write = step_.writes[i];
    if (!took_effect[i]) {
      pending_.push_back(write.name);
      continue;
    }
    if (write.value == write.expected) continue;  // the same, remembered for longer
    ++counts_.written;
    const auto value = UnitValue::Decode(write.value);
    const bool held = value->state == UnitValue::State::kHeld;
    ++(held                                      ? counts_.held
       : value->state == UnitValue::State::kDone ? counts_.done
                                                 : counts_.floors);
    if (held && value->nonce == kHeldForAnyone) ++counts_.kept_for_anyone;
  }
  LookNext();
}

void Healing::Lift() {
  const std::string& read = sentinels_[static_cast<std::size_t>(healed_)];
  Sentinel lifted = *Sentinel::Decode(read);
  lifted.quarantine_until = WallTime{};
  Go(Step::Kind::kLift);
  step_.node = healed_;
  step_.lift = {read, lifted.Encode(), std::nullopt};
}

void Healing::OnLifted(const std::optional<std::string>& current) {
  FENCEPOST_CHECK(step_.kind == Step::Kind::kLift, "no lift is out");
  if (current == step_.lift.replacement) return Go(Step::Kind::kFinished);
  Fail("changed",
       fmt::format("lock node {} forgot again while it was being healed",
                   NodeLetter(first_node_ + healed_)),
       kAgain);
}

}  // namespace fencepost::locking
