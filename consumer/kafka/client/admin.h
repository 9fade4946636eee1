// A few questions to a cluster, making a topic, deleting records: for commands, the demo and the
// bench. Each call blocks at most `limit`. One thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "consumer/kafka/client/rdkafka_holders.h"
#include "consumer/kafka/client/settings.h"
#include "consumer/kafka/client/topic_rules.h"
#include "consumer/pipeline/options.h"
#include "consumer/pipeline/read_topics.h"
#include "consumer/record/record.h"
#include "locking/base/error.h"

namespace fencepost::consumer {

// How many partitions a topic has, by any handle. (rd_kafka_metadata of no topic asks for all that
// the handle knows, and has those created that were deleted meanwhile.)
tl::expected<int, rd_kafka_resp_err_t> AskPartitionCount(rd_kafka_t* handle,
                                                         const std::string& topic, Millis limit);

// The first of its partitions that has no leader; nullopt: all have one, or nobody answers.
std::optional<int> PartitionWithoutLeader(rd_kafka_t* handle, const std::string& topic,
                                          Millis limit);

// A topic that is there.
struct KnownTopic {
  std::string name;
  int partitions = 0;
  bool operator==(const KnownTopic&) const = default;
};
// Those that are read, by name; by any handle, but where there is a pattern not by one of a group:
// it would take the answer for news of its subscription. A name that is missing is an error where
// there is no pattern, and left out where there is one.
tl::expected<std::vector<KnownTopic>, rd_kafka_resp_err_t> AskTopics(rd_kafka_t* handle,
                                                                     const ReadTopics& read,
                                                                     Millis limit);

// Whether both lead to one cluster. Error: one of them does not answer.
tl::expected<bool, Error> SameCluster(const KafkaOptions& one, const KafkaOptions& other,
                                      Millis limit);

class KafkaAdmin {
 public:
  // Brokers, TLS and SASL as in `options`; its group is the one that is asked about.
  static tl::expected<std::unique_ptr<KafkaAdmin>, Error> Make(const KafkaOptions& options);

  // The cluster's id, when a broker answers. Error: "kafka_unreachable".
  tl::expected<std::string, Error> ClusterId(Millis limit);
  // Error: "topic_exists", "kafka_admin". A mock cluster does not know this call.
  tl::expected<void, Error> CreateTopic(const std::string& topic, int partitions, int replication,
                                        Millis limit);
  // AskTopics. Error: "topic_missing", "kafka_admin".
  tl::expected<std::vector<KnownTopic>, Error> Topics(const ReadTopics& read, Millis limit);
  // By partition, of one topic or of several, one after the other. Error: as above.
  tl::expected<std::vector<Offset>, Error> EndOffsets(const std::string& topic, Millis limit);
  tl::expected<std::vector<Offset>, Error> EndOffsets(const std::vector<KnownTopic>& topics,
                                                      Millis limit);
  // Likewise: what the group has committed, -1 for nothing.
  tl::expected<std::vector<Offset>, Error> CommittedOffsets(const std::string& topic, Millis limit);
  tl::expected<std::vector<Offset>, Error> CommittedOffsets(const std::vector<KnownTopic>& topics,
                                                            Millis limit);
  // Deletes the records of each partition before its offset, for good. Error: "kafka_admin", with
  // the partition; those of others may be deleted. A mock cluster does not know this call.
  struct Before {
    TopicPartition where;
    Offset offset = 0;
  };
  tl::expected<void, Error> DeleteRecords(const std::vector<Before>& records, Millis limit);
  // How the members of the group share its partitions, such as "range" or "cooperative-sticky";
  // empty: it has none, or is rebalancing. Error: "kafka_admin". A mock cluster may not know this.
  tl::expected<std::string, Error> GroupProtocol(const std::string& group, Millis limit);
  // As its coordinator knows them; of a group that rebalances some may be missing. Error:
  // "kafka_admin". A mock cluster may not know this.
  struct Member {
    MemberName name;
    std::string host;  // where its connection comes from
  };
  tl::expected<std::vector<Member>, Error> Members(const std::string& group, Millis limit);
  // What the topic's settings in force do. Error: "kafka_admin", also where the right to describe
  // settings is missing.
  tl::expected<TopicRules, Error> RulesOf(const std::string& topic, Millis limit);

 private:
  explicit KafkaAdmin(rd_kafka_t* handle) : handle_(handle) {}

  rdkafka::Handle handle_;
};

}  // namespace fencepost::consumer
