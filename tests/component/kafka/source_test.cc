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
#include "tests/unit/kafka/recording_sink.h"

namespace fencepost::consumer::testing {
namespace {

constexpr std::int16_t kFetchRequest = 1;
constexpr std::int16_t kOffsetCommitRequest = 8;
constexpr int kTopicAuthorizationFailed = 29;
constexpr int kRebalanceInProgress = 27;

class KafkaSourceOnMock : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = MockCluster::Make();
    ASSERT_TRUE(made);
    cluster = std::move(*made);
    ASSERT_TRUE(cluster->CreateTopic("orders", 4));
  }

  KafkaOptions Options(StartFrom start = StartFrom::kEarliest) const {
    KafkaOptions options;
    options.brokers = cluster->brokers();
    options.topics = {"orders"};
    options.group = "g";
    options.start_from = start;
    options.librdkafka = {{"session.timeout.ms", "3000"}, {"heartbeat.interval.ms", "200"}};
    return options;
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

  // Starts it, reads all that Produce(10) has made, and commits an offset beyond.
  void ReadAllAndCommit(KafkaSource& source, RecordingSink& sink, Offset beyond) const {
    ASSERT_TRUE(source.Start());
    ASSERT_TRUE(WaitUntil(20s, [&] { return sink.Count() == 40; })) << sink.Trace();
    auto offsets = sink.Positions();
    for (auto& offset : offsets) offset.next = beyond;
    source.Commit(offsets);
    ASSERT_TRUE(WaitUntil(10s, [&] { return Committed()[0] == beyond; }));
  }

  std::unique_ptr<MockCluster> cluster;
};

std::vector<Offset> UpTo(Offset end) {
  std::vector<Offset> all;
  for (Offset o = 0; o < end; ++o) all.push_back(o);
  return all;
}

TEST_F(KafkaSourceOnMock, DeliversEveryRecordInOrderAndThenTheEnd) {
  Produce(500);
  RecordingSink sink;
  KafkaSource source(Options(), "w1", &sink, &sink);
  ASSERT_TRUE(source.Start());
  ASSERT_TRUE(WaitUntil(20s, [&] { return sink.Count() == 2000; })) << sink.Trace();
  for (int p = 0; p < 4; ++p) EXPECT_EQ(sink.Offsets({"orders", p}), UpTo(500));
  ASSERT_TRUE(WaitUntil(5s, [&] {
    return sink.Locked([&] {
      return sink.ends[{"orders", 3}] == 500 && sink.high[{"orders", 3}] == 500;
    });
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
  RecordingSink sink;
  sink.keep_records = true;
  KafkaSource source(Options(), "w1", &sink, &sink);
  ASSERT_TRUE(source.Start());
  ASSERT_TRUE(WaitUntil(20s, [&] { return sink.Count() == 1000; })) << sink.Trace();
  source.Stop();
  source.Join();
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
  RecordingSink sink;
  KafkaOptions options = Options();
  options.librdkafka["session.timeout.ms"] = "30000";  // heartbeats wait behind it
  KafkaSource source(options, "w1", &sink, &sink);
  ASSERT_TRUE(source.Start());
  ASSERT_TRUE(WaitUntil(60s, [&] { return sink.AssignedCount() == 4; })) << sink.Trace();
  EXPECT_EQ(sink.Trace().find("leaving the group"), std::string::npos) << sink.Trace();
  EXPECT_EQ(Committed(), std::vector<Offset>(4, 0));
}

TEST_F(KafkaSourceOnMock, RefusesTheEndAsItsStartWhereEffectsOfTheTopicStandAlready) {
  Produce(10);
  RecordingSink sink;
  std::string asked;
  SourceExtras extras;
  extras.knows_earlier_work = [&](const std::string& topic) {
    asked = topic;
    return true;
  };
  {
    KafkaSource source(Options(StartFrom::kLatest), "w1", &sink, &sink, extras);
    ASSERT_TRUE(source.Start());
    ASSERT_TRUE(WaitUntil(20s, [&] { return sink.Locked([&] { return sink.fatal.has_value(); }); }))
        << sink.Trace();
  }
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
  RecordingSink sink;
  std::atomic<int> asked = 0;
  SourceExtras extras;
  extras.knows_earlier_work = [&](const std::string&) -> tl::expected<bool, Error> {
    if (++asked < 3) return tl::unexpected(Error{"away", "the database is away", "", ""});
    return false;
  };
  KafkaSource source(Options(StartFrom::kLatest), "w1", &sink, &sink, extras);
  ASSERT_TRUE(source.Start());
  ASSERT_TRUE(WaitUntil(20s, [&] { return sink.AssignedCount() == 4; })) << sink.Trace();
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(Committed(), std::vector<Offset>(4, 10));
}

TEST_F(KafkaSourceOnMock, SaysThatItCannotKnowWhetherTheGroupsOffsetsHaveExpired) {
  RecordingSink sink;
  KafkaSource source(Options(), "w1", &sink, &sink);
  ASSERT_TRUE(source.Start());
  ASSERT_TRUE(WaitUntil(20s, [&] { return sink.AssignedCount() == 4; })) << sink.Trace();
  EXPECT_NE(sink.Trace().find("starts_unknown: the group 'g' had no offsets on orders"),
            std::string::npos)
      << sink.Trace();
}

TEST_F(KafkaSourceOnMock, GoesOnWhereTheGroupHasCommitted) {
  Produce(20);
  {
    RecordingSink sink;
    KafkaSource source(Options(), "w1", &sink, &sink);
    ASSERT_TRUE(source.Start());
    ASSERT_TRUE(WaitUntil(20s, [&] { return sink.Count() == 80; })) << sink.Trace();
    source.Commit(sink.Positions());
    ASSERT_TRUE(WaitUntil(10s, [&] {
      return sink.Locked([&] { return sink.committed[{"orders", 2}] == 20; });
    })) << sink.Trace();
    EXPECT_GE(sink.Locked([&] { return sink.results[CommitResult::kCommitted]; }), 1);
  }
  EXPECT_EQ(Committed(), (std::vector<Offset>{20, 20, 20, 20}));
  Produce(5, 4, 20);
  RecordingSink sink;
  KafkaSource source(Options(), "w2", &sink, &sink);
  ASSERT_TRUE(source.Start());
  ASSERT_TRUE(WaitUntil(20s, [&] { return sink.Count() == 20; })) << sink.Trace();
  EXPECT_EQ(sink.Offsets({"orders", 0}), (std::vector<Offset>{20, 21, 22, 23, 24}));
}

TEST_F(KafkaSourceOnMock, IgnoresCommitsOfAnotherEpochAndOlderOffsets) {
  Produce(10);
  RecordingSink sink;
  KafkaSource source(Options(), "w1", &sink, &sink);
  ASSERT_TRUE(source.Start());
  ASSERT_TRUE(WaitUntil(20s, [&] { return sink.Count() == 40; })) << sink.Trace();
  const auto commit = [&](Offset next, AssignmentEpoch later) {
    auto offsets = sink.Positions();
    for (auto& o : offsets) o.next = next, o.epoch += later;
    source.Commit(offsets);
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
  RecordingSink sink;
  KafkaSource source(Options(), "w1", &sink, &sink);
  ASSERT_TRUE(source.Start());
  ASSERT_TRUE(WaitUntil(20s, [&] { return sink.Count() == 40; })) << sink.Trace();
  source.Commit(sink.Positions());
  ASSERT_TRUE(WaitUntil(10s, [&] { return Committed() == std::vector<Offset>{10, 10, 10, 10}; }));
  FailRequests(*cluster, kOffsetCommitRequest, kRebalanceInProgress, 1);
  source.Commit(sink.Positions());
  EXPECT_TRUE(WaitUntil(10s, [&] {
    return sink.Locked([&] { return sink.results[CommitResult::kRejected] == 1; });
  })) << sink.Trace();
}

TEST_F(KafkaSourceOnMock, TellsARejectedCommitAndTakesTheNextOne) {
  Produce(10);
  RecordingSink sink;
  KafkaSource source(Options(), "w1", &sink, &sink);
  ASSERT_TRUE(source.Start());
  ASSERT_TRUE(WaitUntil(20s, [&] { return sink.Count() == 40; })) << sink.Trace();
  FailRequests(*cluster, kOffsetCommitRequest, kRebalanceInProgress, 1);
  source.Commit(sink.Positions());
  ASSERT_TRUE(WaitUntil(10s, [&] {
    return sink.Locked([&] { return sink.results[CommitResult::kRejected] == 1; });
  })) << sink.Trace();
  EXPECT_EQ(Committed(), (std::vector<Offset>{0, 0, 0, 0}));
  source.Commit(sink.Positions());
  ASSERT_TRUE(WaitUntil(10s, [&] { return Committed() == std::vector<Offset>{10, 10, 10, 10}; }));
}

TEST_F(KafkaSourceOnMock, NeitherLosesNorRepeatsRecordsOverPausesOfAPartAndOfAll) {
  constexpr int kRounds = 30;
  constexpr int kEach = 40;
  RecordingSink sink;
  KafkaSource source(Options(), "w1", &sink, &sink);
  ASSERT_TRUE(source.Start());
  ASSERT_TRUE(WaitUntil(20s, [&] { return sink.AssignedCount() == 4; })) << sink.Trace();
  const auto all = sink.AssignedIndices();
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<PartitionIndex> part{all[static_cast<std::size_t>(round % 4)],
                                           all[static_cast<std::size_t>((round + 1) % 4)]};
    if (round % 3 == 0) source.Pause(all, sink.epoch);
    source.Pause(part, sink.epoch);
    Produce(kEach, 4, round * kEach);
    if (round % 2 == 0) source.Resume(part, sink.epoch);
    source.Resume(all, sink.epoch);  // also what was never paused
  }
  ASSERT_TRUE(WaitUntil(20s, [&] { return sink.Count() >= kRounds * kEach * 4; })) << sink.Count();
  for (int p = 0; p < 4; ++p) EXPECT_EQ(sink.Offsets({"orders", p}), UpTo(kRounds * kEach)) << p;
}

TEST_F(KafkaSourceOnMock, HoldsBackWhatIsPausedAndOnlyThat) {
  RecordingSink sink;
  KafkaSource source(Options(), "w1", &sink, &sink);
  ASSERT_TRUE(source.Start());
  ASSERT_TRUE(WaitUntil(20s, [&] { return sink.Locked([&] { return sink.ends.size() == 4; }); }))
      << sink.Trace();
  const auto all = sink.AssignedIndices();
  const TopicPartition paused = sink.where.at(all[0]);
  source.Pause({all[0]}, sink.epoch);
  source.Commit(
      {{all[1], sink.epoch, 0}});  // answered at once: the pause was carried out before it
  ASSERT_TRUE(WaitUntil(5s, [&] { return sink.Locked([&] { return !sink.committed.empty(); }); }));
  Produce(50);
  ASSERT_TRUE(WaitUntil(10s, [&] { return sink.Count() == 150; })) << sink.Count();
  EXPECT_TRUE(sink.Offsets(paused).empty());
  source.Resume({all[0]}, sink.epoch);
  ASSERT_TRUE(WaitUntil(10s, [&] { return sink.Count() == 200; })) << sink.Count();
  EXPECT_EQ(sink.Offsets(paused), UpTo(50));
  source.Pause(all, sink.epoch);
  source.Commit({{all[2], sink.epoch, 0}});
  ASSERT_TRUE(
      WaitUntil(5s, [&] { return sink.Locked([&] { return sink.committed.size() == 2; }); }));
  Produce(50, 4, 50);
  // They were fetched, and are held.
  ASSERT_TRUE(WaitUntil(10s, [&] {
    return sink.Locked([&] {
      return std::all_of(sink.high.begin(), sink.high.end(),
                         [](auto& h) { return h.second == 100; });
    });
  }));
  EXPECT_EQ(sink.Count(), 200u);
  source.Resume({all[3]}, sink.epoch);
  ASSERT_TRUE(WaitUntil(10s, [&] { return sink.Count() == 250; })) << sink.Count();
  source.Resume(all, sink.epoch);
  ASSERT_TRUE(WaitUntil(10s, [&] { return sink.Count() == 400; })) << sink.Count();
  for (int p = 0; p < 4; ++p) EXPECT_EQ(sink.Offsets({"orders", p}), UpTo(100)) << p;
}

// Of each partition the offsets 0 to 99 were seen by one of them, and no others.
bool EachHasItsHundred(const std::vector<const RecordingSink*>& sinks) {
  for (int p = 0; p < 4; ++p) {
    std::set<Offset> seen;
    for (const RecordingSink* sink : sinks) {
      for (const Offset offset : sink->Offsets({"orders", p})) seen.insert(offset);
    }
    if (std::vector<Offset>(seen.begin(), seen.end()) != UpTo(100)) return false;
  }
  return true;
}

TEST_F(KafkaSourceOnMock, TwoWorkersShareThePartitionsAndLoseNothingWhenOneLeaves) {
  Produce(50);
  RecordingSink first;
  RecordingSink second;
  KafkaSource one(Options(), "w1", &first, &first);
  ASSERT_TRUE(one.Start());
  ASSERT_TRUE(WaitUntil(20s, [&] { return first.Count() == 200; })) << first.Trace();
  one.Commit(first.Positions());
  one.Pause(first.AssignedIndices(), first.epoch);  // forgotten at the next assignment
  {
    KafkaSource two(Options(), "w2", &second, &second);
    ASSERT_TRUE(two.Start());
    ASSERT_TRUE(
        WaitUntil(30s, [&] { return first.AssignedCount() == 2 && second.AssignedCount() == 2; }))
        << first.Trace() << second.Trace();
    EXPECT_GE(first.Locked([&] { return first.revokes; }), 1);
    Produce(50, 4, 50);
    // A slow machine may see one more rebalance, and then a record twice: nothing is committed.
    const auto all_are_here = [&] { return EachHasItsHundred({&first, &second}); };
    ASSERT_TRUE(WaitUntil(30s, all_are_here)) << first.Count() << " and " << second.Count();
  }
  ASSERT_TRUE(WaitUntil(30s, [&] { return first.AssignedCount() == 4; })) << first.Trace();
  // Nothing of the second worker's was committed: the first one reads it again, from the 50th on.
  EXPECT_TRUE(WaitUntil(30s, [&] { return EachHasItsHundred({&first}); })) << first.Trace();
  EXPECT_FALSE(first.early);
  EXPECT_FALSE(second.early);
}

// As after a freeze that was longer than its session, during which what is before the group's
// offset was deleted.
TEST_F(KafkaSourceOnMock, SaysNothingOfTheGroupsOffsetsWhereTheGroupHasGoneOnWithoutIt) {
  constexpr std::int16_t kFetch = 1;
  constexpr int kOffsetOutOfRange = 1;
  Produce(10);
  RecordingSink sink;
  KafkaSource source(Options(), "w1", &sink, &sink);
  ASSERT_NO_FATAL_FAILURE(ReadAllAndCommit(source, sink, 20));
  FailRequests(*cluster, kFetch, kOffsetOutOfRange, 10);
  ASSERT_TRUE(WaitUntil(20s, [&] { return sink.Locked([&] { return sink.fatal.has_value(); }); }))
      << sink.Trace();
  EXPECT_EQ(sink.fatal->code, "partition_taken_over");
  EXPECT_NE(sink.fatal->Line().find("gone on to offset 20"), std::string::npos)
      << sink.fatal->Line();
}

TEST_F(KafkaSourceOnMock, IsReadyAgainOnceAForbiddenTopicGivesRecords) {
  Produce(10, 1);
  RecordingSink sink;
  KafkaSource source(Options(), "w1", &sink, &sink);
  ASSERT_TRUE(source.Start());
  ASSERT_TRUE(WaitUntil(20s, [&] { return sink.Count() == 10; })) << sink.Trace();
  ASSERT_TRUE(WaitUntil(20s, [&] { return sink.Locked([&] { return sink.up; }); }));
  FailRequests(*cluster, kFetchRequest, kTopicAuthorizationFailed, 1);
  ASSERT_TRUE(WaitUntil(20s, [&] { return sink.Locked([&] { return !sink.up; }); }));
  EXPECT_NE(sink.Trace().find("[not authorised: orders/"), std::string::npos) << sink.Trace();
  Produce(10, 4);
  ASSERT_TRUE(WaitUntil(20s, [&] { return sink.Count() == 50; })) << sink.Trace();
  EXPECT_TRUE(WaitUntil(20s, [&] { return sink.Locked([&] { return sink.up; }); })) << sink.Trace();
}

TEST_F(KafkaSourceOnMock, IsReadyAgainOnceAForbiddenTopicMayBeReadThoughNothingComes) {
  Produce(10);
  RecordingSink sink;
  KafkaSource source(Options(), "w1", &sink, &sink);
  ASSERT_TRUE(source.Start());
  ASSERT_TRUE(WaitUntil(20s, [&] { return sink.Locked([&] { return sink.ends.size() == 4; }); }));
  FailRequests(*cluster, kFetchRequest, kTopicAuthorizationFailed, 1);
  ASSERT_TRUE(WaitUntil(20s, [&] { return sink.Locked([&] { return !sink.up; }); }));
  EXPECT_TRUE(WaitUntil(20s, [&] { return sink.Locked([&] { return sink.up; }); })) << sink.Trace();
  EXPECT_EQ(sink.Count(), 40u) << "nothing came twice";
}

TEST_F(KafkaSourceOnMock, StopsSoonWhileNoBrokerAnswers) {
  RecordingSink sink;
  KafkaOptions options = Options();
  options.brokers = {"127.0.0.1:1"};
  KafkaSource source(options, "w1", &sink, &sink);
  ASSERT_TRUE(source.Start());
  ASSERT_TRUE(WaitUntil(20s, [&] { return sink.Locked([&] { return sink.reasons.size() > 1; }); }));
  EXPECT_NE(sink.Locked([&] { return sink.reasons.back(); }).find("127.0.0.1:1"),
            std::string::npos);
  const auto began = std::chrono::steady_clock::now();
  source.Stop();
  source.Join();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
}

// librdkafka 2.0.2 aborts the process when a subscription that waits for the end of a rebalance is
// taken up after the close.
TEST_F(KafkaSourceOnMock, StopsCleanlyWhenItIsToldToWhileItLeavesToJoinAgain) {
  FailRequests(*cluster, kOffsetCommitRequest, kRebalanceInProgress, 1);
  RecordingSink sink;
  KafkaSource source(Options(), "w1", &sink, &sink);
  bool rejoining = false;
  sink.on_note = [&](const std::string& note) {
    if (!note.starts_with("rejoining")) return;
    rejoining = true;
    source.Stop();
  };
  ASSERT_TRUE(source.Start());
  source.Join();
  EXPECT_TRUE(rejoining) << sink.Trace();
  EXPECT_EQ(sink.assignments, 0);
  EXPECT_EQ(sink.Trace().find("leave_group_timeout"), std::string::npos) << sink.Trace();
}

TEST_F(KafkaSourceOnMock, RefusesToStartWithASettingThatItMustNotTake) {
  RecordingSink sink;
  KafkaOptions options = Options();
  options.librdkafka["isolation.level"] = "read_uncommitted";
  KafkaSource source(options, "w1", &sink, &sink);
  const auto started = source.Start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, "bad_config");
}

TEST_F(KafkaSourceOnMock, GivesAPartitionTheSameNumberInEveryAssignment) {
  RecordingSink sink;
  std::map<TopicPartition, std::vector<PartitionIndex>> numbers;
  sink.on_assigned = [&](const std::vector<AssignedPartition>& partitions) {
    for (const auto& p : partitions) numbers[p.where].push_back(p.partition);
  };
  KafkaSource source(Options(), "w1", &sink, &sink);
  ASSERT_TRUE(source.Start());
  ASSERT_TRUE(WaitUntil(20s, [&] { return sink.AssignedCount() == 4; })) << sink.Trace();
  {
    RecordingSink other;
    KafkaSource two(Options(), "w2", &other, &other);
    ASSERT_TRUE(two.Start());
    ASSERT_TRUE(WaitUntil(30s, [&] { return sink.AssignedCount() == 2; })) << sink.Trace();
  }
  ASSERT_TRUE(WaitUntil(30s, [&] { return sink.AssignedCount() == 4; })) << sink.Trace();
  source.Stop();
  source.Join();
  EXPECT_GE(sink.epoch, 3u);
  for (const auto& [where, given] : numbers) {
    for (const PartitionIndex one : given) EXPECT_EQ(one, given.front()) << where.partition;
  }
}

// A flow that is slow may still speak of an assignment that it does not know to be over.
TEST_F(KafkaSourceOnMock, TakesNoPauseOfAnotherAssignment) {
  RecordingSink sink;
  KafkaSource source(Options(), "w1", &sink, &sink);
  ASSERT_TRUE(source.Start());
  ASSERT_TRUE(WaitUntil(20s, [&] { return sink.AssignedCount() == 4; })) << sink.Trace();
  source.Pause(sink.AssignedIndices(), sink.epoch - 1);
  Produce(10);
  EXPECT_TRUE(WaitUntil(20s, [&] { return sink.Count() == 40; })) << sink.Count();
}

// librdkafka keeps what was paused paused, also in the next assignment.
TEST_F(KafkaSourceOnMock, ReadsAPartitionAgainThatWasPausedAloneWhenItWasRevoked) {
  RecordingSink sink;
  KafkaSource source(Options(), "w1", &sink, &sink);
  ASSERT_TRUE(source.Start());
  ASSERT_TRUE(WaitUntil(20s, [&] { return sink.AssignedCount() == 4; })) << sink.Trace();
  const auto all = sink.AssignedIndices();
  source.Pause({all[0], all[1], all[2]}, sink.epoch);
  Produce(10);
  ASSERT_TRUE(WaitUntil(10s, [&] { return sink.Count() == 10; })) << sink.Count();
  {
    RecordingSink other;
    KafkaSource two(Options(), "w2", &other, &other);
    ASSERT_TRUE(two.Start());
    ASSERT_TRUE(WaitUntil(30s, [&] { return sink.AssignedCount() == 2; })) << sink.Trace();
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
