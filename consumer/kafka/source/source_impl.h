// The inside of KafkaSource: its thread and what it owns. Included by source*.cc only.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "consumer/kafka/client/rdkafka_holders.h"
#include "consumer/kafka/client/settings.h"
#include "consumer/kafka/log_identity/log_reader.h"
#include "consumer/kafka/log_identity/log_samples.h"
#include "consumer/kafka/source/initial_offsets.h"
#include "consumer/kafka/source/intake.h"
#include "consumer/kafka/source/kafka_health.h"
#include "consumer/kafka/source/offset_committer.h"
#include "consumer/kafka/source/offset_errors.h"
#include "consumer/kafka/source/source.h"

namespace fencepost::consumer {

struct KafkaSource::Impl {
  using Clock = std::chrono::steady_clock;

  Impl(const KafkaOptions& kafka_options, std::string client, SourceSink* to,
       ConsumerObserver* watcher, SourceExtras more);

  tl::expected<void, Error> Start();

  // --- the mailbox: any thread -----------------------------------------------------------------
  struct Command {
    std::vector<PartitionIndex> partitions;
    bool pause;  // else they are resumed
    AssignmentEpoch epoch;
  };
  // `change` of what the mutex guards; the Kafka thread sees to it soon.
  template <typename Change>
  void Post(Change change) {
    {
      const std::lock_guard lock(mutex);
      change();
    }
    Wake();
  }
  void Wake();

  // --- the Kafka thread: source.cc -------------------------------------------------------------
  void Run();
  void RunCommands();
  void GatherRecords(std::size_t room);
  void WaitForCommand(std::chrono::milliseconds most);
  void PollConsumer();
  void Deliver(IntakeBatch batch);
  void Tell(IntakeBatch batch);
  void FilterRecords(std::vector<Record>& records) const;
  void EndTroubles(const IntakeBatch& batch);
  void EverySecond();
  void Close();
  void OnCommitReport(CommitReport report);

  // --- rebalances: rebalance.cc ----------------------------------------------------------------
  void OnRebalance(rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t* partitions);
  void OnAssign(rd_kafka_topic_partition_list_t* partitions);
  bool Assign(const rd_kafka_topic_partition_list_t* partitions);
  void TellJoined();
  void AdmitLate();
  void OnRevoke(bool lost);
  void DrainAsMember();
  [[nodiscard]] std::shared_ptr<GroupMetadata> Membership() const;
  [[nodiscard]] bool StillMember() const;
  void KeepMetadata(std::shared_ptr<const GroupMetadata> of);
  void DropMetadata();
  bool CommitLast(const std::vector<PartitionOffset>& last);
  bool TellClusterId();  // false: not known yet
  AssignedPartition Number(TopicPartition where, Offset start);
  void AskToRejoin(const std::string& why);
  void Rejoin();
  rd_kafka_resp_err_t Subscribe();

  // --- whether the topics are still the same: recreated_topic.cc ------------------------------
  std::vector<TopicPartition> BeginSamples();  // those whose records wait for an answer
  void BeginSample(const TopicPartition& where);
  void AskForSamples();
  void OnSamples(const std::vector<SampledRecord>& samples);
  void CheckLogs();
  void OnLog(const LogReader::Answer& answer);
  void ReleaseUnanswered();
  void ForgetSamples();

  // --- batches that wait for a schema: decoding.cc ---------------------------------------------
  void DeliverHeld();
  void TellDecoder();

  // --- errors: errors.cc -----------------------------------------------------------------------
  void OnError(rd_kafka_resp_err_t error, const std::string& text, const std::string& topic);
  void OnConsumerError(const rd_kafka_message_t* message);
  void OnProblem(const PartitionProblem& problem);
  void OnOutOfRange(PartitionProblem problem);
  void Fail(Error error);
  void ProbeBrokers();

  const KafkaOptions options;
  const ReadTopics read;
  const std::string client_id;
  const SourceExtras extras;
  SourceSink* const sink;
  ConsumerObserver* const observer;

  std::mutex mutex;
  std::condition_variable wake;
  std::vector<Command> commands;                  // guarded by mutex
  std::vector<PartitionOffset> to_commit;         // guarded by mutex
  std::shared_ptr<const GroupMetadata> metadata;  // guarded by mutex
  AssignmentEpoch metadata_epoch = 0;             // guarded by mutex
  bool room_came = false;                         // guarded by mutex
  std::atomic<bool> stopping = false;
  std::atomic<AssignmentEpoch> epoch = 0;  // told last; written by the Kafka thread

  rdkafka::SharedConsumer consumer;
  std::optional<OffsetCommitter> commits;
  std::optional<Intake> intake;
  std::optional<InitialOffsets> starts;
  std::optional<LogReader> reader;
  KafkaHealth health;
  std::map<TopicPartition, PartitionIndex> numbers;  // never shrinks: an index stays what it is
  std::shared_ptr<GroupMetadata> member;             // as of the last assignment
  std::vector<AssignedPartition> assigned;           // as told
  std::vector<TopicPartition> late;     // assigned too, and not told: in a transaction of the group
  std::shared_ptr<LogSamples> samples;  // of this assignment
  // Assigned, and their records are kept apart until their log was compared, since when.
  std::map<TopicPartition, Clock::time_point> waiting;
  std::deque<IntakeBatch> held;  // of this assignment, for their schemas; nothing overtakes them
  std::optional<Clock::time_point> rebalance_began;
  std::chrono::milliseconds turn{10};  // how long the next record is waited for
  Clock::time_point next_second;
  Clock::time_point next_question;
  std::string broker_error;  // of the connection to a broker, the last one
  bool cluster_id_told = false;
  bool rejoin = false;
  bool resubscribed = false;             // by Rejoin, and not assigned anything since
  bool leaving = false;                  // it drains, still a member, to leave its group
  bool awaited = false;                  // meanwhile a rebalance began, which is not answered yet
  ShortEnds out_of_range;                // offsets that leaders said are not in their partitions
  std::deque<PartitionProblem> doubted;  // those of which the leader is asked again
  Clock::time_point next_rejoin;         // for one of them, at the earliest
  bool failed = false;
  std::thread thread;
};

}  // namespace fencepost::consumer
