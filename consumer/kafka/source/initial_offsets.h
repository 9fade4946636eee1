// Where an assignment starts. The decision is a pure function; the
// resolver asks the cluster and carries it out, inside the rebalance callback of the Kafka thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/kafka/client/admin.h"
#include "consumer/kafka/client/rdkafka_holders.h"
#include "consumer/kafka/log_identity/log_sample.h"
#include "consumer/kafka/source/matched_topics.h"
#include "consumer/kafka/source/offset_committer.h"
#include "consumer/pipeline/options.h"

namespace fencepost::consumer {

// A topic's partition as the group sees it; the list holds all partitions, by number.
struct KnownPartition {
  bool owned = false;  // assigned to this worker
  std::optional<Offset> committed;
  // A transaction of the group that is open has an offset of it, of which nobody knows yet whether
  // it will be. Only of those that are owned.
  bool in_transaction = false;
};

enum class StartStep : std::uint8_t {
  kReady,      // every owned partition has an offset, or will have one
  kCommitAll,  // nothing is committed and the lowest is ours: commit the starts of all, by
               // start_from
  kWait,       // nothing is committed; the owner of the lowest partition will do it
  kCommitNew,  // others have offsets, some of ours do not: new partitions, from the earliest
};
StartStep DecideStart(const std::vector<KnownPartition>& partitions);

class InitialOffsets {
 public:
  enum class Outcome : std::uint8_t { kResolved, kRejoin, kCancelled, kRefused };
  using Note = MatchedTopics::Note;

  // An offset that a transaction holds back: librdkafka waits for it by itself.
  static constexpr Offset kInTransaction = RD_KAFKA_OFFSET_STORED;

  InitialOffsets(rd_kafka_t* consumer, OffsetCommitter* commits, const KafkaOptions& options,
                 const SourceExtras& extras, std::function<bool()> cancelled, Note note);

  // Sets the offset of each partition in `assigned`; all of them are committed then, but for those
  // that a transaction holds back (kInTransaction). Blocks until that is so, nothing has come of a
  // topic for `limit`, or the group has moved on (kRejoin, why() says it), cancelled, or refused
  // (error()): the start, or the number of topics. A topic that only a pattern matches, and that
  // cannot be begun, does not hold up the others: it is taken out of `assigned`, and told.
  Outcome Resolve(rd_kafka_topic_partition_list_t* assigned, std::chrono::milliseconds limit);
  [[nodiscard]] const std::string& why() const { return why_; }
  [[nodiscard]] const Error& error() const { return error_; }

  // One of those that were taken out can be begun now, why() names it: to join again takes it in.
  // Asks for one of them every ten seconds, and may block as Resolve does.
  bool CanBeginAnother();
  void EndAssignment() { apart_.clear(); }

  // The brokers know no topic that a pattern matches.
  void NothingMatches() { topics_.TakeNoneThatMatches(); }

  // What is committed of a partition that was in a transaction; nullopt: it still is, or nobody
  // answers. RD_KAFKA_OFFSET_INVALID: nothing is. Blocks about a tenth of a second at most.
  std::optional<Offset> AfterTransaction(const TopicPartition& where);
  // What came with the offset of this partition.
  [[nodiscard]] CommitMetadata MetadataOf(const TopicPartition& where) const;

  // What the group has committed of one partition; below 0: nothing.
  tl::expected<Offset, rd_kafka_resp_err_t> AskOne(const TopicPartition& where, int limit_ms);

 private:
  using Clock = std::chrono::steady_clock;
  // kWait: again, but what is waited for is of this topic alone; kForbidden: likewise, and to ask
  // again soon is of no use.
  enum class Turn : std::uint8_t {
    kDone,
    kAgain,
    kWait,
    kForbidden,
    kCommitted,
    kRejoin,
    kRefused
  };

  Outcome Repeat(std::chrono::milliseconds limit, const std::function<Turn()>& step);
  Turn LookForTopics();
  Turn ResolveOnce(const std::string& topic, rd_kafka_topic_partition_list_t* assigned);
  // topics_apart.cc. Whether the others go on without the topic, where its turn ended so.
  bool LeavesApart(const std::string& topic, Turn turn, Clock::time_point until);
  void LeaveApart(const std::string& topic, Turn turn, rd_kafka_topic_partition_list_t* assigned);
  Turn CommitStarts(const std::string& topic, const std::vector<KnownPartition>& partitions,
                    StartStep step);
  Turn MayCommitStarts(const std::string& topic);
  Turn CommitList(const rd_kafka_topic_partition_list_t& starts);
  tl::expected<bool, std::string> GroupHasBegun();
  tl::expected<KafkaAdmin*, std::string> Admin();
  tl::expected<std::vector<KnownPartition>, std::string> Committed(
      const std::string& topic, int count, const rd_kafka_topic_partition_list_t* assigned);
  tl::expected<bool, std::string> AskOwned(const std::string& topic,
                                           std::vector<KnownPartition>& partitions);
  tl::expected<void, std::string> AskOthers(const std::string& topic,
                                            std::vector<KnownPartition>& partitions);
  void NoteMetadata(const rd_kafka_topic_partition_t& committed);
  // Of another pipeline: the two have one group.
  void NoteSharedGroup(const std::string& other) const;
  void NoteForeign(std::string_view text, const rd_kafka_topic_partition_t& committed) const;
  Turn Again(std::string why);

  rd_kafka_t* consumer_;
  OffsetCommitter* commits_;
  const KafkaOptions& options_;
  const SourceExtras& extras_;
  std::unique_ptr<KafkaAdmin> admin_;  // sees offsets whether or not a transaction is open
  MatchedTopics topics_;
  std::function<bool()> cancelled_;
  Note note_;
  std::string why_;
  Error error_;
  std::map<TopicPartition, CommitMetadata> metadata_;
  std::map<std::string, std::vector<std::int32_t>> apart_;  // by topic, partitions of ours
  std::string asked_apart_;                                 // the last one of them
  Clock::time_point ask_apart_;
};

}  // namespace fencepost::consumer
