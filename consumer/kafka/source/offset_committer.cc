#include "consumer/kafka/source/offset_committer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace fencepost::consumer {
namespace {

constexpr std::chrono::milliseconds kSlice{100};

rd_kafka_resp_err_t FirstError(const rd_kafka_topic_partition_list_t* list) {
  for (int i = 0; list != nullptr && i < list->cnt; ++i) {
    if (list->elems[i].err != RD_KAFKA_RESP_ERR_NO_ERROR) return list->elems[i].err;
  }
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

}  // namespace

CommitResult ClassifyCommit(rd_kafka_resp_err_t error) {
  switch (error) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
      return CommitResult::kCommitted;
    case RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION:
    case RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS:
    case RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID:
    case RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID:
    case RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST:
      return CommitResult::kRejected;
    default:
      return CommitResult::kFailed;
  }
}

void AddOffset(rd_kafka_topic_partition_list_t* list, const SourceOffset& offset,
               LogSamples* samples) {
  const auto& [where, next, failed] = offset;
  auto* one = rd_kafka_topic_partition_list_add(list, where.topic.c_str(), where.partition);
  one->offset = next;
  const std::string text = samples == nullptr ? "" : samples->TextFor(where, next, failed);
  if (text.empty()) return;
  one->metadata = std::malloc(text.size());  // librdkafka frees it
  std::memcpy(one->metadata, text.data(), text.size());
  one->metadata_size = text.size();
}

OffsetCommitter::OffsetCommitter(rd_kafka_t* consumer, Report report)
    : consumer_(consumer), report_(std::move(report)), answers_(rd_kafka_queue_new(consumer)) {}

void OffsetCommitter::Begin(const std::vector<AssignedPartition>& partitions,
                            std::shared_ptr<LogSamples> samples) {
  End();
  samples_ = std::move(samples);
  for (const AssignedPartition& p : partitions) Add(p);
}

void OffsetCommitter::Add(const AssignedPartition& p) {
  assigned_[p.partition] = Assigned{p.where, p.epoch, p.start, p.start};
}

void OffsetCommitter::End() {
  assigned_.clear();
  waiting_.clear();
}

void OffsetCommitter::Ask(const std::vector<PartitionOffset>& offsets) {
  for (const PartitionOffset& offset : offsets) {
    const auto found = assigned_.find(offset.partition);
    if (found == assigned_.end() || found->second.epoch != offset.epoch) continue;
    Assigned& assigned = found->second;
    if (offset.next < assigned.asked) continue;
    assigned.asked = offset.next;
    waiting_[offset.partition] = offset;
  }
}

void OffsetCommitter::Pump() {
  ReadAnswers(std::chrono::milliseconds(0));
  if (out_id_ == 0 && !waiting_.empty()) Send();
}

void OffsetCommitter::Send() {
  const rdkafka::PartitionList list = rdkafka::MakeList(waiting_.size());
  out_.clear();
  for (const auto& [index, offset] : waiting_) {
    const TopicPartition& where = assigned_.at(index).where;
    AddOffset(list.get(), {where, offset.next, offset.failed}, samples_.get());
    out_.emplace_back(where, offset);
  }
  waiting_.clear();
  out_id_ = ++last_id_;
  out_since_ = locking::BootClock::now();
  const rd_kafka_resp_err_t error = rd_kafka_commit_queue(
      consumer_, list.get(), answers_.get(), nullptr, reinterpret_cast<void*>(out_id_));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) Settle(error, nullptr);
}

void OffsetCommitter::ReadAnswers(std::chrono::milliseconds wait) {
  int wait_ms = static_cast<int>(wait.count());
  while (rdkafka::Event event{rd_kafka_queue_poll(answers_.get(), wait_ms)}) {
    if (rd_kafka_event_type(event.get()) == RD_KAFKA_EVENT_OFFSET_COMMIT) OnAnswer(event.get());
    wait_ms = 0;
  }
}

void OffsetCommitter::OnAnswer(rd_kafka_event_t* event) {
  const auto id = reinterpret_cast<std::uintptr_t>(rd_kafka_event_opaque(event));
  const rd_kafka_topic_partition_list_t* list = rd_kafka_event_topic_partition_list(event);
  if (id == out_id_) {
    Settle(rd_kafka_event_error(event), list);
  } else if (id == plain_id_) {
    plain_id_ = 0;
    plain_result_ = rd_kafka_event_error(event);
    if (plain_result_ == RD_KAFKA_RESP_ERR_NO_ERROR) plain_result_ = FirstError(list);
  }
}

// The request that is out has ended: `error` speaks of all of it, the list of each partition.
void OffsetCommitter::Settle(rd_kafka_resp_err_t error,
                             const rd_kafka_topic_partition_list_t* list) {
  out_id_ = 0;
  const Nanos took = locking::BootClock::now() - out_since_;
  CommitReport good{{}, CommitResult::kCommitted, out_since_, took, ""};
  CommitReport bad{{}, CommitResult::kFailed, out_since_, took, ""};
  bool too_large = false;
  for (const auto& [where, offset] : out_) {
    const rd_kafka_topic_partition_t* one =
        list == nullptr
            ? nullptr
            : rd_kafka_topic_partition_list_find(const_cast<rd_kafka_topic_partition_list_t*>(list),
                                                 where.topic.c_str(), where.partition);
    const rd_kafka_resp_err_t own =
        one != nullptr && one->err != RD_KAFKA_RESP_ERR_NO_ERROR ? one->err : error;
    const auto found = assigned_.find(offset.partition);
    const bool current = found != assigned_.end() && found->second.epoch == offset.epoch;
    if (own == RD_KAFKA_RESP_ERR_NO_ERROR) {
      if (current) found->second.committed = std::max(found->second.committed, offset.next);
      good.offsets.push_back(offset);
      continue;
    }
    too_large = too_large || IsMetadataTooLarge(own);
    bad.offsets.push_back(offset);
    bad.result = ClassifyCommit(own);
    bad.why = rd_kafka_err2str(own);
  }
  if (too_large && samples_ != nullptr) samples_->Shorten();  // once, however many say so
  out_.clear();
  if (!good.offsets.empty()) report_(std::move(good));
  if (!bad.offsets.empty()) report_(std::move(bad));
}

bool OffsetCommitter::Flush(const std::vector<PartitionOffset>& last,
                            std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
  Ask(last);
  while (out_id_ != 0 || !waiting_.empty()) {
    if (out_id_ == 0) Send();
    if (Clock::now() >= end) break;
    ReadAnswers(kSlice);
  }
  if (out_id_ != 0) {
    // Unknown: it may still arrive. Nothing of this assignment is sent after it.
    Settle(RD_KAFKA_RESP_ERR__TIMED_OUT, nullptr);
    return false;
  }
  return std::all_of(last.begin(), last.end(), [this](const PartitionOffset& offset) {
    const auto found = assigned_.find(offset.partition);
    return found == assigned_.end() || found->second.committed >= offset.next;
  });
}

tl::expected<void, rd_kafka_resp_err_t> OffsetCommitter::CommitNow(
    const rd_kafka_topic_partition_list_t* list, std::chrono::milliseconds limit,
    const std::function<bool()>& keep_waiting) {
  const auto end = Clock::now() + limit;
  plain_id_ = ++last_id_;
  plain_result_ = RD_KAFKA_RESP_ERR_NO_ERROR;
  const rd_kafka_resp_err_t error = rd_kafka_commit_queue(consumer_, list, answers_.get(), nullptr,
                                                          reinterpret_cast<void*>(plain_id_));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) plain_id_ = 0, plain_result_ = error;
  while (plain_id_ != 0 && Clock::now() < end && keep_waiting()) ReadAnswers(kSlice);
  if (plain_id_ != 0) {
    plain_id_ = 0;
    return tl::unexpected(RD_KAFKA_RESP_ERR__TIMED_OUT);
  }
  if (plain_result_ != RD_KAFKA_RESP_ERR_NO_ERROR) return tl::unexpected(plain_result_);
  return {};
}

}  // namespace fencepost::consumer
