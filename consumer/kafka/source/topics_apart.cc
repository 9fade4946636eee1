// Topics that a pattern matches and that cannot be begun: the others go on without them.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "consumer/kafka/source/initial_offsets.h"

namespace fencepost::consumer {
namespace {

constexpr std::chrono::seconds kAskApart{10};

}  // namespace

// A group that begins at the end does so with all its topics at once: before that, none is left.
bool InitialOffsets::LeavesApart(const std::string& topic, Turn turn, Clock::time_point until) {
  if (topics_.read().Names(topic)) return false;
  if (turn != Turn::kWait) return turn == Turn::kForbidden;
  if (Clock::now() < until) return false;
  return options_.start_from != StartFrom::kLatest || GroupHasBegun().value_or(false);
}

void InitialOffsets::LeaveApart(const std::string& topic, Turn turn,
                                rd_kafka_topic_partition_list_t* assigned) {
  std::vector<std::int32_t>& partitions = apart_[topic];
  for (int i = assigned->cnt - 1; i >= 0; --i) {
    if (topic != assigned->elems[i].topic) continue;
    partitions.push_back(assigned->elems[i].partition);
    rd_kafka_topic_partition_list_del_by_idx(assigned, i);
  }
  ask_apart_ = Clock::now() + kAskApart;
  const bool forbidden = turn == Turn::kForbidden;
  note_(locking::Severity::kWarn, forbidden ? "not_authorised" : "topic_waits",
        fmt::format("{} is not read yet, the others are: {}{}", topic, why_,
                    forbidden ? "; grant READ on it" : ""));
}

bool InitialOffsets::CanBeginAnother() {
  if (apart_.empty() || Clock::now() < ask_apart_) return false;
  ask_apart_ = Clock::now() + kAskApart;
  auto next = apart_.upper_bound(asked_apart_);
  if (next == apart_.end()) next = apart_.begin();
  const auto& [topic, partitions] = *next;
  asked_apart_ = topic;
  const rdkafka::PartitionList list = rdkafka::MakeList(partitions.size());
  for (const std::int32_t p : partitions) {
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), p);
  }
  const Turn turn = ResolveOnce(topic, list.get());
  if (turn != Turn::kDone && turn != Turn::kCommitted) return false;
  why_ = topic + " can be read now";
  return true;
}

}  // namespace fencepost::consumer
