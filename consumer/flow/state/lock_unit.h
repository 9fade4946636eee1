// A lock unit: one lock of the LockCore, its lease, and the records here that share it. A record
// asks its unit how it is locked. Sans-IO: the flow asks the core, and tells the unit what it did
// and heard; the engine thread's.
//
// clang-format off
//   none → acquiring → leased → lost (a record of it is in others' hands)
//     ↘      ↓   ↘       ↓        ↓
//     unlocked     done (heard)      from each of them back to none
// clang-format on
//
// Which of its records go ahead is decided here alone (`MayProceed`): of each id one, and the
// others wait for it in the order in which they came. An exclusive unit is that of one id: its
// lease ends with the record that works, unless the flow hands it on to the next. In a shared unit
// the records of all its ids go ahead under one lease, which is kept until the last of them has
// left; its loss concerns them all.
//
// Invariants: `lock` is set while acquiring and leased; a token is there from `leased`, `done` or
// `unlocked` on until `none`; a unit has at least one record, and is gone without; the record that
// works in an exclusive unit is its first.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "consumer/flow/state/in_flight.h"
#include "consumer/flow/state/name_map.h"
#include "locking/base/types.h"

namespace fencepost::consumer {

enum class Sharing : std::uint8_t {
  kExclusive,  // those of one id
  kShared,     // those of a block of ids
};

enum class Lease : std::uint8_t {
  kNone,       // nothing is asked for
  kAcquiring,  // the lock is being acquired
  kLeased,
  kDone,      // none: the name is DONE, or its row was read. The ledger decides, if there is one
  kLost,      // at lost_at(), while a record had its effect in others' hands
  kUnlocked,  // none is asked for while the lock nodes are unavailable: the ledger decides
};

class LockUnit {
 public:
  [[nodiscard]] const std::string& name() const { return name_; }  // the whole key
  [[nodiscard]] std::uint64_t cookie() const { return index_ + 1; }
  [[nodiscard]] Lease lease() const { return lease_; }
  [[nodiscard]] locking::LockId lock() const { return lock_; }
  [[nodiscard]] locking::Token token() const { return token_; }
  [[nodiscard]] bool shared() const { return sharing_ == Sharing::kShared; }
  [[nodiscard]] bool closed() const { return closed_; }  // LockUnits::Close
  // Its place is used for another unit, of another life, once its last record has left.
  [[nodiscard]] std::uint64_t life() const { return life_; }
  // It is still the unit of this life, and more records may join it.
  [[nodiscard]] bool open(std::uint64_t life) const {
    return life_ == life && first_ != nullptr && !closed_;
  }
  // The lease was acquired after another's deadline had passed.
  [[nodiscard]] bool took_over() const { return took_over_; }
  // The ledger is known to have the row of its id: whoever finds the name held can see that.
  [[nodiscard]] bool in_ledger() const { return in_ledger_; }
  // The first round is over, without a lease: those behind in the chain are not locked meanwhile.
  [[nodiscard]] bool round_failed() const { return round_failed_; }
  [[nodiscard]] locking::Instant lost_at() const { return lost_at_; }
  // kUnlocked: what was found out of the ledger holds until then (Flow::ProceedUnlocked).
  [[nodiscard]] locking::Instant unlocked_until() const { return unlocked_until_; }
  [[nodiscard]] locking::ContentCrc done_crc() const { return done_crc_; }  // as the mark says

  // This record, which is in the unit, goes ahead. Else it waits for another one.
  [[nodiscard]] bool MayProceed(const InFlight& record) const { return !record.same_id_ahead; }
  // No lease is left when this record leaves: those that stay need one of their own.
  [[nodiscard]] bool LeaseEndsWith(const InFlight& record) const {
    return MayProceed(record) && (sharing_ == Sharing::kExclusive || first_ == last_);
  }
  [[nodiscard]] InFlight* first() const { return first_; }  // never null

  // Each names the state that follows, and checks the ones before it.
  void BecomeAcquiring(locking::LockId lock);
  void FailRound();
  void BecomeLeased(locking::Token token, bool took_over = false);
  void NoteInLedger() { in_ledger_ = true; }
  void BecomeDone(locking::Token token, locking::ContentCrc crc);
  void BecomeLost(locking::Instant at);
  void BecomeUnlocked(locking::Token token, locking::Instant until);
  void BecomeNone();

 private:
  friend class LockUnits;
  std::string name_;
  std::uint32_t index_ = 0;  // in the pool
  std::uint64_t life_ = 0;
  Sharing sharing_ = Sharing::kExclusive;
  Lease lease_ = Lease::kNone;
  bool round_failed_ = false;
  bool closed_ = false;
  bool took_over_ = false;
  bool in_ledger_ = false;
  std::vector<bool> taken_;  // by InFlight::id_index: a record with that id goes ahead
  std::size_t waiting_ = 0;  // records that do not go ahead
  locking::LockId lock_;
  locking::Token token_;
  locking::Instant lost_at_;
  locking::Instant unlocked_until_;
  locking::ContentCrc done_crc_ = 0;
  InFlight* first_ = nullptr;  // InFlight::unit_before, unit_after
  InFlight* last_ = nullptr;
};

// All units, by name.
class LockUnits {
 public:
  // The record joins the unit of this name, as the last one. All that join it say the same sharing.
  // `id_index`: which of the unit's ids it has; 0 where there is one.
  LockUnit& Join(InFlight& record, std::string name, Sharing sharing, std::uint32_t id_index = 0);
  // … this shared unit, which is open(life).
  void Join(InFlight& record, LockUnit& unit, std::uint32_t id_index);
  // No more records join a shared unit whose lease is no more: those that come make another unit of
  // its name. Changes nothing of an exclusive one, in which they wait.
  void Close(LockUnit& unit);
  // The record leaves its unit, which is gone with the last one; its lease had become kNone then.
  // Returns the next record with its id, which may go ahead now; null: there is none.
  InFlight* Leave(InFlight& record);
  // Each that has a record. `visit` adds and removes no records.
  template <typename Visit>
  void ForEach(Visit visit) {
    for (LockUnit& unit : pool_) {
      if (unit.first_ != nullptr) visit(unit);
    }
  }
  // To which the core's event belongs. Null: it is over here.
  [[nodiscard]] LockUnit* Find(std::uint64_t cookie, locking::LockId lock);

 private:
  static void Append(InFlight& record, LockUnit& unit, std::uint32_t id_index);

  std::deque<LockUnit> pool_;  // stable addresses
  std::vector<std::uint32_t> unused_;
  NameMap<LockUnit*> by_name_;  // LockUnit::name_
};

// Of a record that goes ahead in its unit.
inline bool Has(const InFlight& record, Lease lease) {
  return record.unit != nullptr && record.unit->lease() == lease && record.unit->MayProceed(record);
}
inline bool Leased(const InFlight& record) { return Has(record, Lease::kLeased); }
// The name is DONE: no lease; the ledger decides, where there is one.
inline bool FoundDone(const InFlight& record) { return Has(record, Lease::kDone); }
// Its lock is no longer in its way: leased, or the ledger decides without a lease.
inline bool PassedLock(const InFlight& record) {
  return Leased(record) || FoundDone(record) || Has(record, Lease::kUnlocked);
}
inline locking::Token TokenOf(const InFlight& record) {
  return record.unit != nullptr && record.unit->MayProceed(record) ? record.unit->token()
                                                                   : locking::Token();
}
// Its lease may come within a round trip: those behind it may be locked along with it.
inline bool LeaseMayArriveSoon(const InFlight& record) {
  return record.stage() == Stage::kGranted ||
         (record.stage() == Stage::kLocking && !record.unit->round_failed());
}

}  // namespace fencepost::consumer
