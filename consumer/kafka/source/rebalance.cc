// Assignments come and go, eagerly: everything is revoked before anything is assigned again.
#include <fmt/format.h>

#include "consumer/kafka/source/source_impl.h"

namespace fencepost::consumer {
namespace {

constexpr std::chrono::milliseconds kStartsLimit{10'000};
constexpr std::chrono::milliseconds kRevokeCommitLimit{10'000};
constexpr std::chrono::milliseconds kStopCommitLimit{5'000};
constexpr int kClusterIdMs = 1000;

// The same member of the same generation: librdkafka writes both down, among other things.
bool Same(const GroupMetadata& a, const GroupMetadata& b) {
  const auto written = [](const GroupMetadata& one) {
    if (one.held == nullptr) return std::string();
    void* bytes = nullptr;
    std::size_t size = 0;
    const rdkafka::Failure refused(
        rd_kafka_consumer_group_metadata_write(one.held.get(), &bytes, &size));
    std::string text(static_cast<const char*>(bytes), refused == nullptr ? size : 0);
    rd_kafka_mem_free(nullptr, bytes);
    return text;
  };
  return written(a) == written(b);
}

}  // namespace

void KafkaSource::Impl::OnRebalance(rd_kafka_resp_err_t what,
                                    rd_kafka_topic_partition_list_t* partitions) {
  const bool assigns = what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
  if (leaving) {
    awaited = true;
    sink->OnDrainAwaited(assigns || rd_kafka_assignment_lost(consumer.get()) != 0);
    return;
  }
  if (assigns) return OnAssign(partitions);
  if (what != RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS) {
    health.Note(locking::Severity::kWarn, "rebalance_failed", rd_kafka_err2str(what));
  }
  OnRevoke(rd_kafka_assignment_lost(consumer.get()) != 0);
}

// librdkafka joins again without a revoke where it hears that a topic has more partitions while an
// assignment is on its way to this callback, or is answered in it (rd_kafka_cgrp_revoke_all_rejoin,
// join state WAIT_ASSIGN_CALL). What was assigned before is over, and may be another member's. And
// an assignment that the group has left behind while its offsets were asked for is not taken: its
// transactions would speak for the generation of the next one.
void KafkaSource::Impl::OnAssign(rd_kafka_topic_partition_list_t* partitions) {
  using Outcome = InitialOffsets::Outcome;
  if (!assigned.empty() || !late.empty()) OnRevoke(true);
  member = Membership();
  const auto began = rebalance_began.value_or(Clock::now());
  const rdkafka::PartitionList none = rdkafka::MakeList(0);
  const auto outcome = stopping ? Outcome::kCancelled : starts->Resolve(partitions, kStartsLimit);
  std::string rejoin_why = outcome == Outcome::kRejoin ? starts->why() : "";
  if (outcome == Outcome::kRefused) Fail(starts->error());
  if (outcome == Outcome::kResolved && !TellClusterId()) {
    rejoin_why = "the cluster's id is not known";
  }
  const bool outdated = !stopping && !StillMember();
  if (outdated) {
    health.Note(locking::Severity::kInfo, "assignment_outdated",
                "the group has assigned its partitions again meanwhile");
  } else if (!rejoin_why.empty()) {
    AskToRejoin(rejoin_why);
  }
  if (outdated || !rejoin_why.empty() || outcome != Outcome::kResolved) {
    starts->EndAssignment();
    rd_kafka_assign(consumer.get(), none.get());
    return;
  }
  if (!Assign(partitions)) return;
  rejoin = false;
  member->samples = samples;
  KeepMetadata(member);
  commits->Begin(assigned, samples);
  AskForSamples();
  sink->OnAssigned(assigned, late.size());
  observer->OnRebalance(RebalanceEvent::kAssigned);
  observer->OnRebalanceTook(std::chrono::duration_cast<Nanos>(Clock::now() - began));
  rebalance_began.reset();
  for (const Meaning kind : {Meaning::kTopicMissing, Meaning::kForbidden, Meaning::kBrokersAway,
                             Meaning::kOutOfRange, Meaning::kNotJoined}) {
    health.ClearTrouble(kind);
  }
  TellJoined();
  resubscribed = false;
}

// Nobody is told of it before librdkafka has taken it. False: it has not, and the member leaves.
bool KafkaSource::Impl::Assign(const rd_kafka_topic_partition_list_t* partitions) {
  ++epoch;
  assigned.clear();
  late.clear();
  for (int i = 0; i < partitions->cnt; ++i) {
    const rd_kafka_topic_partition_t& one = partitions->elems[i];
    TopicPartition where{one.topic, one.partition};
    if (one.offset == InitialOffsets::kInTransaction) {
      late.push_back(std::move(where));
    } else {
      assigned.push_back(Number(std::move(where), one.offset));
    }
  }
  auto apart = BeginSamples();
  apart.insert(apart.end(), late.begin(), late.end());
  intake->Open(assigned, apart);
  const auto error = rd_kafka_assign(consumer.get(), partitions);
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return true;
  assigned.clear();
  late.clear();
  ForgetSamples();
  intake->Close();
  health.Note(locking::Severity::kError, "assign_failed", rd_kafka_err2str(error));
  AskToRejoin(rd_kafka_err2str(error));
  return false;
}

void KafkaSource::Impl::TellJoined() {
  std::string waits;
  if (!late.empty()) {
    waits = fmt::format("waiting for a transaction on {}/{}", late[0].topic, late[0].partition);
    if (late.size() > 1) waits += fmt::format(" and {} more", late.size() - 1);
    health.Note(locking::Severity::kWarn, "waiting_for_transaction",
                waits +
                    ": a worker ended within it; it ends by its own timeout "
                    "(output.kafka.transaction_timeout), or when that worker is back");
  }
  const bool joined = late.empty() || !assigned.empty();
  health.SetGroup({joined ? PartPhase::kUp : PartPhase::kDown, std::move(waits)});
}

// Asks for the offsets that transactions held back; a partition whose offset is known starts.
void KafkaSource::Impl::AdmitLate() {
  constexpr std::size_t kAtATime = 3;  // each may take a tenth of a second
  for (std::size_t i = 0; i < kAtATime && !late.empty(); ++i) {
    TopicPartition where = std::move(late.front());
    late.erase(late.begin());
    const auto start = starts->AfterTransaction(where);
    if (!start) {
      late.push_back(std::move(where));
      continue;
    }
    if (*start < 0) {
      AskToRejoin(fmt::format("{}/{} has no offset", where.topic, where.partition));
      return;
    }
    const AssignedPartition one = Number(std::move(where), *start);
    assigned.push_back(one);
    intake->Admit(one);
    BeginSample(one.where);
    if (!waiting.contains(one.where)) intake->Release(one.where);
    commits->Add(one);
    sink->OnAssigned({one}, late.size());
  }
  TellJoined();
}

// A member that joined again while its flow drained (a topic grew) may not commit what it drained:
// the commit would be taken under the generation of then, in which another may have gone on.
void KafkaSource::Impl::OnRevoke(bool lost) {
  rebalance_began = Clock::now();
  starts->EndAssignment();
  health.SetGroup({PartPhase::kRebalancing, ""});
  held.clear();  // never handed over: the next owner reads them again
  doubted.clear();
  TellDecoder();
  if (!assigned.empty()) {
    std::vector<PartitionIndex> indices;
    for (const AssignedPartition& p : assigned) indices.push_back(p.partition);
    std::function<void()> meanwhile;
    if (leaving) {
      meanwhile = [this] {
        RunCommands();
        PollConsumer();
      };
    }
    const auto last = sink->OnRevoked(std::move(indices), lost, meanwhile);
    const bool still_member = StillMember();
    DropMetadata();  // only now: inside OnRevoked the flow ends its last transaction with it
    observer->OnRebalance(lost ? RebalanceEvent::kLost : RebalanceEvent::kRevoked);
    if (lost || !still_member || rd_kafka_assignment_lost(consumer.get()) != 0) {
      health.Note(locking::Severity::kWarn, "assignment_lost",
                  "the group gave these partitions away (session or poll interval exceeded, or "
                  "assigned again); nothing is committed");
    } else if (!CommitLast(last)) {
      health.Note(locking::Severity::kWarn, "revoke_commit_failed",
                  "the last offsets were not committed; their records come again and are "
                  "recognised");
    }
    // What the flow said of this assignment while it drained means nothing to the next one.
    const std::lock_guard lock(mutex);
    commands.clear();
    to_commit.clear();
  }
  assigned.clear();
  late.clear();
  ForgetSamples();
  commits->End();
  if (!leaving) rd_kafka_assign(consumer.get(), nullptr);
  intake->Close();
}

// The end of the worker's last assignment. librdkafka sends no heartbeats any more once the close
// has ended the subscription, and a drain may take longer than the session: so it comes before, and
// the consumer is polled meanwhile, for a rebalance and for max.poll.interval.ms.
void KafkaSource::Impl::DrainAsMember() {
  if (assigned.empty()) return;
  leaving = true;
  OnRevoke(rd_kafka_assignment_lost(consumer.get()) != 0);
  leaving = false;
}

// Who this member is, as long as this assignment lasts: a transaction that was begun under it must
// not speak for a later one.
void KafkaSource::Impl::KeepMetadata(std::shared_ptr<const GroupMetadata> of) {
  const std::lock_guard lock(mutex);
  metadata = std::move(of);
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

// In the generation in which the partitions were assigned.
bool KafkaSource::Impl::StillMember() const {
  return member != nullptr && Same(*member, *Membership());
}

std::shared_ptr<GroupMetadata> KafkaSource::Impl::Membership() const {
  auto taken = std::make_shared<GroupMetadata>();
  taken->held.reset(rd_kafka_consumer_group_metadata(consumer.get()));
  return taken;
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

AssignedPartition KafkaSource::Impl::Number(TopicPartition where, Offset start) {
  const auto index = static_cast<PartitionIndex>(numbers.size());
  const auto at = numbers.try_emplace(where, index).first;
  auto known = starts->MetadataOf(where);
  return {at->second, std::move(where), epoch.load(), start, std::move(known.failed)};
}

void KafkaSource::Impl::AskToRejoin(const std::string& why) {
  rejoin = true;
  health.SetGroup({PartPhase::kDown, why});
  health.Note(locking::Severity::kWarn, "rejoining",
              fmt::format("leaving the group and joining again: {}", why));
}

void KafkaSource::Impl::Rejoin() {
  rejoin = false;
  resubscribed = true;
  rd_kafka_unsubscribe(consumer.get());
  if (const auto error = Subscribe(); error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    health.Note(locking::Severity::kWarn, "subscribe_failed", rd_kafka_err2str(error));
    rejoin = true;
  }
}

// To each topic once: librdkafka 2.0.2 would list one twice to its group.
rd_kafka_resp_err_t KafkaSource::Impl::Subscribe() {
  const rdkafka::PartitionList list = rdkafka::MakeList(options.topics.size());
  const auto add = [&](const std::string& topic) {
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), RD_KAFKA_PARTITION_UA);
  };
  for (const std::string& name : read.names()) {
    if (!read.Matches(name)) add(name);
  }
  if (!read.pattern().empty()) add(read.pattern());
  return rd_kafka_subscribe(consumer.get(), list.get());
}

}  // namespace fencepost::consumer
