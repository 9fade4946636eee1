// What healing asks of a node.
#include <algorithm>

#include "locking/base/check.h"
#include "locking/core/unit_value.h"
#include "tests/support/node_model.h"

namespace fencepost::locking {

std::optional<NodeSight> NodeModel::Sight(std::span<const std::string> names,
                                          WallTime node_now) const {
  if (!complete_) return std::nullopt;
  NodeSight sight{node_now, *sentinel_, {}};
  for (const std::string& name : names) {
    const Unit unit = Look(name, node_now);
    const bool there = unit.state != State::kAbsent && unit.state != State::kForeign;
    sight.values.push_back({Encode(unit), there ? unit.expires - node_now : Millis(0)});
  }
  return sight;
}

std::optional<std::vector<bool>> NodeModel::Heal(const std::string& sentinel,
                                                 std::span<const HealWrite> writes,
                                                 WallTime node_now) {
  if (sentinel_ != sentinel || !Quarantined(node_now)) return std::nullopt;
  std::vector<bool> took_effect;
  for (const HealWrite& write : writes) {
    took_effect.push_back(Encode(Look(write.name, node_now)) == write.expected);
    if (!took_effect.back()) continue;
    const auto value = UnitValue::Decode(write.value);
    FENCEPOST_CHECK(value, write.value);
    Unit unit;
    unit.state = value->state == UnitValue::State::kHeld   ? State::kHeld
                 : value->state == UnitValue::State::kFree ? State::kFree
                                                           : State::kDone;
    unit.token = value->token;
    unit.nonce = value->nonce;
    unit.deadline = value->deadline;
    unit.floor = value->floor;
    unit.crc = value->crc;
    unit.expires = node_now + write.left;
    units_[write.name] = unit;
  }
  return took_effect;
}

}  // namespace fencepost::locking
