#include "tests/model/simulator/sim_log_samples.h"

#include <optional>

#include "tests/model/simulator/sim_worker.h"
#include "tests/model/simulator/world.h"

namespace fencepost::simulator {
namespace {

using consumer::Offset;
using consumer::PartitionIndex;

// What lasts for seconds there is to happen here within a second.
constexpr int kTimesAsFast = 20;

consumer::TopicPartition Where(PartitionIndex partition) {
  return {kTopic, static_cast<std::int32_t>(partition)};
}

}  // namespace

SimLogSamples::Clock::time_point SimLogSamples::Now() const {
  const int times = world_.plan.size == Size::kLasting ? 1 : kTimesAsFast;
  return Clock::time_point(std::chrono::duration_cast<Clock::duration>(world_.time.now() * times));
}

void SimLogSamples::Begin(const std::vector<StartAt>& starts) {
  End();
  for (const StartAt& start : starts) {
    const auto committed = consumer::ParseMetadata(start.metadata, start.offset).sample;
    known_.Begin(Where(start.partition), committed);
    if (!committed) continue;
    waiting_.insert(start.partition);
    Ask(start.partition, committed->offset);
  }
}

void SimLogSamples::End() {
  ++assignment_;
  waiting_.clear();
}

void SimLogSamples::OnRead(const consumer::Record& record) {
  const consumer::TopicPartition where = Where(record.partition);
  if (!known_.Wants(where, Now())) return;
  const auto ask = known_.Sampled(where, consumer::SampleOf(record), Now());
  if (ask) Ask(record.partition, *ask);
}

void SimLogSamples::Ask(PartitionIndex partition, Offset asked) {
  worker_.process().Later(Process::kKafka, 2 * world_.NetDelay(),
                          [this, partition, asked, assignment = assignment_] {
                            if (assignment == assignment_) Answer(partition, asked);
                          });
}

// Its fetches go on meanwhile, and tell first what they tell.
void SimLogSamples::Answer(PartitionIndex partition, Offset asked) {
  if (!consumer_.InRange(partition)) return;
  const consumer::TopicPartition where = Where(partition);
  const auto [compared, ask] = known_.Answered(where, world_.broker.Look(where, {asked}), Now());
  if (compared.verdict == consumer::LogComparison::Verdict::kOther) {
    return consumer_.Fail(consumer::TopicReplaced(kGroup, where, compared));
  }
  if (ask) return Ask(partition, *ask);
  if (waiting_.erase(partition) > 0) consumer_.OnCompared();
}

std::vector<std::string> SimLogSamples::MetadataFor(
    const std::vector<consumer::PartitionOffset>& offsets) {
  std::vector<std::string> metadata;
  for (const consumer::PartitionOffset& offset : offsets) {
    metadata.push_back(known_.TextFor(Where(offset.partition), offset.next, offset.failed));
  }
  return metadata;
}

}  // namespace fencepost::simulator
