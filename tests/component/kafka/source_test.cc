// KafkaSource against the mock cluster, in this process.
#include "consumer/kafka/source/source.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include <fmt/format.h>

#include "consumer/kafka/client/admin.h"
#include "consumer/kafka/client/mock_cluster.h"
#include "consumer/kafka/client/producer.h"
#include "tests/component/kafka/mock_faults.h"
#include "tests/component/kafka/orders_on_mock.h"
#include "tests/component/kafka/reader.h"

namespace fencepost::consumer::testing {
namespace {

constexpr std::int16_t kFetchRequest = 1;
constexpr std::int16_t kOffsetCommitRequest = 8;
constexpr std::int16_t kJoinGroupRequest = 11;
constexpr int kInconsistentGroupProtocol = 23;
constexpr int kTopicAuthorizationFailed = 29;
constexpr int kRebalanceInProgress = 27;

class KafkaSourceOnMock : public OrdersOnMock {
 protected:
  KafkaSourceOnMock() : OrdersOnMock(4) {}

  KafkaOptions Options(StartFrom start = StartFrom::kEarliest) const {
    KafkaOptions from = options;
    from.start_from = start;
    return from;
  }

  // `count` records to each of the partitions [0, partitions); keys count on from `first`.
  void Produce(int count, int partitions = 4, int first = 0) {
    auto producer = Producer::Make(Options());
    ASSERT_TRUE(producer);
    for (int i = first; i < first + count; ++i) {
      for (int p = 0; p < partitions; ++p) {
        const std::string key = fmt::format("k-{}-{}", p, i);
        OutgoingRecord record;
        record.topic = "orders";
        record.partition = p;
        record.key = key;
        record.value = "v";
        ASSERT_TRUE((*producer)->Send(record));
      }
    }
    ASSERT_TRUE((*producer)->Flush(10s));
  }

  std::vector<Offset> Committed() const {
    auto admin = KafkaAdmin::Make(Options());
    const auto offsets = (*admin)->CommittedOffsets("orders", 5s);
    return offsets ? *offsets : std::vector<Offset>{};
  }
};

TEST_F(KafkaSourceOnMock, DeliversEveryRecordInOrderAndThenTheEnd) {
  Produce(500);
  Reader sink(Options());
  ASSERT_TRUE(sink.Reads(2000));
  for (int p = 0; p < 4; ++p) EXPECT_EQ(sink.Offsets({"orders", p}), UpTo(500));
  ASSERT_TRUE(sink.Until([&] {
    return sink.ends[{"orders", 3}] == 500 && sink.high[{"orders", 3}] == 500;
  }));
  EXPECT_TRUE(sink.cluster_id_was_first);
  EXPECT_FALSE(sink.early);
  EXPECT_TRUE(sink.up);
  EXPECT_EQ(sink.seen.begin()->second.front().key, "k-0-0");
  EXPECT_EQ(Committed(), (std::vector<Offset>{0, 0, 0, 0}));  // the starts, before any record
}

TEST_F(KafkaSourceOnMock, GivesHeadersTimestampsAndNulls) {
  auto producer = Producer::Make(Options());
  ASSERT_TRUE(producer);
  OutgoingRecord record;
  record.topic = "orders";
  record.partition = 1;
  record.key = "";
  record.headers = {{"trace", "abc"}, {"none", std::nullopt}};
  record.timestamp = 1'700'000'000'123ms;
  ASSERT_TRUE((*producer)->Send(record));
  ASSERT_TRUE((*producer)->Flush(10s));

  RecordingSink sink;
  sink.keep_records = true;
  {
    KafkaSource source(Options(), "w1", &sink, &sink);
    ASSERT_TRUE(source.Start());
    ASSERT_TRUE(WaitUntil(20s, [&] { return sink.Count() == 1; })) << sink.Trace();
  }
  // The record is read after its source is gone.
  const Record& seen = sink.kept.front();
  EXPECT_EQ(seen.key, "");
  EXPECT_EQ(seen.value, std::nullopt);
  EXPECT_EQ(seen.timestamp, 1'700'000'000'123ms);
  ASSERT_EQ(seen.headers.size(), 2u);
  EXPECT_EQ(seen.headers[0].name, "trace");
  EXPECT_EQ(seen.headers[0].value, "abc");
  EXPECT_EQ(seen.headers[1].value, std::nullopt);
}

TEST_F(KafkaSourceOnMock, KeepsOfARecordThatIsKeptNothingButItsOwnBytes) {
  Produce(1000, 1);
  Reader sink(Options());
  sink.keep_records = true;
  ASSERT_TRUE(sink.Reads(1000));
  sink.End();
  std::set<const void*> owners;
  for (const Record& record : sink.kept) {
    owners.insert(record.owner.get());
    EXPECT_EQ(record.owner.use_count(), 1) << "another record keeps it too";
    EXPECT_EQ(static_cast<const void*>(record.key->data()), record.owner.get());
    EXPECT_EQ(record.value->data(), record.key->data() + record.key->size());
  }
  EXPECT_EQ(owners.size(), 1000u);
}

// Given up, it could be sent when others have gone on from it.
TEST_F(KafkaSourceOnMock, WaitsForItsFirstOffsetsToBeAnsweredHoweverLongThatTakes) {
  DelayRequest(*cluster, kOffsetCommitRequest, 11s);
  options.librdkafka["session.timeout.ms"] = "30000";  // heartbeats wait behind it
  Reader sink(options);
  ASSERT_TRUE(sink.Owns(4));
  EXPECT_EQ(sink.Trace().find("leaving the group"), std::string::npos) << sink.Trace();
  EXPECT_EQ(Committed(), std::vector<Offset>(4, 0));
}

TEST_F(KafkaSourceOnMock, RefusesTheEndAsItsStartWhereEffectsOfTheTopicStandAlready) {
  Produce(10);
  std::string asked;
  SourceExtras extras;
  extras.knows_earlier_work = [&](const std::string& topic) {
    asked = topic;
    return true;
  };
  Reader sink(Options(StartFrom::kLatest), "w1", extras);
  ASSERT_TRUE(sink.Fails());
  sink.End();
  EXPECT_EQ(asked, "orders");
  EXPECT_EQ(sink.fatal->code, "offsets_expired");
  EXPECT_EQ(sink.fatal->Line(),
            "kafka.start_from: the group 'g' has no offsets on orders, but the ledger has rows of "
            "it: they have expired or were deleted, and start_from: latest would pass over what "
            "came meanwhile; set start_from: earliest (the ledger knows what is done), or "
            "kafka-consumer-groups --group g --topic orders --reset-offsets");
  EXPECT_EQ(Committed(), std::vector<Offset>(4, -1));
}

TEST_F(KafkaSourceOnMock, WaitsForTheAnswerWhetherEffectsOfTheTopicStand) {
  Produce(10);
  std::atomic<int> asked = 0;
  SourceExtras extras;
  extras.knows_earlier_work = [&](const std::string&) -> tl::expected<bool, Error> {
    if (++asked < 3) return tl::unexpected(Error{"away", "the database is away", "", ""});
    return false;
  };
  Reader sink(Options(StartFrom::kLatest), "w1", extras);
  ASSERT_TRUE(sink.Owns(4));
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(Committed(), std::vector<Offset>(4, 10));
}

TEST_F(KafkaSourceOnMock, SaysThatItCannotKnowWhetherTheGroupsOffsetsHaveExpired) {
  Reader sink(Options());
  ASSERT_TRUE(sink.Owns(4));
  EXPECT_NE(sink.Trace().find("starts_unknown: the group 'g' had no offsets on orders"),
            std::string::npos)
      << sink.Trace();
}

TEST_F(KafkaSourceOnMock, GoesOnWhereTheGroupHasCommitted) {
  Produce(20);
  {
    Reader sink(Options());
    ASSERT_TRUE(sink.Reads(80));
    sink.source.Commit(sink.Positions());
    ASSERT_TRUE(sink.Until([&] { return sink.committed[{"orders", 2}] == 20; }));
    EXPECT_GE(sink.Locked([&] { return sink.results[CommitResult::kCommitted]; }), 1);
  }
  EXPECT_EQ(Committed(), (std::vector<Offset>{20, 20, 20, 20}));
  Produce(5, 4, 20);
  Reader sink(Options(), "w2");
  ASSERT_TRUE(sink.Reads(20));
  EXPECT_EQ(sink.Offsets({"orders", 0}), (std::vector<Offset>{20, 21, 22, 23, 24}));
}

TEST_F(KafkaSourceOnMock, SaysThatAnotherPipelineHasCommittedOffsetsOfItsGroup) {
  Produce(20);
  const auto told = [&](const std::string& pipeline) {
    SourceExtras extras;
    extras.pipeline = pipeline;
    Reader sink(Options(), "w", extras);
    EXPECT_TRUE(sink.Owns(4));
    Produce(1);
    EXPECT_TRUE(sink.Until([&] { return sink.CountNow() >= 4; }));
    sink.source.Commit(sink.Positions());
    EXPECT_TRUE(sink.Until([&] { return sink.committed.size() == 4; }));
    const std::string said = "shared_group: offsets of the group 'g' were committed by pipeline ";
    const std::size_t at = sink.Trace().find(said);
    return at == std::string::npos ? "" : sink.Trace().substr(at + said.size(), 6);
  };
  EXPECT_EQ(told("orders"), "");
  EXPECT_EQ(told("payments"), "orders");
  EXPECT_EQ(told("payments"), "");
}

TEST_F(KafkaSourceOnMock, IgnoresCommitsOfAnotherEpochAndOlderOffsets) {
  Produce(10);
  Reader sink(Options());
  ASSERT_TRUE(sink.Reads(40));
  const auto commit = [&](Offset next, AssignmentEpoch later) {
    auto offsets = sink.Positions();
    for (auto& o : offsets) o.next = next, o.epoch += later;
    sink.source.Commit(offsets);
  };
  const TopicPartition one{"orders", 1};
  const auto answers = [&](std::size_t count) {
    return WaitUntil(
        10s, [&] { return sink.Locked([&] { return sink.commit_history[one].size() >= count; }); });
  };
  commit(7, 1);
  commit(5, 0);
  ASSERT_TRUE(answers(1)) << sink.Trace();
  EXPECT_EQ(Committed(), (std::vector<Offset>{5, 5, 5, 5}));
  commit(3, 0);
  commit(5, 0);
  ASSERT_TRUE(answers(2));
  commit(8, 0);
  ASSERT_TRUE(answers(3));
  EXPECT_EQ(sink.Locked([&] { return sink.commit_history[one]; }), (std::vector<Offset>{5, 5, 8}));
  EXPECT_EQ(Committed(), (std::vector<Offset>{8, 8, 8, 8}));
}

TEST_F(KafkaSourceOnMock, AsksTheGroupAgainForWhatItHasCommittedSinceItMayHaveMovedOn) {
  Produce(10);
  Reader sink(Options());
  ASSERT_TRUE(sink.Reads(40));
  sink.source.Commit(sink.Positions());
  ASSERT_TRUE(WaitUntil(10s, [&] { return Committed() == std::vector<Offset>{10, 10, 10, 10}; }));
  FailRequests(*cluster, kOffsetCommitRequest, kRebalanceInProgress, 1);
  sink.source.Commit(sink.Positions());
  EXPECT_TRUE(sink.Until([&] { return sink.results[CommitResult::kRejected] == 1; }));
}

TEST_F(KafkaSourceOnMock, TellsARejectedCommitAndTakesTheNextOne) {
  Produce(10);
  Reader sink(Options());
  ASSERT_TRUE(sink.Reads(40));
  FailRequests(*cluster, kOffsetCommitRequest, kRebalanceInProgress, 1);
  sink.source.Commit(sink.Positions());
  ASSERT_TRUE(sink.Until([&] { return sink.results[CommitResult::kRejected] == 1; }));
  EXPECT_EQ(Committed(), (std::vector<Offset>{0, 0, 0, 0}));
  sink.source.Commit(sink.Positions());
  ASSERT_TRUE(WaitUntil(10s, [&] { return Committed() == std::vector<Offset>{10, 10, 10, 10}; }));
}

TEST_F(KafkaSourceOnMock, NeitherLosesNorRepeatsRecordsOverPausesOfAPartAndOfAll) {
  constexpr int kRounds = 30;
  constexpr int kEach = 40;
  Reader sink(Options());
  ASSERT_TRUE(sink.Owns(4));
  const auto all = sink.AssignedIndices();
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<PartitionIndex> part{all[static_cast<std::size_t>(round % 4)],
                                           all[static_cast<std::size_t>((round + 1) % 4)]};
    if (round % 3 == 0) sink.source.Pause(all, sink.epoch);
    sink.source.Pause(part, sink.epoch);
    Produce(kEach, 4, round * kEach);
    if (round % 2 == 0) sink.source.Resume(part, sink.epoch);
    sink.source.Resume(all, sink.epoch);  // also what was never paused
  }
  ASSERT_TRUE(WaitUntil(20s, [&] { return sink.Count() >= kRounds * kEach * 4; })) << sink.Count();
  for (int p = 0; p < 4; ++p) EXPECT_EQ(sink.Offsets({"orders", p}), UpTo(kRounds * kEach)) << p;
}

TEST_F(KafkaSourceOnMock, HoldsBackWhatIsPausedAndOnlyThat) {
  Reader sink(Options());
  ASSERT_TRUE(sink.Until([&] { return sink.ends.size() == 4; }));
  const auto all = sink.AssignedIndices();
  const TopicPartition paused = sink.where.at(all[0]);
  sink.source.Pause({all[0]}, sink.epoch);
  sink.source.Commit(
      {{all[1], sink.epoch, 0}});  // answered at once: the pause was carried out before it
  ASSERT_TRUE(sink.Until([&] { return !sink.committed.empty(); }));
  Produce(50);
  ASSERT_TRUE(sink.Reads(150));
  EXPECT_TRUE(sink.Offsets(paused).empty());
  sink.source.Resume({all[0]}, sink.epoch);
  ASSERT_TRUE(sink.Reads(200));
  EXPECT_EQ(sink.Offsets(paused), UpTo(50));
  sink.source.Pause(all, sink.epoch);
  sink.source.Commit({{all[2], sink.epoch, 0}});
  ASSERT_TRUE(sink.Until([&] { return sink.committed.size() == 2; }));
  Produce(50, 4, 50);
  // They were fetched, and are held.
  ASSERT_TRUE(sink.Until([&] {
    return std::all_of(sink.high.begin(), sink.high.end(), [](auto& h) { return h.second == 100; });
  }));
  EXPECT_EQ(sink.Count(), 200u);
  sink.source.Resume({all[3]}, sink.epoch);
  ASSERT_TRUE(sink.Reads(250));
  sink.source.Resume(all, sink.epoch);
  ASSERT_TRUE(sink.Reads(400));
  for (int p = 0; p < 4; ++p) EXPECT_EQ(sink.Offsets({"orders", p}), UpTo(100)) << p;
}

// As after a freeze that was longer than its session, during which what is before the group's
// offset was deleted.
TEST_F(KafkaSourceOnMock, SaysNothingOfTheGroupsOffsetsWhereTheGroupHasGoneOnWithoutIt) {
  constexpr int kOffsetOutOfRange = 1;
  Produce(10);
  Reader sink(Options());
  ASSERT_TRUE(sink.Reads(40));
  auto beyond = sink.Positions();
  for (auto& offset : beyond) offset.next = 20;
  sink.source.Commit(beyond);
  ASSERT_TRUE(WaitUntil(10s, [&] { return Committed()[0] == 20; }));
  FailRequests(*cluster, kFetchRequest, kOffsetOutOfRange, 10);
  ASSERT_TRUE(sink.Fails());
  EXPECT_EQ(sink.fatal->code, "partition_taken_over");
  EXPECT_NE(sink.fatal->Line().find("gone on to offset 20"), std::string::npos)
      << sink.fatal->Line();
}

// The nearest replica (client.rack), which has deleted more than its leader.
TEST_F(KafkaSourceOnMock, AsksTheLeaderBeforeAnOffsetIsOutOfRange) {
  const auto three = MockCluster::Make(3).value();
  ASSERT_TRUE(three->CreateTopic("orders", 1));
  rd_kafka_mock_partition_set_leader(three->cluster(), "orders", 0, 1);
  rd_kafka_mock_partition_set_follower(three->cluster(), "orders", 0, 2);
  options.brokers = three->brokers();
  Produce(20, 1);
  rd_kafka_mock_partition_set_follower_wmarks(three->cluster(), "orders", 0, 10, 20);
  KafkaOptions near = Options();
  near.librdkafka["client.rack"] = "a";
  Reader sink(near);
  ASSERT_TRUE(sink.Until([&] {
    return !sink.reasons.empty() &&
           sink.reasons.back().find("the leader has it") != std::string::npos;
  }));
  EXPECT_EQ(sink.Count(), 0u);
  rd_kafka_mock_partition_set_follower_wmarks(three->cluster(), "orders", 0, 0, 20);
  ASSERT_TRUE(sink.Reads(20));
  EXPECT_TRUE(sink.Until([&] { return sink.up && !sink.fatal; }));
}

// As of a leader that was deposed, and answers from a log that is shorter.
TEST_F(KafkaSourceOnMock, TakesOneAnswerThatAnOffsetIsOutOfRangeForNoEnd) {
  constexpr int kOffsetOutOfRange = 1;
  Produce(10);
  Reader sink(Options());
  ASSERT_TRUE(sink.Reads(40));
  FailRequests(*cluster, kFetchRequest, kOffsetOutOfRange, 1);
  ASSERT_TRUE(sink.Until([&] { return !sink.up; }));
  Produce(10, 4);
  ASSERT_TRUE(sink.Reads(120)) << "joined again, it reads from where the group is";
  EXPECT_TRUE(sink.Until([&] { return sink.up && !sink.fatal; }));
}

TEST_F(KafkaSourceOnMock, IsReadyAgainOnceAForbiddenTopicGivesRecords) {
  Produce(10, 1);
  Reader sink(Options());
  ASSERT_TRUE(sink.Reads(10));
  ASSERT_TRUE(sink.Until([&] { return sink.up; }));
  FailRequests(*cluster, kFetchRequest, kTopicAuthorizationFailed, 1);
  ASSERT_TRUE(sink.Until([&] { return !sink.up; }));
  EXPECT_NE(sink.Trace().find("[not authorised: orders/"), std::string::npos) << sink.Trace();
  Produce(10, 4);
  ASSERT_TRUE(sink.Reads(50));
  EXPECT_TRUE(sink.Until([&] { return sink.up; }));
}

TEST_F(KafkaSourceOnMock, IsReadyAgainOnceAForbiddenTopicMayBeReadThoughNothingComes) {
  Produce(10);
  Reader sink(Options());
  ASSERT_TRUE(sink.Until([&] { return sink.ends.size() == 4; }));
  FailRequests(*cluster, kFetchRequest, kTopicAuthorizationFailed, 1);
  ASSERT_TRUE(sink.Until([&] { return !sink.up; }));
  EXPECT_TRUE(sink.Until([&] { return sink.up; }));
  EXPECT_EQ(sink.Count(), 40u) << "nothing came twice";
}

// As the members of a cooperative group do.
TEST_F(KafkaSourceOnMock, SaysWhyTheGroupDoesNotTakeItAndJoinsOnceItDoes) {
  FailRequests(*cluster, kJoinGroupRequest, kInconsistentGroupProtocol, 2);
  Reader sink(Options());
  const auto says = [&] {
    return sink.reasons.back().find("it has members that share partitions otherwise than by") !=
           std::string::npos;
  };
  ASSERT_TRUE(sink.Until([&] { return !sink.reasons.empty() && says(); })) << sink.Trace();
  EXPECT_TRUE(sink.Until([&] { return sink.up; })) << sink.Trace();
}

TEST_F(KafkaSourceOnMock, StopsSoonWhileNoBrokerAnswers) {
  options.brokers = {"127.0.0.1:1"};
  Reader sink(options);
  ASSERT_TRUE(sink.Until([&] { return sink.reasons.size() > 1; }));
  for (const char* said : {"no broker of 127.0.0.1:1 serves us", "Connection refused"}) {
    EXPECT_NE(sink.Locked([&] { return sink.reasons.back(); }).find(said), std::string::npos);
  }
  const auto began = std::chrono::steady_clock::now();
  sink.End();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
}

// librdkafka 2.0.2 aborts the process when a subscription that waits for the end of a rebalance is
// taken up after the close.
TEST_F(KafkaSourceOnMock, StopsCleanlyWhenItIsToldToWhileItLeavesToJoinAgain) {
  FailRequests(*cluster, kOffsetCommitRequest, kRebalanceInProgress, 1);
  bool rejoining = false;
  Reader sink(Options());
  sink.on_note = [&](const std::string& note) {
    if (!note.starts_with("rejoining")) return;
    rejoining = true;
    sink.source.Stop();
  };
  ASSERT_TRUE(sink.Start());
  sink.source.Join();
  EXPECT_TRUE(rejoining) << sink.Trace();
  EXPECT_EQ(sink.assignments, 0);
  EXPECT_EQ(sink.Trace().find("leave_group_timeout"), std::string::npos) << sink.Trace();
}

TEST_F(KafkaSourceOnMock, RefusesToStartWithASettingThatItMustNotTake) {
  options.librdkafka["isolation.level"] = "read_uncommitted";
  Reader sink(options);
  const auto started = sink.source.Start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, "bad_config");
}

TEST_F(KafkaSourceOnMock, TellsTheNextOwnerWhichRecordsFailedFromTheCommitOn) {
  const std::vector<FailedRecord> failed{
      {.offset = 4, .attempts = 124, .alone = 13min, .last = Millis(1'700'000'000'000)}};
  {
    Reader first(Options());
    ASSERT_TRUE(first.Owns(4));
    const std::vector<PartitionOffset> starts = first.Positions();
    for (const PartitionOffset& one : starts) {
      first.source.Commit({{one.partition, one.epoch, one.next, failed}});
    }
    ASSERT_TRUE(first.Until([&] { return first.committed.size() == 4; }));
  }
  Reader next(Options());
  ASSERT_TRUE(next.Owns(4));
  next.Locked([&] {
    for (const AssignedPartition& one : next.assigned) EXPECT_EQ(one.failed, failed);
  });
}

TEST_F(KafkaSourceOnMock, GivesAPartitionTheSameNumberInEveryAssignment) {
  std::map<TopicPartition, std::vector<PartitionIndex>> numbers;
  Reader sink(Options());
  sink.on_assigned = [&](const std::vector<AssignedPartition>& partitions) {
    for (const auto& p : partitions) numbers[p.where].push_back(p.partition);
  };
  ASSERT_TRUE(sink.Owns(4));
  {
    Reader other(Options(), "w2");
    ASSERT_TRUE(other.Start());
    ASSERT_TRUE(sink.Owns(2));
  }
  ASSERT_TRUE(sink.Owns(4));
  sink.End();
  EXPECT_GE(sink.epoch, 3u);
  for (const auto& [where, given] : numbers) {
    for (const PartitionIndex one : given) EXPECT_EQ(one, given.front()) << where.partition;
  }
}

// A flow that is slow may still speak of an assignment that it does not know to be over.
TEST_F(KafkaSourceOnMock, TakesNoPauseOfAnotherAssignment) {
  Reader sink(Options());
  ASSERT_TRUE(sink.Owns(4));
  sink.source.Pause(sink.AssignedIndices(), sink.epoch - 1);
  Produce(10);
  EXPECT_TRUE(sink.Reads(40));
}

// librdkafka keeps what was paused paused, also in the next assignment.
TEST_F(KafkaSourceOnMock, ReadsAPartitionAgainThatWasPausedAloneWhenItWasRevoked) {
  Reader sink(Options());
  ASSERT_TRUE(sink.Owns(4));
  const auto all = sink.AssignedIndices();
  sink.source.Pause({all[0], all[1], all[2]}, sink.epoch);
  Produce(10);
  ASSERT_TRUE(sink.Reads(10));
  {
    Reader other(Options(), "w2");
    ASSERT_TRUE(other.Start());
    ASSERT_TRUE(sink.Owns(2));
  }
  EXPECT_TRUE(WaitUntil(30s, [&] {
    for (int p = 0; p < 4; ++p) {
      const auto offsets = sink.Offsets({"orders", p});
      if (std::set<Offset>(offsets.begin(), offsets.end()).size() != 10) return false;
    }
    return true;
  })) << sink.Trace();
}

}  // namespace
}  // namespace fencepost::consumer::testing
