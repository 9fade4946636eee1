#include "tests/model/simulator/operator.h"

#include <algorithm>
#include <regex>
#include <utility>

#include "tests/model/simulator/world.h"

namespace fencepost::simulator {

using consumer::Offset;
using consumer::PartitionIndex;

void Operator::OnStopped(const fencepost::Error& error, const By& by) {
  if (!Read(error, by)) return world_.Violate("progress", "a worker stopped: " + error.Line());
  world_.Count("stopped: " + error.code);
  if (std::exchange(expected_, true)) return;
  world_.time.In(world_.random.Time(Millis(50), world_.plan.looks), [this] { StopAll(); });
}

// False: nobody would know what to do.
bool Operator::Read(const fencepost::Error& error, const By& by) {
  if (error.code == "offset_out_of_range") return ReadOutOfRange(error.hint, by);
  if (error.code != "lost_commits") return false;
  world_.checks.OnStopped(by);
  return ReadLostCommits(error.hint);
}

// TOPIC,PARTITION,OFFSET, as the hint has them.
bool Operator::ReadLostCommits(const std::string& hint) {
  static const std::regex line(R"( t,([0-9]+),([0-9]+))");
  const std::sregex_iterator end;
  for (std::sregex_iterator at(hint.begin(), hint.end(), line); at != end; ++at) {
    const auto partition = static_cast<PartitionIndex>(std::stoul((*at)[1]));
    const Offset offset = std::stoll((*at)[2]);
    const auto [known, is_new] = back_to_.emplace(partition, offset);
    if (!is_new) known->second = std::min(known->second, offset);
  }
  return !back_to_.empty();
}

bool Operator::ReadOutOfRange(const std::string& hint, const By& by) {
  static const std::regex line(R"(--topic t:([0-9]+) --reset-offsets --to-(earliest|latest))");
  std::smatch found;
  if (!std::regex_search(hint, found, line)) return false;
  const auto partition = static_cast<PartitionIndex>(std::stoul(found[1]));
  world_.checks.OnOutOfRange(static_cast<int>(partition), by);
  reset_[partition] = found[2] == "earliest";
  return true;
}

void Operator::StopAll() {
  world_.Note("the operator stops all workers");
  holds_ = true;
  for (int i = 0; i < world_.plan.workers; ++i) world_.Bury(i, world_.process(i).incarnation());
  SetOffsets();
}

// Kafka refuses it while the group has members.
void Operator::SetOffsets() {
  if (!world_.broker.Empty() || world_.broker.AnyTransactionOpen()) {
    return world_.time.In(Millis(50), [this] { SetOffsets(); });
  }
  SetBack();
  Reset();
  holds_ = expected_ = false;
  for (int i = 0; i < world_.plan.workers; ++i) world_.Raise(i);
}

void Operator::SetBack() {
  for (const auto& [partition, offset] : back_to_) {
    const Log& log = world_.broker.logs[partition];
    const Offset kept = std::max(offset, log.first);  // the tool says so, and takes this one
    if (!log.any_committed) {
      world_.broker.SetOffset(partition, log.first);
    } else if (log.committed > kept || kept > offset) {
      world_.broker.SetOffset(partition, std::min(log.committed, kept));
    }
  }
  if (!back_to_.empty()) world_.Count("offsets set back");
  back_to_.clear();
}

void Operator::Reset() {
  for (const auto& [partition, to_earliest] : reset_) {
    const Log& log = world_.broker.logs[partition];
    world_.broker.SetOffset(partition, to_earliest ? log.first : log.End(world_.time.now()));
    world_.Count("offsets reset");
  }
  reset_.clear();
}

}  // namespace fencepost::simulator
