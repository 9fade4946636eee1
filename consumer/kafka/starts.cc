#include "consumer/kafka/starts.h"

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace fencepost::consumer {
namespace {

constexpr int kCallMs = 1000;  // one question to the cluster; Stop waits at most this long
constexpr std::chrono::milliseconds kBetween{50};

}  // namespace

StartStep DecideStart(const std::vector<KnownPartition>& partitions) {
  const auto has = [](const KnownPartition& p) { return p.committed.has_value(); };
  if (std::none_of(partitions.begin(), partitions.end(), has)) {
    const bool lowest = !partitions.empty() && partitions.front().owned;
    return lowest ? StartStep::kCommitAll : StartStep::kWait;
  }
  const bool ready = std::all_of(partitions.begin(), partitions.end(),
                                 [&](const KnownPartition& p) { return !p.owned || has(p); });
  return ready ? StartStep::kReady : StartStep::kCommitNew;
}

StartResolver::StartResolver(rd_kafka_t* consumer, Commits* commits, StartFrom start_from,
                             std::function<bool()> cancelled, Note note)
    : consumer_(consumer),
      commits_(commits),
      start_from_(start_from),
      cancelled_(std::move(cancelled)),
      note_(std::move(note)) {}

StartResolver::Outcome StartResolver::Resolve(rd_kafka_topic_partition_list_t* assigned,
                                              std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
  std::set<std::string> topics;
  for (int i = 0; i < assigned->cnt; ++i) topics.insert(assigned->elems[i].topic);
  for (const std::string& topic : topics) {
    Turn turn = Turn::kAgain;
    while (turn == Turn::kAgain) {
      if (cancelled_()) return Outcome::kCancelled;
      turn = ResolveOnce(topic, assigned);
      if (turn != Turn::kAgain) break;
      if (Clock::now() >= end) return Outcome::kRejoin;
      std::this_thread::sleep_for(kBetween);
    }
    if (turn == Turn::kRejoin) return Outcome::kRejoin;
  }
  return Outcome::kResolved;
}

StartResolver::Turn StartResolver::Again(std::string why) {
  why_ = std::move(why);
  return Turn::kAgain;
}

StartResolver::Turn StartResolver::ResolveOnce(const std::string& topic,
                                               rd_kafka_topic_partition_list_t* assigned) {
  const auto count = PartitionCount(topic);
  if (!count) return Again(count.error());
  const auto partitions = Committed(topic, *count, assigned);
  if (!partitions) return Again(partitions.error());
  switch (const StartStep step = DecideStart(*partitions)) {
    case StartStep::kWait:
      return Again(fmt::format(
          "waiting for the worker that owns {}/0 to commit the topic's first offsets", topic));
    case StartStep::kCommitAll:
    case StartStep::kCommitNew:
      return CommitStarts(topic, *partitions, step);
    case StartStep::kReady:
      break;
  }
  for (int i = 0; i < assigned->cnt; ++i) {
    rd_kafka_topic_partition_t& one = assigned->elems[i];
    if (topic != one.topic) continue;
    one.offset = *(*partitions)[static_cast<std::size_t>(one.partition)].committed;
  }
  return Turn::kDone;
}

tl::expected<int, std::string> StartResolver::PartitionCount(const std::string& topic) {
  const rdkafka::Topic handle(rd_kafka_topic_new(consumer_, topic.c_str(), nullptr));
  const rd_kafka_metadata_t* raw = nullptr;
  const auto error = rd_kafka_metadata(consumer_, 0, handle.get(), &raw, kCallMs);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return tl::unexpected(fmt::format("metadata of {}: {}", topic, rd_kafka_err2str(error)));
  }
  const rdkafka::Metadata metadata(raw);
  if (metadata->topic_cnt != 1 || metadata->topics[0].err != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return tl::unexpected(fmt::format(
        "metadata of {}: {}", topic,
        metadata->topic_cnt != 1 ? "not there" : rd_kafka_err2str(metadata->topics[0].err)));
  }
  return metadata->topics[0].partition_cnt;
}

tl::expected<std::vector<KnownPartition>, std::string> StartResolver::Committed(
    const std::string& topic, int count, const rd_kafka_topic_partition_list_t* assigned) {
  std::vector<KnownPartition> partitions(static_cast<std::size_t>(count));
  for (int i = 0; i < assigned->cnt; ++i) {
    if (topic != assigned->elems[i].topic) continue;
    if (assigned->elems[i].partition >= count) {
      return tl::unexpected(fmt::format("metadata of {} does not know partition {} yet", topic,
                                        assigned->elems[i].partition));
    }
    partitions[static_cast<std::size_t>(assigned->elems[i].partition)].owned = true;
  }
  const rdkafka::PartitionList list = rdkafka::MakeList(partitions.size());
  rd_kafka_topic_partition_list_add_range(list.get(), topic.c_str(), 0, count - 1);
  const auto error = rd_kafka_committed(consumer_, list.get(), kCallMs);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return tl::unexpected(
        fmt::format("committed offsets of {}: {}", topic, rd_kafka_err2str(error)));
  }
  for (int i = 0; i < list->cnt; ++i) {
    const rd_kafka_topic_partition_t& one = list->elems[i];
    if (one.err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return tl::unexpected(fmt::format("committed offset of {}/{}: {}", topic, one.partition,
                                        rd_kafka_err2str(one.err)));
    }
    if (one.offset >= 0) partitions[static_cast<std::size_t>(one.partition)].committed = one.offset;
  }
  return partitions;
}

StartResolver::Turn StartResolver::CommitStarts(const std::string& topic,
                                                const std::vector<KnownPartition>& partitions,
                                                StartStep step) {
  const bool all = step == StartStep::kCommitAll;
  const bool latest = all && start_from_ == StartFrom::kLatest;
  const rdkafka::PartitionList list = rdkafka::MakeList(partitions.size());
  for (std::size_t p = 0; p < partitions.size(); ++p) {
    if (!all && (!partitions[p].owned || partitions[p].committed)) continue;
    // ListOffsets takes -2 and -1 for a timestamp: the first offset, and the last stable one.
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), static_cast<std::int32_t>(p))
        ->offset = latest ? RD_KAFKA_OFFSET_END : RD_KAFKA_OFFSET_BEGINNING;
  }
  const auto error = rd_kafka_offsets_for_times(consumer_, list.get(), kCallMs);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return Again(fmt::format("offsets of {}: {}", topic, rd_kafka_err2str(error)));
  }
  for (int i = 0; i < list->cnt; ++i) {
    const rd_kafka_topic_partition_t& one = list->elems[i];
    if (one.err != RD_KAFKA_RESP_ERR_NO_ERROR || one.offset < 0) {
      return Again(
          fmt::format("offset of {}/{}: {}", topic, one.partition, rd_kafka_err2str(one.err)));
    }
  }
  const auto done = commits_->CommitNow(list.get(), std::chrono::milliseconds(5 * kCallMs),
                                        [this] { return !cancelled_(); });
  if (!done) {
    why_ = fmt::format("the first offsets of {} were not committed: {}", topic,
                       rd_kafka_err2str(done.error()));
    return ClassifyCommit(done.error()) == CommitResult::kRejected ? Turn::kRejoin : Turn::kAgain;
  }
  note_("starts_committed",
        all ? fmt::format("the group had no offsets on {}: the {} offsets of all {} partitions are "
                          "committed as its start",
                          topic, latest ? "latest" : "earliest", list->cnt)
            : fmt::format("{} new partition(s) of {} start at the earliest offset", list->cnt,
                          topic));
  return Turn::kAgain;  // read back what stands, so that what is used is what is committed
}

}  // namespace fencepost::consumer
