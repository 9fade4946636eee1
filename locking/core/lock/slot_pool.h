// The slots of all locks, reused: no allocation a lock in the steady state. A value of LockCore, on
// its thread.
//
// Invariants: a slot keeps its address, since operations view its name; it is reused under another
// generation, and only once it has ended and no operation of it is without a reply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "locking/core/lock/slot.h"

namespace fencepost::locking {

class SlotPool {
 public:
  // An empty slot, whose stage is a LockAttempt. The caller sets its state.
  std::uint32_t New() {
    if (unused_.empty()) {
      slots_.emplace_back();
      unused_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
    }
    const std::uint32_t index = unused_.back();
    unused_.pop_back();
    LockSlot& slot = slots_[index];
    std::string name = std::move(slot.name);  // keeps its capacity
    name.clear();
    const std::uint32_t generation =
        slot.generation == LockId::kLastGeneration ? 1 : slot.generation + 1;
    const Instant scheduled = slot.scheduled;
    std::destroy_at(&slot);  // in place: it is large
    std::construct_at(&slot);
    slot.name = std::move(name);
    slot.generation = generation;
    slot.scheduled = scheduled;
    return index;
  }
  // Takes the slot back if it has ended and nothing of it is out.
  void Reclaim(std::uint32_t index) {
    LockSlot& slot = slots_[index];
    if (slot.state != LockState::kEnded || slot.outstanding != 0) return;
    slot.state = LockState::kUnused;
    unused_.push_back(index);
  }

  LockSlot& operator[](std::uint32_t index) { return slots_[index]; }
  const LockSlot& operator[](std::uint32_t index) const { return slots_[index]; }
  [[nodiscard]] LockId IdOf(std::uint32_t index) const { return {index, slots_[index].generation}; }
  // The lock has this slot, be it ended already.
  [[nodiscard]] bool Has(LockId lock) const {
    return lock.slot < slots_.size() && slots_[lock.slot].generation == lock.generation;
  }
  // The lock has not ended.
  [[nodiscard]] bool Live(LockId lock) const {
    return Has(lock) && slots_[lock.slot].state != LockState::kEnded &&
           slots_[lock.slot].state != LockState::kUnused;
  }
  [[nodiscard]] std::size_t size() const { return slots_.size(); }
  [[nodiscard]] std::size_t used() const { return slots_.size() - unused_.size(); }

 private:
  std::deque<LockSlot> slots_;
  std::vector<std::uint32_t> unused_;
};

}  // namespace fencepost::locking
