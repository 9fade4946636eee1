#include "consumer/flow/state/lock_unit.h"

#include <utility>

#include "locking/base/check.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {

void LockUnit::BecomeAcquiring(locking::LockId lock) {
  FENCEPOST_CHECK(lease_ == Lease::kNone, "a lock is asked for while its unit has one");
  lease_ = Lease::kAcquiring;
  lock_ = lock;
}

void LockUnit::FailRound() {
  FENCEPOST_CHECK(lease_ == Lease::kAcquiring, "a round fails while none is out");
  round_failed_ = true;
}

void LockUnit::BecomeLeased(locking::Token token) {
  FENCEPOST_CHECK(lease_ == Lease::kAcquiring, "a lease that was not asked for");
  lease_ = Lease::kLeased;
  token_ = token;
}

void LockUnit::BecomeDone(locking::Token token, locking::ContentCrc crc,
                          std::chrono::milliseconds rest) {
  FENCEPOST_CHECK(lease_ == Lease::kAcquiring || lease_ == Lease::kLeased,
                  "a mark is heard of a lock that is not asked for");
  lease_ = Lease::kDone;
  lock_ = {};
  token_ = token;
  done_crc_ = crc;
  done_rest_ = rest;
}

void LockUnit::BecomeLost(locking::Instant at) {
  FENCEPOST_CHECK(lease_ == Lease::kLeased, "a lease is lost that was not held");
  if (Planted("lost_lease_is_kept")) return;
  lease_ = Lease::kLost;
  lock_ = {};
  lost_at_ = at;
}

void LockUnit::BecomeMarking(locking::LockId mark) {
  FENCEPOST_CHECK(lease_ != Lease::kAcquiring, "a mark without any effect");
  lease_ = Lease::kMarking;
  lock_ = mark;
}

void LockUnit::BecomeUnlocked(locking::Token token, locking::Instant until) {
  FENCEPOST_CHECK(lease_ == Lease::kNone || lease_ == Lease::kAcquiring,
                  "a lock is done without while its unit has one");
  lease_ = Lease::kUnlocked;
  lock_ = {};
  token_ = token;
  unlocked_until_ = until;
}

void LockUnit::BecomeNone() {
  lease_ = Lease::kNone;
  round_failed_ = false;
  lock_ = {};
  token_ = {};
}

LockUnit& LockUnits::Join(InFlight& record, std::string name, Sharing sharing) {
  FENCEPOST_CHECK(record.unit == nullptr, "a record is in one unit at most");
  if (unused_.empty()) {
    unused_.push_back(static_cast<std::uint32_t>(pool_.size()));
    pool_.emplace_back().index_ = unused_.back();
  }
  LockUnit* unit = &pool_[unused_.back()];
  unit->name_ = std::move(name);  // in an unused place, so that the name is looked up only once
  const auto [place, made] = by_name_.try_emplace(unit->name_, unit);
  if (made) {
    unused_.pop_back();
    unit->sharing_ = Planted("same_id_side_by_side") ? Sharing::kShared : sharing;
  }
  unit = place->second;
  record.unit = unit;
  record.unit_before = unit->last_;
  (unit->last_ == nullptr ? unit->first_ : unit->last_->unit_after) = &record;
  unit->last_ = &record;
  return *unit;
}

LockUnit* LockUnits::Leave(InFlight& record) {
  LockUnit& unit = *std::exchange(record.unit, nullptr);
  InFlight* const before = std::exchange(record.unit_before, nullptr);
  InFlight* const after = std::exchange(record.unit_after, nullptr);
  (before == nullptr ? unit.first_ : before->unit_after) = after;
  (after == nullptr ? unit.last_ : after->unit_before) = before;
  if (unit.first_ != nullptr) return &unit;
  FENCEPOST_CHECK(unit.lease_ == Lease::kNone, "a lease without a record");
  by_name_.erase(unit.name_);
  unused_.push_back(unit.index_);
  return nullptr;
}

LockUnit* LockUnits::Find(std::uint64_t cookie, locking::LockId lock) {
  if (cookie == 0 || cookie > pool_.size()) return nullptr;
  LockUnit& unit = pool_[cookie - 1];
  return unit.first_ != nullptr && unit.lock_ == lock ? &unit : nullptr;
}

}  // namespace fencepost::consumer
