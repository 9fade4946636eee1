#include "tests/model/simulator/operator.h"

#include <algorithm>
#include <limits>
#include <regex>
#include <utility>

#include "tests/model/simulator/world.h"

namespace fencepost::simulator {

using consumer::Offset;
using consumer::PartitionIndex;

void Operator::OnStopped(const fencepost::Error& error, const By& by) {
  if (error.code == "partition_taken_over") {  // whatever runs the workers starts it again
    world_.Count("stopped: " + error.code);
    return world_.time.In(world_.random.Time(Millis(5), Millis(500)),
                          [this, by] { world_.Bury(by.worker, by.life); });
  }
  if (!Read(error, by)) return world_.Violate("progress", "a worker stopped: " + error.Line());
  world_.Count("stopped: " + error.code);
  if (std::exchange(expected_, true)) return;
  world_.time.In(world_.random.Time(Millis(50), world_.plan.looks), [this] { StopAll(); });
}

// False: nobody would know what to do.
bool Operator::Read(const fencepost::Error& error, const By& by) {
  if (error.code == "offset_out_of_range" || error.code == "topic_replaced") {
    return ReadOfLog(error, by);
  }
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

// The commands in the hint: of one partition, of the topic, or of the ledger.
bool Operator::ReadOfLog(const fencepost::Error& error, const By& by) {
  static const std::regex where(R"(t/([0-9]+).*)");
  static const std::regex reset(R"(--topic t(:[0-9]+)? --reset-offsets --to-(earliest|latest))");
  static const std::regex only(R"(if the group's offset is below ([0-9]+), set it)");
  static const std::regex forget(
      R"(forget FILE --topic t --partition ([0-9]+) --from 0 --to 9223372036854775807 )");
  std::smatch found;
  if (!std::regex_match(error.where, found, where)) return false;
  const int partition = std::stoi(found[1]);
  world_.checks.OnToldOfLog(partition, by);
  if (std::regex_search(error.hint, found, reset)) {
    const bool one = found[1].matched;
    const bool to_earliest = found[2] == "earliest";
    const bool any = !std::regex_search(error.hint, found, only);
    const Offset below = any ? std::numeric_limits<Offset>::max() : std::stoll(found[1]);
    for (std::size_t p = 0; p < world_.broker.logs.size(); ++p) {
      const bool meant = !one || static_cast<int>(p) == partition;
      if (!meant) continue;
      ResetTo& to = resets_[static_cast<PartitionIndex>(p)];
      to = {to_earliest, std::max(to.below, below)};
    }
  } else {
    return false;
  }
  if (std::regex_search(error.hint, found, forget)) {
    to_forget_.insert(static_cast<PartitionIndex>(std::stoul(found[1])));
  }
  return true;
}

bool Operator::Expected() const { return expected_ || to_restart_ > 0; }

void Operator::RestartAll() {
  to_restart_ = world_.plan.workers;
  Restart(0);
}

void Operator::Restart(int index) {
  if (index == world_.plan.workers) return;
  --to_restart_;
  world_.Note("the operator restarts w{}", index);
  world_.Bury(index, world_.process(index).incarnation());
  world_.time.In(world_.random.Time(Millis(5), world_.plan.session),
                 [this, index] { Restart(index + 1); });
}

void Operator::StopAll() {
  world_.Note("the operator stops all workers");
  holds_ = true;
  for (int i = 0; i < world_.plan.workers; ++i) world_.Bury(i, world_.process(i).incarnation());
  Repair();
}

// Kafka sets no offset while the group has members. And what workers have sent to the output has
// happened by then, or never does.
bool Operator::Quiet() const {
  const bool another_log = !to_forget_.empty() || !resets_.empty();
  const bool written = !another_log || !world_.ledger.AnySent();
  return world_.broker.Empty() && !world_.broker.AnyTransactionOpen() && written;
}

void Operator::Repair() {
  if (!Quiet()) return world_.time.In(Millis(50), [this] { Repair(); });
  SetBack();
  Reset();
  TakeBack();
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
  for (const auto& [partition, to] : resets_) {
    const Log& log = world_.broker.logs[partition];
    if (log.any_committed && log.committed >= to.below) continue;
    world_.broker.SetOffset(partition, to.to_earliest ? log.first : log.End(world_.time.now()));
    world_.Count("offsets reset");
  }
  resets_.clear();
}

void Operator::TakeBack() {
  SimOutput output(world_, world_.process(0));
  for (const PartitionIndex partition : to_forget_) {
    const consumer::PositionId first{
        .cluster = kCluster, .topic = kTopic, .partition = static_cast<std::int32_t>(partition)};
    const auto taken = output.ForgetOffsets(first, std::numeric_limits<Offset>::max());
    world_.Note("the operator takes back {} offsets of partition {}", taken.value_or(0), partition);
    world_.checks.OnForgotten(static_cast<int>(partition));
    world_.Count("partitions taken back");
  }
  to_forget_.clear();
}

}  // namespace fencepost::simulator
