#include "tests/model/simulator/operator.h"

#include <algorithm>
#include <regex>
#include <string>

#include "tests/model/simulator/world.h"

namespace fencepost::simulator {

using consumer::Offset;
using consumer::PartitionIndex;

// TOPIC,PARTITION,OFFSET, as the hint has them.
void Operator::OnStopped(const fencepost::Error& error) {
  static const std::regex line(R"( t,([0-9]+),([0-9]+))");
  const std::sregex_iterator end;
  for (std::sregex_iterator at(error.hint.begin(), error.hint.end(), line); at != end; ++at) {
    const auto partition = static_cast<PartitionIndex>(std::stoul((*at)[1]));
    const Offset offset = std::stoll((*at)[2]);
    const auto [known, is_new] = back_to_.emplace(partition, offset);
    if (!is_new) known->second = std::min(known->second, offset);
  }
  if (back_to_.empty()) world_.Violate("lost commits", "no offset is named: " + error.Line());
  if (std::exchange(expected_, true)) return;
  world_.time.In(world_.random.Time(Millis(50), world_.plan.looks), [this] { StopAll(); });
}

void Operator::StopAll() {
  world_.Note("the operator stops all workers");
  holds_ = true;
  for (int i = 0; i < world_.plan.workers; ++i) world_.Bury(i, world_.process(i).incarnation());
  SetBack();
}

// Kafka refuses it while the group has members.
void Operator::SetBack() {
  if (!world_.broker.Empty()) return world_.time.In(Millis(50), [this] { SetBack(); });
  for (const auto& [partition, offset] : back_to_) {
    const Log& log = world_.broker.logs[partition];
    if (!log.any_committed) {
      world_.broker.SetOffset(partition, 0);
    } else if (log.committed > offset) {
      world_.broker.SetOffset(partition, offset);
    }
  }
  back_to_.clear();
  holds_ = expected_ = false;
  world_.Count("offsets set back");
  for (int i = 0; i < world_.plan.workers; ++i) world_.Raise(i);
}

}  // namespace fencepost::simulator
