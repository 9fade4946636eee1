#include "tests/model/simulator/sim_fingerprints.h"

#include <optional>

#include "tests/model/simulator/sim_worker.h"
#include "tests/model/simulator/world.h"

namespace fencepost::simulator {
namespace {

using consumer::Fingerprint;
using consumer::FingerprintAnswer;
using consumer::PartitionIndex;

// What lasts for seconds there is to happen here within a second.
constexpr int kTimesAsFast = 20;

consumer::TopicPartition Where(PartitionIndex partition) {
  return {kTopic, static_cast<std::int32_t>(partition)};
}

}  // namespace

SimFingerprints::Clock::time_point SimFingerprints::Now() const {
  const int times = world_.plan.size == Size::kLasting ? 1 : kTimesAsFast;
  return Clock::time_point(std::chrono::duration_cast<Clock::duration>(world_.time.now() * times));
}

void SimFingerprints::Begin(const std::vector<StartAt>& starts) {
  End();
  for (const StartAt& start : starts) {
    const auto committed = consumer::ParseFingerprint(start.metadata, start.offset);
    known_.Begin(Where(start.partition), committed);
    if (!committed) continue;
    waiting_.insert(start.partition);
    Ask(start.partition, *committed);
  }
}

void SimFingerprints::End() {
  ++assignment_;
  waiting_.clear();
}

void SimFingerprints::OnRead(const consumer::Record& record) {
  const consumer::TopicPartition where = Where(record.partition);
  if (!known_.Wants(where, Now())) return;
  const auto question = known_.Sampled(where, consumer::FingerprintOf(record), Now());
  if (question) Ask(record.partition, *question);
}

void SimFingerprints::Ask(PartitionIndex partition, const Fingerprint& asked) {
  worker_.process().Later(Process::kKafka, 2 * world_.NetDelay(),
                          [this, partition, asked, assignment = assignment_] {
                            if (assignment == assignment_) Answer(partition, asked);
                          });
}

// Its fetches go on meanwhile, and tell first what they tell.
void SimFingerprints::Answer(PartitionIndex partition, const Fingerprint& asked) {
  if (!consumer_.InRange(partition)) return;
  const Log& log = world_.broker.logs[partition];
  const std::size_t place = log.PlaceOf(asked.offset);
  const bool there =
      place < log.Visible(world_.time.now()) && log.records[place].offset == asked.offset;
  auto answer = FingerprintAnswer::kMissing;
  if (there) {
    const Fingerprint found = consumer::FingerprintOf(Broker::Read(log.records[place], partition));
    answer = found == asked ? FingerprintAnswer::kSame : FingerprintAnswer::kDifferent;
    if (answer == FingerprintAnswer::kDifferent) {
      return consumer_.Fail(consumer::TopicReplaced(kGroup, Where(partition), asked, found));
    }
  }
  if (const auto next = known_.Answered(Where(partition), answer, Now())) {
    return Ask(partition, *next);
  }
  if (waiting_.erase(partition) > 0) consumer_.OnCompared();
}

std::vector<std::string> SimFingerprints::MetadataFor(
    const std::vector<consumer::PartitionOffset>& offsets) {
  std::vector<std::string> metadata;
  for (const consumer::PartitionOffset& offset : offsets) {
    metadata.push_back(known_.TextFor(Where(offset.partition), offset.next));
  }
  return metadata;
}

}  // namespace fencepost::simulator
