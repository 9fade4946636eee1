#include "consumer/kafka/source/initial_offsets.h"

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "consumer/kafka/client/rdkafka_holders.h"
#include "consumer/kafka/log_identity/foreign_metadata.h"
#include "consumer/record/text.h"
#include "locking/base/planted.h"

namespace fencepost::consumer {
namespace {

constexpr int kCallMs = 1000;         // one question to the cluster; Stop waits at most this long
constexpr int kOnePartitionMs = 300;  // the same of one partition, which may be in a transaction
constexpr int kAfterTransactionMs = 100;
constexpr std::chrono::milliseconds kRetryDelay{50};
// A request that was given up could be sent after all, when other workers have gone on from where
// it starts: it is waited for as long as this member can stay in its group.
constexpr std::chrono::milliseconds kCommitLimit{240'000};
constexpr std::string_view kStopping = "stopping";

bool Waits(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT ||
         error == RD_KAFKA_RESP_ERR__TIMED_OUT || error == RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE;
}

}  // namespace

StartStep DecideStart(const std::vector<KnownPartition>& partitions) {
  const auto has = [](const KnownPartition& p) { return p.committed || p.in_transaction; };
  if (std::none_of(partitions.begin(), partitions.end(), has)) {
    const bool lowest = !partitions.empty() && partitions.front().owned;
    return lowest ? StartStep::kCommitAll : StartStep::kWait;
  }
  const bool ready = std::all_of(partitions.begin(), partitions.end(),
                                 [&](const KnownPartition& p) { return !p.owned || has(p); });
  return ready ? StartStep::kReady : StartStep::kCommitNew;
}

InitialOffsets::InitialOffsets(rd_kafka_t* consumer, OffsetCommitter* commits,
                               const KafkaOptions& options, const SourceExtras& extras,
                               std::function<bool()> cancelled, Note note)
    : consumer_(consumer),
      commits_(commits),
      options_(options),
      extras_(extras),
      topics_(options.topics, note),
      cancelled_(std::move(cancelled)),
      note_(std::move(note)) {}

InitialOffsets::Outcome InitialOffsets::Resolve(rd_kafka_topic_partition_list_t* assigned,
                                                std::chrono::milliseconds limit) {
  std::set<std::string> topics;
  for (int i = 0; i < assigned->cnt; ++i) topics.insert(assigned->elems[i].topic);
  auto outcome = Outcome::kResolved;
  EndAssignment();
  if (topics_.any()) outcome = Repeat(limit, [this] { return LookForTopics(); });
  auto patience = limit;  // once for all that are waited for
  for (const std::string& topic : topics) {
    if (outcome != Outcome::kResolved) break;
    const auto until = Clock::now() + patience;
    outcome = Repeat(limit, [&] {
      const Turn turn = ResolveOnce(topic, assigned);
      if (!LeavesApart(topic, turn, until)) return turn;
      if (turn == Turn::kWait) patience = std::chrono::milliseconds(0);
      LeaveApart(topic, turn, assigned);
      return Turn::kDone;
    });
  }
  return outcome;
}

InitialOffsets::Outcome InitialOffsets::Repeat(std::chrono::milliseconds limit,
                                               const std::function<Turn()>& step) {
  auto end = Clock::now() + limit;
  while (!cancelled_()) {
    switch (step()) {
      case Turn::kDone:
        return Outcome::kResolved;
      case Turn::kRejoin:
        return Outcome::kRejoin;
      case Turn::kRefused:
        return Outcome::kRefused;
      case Turn::kCommitted:
        end = Clock::now() + limit;
        break;
      case Turn::kAgain:
      case Turn::kWait:
      case Turn::kForbidden:
        if (Clock::now() >= end) return Outcome::kRejoin;
        std::this_thread::sleep_for(kRetryDelay);
        break;
    }
  }
  return Outcome::kCancelled;
}

// By a client of its own: this consumer would take the answer for news of its subscription, and
// join again within the callback.
InitialOffsets::Turn InitialOffsets::LookForTopics() {
  const auto admin = Admin();
  if (!admin) return Again(admin.error());
  auto found = (*admin)->Topics(topics_.read(), std::chrono::milliseconds(kCallMs));
  if (!found) return Again(fmt::format("metadata of the topics: {}", found.error().what));
  const auto refused = topics_.Take(std::move(*found));
  if (!refused) return Turn::kDone;
  error_ = *refused;
  return Turn::kRefused;
}

tl::expected<KafkaAdmin*, std::string> InitialOffsets::Admin() {
  if (admin_ == nullptr) {
    auto made = KafkaAdmin::Make(options_);
    if (!made) return tl::unexpected(made.error().Line());
    admin_ = std::move(*made);
  }
  return admin_.get();
}

// What the group has committed of one partition, once no transaction holds it back.
tl::expected<Offset, rd_kafka_resp_err_t> InitialOffsets::AskOne(const TopicPartition& where,
                                                                 int limit_ms) {
  const rdkafka::PartitionList list = rdkafka::MakeList(1);
  const auto* one =
      rd_kafka_topic_partition_list_add(list.get(), where.topic.c_str(), where.partition);
  auto error = rd_kafka_committed(consumer_, list.get(), limit_ms);
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) error = one->err;
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return tl::unexpected(error);
  NoteMetadata(*one);
  return one->offset;
}

void InitialOffsets::NoteMetadata(const rd_kafka_topic_partition_t& committed) {
  const std::string_view text(static_cast<const char*>(committed.metadata),
                              committed.metadata == nullptr ? 0 : committed.metadata_size);
  CommitMetadata& known = metadata_[{committed.topic, committed.partition}];
  known = ParseMetadata(text, committed.offset);
  NoteSharedGroup(known.pipeline);
  NoteForeign(text, committed);
}

void InitialOffsets::NoteSharedGroup(const std::string& other) const {
  if (other.empty() || extras_.pipeline.empty() || other == extras_.pipeline) return;
  note_(locking::Severity::kWarn, "shared_group",
        fmt::format("offsets of the group '{}' were committed by pipeline {}: where both run, each "
                    "record comes to one of them alone; give each a kafka.group of its own (after "
                    "a change of the name there is nothing to do)",
                    options_.group, other));
}

// Another program had the group, and its metadata is replaced by ours.
void InitialOffsets::NoteForeign(std::string_view text,
                                 const rd_kafka_topic_partition_t& committed) const {
  if (!IsForeignMetadata(text)) return;
  const std::string offset =
      fmt::format("{}/{} at {}", committed.topic, committed.partition, committed.offset);
  const auto behind = ParseParallelConsumer(text);
  if (!behind) {
    note_(locking::Severity::kInfo, "foreign_metadata",
          fmt::format("the group's offset of {} has metadata of another program, which is not "
                      "used: {}",
                      offset, OneLine(text)));
  } else if (behind->records != 0) {
    const std::string records = behind->records ? std::to_string(*behind->records) : "some";
    note_(locking::Severity::kWarn, "foreign_metadata",
          fmt::format("the group's offset of {} is parallel-consumer's, which had finished {} of "
                      "the records behind it out of order: they are processed again",
                      offset, records));
  }
}

CommitMetadata InitialOffsets::MetadataOf(const TopicPartition& where) const {
  const auto found = metadata_.find(where);
  return found == metadata_.end() ? CommitMetadata() : found->second;
}

InitialOffsets::Turn InitialOffsets::Again(std::string why) {
  why_ = std::move(why);
  return Turn::kAgain;
}

InitialOffsets::Turn InitialOffsets::ResolveOnce(const std::string& topic,
                                                 rd_kafka_topic_partition_list_t* assigned) {
  const auto count = AskPartitionCount(consumer_, topic, Millis(kCallMs));
  if (!count) {
    return Again(fmt::format("metadata of {}: {}", topic, rd_kafka_err2str(count.error())));
  }
  const auto partitions = Committed(topic, *count, assigned);
  if (!partitions) return Again(partitions.error());
  switch (const StartStep step = DecideStart(*partitions)) {
    case StartStep::kWait:
      Again(fmt::format("waiting for the worker that owns {}/0 to commit the topic's first offsets",
                        topic));
      return Turn::kWait;
    case StartStep::kCommitAll:
    case StartStep::kCommitNew:
      return CommitStarts(topic, *partitions, step);
    case StartStep::kReady:
      break;
  }
  for (int i = 0; i < assigned->cnt; ++i) {
    rd_kafka_topic_partition_t& one = assigned->elems[i];
    if (topic != one.topic) continue;
    const KnownPartition& known = (*partitions)[static_cast<std::size_t>(one.partition)];
    one.offset = known.in_transaction ? kInTransaction : *known.committed;
  }
  return Turn::kDone;
}

tl::expected<std::vector<KnownPartition>, std::string> InitialOffsets::Committed(
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
  const auto all = AskOwned(topic, partitions);
  if (!all) return tl::unexpected(all.error());
  const bool new_ones = std::any_of(partitions.begin(), partitions.end(), [](const auto& p) {
    return p.owned && !p.committed && !p.in_transaction;
  });
  if (!*all || new_ones) {
    if (auto asked = AskOthers(topic, partitions); !asked) return tl::unexpected(asked.error());
  }
  return partitions;
}

// In one question; where that is not answered, one by one: a transaction that is open on one
// partition must not keep the others. False: some were not answered (in_transaction, it seems).
tl::expected<bool, std::string> InitialOffsets::AskOwned(const std::string& topic,
                                                         std::vector<KnownPartition>& partitions) {
  const rdkafka::PartitionList list = rdkafka::MakeList(partitions.size());
  for (std::size_t p = 0; p < partitions.size(); ++p) {
    if (!partitions[p].owned) continue;
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), static_cast<std::int32_t>(p));
  }
  const auto error = rd_kafka_committed(consumer_, list.get(), kCallMs);
  bool answered = true;
  for (int i = 0; i < list->cnt; ++i) {
    rd_kafka_topic_partition_t& one = list->elems[i];
    KnownPartition& known = partitions[static_cast<std::size_t>(one.partition)];
    const bool failed =
        error != RD_KAFKA_RESP_ERR_NO_ERROR || one.err != RD_KAFKA_RESP_ERR_NO_ERROR;
    if (failed && !Planted("failed_fetch_is_no_offset")) {
      if (cancelled_()) return tl::unexpected(std::string(kStopping));
      const auto alone = AskOne({topic, one.partition}, kOnePartitionMs);
      if (!alone && !Waits(alone.error())) {
        return tl::unexpected(fmt::format("committed offset of {}/{}: {}", topic, one.partition,
                                          rd_kafka_err2str(alone.error())));
      }
      known.in_transaction = !alone;
      one.offset = alone.value_or(RD_KAFKA_OFFSET_INVALID);
    } else {
      NoteMetadata(one);
    }
    if (one.offset >= 0) known.committed = one.offset;
    answered = answered && !known.in_transaction;
  }
  return answered;
}

// Whether or not a transaction is open. An answer also says that the coordinator is there: what it
// did not tell before is in a transaction.
tl::expected<void, std::string> InitialOffsets::AskOthers(const std::string& topic,
                                                          std::vector<KnownPartition>& partitions) {
  const auto admin = Admin();
  if (!admin) return tl::unexpected(admin.error());
  const auto offsets = (*admin)->CommittedOffsets(topic, std::chrono::milliseconds(kCallMs));
  if (!offsets) {
    return tl::unexpected(fmt::format("committed offsets of {}: {}", topic, offsets.error().what));
  }
  for (std::size_t p = 0; p < std::min(partitions.size(), offsets->size()); ++p) {
    KnownPartition& known = partitions[p];
    const Offset offset = (*offsets)[p];
    if (!known.owned) {
      if (offset >= 0) known.committed = offset;
      continue;
    }
    // A transaction comes after a committed start: without one, the answer was only late. And an
    // offset that is here, and was not told before, must not be taken for none.
    const bool differs = known.in_transaction ? offset < 0 : !known.committed && offset >= 0;
    if (differs && !Planted("failed_fetch_is_no_offset")) {
      return tl::unexpected(fmt::format("committed offset of {}/{}: no answer in time", topic, p));
    }
  }
  return {};
}

std::optional<Offset> InitialOffsets::AfterTransaction(const TopicPartition& where) {
  const auto found = AskOne(where, kAfterTransactionMs);
  if (!found) return std::nullopt;
  return *found;
}

// The group has no offset on any partition, and would start at the end: is it new, or did its
// offsets expire? From the earliest on, the ledger knows what is done.
InitialOffsets::Turn InitialOffsets::MayCommitStarts(const std::string& topic) {
  if (extras_.knows_earlier_work == nullptr) return Turn::kDone;
  const std::string none =
      fmt::format("the group '{}' has no offsets on {}", options_.group, topic);
  const auto known = extras_.knows_earlier_work(topic);
  if (!known) return Again(fmt::format("{}, and the ledger: {}", none, known.error().Line()));
  if (!*known) return Turn::kDone;
  error_ = Error{"offsets_expired",
                 none +
                     ", but the ledger has rows of it: they have expired or were deleted, and "
                     "start_from: latest would pass over what came meanwhile",
                 "kafka.start_from",
                 fmt::format("set start_from: earliest (the ledger knows what is done), or "
                             "kafka-consumer-groups --group {} --topic {} --reset-offsets",
                             options_.group, topic)};
  return Turn::kRefused;
}

// Anything of what it reads is committed. What a pattern finds after that is new.
tl::expected<bool, std::string> InitialOffsets::GroupHasBegun() {
  const auto offsets = admin_->CommittedOffsets(topics_.now(), std::chrono::milliseconds(kCallMs));
  if (!offsets) {
    return tl::unexpected(
        fmt::format("committed offsets of {}: {}", offsets.error().where, offsets.error().what));
  }
  return std::ranges::any_of(*offsets, [](Offset offset) { return offset >= 0; });
}

// With a pattern, whether a topic was there when the group began shows by its offset alone: so the
// latest starts of all that are there are committed by one worker, before any other offset.
InitialOffsets::Turn InitialOffsets::CommitStarts(const std::string& topic,
                                                  const std::vector<KnownPartition>& partitions,
                                                  StartStep step) {
  const bool all = step == StartStep::kCommitAll;
  bool latest = all && options_.start_from == StartFrom::kLatest;  // but for what came later
  std::vector<KnownTopic> of{{topic, static_cast<int>(partitions.size())}};
  if (latest && topics_.any()) {
    const auto begun = GroupHasBegun();
    if (!begun) return Again(begun.error());
    if (*begun) {
      latest = topics_.read().Names(topic);
    } else {
      of = topics_.now();
      const std::string& first = of.empty() ? topic : of.front().name;
      if (topic != first) {
        return Again(fmt::format(
            "waiting for the worker that owns {}/0 to commit the first offsets of all topics",
            first));
      }
    }
  }
  const rdkafka::PartitionList list = rdkafka::MakeList(partitions.size());
  std::size_t later = 0;
  for (const auto& [name, count] : of) {
    const bool came_later = topics_.CameLater(name);
    const bool at_end = latest && !came_later;
    later += came_later ? 1 : 0;
    if (const Turn may = at_end ? MayCommitStarts(name) : Turn::kDone; may != Turn::kDone)
      return may;
    for (int p = 0; p < count; ++p) {
      const auto known = all ? KnownPartition{} : partitions[static_cast<std::size_t>(p)];
      if (!all && (!known.owned || known.committed || known.in_transaction)) continue;
      // ListOffsets takes -2 and -1 for a timestamp: the first offset, and the last stable one.
      rd_kafka_topic_partition_list_add(list.get(), name.c_str(), p)->offset =
          at_end ? RD_KAFKA_OFFSET_END : RD_KAFKA_OFFSET_BEGINNING;
    }
  }
  latest = latest && later < of.size();
  const std::string what =
      of.size() == 1 ? topic : fmt::format("{} and {} more topics", topic, of.size() - 1);
  if (const Turn done = CommitList(*list); done != Turn::kDone) {
    why_ = fmt::format("the first offsets of {}: {}", what, why_);
    // Those of the others are committed, so that the next turn is about this topic alone.
    if (of.size() > 1 && done == Turn::kForbidden) return Turn::kAgain;
    const bool alone = of.size() == 1 && !topics_.read().Names(topic);
    if (!alone || done != Turn::kAgain || cancelled_()) return done;
    const auto partition = PartitionWithoutLeader(consumer_, topic, Millis(kCallMs));
    if (!partition) return done;
    why_ = fmt::format("{}/{} has no leader", topic, *partition);
    return Turn::kWait;
  }
  if (all && extras_.knows_earlier_work == nullptr && later < of.size()) {
    note_(locking::Severity::kWarn, "starts_unknown",
          fmt::format(
              "the group '{}' had no offsets on {}: if this pipeline has worked on it before, "
              "they have expired or were deleted, and {}",
              options_.group, what,
              latest ? "what came meanwhile is passed over"
                     : "all its records are processed again, but for those that a pipeline of this "
                       "name, of any cluster, has marked as done on the lock nodes"));
  }
  note_(locking::Severity::kInfo, "starts_committed",
        all ? fmt::format("the group had no offsets on {}: the {} offsets of all {} partitions{} "
                          "are committed as its start",
                          what, latest ? "latest" : "earliest", list->cnt,
                          latest && later > 0 ? ", of new topics the earliest," : "")
            : fmt::format("{} new partition(s) of {} start at the earliest offset", list->cnt,
                          topic));
  return Turn::kCommitted;  // read back what is there, so that what is used is what is committed
}

// Finds the offset of each, which is none yet, and commits it; kDone: all are; kForbidden: but for
// those of topics that may not be read. Parts of a list that is too long for one request: what is
// left of it if this worker ends starts at the beginning.
InitialOffsets::Turn InitialOffsets::CommitList(const rd_kafka_topic_partition_list_t& starts) {
  constexpr int kMostInARequest = 1500;  // of names of any length in 1 MiB (message.max.bytes)
  const rdkafka::PartitionList found(rd_kafka_topic_partition_list_copy(&starts));
  const auto error = rd_kafka_offsets_for_times(consumer_, found.get(), kCallMs);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return Again(rd_kafka_err2str(error));
  for (int i = 0; i < found->cnt; ++i) {
    const rd_kafka_topic_partition_t& one = found->elems[i];
    if (one.err != RD_KAFKA_RESP_ERR_NO_ERROR || one.offset < 0) {
      return Again(
          fmt::format("offset of {}/{}: {}", one.topic, one.partition, rd_kafka_err2str(one.err)));
    }
  }
  Turn all = Turn::kDone;
  for (int i = 0; i < found->cnt; i += kMostInARequest) {
    if (cancelled_()) return Again(std::string(kStopping));
    const rdkafka::PartitionList part = rdkafka::MakeList(kMostInARequest);
    for (int j = i; j < std::min(found->cnt, i + kMostInARequest); ++j) {
      const rd_kafka_topic_partition_t& one = found->elems[j];
      rd_kafka_topic_partition_list_add(part.get(), one.topic, one.partition)->offset = one.offset;
    }
    const auto done =
        commits_->CommitNow(part.get(), kCommitLimit, [this] { return !cancelled_(); });
    if (done) continue;
    Again(rd_kafka_err2str(done.error()));
    if (done.error() == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED) {
      all = Turn::kForbidden;
      continue;
    }
    return ClassifyCommit(done.error()) == CommitResult::kRejected ? Turn::kRejoin : Turn::kAgain;
  }
  return all;
}

}  // namespace fencepost::consumer
