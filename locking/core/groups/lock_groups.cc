#include "locking/core/groups/lock_groups.h"

#include "locking/base/check.h"
#include "locking/base/planted.h"

namespace fencepost::locking {

LockGroups::LockGroups(const std::vector<int>& nodes, const LockOptions& options,
                       StoreCreation creation, const LockCore::Random& random,
                       LockObserver* observer) {
  const int groups = static_cast<int>(nodes.size());
  FENCEPOST_CHECK(groups >= 1 && groups <= kMaxGroups, "number of node groups");
  NodeIndex first = 0;
  for (int group = 0; group < groups; ++group) {
    const int count = nodes[static_cast<std::size_t>(group)];
    cores_.push_back(std::make_unique<LockCore>(
        count, options, creation, random, observer,
        GroupSpot{.place = {.group = group, .groups = groups}, .first_node = first}));
    first += count;
  }
  if (groups == 1) return;
  FENCEPOST_CHECK(first <= kMaxNodesInAll, "number of lock nodes in all groups");
  std::vector<const Store*> stores;
  for (const auto& core : cores_) stores.push_back(&core->store());
  for (const auto& core : cores_) core->store().SetGroups(stores);
  if (Planted("name_asked_of_the_wrong_group")) salt_ = random();  // as std::hash may be seeded
}

int LockGroups::GroupOfOneOfSeveral(std::string_view name) const {
  const int group = GroupOf(name, size());
  return salt_ == 0 ? group : (group + static_cast<int>((HashOf(name) ^ salt_) % 2)) % size();
}

std::size_t LockGroups::held() const {
  std::size_t held = 0;
  for (const auto& core : cores_) held += core->held();
  return held;
}

bool LockGroups::TakeEvents(std::vector<LockEvent>& events) {
  events.clear();
  for (const auto& core : cores_) {
    if (core->events().empty()) continue;
    events.swap(core->events());
    return true;
  }
  return false;
}

void LockGroups::OnTime(Now now) {
  for (const auto& core : cores_) {
    if (core->NextTime() <= now.boot) core->OnTime(now);
  }
}

Instant LockGroups::NextTime() const {
  Instant next = Instant::max();
  for (const auto& core : cores_) next = std::min(next, core->NextTime());
  return next;
}

}  // namespace fencepost::locking
