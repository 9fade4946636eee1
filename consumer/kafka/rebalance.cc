// Assignments come and go, eagerly: everything is revoked before anything is assigned anew.
#include <fmt/format.h>

#include "consumer/kafka/source_impl.h"

namespace fencepost::consumer {
namespace {

constexpr std::chrono::milliseconds kStartsLimit{10'000};
constexpr std::chrono::milliseconds kRevokeCommitLimit{10'000};
constexpr std::chrono::milliseconds kStopCommitLimit{5'000};
constexpr int kClusterIdMs = 1000;

}  // namespace

void KafkaSource::Impl::OnRebalance(rd_kafka_resp_err_t what,
                                    rd_kafka_topic_partition_list_t* partitions) {
  switch (what) {
    case RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS:
      OnAssign(partitions);
      return;
    case RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS:
      OnRevoke();
      return;
    default:
      condition.Note(locking::Severity::kWarn, "rebalance_failed", rd_kafka_err2str(what));
      OnRevoke();
      return;
  }
}

void KafkaSource::Impl::OnAssign(rd_kafka_topic_partition_list_t* partitions) {
  const auto began = rebalance_began.value_or(Clock::now());
  const rdkafka::PartitionList none = rdkafka::MakeList(0);
  const auto outcome =
      stopping ? StartResolver::Outcome::kCancelled : starts->Resolve(partitions, kStartsLimit);
  if (outcome == StartResolver::Outcome::kCancelled) {
    rd_kafka_assign(consumer.get(), none.get());
    return;
  }
  if (outcome == StartResolver::Outcome::kRejoin || !TellClusterId()) {
    AskToRejoin(outcome == StartResolver::Outcome::kRejoin ? starts->why()
                                                           : "the cluster's id is not known");
    rd_kafka_assign(consumer.get(), none.get());
    return;
  }
  ++epoch;
  assigned = Number(partitions);
  KeepMetadata();
  intake->Open(assigned);
  commits->Begin(assigned);
  sink->OnAssigned(assigned);
  observer->OnRebalance(RebalanceEvent::kAssigned);
  observer->OnRebalanceTook(std::chrono::duration_cast<Nanos>(Clock::now() - began));
  rebalance_began.reset();
  if (const auto error = rd_kafka_assign(consumer.get(), partitions)) {
    condition.Note(locking::Severity::kError, "assign_failed", rd_kafka_err2str(error));
    AskToRejoin(rd_kafka_err2str(error));
    return;
  }
  for (const Meaning kind : {Meaning::kTopicMissing, Meaning::kForbidden, Meaning::kBrokersAway}) {
    condition.ClearTrouble(kind);
  }
  condition.SetJoined(true, "");
  resubscribed = false;
}

void KafkaSource::Impl::OnRevoke() {
  rebalance_began = Clock::now();
  condition.SetJoined(false, "the group is rebalancing");
  if (!assigned.empty()) {
    const bool lost = rd_kafka_assignment_lost(consumer.get()) != 0;
    std::vector<PartitionIndex> indices;
    for (const AssignedPartition& p : assigned) indices.push_back(p.partition);
    const auto last = sink->OnRevoked(std::move(indices), lost);
    DropMetadata();  // only now: inside OnRevoked the flow ends its last transaction with it
    observer->OnRebalance(lost ? RebalanceEvent::kLost : RebalanceEvent::kRevoked);
    if (lost || rd_kafka_assignment_lost(consumer.get()) != 0) {
      condition.Note(locking::Severity::kWarn, "assignment_lost",
                     "the group gave these partitions away (session or poll interval exceeded); "
                     "nothing is committed");
    } else if (!CommitLast(last)) {
      condition.Note(locking::Severity::kWarn, "revoke_commit_failed",
                     "the last offsets were not committed; their records come again and are "
                     "recognised");
    }
    // What the flow said of this assignment while it drained means nothing to the next one.
    const std::lock_guard lock(mutex);
    commands.clear();
    to_commit.clear();
  }
  assigned.clear();
  commits->End();
  rd_kafka_assign(consumer.get(), nullptr);
  intake->Close();
}

// Who this member is, as long as this assignment lasts: a transaction that was begun under it must
// not speak for a later one.
void KafkaSource::Impl::KeepMetadata() {
  auto taken = std::make_shared<GroupMetadata>();
  taken->held.reset(rd_kafka_consumer_group_metadata(consumer.get()));
  const std::lock_guard lock(mutex);
  metadata = taken->held == nullptr ? nullptr : std::move(taken);
  metadata_epoch = epoch.load();
}

void KafkaSource::Impl::DropMetadata() {
  const std::lock_guard lock(mutex);
  metadata.reset();
}

// What was asked while the flow drained goes too; the newest offset of a partition wins.
bool KafkaSource::Impl::CommitLast(const std::vector<PartitionOffset>& last) {
  std::vector<PartitionOffset> asked;
  {
    const std::lock_guard lock(mutex);
    asked.swap(to_commit);
  }
  commits->Ask(asked);
  return commits->Flush(last, stopping ? kStopCommitLimit : kRevokeCommitLimit);
}

bool KafkaSource::Impl::TellClusterId() {
  if (cluster_id_told) return true;
  char* id = nullptr;
  for (int tries = 0; id == nullptr && tries < 10 && !stopping; ++tries) {
    id = rd_kafka_clusterid(consumer.get(), kClusterIdMs);
  }
  if (id == nullptr) return false;
  sink->OnClusterId(id);
  rd_kafka_mem_free(consumer.get(), id);
  cluster_id_told = true;
  return true;
}

std::vector<AssignedPartition> KafkaSource::Impl::Number(
    const rd_kafka_topic_partition_list_t* partitions) {
  std::vector<AssignedPartition> result;
  for (int i = 0; i < partitions->cnt; ++i) {
    const rd_kafka_topic_partition_t& one = partitions->elems[i];
    TopicPartition where{one.topic, one.partition};
    const auto index = static_cast<PartitionIndex>(numbers.size());
    const auto at = numbers.try_emplace(where, index).first;
    result.push_back(AssignedPartition{at->second, std::move(where), epoch.load(), one.offset});
  }
  return result;
}

void KafkaSource::Impl::AskToRejoin(const std::string& why) {
  rejoin = true;
  condition.SetJoined(false, why);
  condition.Note(locking::Severity::kWarn, "rejoining",
                 fmt::format("leaving the group and joining again: {}", why));
}

void KafkaSource::Impl::Rejoin() {
  rejoin = false;
  resubscribed = true;
  rd_kafka_unsubscribe(consumer.get());
  if (const auto error = Subscribe(); error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    condition.Note(locking::Severity::kWarn, "subscribe_failed", rd_kafka_err2str(error));
    rejoin = true;
  }
}

rd_kafka_resp_err_t KafkaSource::Impl::Subscribe() {
  const rdkafka::PartitionList list = rdkafka::MakeList(options.topics.size());
  for (const std::string& topic : options.topics) {
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), RD_KAFKA_PARTITION_UA);
  }
  return rd_kafka_subscribe(consumer.get(), list.get());
}

}  // namespace fencepost::consumer
