// LockCore: waking those who wait for a name, when the nodes tell that it was freed.
#include <algorithm>

#include "locking/base/check.h"
#include "locking/core/lock/lock_core.h"

namespace fencepost::locking {
namespace {

constexpr int kWakeRoundTrips = 4;

}  // namespace

void LockCore::Watch(std::uint32_t index) {
  Slot& slot = slots_[index];
  auto& attempt = std::get<LockAttempt>(slot.stage);
  if (attempt.watched) return;
  attempt.watched = true;
  std::vector<std::uint32_t>& watching = watchers_[slot.name];
  if (watching.empty()) watch_changes_.push_back({slot.name, true});
  watching.push_back(index);
}

void LockCore::Unwatch(std::uint32_t index) {
  Slot& slot = slots_[index];
  auto* attempt = std::get_if<LockAttempt>(&slot.stage);
  if (attempt == nullptr || !attempt->watched) return;
  attempt->watched = false;
  const auto found = watchers_.find(slot.name);
  FENCEPOST_CHECK(found != watchers_.end(), slot.name);
  std::erase(found->second, index);
  if (!found->second.empty()) return;
  watch_changes_.push_back({slot.name, false});
  watchers_.erase(found);
}

bool LockCore::FreedOnMajority(const Slot& slot) const {
  return IsMajority(std::get<LockAttempt>(slot.stage).freed_at, nodes_);
}

// A few round trips for each that waits here, so that they come one after the other rather than
// all at once; what other processes do is spread by their own draws.
Nanos LockCore::DrawWakeDelay(const Slot& slot) {
  const auto found = watchers_.find(slot.name);
  const std::size_t here = found == watchers_.end() ? 1 : found->second.size();
  const auto longest = static_cast<std::uint64_t>(round_trip_.count()) * kWakeRoundTrips * here;
  return Nanos(static_cast<std::int64_t>(random_() % (longest + 1)));
}

void LockCore::OnFreed(NodeIndex node, std::string_view name, Now now) {
  last_now_ = now;
  const auto found = watchers_.find(std::string(name));
  if (found == watchers_.end()) return;
  for (const std::uint32_t index : found->second) {
    Slot& slot = slots_[index];
    auto& attempt = std::get<LockAttempt>(slot.stage);
    const bool told_before = FreedOnMajority(slot);
    attempt.freed_at |= Bit(node);
    const bool waits = slot.state == State::kWaiting && !attempt.awaiting_quorum;
    if (!waits || told_before || !FreedOnMajority(slot)) continue;
    const Instant soon = now.boot + DrawWakeDelay(slot);
    if (soon >= slot.due) continue;
    attempt.last_round = false;
    Schedule(index, soon);
  }
  Settle(now);
}

}  // namespace fencepost::locking
