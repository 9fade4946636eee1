#include "consumer/kafka/source/intake.h"

#include <algorithm>
#include <utility>

#include "consumer/kafka/client/message.h"
#include "locking/base/check.h"

namespace fencepost::consumer {
namespace {

using Clock = std::chrono::steady_clock;

// Limits of one batch.
constexpr std::size_t kRecords = 1000;
constexpr std::uint64_t kBytes = std::uint64_t{4} << 20;
constexpr std::chrono::milliseconds kTime{5};

}  // namespace

Intake::Intake(rdkafka::SharedConsumer consumer) : consumer_(std::move(consumer)) {}

void Intake::Open(const std::vector<AssignedPartition>& partitions,
                  const std::vector<TopicPartition>& apart) {
  Close();
  Exchange(rdkafka::Queue(rd_kafka_queue_new(consumer_.get())));
  for (const AssignedPartition& p : partitions) {
    Forward(p.where, queue_.get());
    assigned_[p.partition] = Assigned{.partition = p, .next = p.start};
  }
  for (const TopicPartition& where : apart) {
    rdkafka::Queue& own = apart_[where];
    own.reset(rd_kafka_queue_new(consumer_.get()));
    Forward(where, own.get());
  }
}

void Intake::Forward(const TopicPartition& where, rd_kafka_queue_t* to) {
  const rdkafka::Queue own(
      rd_kafka_queue_get_partition(consumer_.get(), where.topic.c_str(), where.partition));
  FENCEPOST_CHECK(own != nullptr, where.topic);
  rd_kafka_queue_forward(own.get(), to);
}

void Intake::Admit(const AssignedPartition& partition) {
  FENCEPOST_CHECK(apart_.contains(partition.where), "a partition is admitted that was not late");
  assigned_[partition.partition] = Assigned{.partition = partition, .next = partition.start};
  SetPaused({}, true);  // where all others are paused, librdkafka may not know it yet
}

// Its queue takes with it what it holds.
void Intake::Release(const TopicPartition& where) {
  const auto own = apart_.find(where);
  FENCEPOST_CHECK(own != apart_.end(), "a partition is released that was not kept apart");
  rd_kafka_queue_forward(own->second.get(), queue_.get());
}

// librdkafka keeps a partition paused that is assigned again, and this knows nothing of it then.
void Intake::Close() {
  std::vector<Assigned*> paused;
  for (auto& [index, assigned] : assigned_) {
    if (assigned.paused_there) paused.push_back(&assigned);
  }
  PauseThere(false, paused);
  by_topic_.clear();
  assigned_.clear();
  paused_ = 0;
  apart_.clear();
  Exchange(nullptr);
}

void Intake::Exchange(rdkafka::Queue queue) {
  const std::lock_guard lock(mutex_);
  queue_.swap(queue);
}

void Intake::Interrupt() {
  const std::lock_guard lock(mutex_);
  if (queue_ != nullptr) rd_kafka_queue_yield(queue_.get());
}

void Intake::Pause(const std::vector<PartitionIndex>& partitions) { SetPaused(partitions, true); }
void Intake::Resume(const std::vector<PartitionIndex>& partitions) { SetPaused(partitions, false); }
void Intake::Sample(PartitionIndex partition) {
  if (const auto found = assigned_.find(partition); found != assigned_.end()) {
    found->second.sample = true;
  }
}
Offset Intake::NextOf(const TopicPartition& where) const {
  for (const auto& [index, assigned] : assigned_) {
    if (assigned.partition.where == where) return assigned.next;
  }
  return RD_KAFKA_OFFSET_INVALID;
}
bool Intake::Flowing() const { return paused_ < assigned_.size(); }

void Intake::SetPaused(const std::vector<PartitionIndex>& partitions, bool paused) {
  for (const PartitionIndex index : partitions) {
    const auto found = assigned_.find(index);
    if (found == assigned_.end() || found->second.paused == paused) continue;
    found->second.paused = paused;
    paused_ += paused ? 1 : std::size_t(-1);
  }
  if (!Flowing()) return;  // the queue is not read: librdkafka need not know
  std::vector<Assigned*> pause;
  std::vector<Assigned*> resume;
  for (auto& [index, assigned] : assigned_) {
    if (assigned.paused && !assigned.paused_there) pause.push_back(&assigned);
    if (!assigned.paused && assigned.paused_there) resume.push_back(&assigned);
  }
  PauseThere(true, pause);
  PauseThere(false, resume);
}

void Intake::PauseThere(bool pause, const std::vector<Assigned*>& partitions) {
  if (partitions.empty()) return;
  const rdkafka::PartitionList list = rdkafka::MakeList(partitions.size());
  for (Assigned* assigned : partitions) {
    const TopicPartition& where = assigned->partition.where;
    rd_kafka_topic_partition_list_add(list.get(), where.topic.c_str(), where.partition);
    assigned->paused_there = pause;
  }
  if (pause) {
    rd_kafka_pause_partitions(consumer_.get(), list.get());
  } else {
    rd_kafka_resume_partitions(consumer_.get(), list.get());
  }
}

// A partition that is paused and resumed forgets what it has told.
void Intake::AskForEnds(const std::function<bool(const TopicPartition&)>& of) {
  std::vector<Assigned*> these;
  for (auto& [index, assigned] : assigned_) {
    if (!assigned.paused_there && of(assigned.partition.where)) these.push_back(&assigned);
  }
  PauseThere(true, these);
  PauseThere(false, these);
}

IntakeBatch Intake::Gather(std::chrono::milliseconds wait, std::size_t room,
                           std::uint64_t room_bytes) {
  IntakeBatch batch;
  if (queue_ == nullptr) return batch;
  rdkafka::Message message(rd_kafka_consume_queue(queue_.get(), static_cast<int>(wait.count())));
  const auto end = Clock::now() + kTime;
  const std::size_t most = std::min(kRecords, room);
  const std::uint64_t most_bytes = std::min(kBytes, room_bytes);
  std::uint64_t bytes = 0;
  while (message != nullptr) {
    const std::size_t before = batch.records.size();
    Take(std::move(message), batch);
    if (batch.records.size() > before) bytes += batch.records.back().Bytes();
    if (!batch.problems.empty() || batch.records.size() >= most || bytes >= most_bytes) break;
    if (batch.records.size() % 64 == 0 && Clock::now() >= end) break;
    message.reset(rd_kafka_consume_queue(queue_.get(), 0));
  }
  return batch;
}

void Intake::Take(rdkafka::Message message, IntakeBatch& batch) {
  Assigned* assigned = Find(message.get());
  if (assigned == nullptr) return;  // of an assignment that is over
  if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
    TakeError(message.get(), *assigned, batch);
  } else if (message->offset >= assigned->next) {
    TakeRecord(message.get(), *assigned, batch);
  }
}

Intake::Assigned* Intake::Find(const rd_kafka_message_t* message) {
  if (message->rkt == nullptr) return nullptr;
  const Key key{message->rkt, message->partition};
  if (const auto known = by_topic_.find(key); known != by_topic_.end()) return known->second;
  const std::string_view topic = rd_kafka_topic_name(message->rkt);
  for (auto& [index, assigned] : assigned_) {
    const TopicPartition& where = assigned.partition.where;
    if (where.partition != message->partition || where.topic != topic) continue;
    by_topic_[key] = &assigned;
    return &assigned;
  }
  return nullptr;
}

void Intake::TakeRecord(const rd_kafka_message_t* message, Assigned& assigned, IntakeBatch& batch) {
  const Offset gap = message->offset - std::exchange(assigned.next, message->offset + 1);
  // Ends come behind all records of their batch: one that a record has overtaken is no end.
  std::erase_if(batch.ends, [&](const PartitionEnd& end) {
    return end.partition == assigned.partition.partition;
  });
  Record& record = batch.records.emplace_back();
  record.partition = assigned.partition.partition;
  record.epoch = assigned.partition.epoch;
  record.gap = gap;
  ReadMessage(message, record);
  if (!std::exchange(assigned.sample, false)) return;
  batch.samples.push_back({assigned.partition.where, SampleOf(record)});
}

void Intake::TakeError(const rd_kafka_message_t* message, const Assigned& assigned,
                       IntakeBatch& batch) {
  if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
    batch.ends.push_back(
        PartitionEnd{assigned.partition.partition, assigned.partition.epoch, message->offset});
    return;
  }
  const char* text = rd_kafka_message_errstr(message);
  batch.problems.push_back(PartitionProblem{assigned.partition.where, message->offset, message->err,
                                            text == nullptr ? "" : text});
}

std::vector<PartitionEnd> Intake::HighWatermarks() const {
  std::vector<PartitionEnd> ends;
  for (const auto& [index, assigned] : assigned_) {
    const TopicPartition& where = assigned.partition.where;
    std::int64_t low = -1;
    std::int64_t high = -1;
    const auto error = rd_kafka_get_watermark_offsets(consumer_.get(), where.topic.c_str(),
                                                      where.partition, &low, &high);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR && high >= 0) {
      ends.push_back(PartitionEnd{index, assigned.partition.epoch, high});
    }
  }
  return ends;
}

}  // namespace fencepost::consumer
