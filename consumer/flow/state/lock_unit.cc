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

void LockUnit::BecomeLeased(locking::Token token, bool took_over) {
  FENCEPOST_CHECK(lease_ == Lease::kAcquiring, "a lease that was not asked for");
  lease_ = Lease::kLeased;
  token_ = token;
  took_over_ = took_over;
}

void LockUnit::BecomeDone(locking::Token token, locking::ContentCrc crc) {
  FENCEPOST_CHECK(lease_ == Lease::kNone || lease_ == Lease::kAcquiring || lease_ == Lease::kLeased,
                  "a name is done of which a record's effect is in others' hands");
  lease_ = Lease::kDone;
  lock_ = {};
  token_ = token;
  done_crc_ = crc;
}

void LockUnit::BecomeLost(locking::Instant at) {
  FENCEPOST_CHECK(lease_ == Lease::kLeased, "a lease is lost that was not held");
  if (Planted("lost_lease_is_kept")) return;
  lease_ = Lease::kLost;
  lock_ = {};
  lost_at_ = at;
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
  took_over_ = false;
  in_ledger_ = false;
  lock_ = {};
  token_ = {};
}

LockUnit& LockUnits::Join(InFlight& record, std::string name, Sharing sharing,
                          std::uint32_t id_index) {
  FENCEPOST_CHECK(record.unit == nullptr, "a record is in one unit at most");
  if (unused_.empty()) {
    unused_.push_back(static_cast<std::uint32_t>(pool_.size()));
    pool_.emplace_back().index_ = unused_.back();
  }
  LockUnit* unit = &pool_[unused_.back()];
  unit->name_ = std::move(name);  // in an unused place, so that the name is looked up only once
  const auto [found, made] = by_name_.try_emplace(unit->name_, unit);
  if (made) {
    unused_.pop_back();
    unit->sharing_ = sharing;
    unit->closed_ = false;
    ++unit->life_;
  }
  unit = found.value();
  Append(record, *unit, id_index);
  return *unit;
}

void LockUnits::Join(InFlight& record, LockUnit& unit, std::uint32_t id_index) {
  FENCEPOST_CHECK(record.unit == nullptr && unit.shared() && unit.open(unit.life()),
                  "a record joins a unit that is over");
  Append(record, unit, id_index);
}

void LockUnits::Append(InFlight& record, LockUnit& unit, std::uint32_t id_index) {
  record.unit = &unit;
  record.unit_before = unit.last_;
  (unit.last_ == nullptr ? unit.first_ : unit.last_->unit_after) = &record;
  unit.last_ = &record;
  record.id_index = id_index;
  if (unit.taken_.size() <= id_index) unit.taken_.resize(id_index + 1);
  record.same_id_ahead = unit.taken_[id_index] && !Planted("same_id_side_by_side");
  unit.taken_[id_index] = true;
  unit.waiting_ += record.same_id_ahead ? 1 : 0;
}

void LockUnits::Close(LockUnit& unit) {
  if (!unit.shared() || std::exchange(unit.closed_, true)) return;
  by_name_.erase(std::string_view(unit.name_));
}

InFlight* LockUnits::Leave(InFlight& record) {
  LockUnit& unit = *std::exchange(record.unit, nullptr);
  InFlight* const before = std::exchange(record.unit_before, nullptr);
  InFlight* const after = std::exchange(record.unit_after, nullptr);
  (before == nullptr ? unit.first_ : before->unit_after) = after;
  (after == nullptr ? unit.last_ : after->unit_before) = before;
  if (std::exchange(record.same_id_ahead, false)) {
    --unit.waiting_;
    return nullptr;
  }
  unit.taken_[record.id_index] = false;
  if (unit.first_ == nullptr) {
    FENCEPOST_CHECK(unit.lease_ == Lease::kNone, "a lease without a record");
    if (!unit.closed_) by_name_.erase(std::string_view(unit.name_));
    unused_.push_back(unit.index_);
    return nullptr;
  }
  InFlight* next = unit.waiting_ == 0 ? nullptr : unit.first_;
  while (next != nullptr && !(next->same_id_ahead && next->id_index == record.id_index)) {
    next = next->unit_after;
  }
  if (next == nullptr) return nullptr;
  next->same_id_ahead = false;
  unit.taken_[record.id_index] = true;
  --unit.waiting_;
  return next;
}

LockUnit* LockUnits::Find(std::uint64_t cookie, locking::LockId lock) {
  if (cookie == 0 || cookie > pool_.size()) return nullptr;
  LockUnit& unit = pool_[cookie - 1];
  return unit.first_ != nullptr && unit.lock_ == lock ? &unit : nullptr;
}

}  // namespace fencepost::consumer
