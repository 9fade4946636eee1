// Records from Kafka, offsets back to it: one consumer of one group, on one thread of its own that
// makes every librdkafka consumer call. What it has to say goes to a SourceSink; what it is told
// comes through the methods below, which may be called from any thread and only enqueue.
//
// What it keeps: auto commit and auto offset store are off; starts are
// resolved by committed(); where the group has no offset on any partition of a topic, the owner of
// the lowest partition commits the resolved start of all of them, and no record is taken from a
// partition before its start is committed; a partition without an offset while others have one is
// new: earliest, and so is a topic that a pattern finds once the group has begun. Out of range
// stops. Range assignor. A lost assignment is not committed. Fatal errors end it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/decode/record_decoder.h"
#include "consumer/flow/ports/ports.h"
#include "consumer/pipeline/observer.h"
#include "consumer/pipeline/options.h"
#include "consumer/pipeline/readiness.h"
#include "consumer/record/record.h"
#include "locking/base/error.h"

namespace fencepost::consumer {

// Called on the Kafka thread. Implementations hand over (post) and return at once, but for
// OnRevoked. One epoch may be assigned in parts (what a transaction held back comes later).
class SourceSink {
 public:
  virtual ~SourceSink() = default;
  virtual void OnClusterId(std::string cluster_id) = 0;  // before the first assignment
  // `late`: how many of this assignment are still to come.
  virtual void OnAssigned(std::vector<AssignedPartition> partitions, std::size_t late) = 0;
  // Blocks until the flow has drained these partitions or gave up at its own limit, and returns
  // what to commit. The member sends heartbeats meanwhile. When `lost`, returns at once and nothing
  // is committed. `meanwhile`, where given, is called again and again until then.
  virtual std::vector<PartitionOffset> OnRevoked(std::vector<PartitionIndex> partitions, bool lost,
                                                 const std::function<void()>& meanwhile) = 0;
  // Inside OnRevoked's `meanwhile`: the group waits for the end of this drain, which then takes no
  // longer than that of a rebalance; or it has given the partitions away (`lost`).
  virtual void OnDrainAwaited(bool lost) = 0;
  // At most Room() records at a time; they are taken at once.
  virtual void OnRecords(std::vector<Record> records) = 0;
  // How many more records may be handed over now (max_in_flight, records and bytes). While it is 0
  // the source keeps what it has polled, and polls on for events only as far as that is paused; it
  // asks again after OnRoom, and every 10 ms.
  virtual std::size_t Room() { return 1000; }
  // The same in bytes: taking ends with the record that reaches it.
  virtual std::uint64_t RoomBytes() { return std::numeric_limits<std::uint64_t>::max(); }
  virtual void OnPartitionEnd(std::vector<PartitionEnd> ends) = 0;
  virtual void OnHighWatermark(std::vector<PartitionEnd> ends) = 0;  // about once a second, for lag
  // `sent`: the group took them, in a request that was sent no sooner. nullopt: it did not.
  virtual void OnCommitted(std::vector<PartitionOffset> offsets,
                           std::optional<locking::Instant> sent) = 0;
  // Joined and consuming, or not (with why): brokers away, not in the group yet. Up with a reason:
  // a part is waited for.
  virtual void OnKafkaState(PartState state) = 0;
  // The consumer cannot go on (fatal error, out of range, topic refused): the worker drains and
  // exits 1. Told once; no record comes after it, commits still go out.
  virtual void OnFatal(Error error) = 0;
};

// Who this member is in its group, for transactions (KIP-447); defined in rdkafka_holders.h.
struct GroupMetadata;

// What the source needs to know of the rest of its worker.
struct SourceExtras {
  std::string pipeline{};  // goes with the group's offsets
  // Fetched and not handed over yet: about so much is kept, not counting what one answer of each
  // broker adds.
  std::uint64_t prefetch_bytes = std::uint64_t{64} << 20;
  // Whether effects of this topic's records are written already. Asked on the Kafka thread, may
  // block; only where the group has no offset on any partition of the topic, and would start at its
  // end: `true` refuses that. An error is waited out. Not given: it is not known.
  std::function<tl::expected<bool, Error>(const std::string& topic)> knows_earlier_work{};
  // Records go through it before they are handed over; nullptr: as they are. While it waits for a
  // schema, this worker's records wait, in their order; its own thread, so none of ours.
  std::shared_ptr<RecordDecoder> decoder{};
  // Which of them the pipeline is about (Record::filtered), asked behind that; nullptr: all.
  std::function<void(const TopicPartition& where, Record& record)> filter{};
};

class KafkaSource {
 public:
  // Nothing starts before Start. The sink and the observer outlive the source.
  KafkaSource(const KafkaOptions& options, std::string client_id, SourceSink* sink,
              ConsumerObserver* observer, SourceExtras extras = {});
  ~KafkaSource();  // Stop() and join
  KafkaSource(const KafkaSource&) = delete;
  KafkaSource& operator=(const KafkaSource&) = delete;

  // Makes the consumer and its thread. Error: a librdkafka setting is refused (exit 2 of the
  // command).
  tl::expected<void, Error> Start();

  // Any thread; only enqueue. Takes effect within 80 ms; records that were on their way still
  // come. `epoch` is the assignment that is meant: once it is over nothing happens.
  void Pause(std::vector<PartitionIndex> partitions, AssignmentEpoch epoch);
  // Only what was paused is resumed. A new assignment starts unpaused.
  void Resume(std::vector<PartitionIndex> partitions, AssignmentEpoch epoch);
  // Room() was 0 and is not any more.
  void OnRoom();
  // Asynchronous; OnCommitted answers with what was sent. One request is out at a time, and the
  // newest offset of a partition wins, so an offset that a newer one replaced gets no answer of its
  // own; nor do offsets of another epoch. What is refused is not sent again by itself; what is
  // committed already is: that the group takes it tells whose the partition is.
  void Commit(std::vector<PartitionOffset> offsets);
  // Taken when this assignment was told; nullptr once it is over. Any thread.
  [[nodiscard]] std::shared_ptr<const GroupMetadata> MetadataOf(AssignmentEpoch epoch) const;
  // Leaves the group: a last revoke (with OnRevoked) and its commit, then the thread ends.
  void Stop();
  void Join();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fencepost::consumer
