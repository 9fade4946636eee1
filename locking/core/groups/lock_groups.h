// The locks of several node groups behind one face: the way past what one set of nodes can carry.
// Each group is a LockCore with nodes and a store of its own; a name (the whole key) is locked,
// marked and asked for in one group only, that of GroupOf (group_place.h). So all promises about a
// name are those of its LockCore; between groups nothing is promised, and a group without a quorum
// keeps nobody else from work. With one group it is that LockCore. Sans-IO; one thread.
//
// A host drives each core as lock_core.h says, and hands the events of all to the user
// (TakeEvents). Node numbers within a core begin at 0; what observers and people are told is
// counted through all groups (core(g).spot()).
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "locking/core/group_place.h"
#include "locking/core/lock/lock_core.h"

namespace fencepost::locking {

class LockGroups {
 public:
  // `nodes`: how many there are of each group, in the order of the groups.
  LockGroups(const std::vector<int>& nodes, const LockOptions& options, StoreCreation creation,
             const LockCore::Random& random, LockObserver* observer);

  // --- users: as in LockCore -------------------------------------------------------------------
  LockId Acquire(const AcquireSpec& spec, Now now) { return Of(spec.name).Acquire(spec, now); }
  void Cancel(LockId lock, Now now) { Of(lock).Cancel(lock, now); }
  void Leave(LockId lock, Now now) { Of(lock).Leave(lock, now); }
  void Release(LockId lock, Now now) { Of(lock).Release(lock, now); }
  void Done(LockId lock, ContentCrc crc, Millis remember, Now now) {
    Of(lock).Done(lock, crc, remember, now);
  }
  void MarkDone(const MarkSpec& spec, Now now) { Of(spec.name).MarkDone(spec, now); }
  LockId Ask(OpKind kind, std::string_view name, std::uint64_t cookie, Now now) {
    return Of(name).Ask(kind, name, cookie, now);
  }
  void ExtendNow(LockId lock, Now now) { Of(lock).ExtendNow(lock, now); }
  void SetPhase(LockId lock, Phase phase) { Of(lock).SetPhase(lock, phase); }
  // For a write of this name; tokens of one name are of one clock.
  Token IssueToken(std::string_view name, Now now) { return Of(name).IssueToken(now); }
  [[nodiscard]] bool Valid(LockId lock, Now now) const { return Of(lock).Valid(lock, now); }
  [[nodiscard]] Instant ValidUntil(LockId lock) const { return Of(lock).ValidUntil(lock); }

  [[nodiscard]] int GroupOfName(std::string_view name) const {
    return cores_.size() == 1 ? 0 : GroupOfOneOfSeveral(name);
  }
  // Of some group: names of it can be locked.
  [[nodiscard]] bool AnyAvailable() const {
    return std::ranges::any_of(cores_, [](const auto& core) { return core->Available(); });
  }
  [[nodiscard]] std::size_t held() const;

  // --- hosts -----------------------------------------------------------------------------------
  [[nodiscard]] int size() const { return static_cast<int>(cores_.size()); }
  LockCore& core(int group) { return *cores_[static_cast<std::size_t>(group)]; }
  [[nodiscard]] const LockCore& core(int group) const {
    return *cores_[static_cast<std::size_t>(group)];
  }
  [[nodiscard]] bool HasEvents() const {
    return std::ranges::any_of(cores_, [](const auto& core) { return !core->events().empty(); });
  }
  // Takes the events of some group since the last drain, in their order, in exchange for `events`,
  // which is emptied. False: there are none of any group.
  bool TakeEvents(std::vector<LockEvent>& events);
  void OnTime(Now now);  // of all cores that are due
  [[nodiscard]] Instant NextTime() const;

 private:
  [[nodiscard]] int GroupOfOneOfSeveral(std::string_view name) const;
  LockCore& Of(std::string_view name) { return core(GroupOfName(name)); }
  LockCore& Of(LockId lock) { return core(static_cast<int>(lock.group)); }
  [[nodiscard]] const LockCore& Of(LockId lock) const { return core(static_cast<int>(lock.group)); }

  std::vector<std::unique_ptr<LockCore>> cores_;
  std::uint64_t salt_ = 0;  // 0, but where a bug is planted
};

}  // namespace fencepost::locking
