// Node groups: what the stores of one list see of each other, so that no two lists that differ in
// the number or order of their groups are both in use (invariant 24).
#include <algorithm>

#include <fmt/format.h>

#include "locking/core/store/store.h"

namespace fencepost::locking {

// A node here is of a store with another place than the list says, or was when it was last read.
bool Store::Misplaced() const {
  if (creation_ == StoreCreation::kForced && !overwritten_) return false;
  return std::ranges::any_of(nodes_, &Node::misplaced);
}

// The names of this group may be looked for elsewhere by clients with the list that the nodes know.
bool Store::OtherList() const {
  return std::ranges::any_of(groups_, [](const Store* one) { return one->Misplaced(); });
}

bool Store::Stands() const {
  const auto members = std::ranges::count_if(nodes_, [this](const Node& node) {
    return InStore(node) && Generation(node.sentinel->epoch) == generation_;
  });
  return members >= Quorum(count()) && !Misplaced();
}

bool Store::Seen() const {
  const auto seen = std::ranges::count_if(nodes_, &Node::Readable);
  return seen >= Quorum(count()) && !Misplaced();
}

// Groups are made in their order: so where one is, those before it were once, with the same number
// of groups, and a list with another number is refused by each of them.
std::string Store::WhyNoneIsMade() const {
  if (spot_.place.groups == 1) return "";
  if (groups_.empty()) return "only one group is in use here, which makes none";
  for (int group = 0; group < spot_.place.groups; ++group) {
    const Store& other = *groups_[static_cast<std::size_t>(group)];
    if (&other == this) continue;
    if (other.Misplaced()) return fmt::format("group {} is of another list", group + 1);
    if (group < spot_.place.group && !other.Stands()) {
      return fmt::format("that of group {} is not there", group + 1);
    }
    if (group > spot_.place.group && !other.Seen()) {
      return fmt::format("too few nodes of group {} answer", group + 1);
    }
  }
  return "";
}

}  // namespace fencepost::locking
