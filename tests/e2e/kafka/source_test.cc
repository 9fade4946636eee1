// KafkaSource against a real broker: what the mock cluster cannot show.
#include "consumer/kafka/source/source.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <set>

#include <fmt/format.h>

#include "consumer/kafka/output/transactional_producer.h"
#include "tests/component/kafka/reader.h"
#include "tests/e2e/kafka/broker_fixture.h"
#include "tests/support/kafka_group.h"

namespace fencepost::consumer::testing {
namespace {

using fencepost::testing::LookAtGroup;
using fencepost::testing::TestProducer;

class KafkaSourceOnBroker : public OnBroker {
 protected:
  void Produce(int count, int partitions) const {
    TestProducer producer(broker->bootstrap());
    for (int i = 0; i < count; ++i) {
      for (int p = 0; p < partitions; ++p) producer.Send(topic, p, "k", fmt::format("{}", i));
    }
    producer.Flush();
  }
  std::vector<Offset> Committed() const {
    return broker->admin().CommittedOffsets(topic + "-group", topic);
  }
};

std::vector<Offset> Range(Offset from, Offset to) {
  std::vector<Offset> all;
  for (Offset o = from; o < to; ++o) all.push_back(o);
  return all;
}

TEST_F(KafkaSourceOnBroker, CommitsTheLatestStartOfEveryPartitionBeforeItTellsAny) {
  broker->CreateTopic(topic, 4);
  Produce(10, 2);
  RecordingSink sinks[2];
  std::atomic<bool> committed_first = true;
  std::vector<std::unique_ptr<KafkaSource>> sources;
  for (RecordingSink& sink : sinks) {
    sink.on_assigned = [&](const std::vector<AssignedPartition>& partitions) {
      const auto offsets = Committed();
      for (const auto& p : partitions) {
        if (offsets[static_cast<std::size_t>(p.where.partition)] != p.start)
          committed_first = false;
      }
    };
    sources.push_back(
        std::make_unique<KafkaSource>(Options(StartFrom::kLatest), "w", &sink, &sink));
    ASSERT_TRUE(sources.back()->Start());
  }
  ASSERT_TRUE(WaitUntil(
      30s, [&] { return sinks[0].AssignedCount() == 2 && sinks[1].AssignedCount() == 2; }))
      << sinks[0].Trace() << sinks[1].Trace();
  EXPECT_TRUE(committed_first);
  EXPECT_EQ(Committed(), (std::vector<Offset>{10, 10, 0, 0}));
  Produce(5, 4);
  ASSERT_TRUE(WaitUntil(20s, [&] { return sinks[0].Count() + sinks[1].Count() == 20; }));
}

TEST_F(KafkaSourceOnBroker, ReadsNewPartitionsFromTheirBeginning) {
  broker->CreateTopic(topic, 2);
  const auto add_one_with_records = [&](int total) {
    broker->admin().AddPartitions(topic, total);
    TestProducer producer(broker->bootstrap());
    for (int i = 0; i < 5; ++i) producer.Send(topic, total - 1, "k", "v");
    producer.Flush();
  };
  {
    Reader sink(Options(StartFrom::kLatest));
    ASSERT_TRUE(sink.Owns(2));
  }
  add_one_with_records(3);  // while nobody looks
  Reader sink(Options(StartFrom::kLatest));
  sink.on_revoked = [&](const auto&, bool) { return sink.Positions(); };
  ASSERT_TRUE(sink.Reads(5));
  EXPECT_EQ(sink.Offsets({topic, 2}), Range(0, 5));
  EXPECT_EQ(Committed(), (std::vector<Offset>{0, 0, 0}));
  add_one_with_records(4);  // while it runs
  ASSERT_TRUE(sink.Reads(10));
  EXPECT_EQ(sink.Offsets({topic, 3}), Range(0, 5));
}

// Another member of the group, which answers rebalances until it is told to hold them up.
class OtherMember {
 public:
  explicit OtherMember(const KafkaOptions& kafka) {
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    const auto set = [&](const char* name, const std::string& value) {
      char why[512];
      EXPECT_EQ(rd_kafka_conf_set(conf, name, value.c_str(), why, sizeof(why)), RD_KAFKA_CONF_OK);
    };
    set("bootstrap.servers", kafka.brokers[0]);
    set("group.id", kafka.group);
    set("client.id", "z");  // the range assignor sorts members by their names
    set("partition.assignment.strategy", "range");
    for (const auto& [name, value] : kafka.librdkafka) set(name.c_str(), value);
    rd_kafka_conf_set_rebalance_cb(conf, [](auto* rk, auto what, auto* partitions, void*) {
      rd_kafka_assign(rk, what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS ? partitions : nullptr);
    });
    consumer_.reset(rd_kafka_new(RD_KAFKA_CONSUMER, conf, nullptr, 0));
    const rdkafka::PartitionList list = rdkafka::MakeList(1);
    rd_kafka_topic_partition_list_add(list.get(), kafka.topics[0].c_str(), RD_KAFKA_PARTITION_UA);
    rd_kafka_subscribe(consumer_.get(), list.get());
    answering_ = std::thread([this] {
      while (!hold_) rdkafka::Message(rd_kafka_consumer_poll(consumer_.get(), 10));
    });
  }
  ~OtherMember() { Leave(); }
  void Hold() {
    hold_ = true;
    if (answering_.joinable()) answering_.join();
  }
  void Leave() {
    Hold();
    rd_kafka_consumer_close(consumer_.get());
  }

 private:
  rdkafka::Handle consumer_;
  std::atomic<bool> hold_ = false;
  std::thread answering_;
};

// librdkafka joins again, without a revoke, where it hears of a new partition while it waits for
// the application's answer to an assignment.
TEST_F(KafkaSourceOnBroker, RevokesWhatItHasWhenItIsAssignedAnewWithoutARevoke) {
  broker->CreateTopic(topic, 2);
  const auto group = [&] { return LookAtGroup(broker->bootstrap(), topic + "-group"); };
  OtherMember other(Options());
  ASSERT_TRUE(WaitUntil(30s, [&] { return group().state == "Stable"; }));
  Reader sink(Options(), "a");
  sink.on_cluster_id = [&] {
    other.Hold();  // the generation stays what it is
    broker->admin().AddPartitions(topic, 3);
    EXPECT_TRUE(WaitUntil(30s, [&] { return group().state == "PreparingRebalance"; }));
  };
  EXPECT_TRUE(sink.Owns(1));
  other.Leave();
  EXPECT_TRUE(sink.Owns(3));
  EXPECT_FALSE(sink.unrevoked);
  EXPECT_EQ(sink.losses, 1);
  Produce(5, 3);
  EXPECT_TRUE(sink.Reads(15));
}

// In the middle of a drain librdkafka joins again where it hears of a new partition: what was
// drained would be committed in the name of the next generation, in which others go on from there.
TEST_F(KafkaSourceOnBroker, CommitsNothingThatItDrainedUntilTheGroupHadGoneOn) {
  broker->CreateTopic(topic, 2);
  Produce(10, 2);
  const auto group = [&] { return LookAtGroup(broker->bootstrap(), topic + "-group"); };
  Reader sink(Options(), "a");
  sink.on_revoked = [&, once = false](const auto&, bool) mutable {
    if (std::exchange(once, true)) return std::vector<PartitionOffset>();
    broker->admin().AddPartitions(topic, 3);
    EXPECT_TRUE(WaitUntil(30s, [&] { return group().state == "Stable"; }));
    return sink.Positions();
  };
  ASSERT_TRUE(sink.Reads(20));
  OtherMember other(Options());
  EXPECT_TRUE(WaitUntil(60s, [&] { return sink.Locked([&] { return sink.assignments; }) == 2; }))
      << sink.Trace();
  EXPECT_EQ(sink.Locked([&] { return sink.results[CommitResult::kCommitted]; }), 0);
  EXPECT_EQ(Committed()[0], 0);
  EXPECT_NE(sink.Trace().find("assignment_lost"), std::string::npos) << sink.Trace();
}

TEST_F(KafkaSourceOnBroker, TakesNoAssignmentThatTheGroupLeftBehindWhileItWasAnswered) {
  broker->CreateTopic(topic, 1);
  Reader sink(Options());
  sink.on_note = [&, once = false](const std::string& note) mutable {  // inside its callback
    if (note.find("starts_committed") != 0 || std::exchange(once, true)) return;
    const auto assignments = [&] {
      return LookAtGroup(broker->bootstrap(), topic + "-group").assignments;
    };
    const std::string before = assignments();
    broker->admin().AddPartitions(topic, 2);
    EXPECT_TRUE(WaitUntil(30s, [&] {
      const std::string now = assignments();
      return !now.empty() && now != before;
    }));
  };
  ASSERT_TRUE(sink.Start());
  EXPECT_TRUE(WaitUntil(60s, [&] { return sink.AssignedCount() > 0; })) << sink.Trace();
  EXPECT_EQ(sink.AssignedCount(), 2u) << "the assignment of one partition was not taken";
  EXPECT_NE(sink.Trace().find("assignment_outdated"), std::string::npos) << sink.Trace();
  Produce(5, 2);
  EXPECT_TRUE(sink.Reads(10));
}

// What a worker with a Kafka output leaves that is killed between its offsets and its commit.
class TransactionLeftOpen {
 public:
  TransactionLeftOpen(const KafkaOptions& kafka, const std::string& topic, std::int32_t partition,
                      Offset offset) {
    auto made = TransactionalProducer::Make({{"bootstrap.servers", kafka.brokers[0]},
                                             {"transactional.id", topic},
                                             {"transaction.timeout.ms", "60000"}});
    producer_ = std::move(*made);
    EXPECT_TRUE(producer_->Init(20s).done());
    EXPECT_TRUE(producer_->Begin().done());
    const rdkafka::PartitionList list = rdkafka::MakeList(1);
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition)->offset = offset;
    GroupMetadata anyone;
    anyone.held.reset(rd_kafka_consumer_group_metadata_new(kafka.group.c_str()));
    EXPECT_TRUE(producer_->SendOffsets(list.get(), anyone.held.get(), 20s).done());
  }
  void Commit() { EXPECT_TRUE(producer_->Commit(20s).done()); }
  void Abort() { EXPECT_TRUE(producer_->Abort(20s).done()); }

 private:
  std::unique_ptr<TransactionalProducer> producer_;
};

TEST_F(KafkaSourceOnBroker, KeepsAPartitionThatATransactionHoldsBackFromNobodyElse) {
  broker->CreateTopic(topic, 4);
  Produce(10, 4);
  broker->admin().CommitOffsets(topic + "-group", topic, {0, 0, 0, 0});
  TransactionLeftOpen open(Options(), topic, 3, 5);
  RecordingSink sinks[3];
  std::vector<std::unique_ptr<KafkaSource>> team;
  for (RecordingSink& sink : sinks) {
    team.push_back(std::make_unique<KafkaSource>(Options(), "w", &sink, &sink));
    ASSERT_TRUE(team.back()->Start());
  }
  const auto seen = [&](std::int32_t partition) {
    std::set<Offset> offsets;
    for (RecordingSink& sink : sinks) {
      for (const Offset o : sink.Offsets({topic, partition})) offsets.insert(o);
    }
    return offsets.size();
  };
  const auto trace = [&] { return sinks[0].Trace() + sinks[1].Trace() + sinks[2].Trace(); };
  ASSERT_TRUE(WaitUntil(30s, [&] { return seen(0) + seen(1) + seen(2) == 30; })) << trace();
  const std::string waits = fmt::format("[waiting for a transaction on {}/3]", topic);
  ASSERT_TRUE(WaitUntil(30s, [&] { return trace().find(waits) != std::string::npos; })) << trace();
  EXPECT_EQ(seen(3), 0u);
  open.Commit();
  ASSERT_TRUE(WaitUntil(30s, [&] { return seen(3) == 5; })) << trace();
  EXPECT_EQ(trace().find("leaving the group"), std::string::npos) << trace();
}

TEST_F(KafkaSourceOnBroker, StartsAPartitionWhereItStoodOnceItsTransactionWasAborted) {
  broker->CreateTopic(topic, 2);
  Produce(10, 2);
  broker->admin().CommitOffsets(topic + "-group", topic, {3, 4});
  TransactionLeftOpen open(Options(), topic, 1, 9);
  Reader sink(Options());
  ASSERT_TRUE(sink.Start());
  ASSERT_TRUE(WaitUntil(30s, [&] {
    return sink.Offsets({topic, 0}) == Range(3, 10);
  })) << sink.Trace();
  EXPECT_TRUE(sink.Locked([&] { return sink.up; })) << "it works on the other partition";
  EXPECT_EQ(sink.AssignedCount(), 1u);
  sink.source.Commit(sink.Positions());
  open.Abort();
  ASSERT_TRUE(WaitUntil(30s, [&] {
    return sink.Offsets({topic, 1}) == Range(4, 10);
  })) << sink.Trace();
  EXPECT_FALSE(sink.early);
  sink.source.Commit(sink.Positions());
  EXPECT_TRUE(WaitUntil(30s, [&] { return Committed() == std::vector<Offset>({10, 10}); }));
}

TEST_F(KafkaSourceOnBroker, StopsWhenRecordsWereDeletedBeforeTheyWereProcessed) {
  broker->CreateTopic(topic, 1);
  Produce(10, 1);
  broker->admin().CommitOffsets(topic + "-group", topic, {2});
  broker->admin().DeleteRecordsBefore(topic, 0, 5);
  Reader sink(Options());
  ASSERT_TRUE(sink.Fails());
  EXPECT_EQ(sink.fatal->code, "offset_out_of_range");
  EXPECT_NE(sink.fatal->Line().find("from offset 2 to 4 were deleted"), std::string::npos)
      << sink.fatal->Line();
  EXPECT_EQ(sink.Count(), 0u);
}

TEST_F(KafkaSourceOnBroker, TellsTheEndBehindTransactionMarkersAndSkipsWhatWasAborted) {
  broker->CreateTopic(topic, 1);
  TestProducer producer(broker->bootstrap(), topic + "-tx");
  const auto transaction = [&](int count, const char* value, bool commit) {
    producer.Begin();
    for (int i = 0; i < count; ++i) producer.Send(topic, 0, "k", value);
    commit ? producer.Commit() : producer.Abort();
  };
  transaction(5, "good", true);  // 0-4, marker 5
  transaction(3, "bad", false);  // 6-8, marker 9
  transaction(4, "good", true);  // 10-13, marker 14
  transaction(2, "bad", false);  // 15-16, marker 17
  Reader sink(Options());
  ASSERT_TRUE(sink.Until([&] { return sink.ends[{topic, 0}] == 18; }));
  EXPECT_EQ(sink.Offsets({topic, 0}), (std::vector<Offset>{0, 1, 2, 3, 4, 10, 11, 12, 13}));
  sink.source.Commit({{sink.assigned[0].partition, sink.assigned[0].epoch, 18}});
  ASSERT_TRUE(WaitUntil(10s, [&] { return Committed()[0] == 18; }));
  // What was aborted moves the end as well.
  sink.Locked([&] { sink.ends.clear(); });
  transaction(1, "bad", false);
  ASSERT_TRUE(sink.Until([&] { return sink.ends[{topic, 0}] == 20; }));
}

TEST_F(KafkaSourceOnBroker, CommitsWhatTheFlowDrainedBeforeAnotherWorkerGoesOn) {
  broker->CreateTopic(topic, 4);
  Produce(100, 4);
  std::promise<void> joined;
  Reader first(Options());
  Reader second(Options(), "w2");
  first.on_revoked = [&, told = false](const auto&, bool) mutable {
    if (!std::exchange(told, true)) {
      EXPECT_EQ(Committed(), (std::vector<Offset>{0, 0, 0, 0}));
      joined.set_value();
    }
    return first.Positions();
  };
  second.on_revoked = [&](const auto&, bool) { return second.Positions(); };
  ASSERT_TRUE(first.Reads(400));
  ASSERT_TRUE(second.Start());
  ASSERT_EQ(joined.get_future().wait_for(30s), std::future_status::ready);
  ASSERT_TRUE(first.Owns(2) && second.Owns(2)) << first.Trace() << second.Trace();
  Produce(10, 4);
  ASSERT_TRUE(WaitUntil(20s, [&] { return first.Count() + second.Count() >= 440; }));
  first.source.Stop();  // commits its last offsets, and leaves at once
  first.source.Join();
  ASSERT_TRUE(second.Owns(4));
  Produce(10, 4);
  ASSERT_TRUE(WaitUntil(20s, [&] { return first.Count() + second.Count() >= 480; }));
  second.End();
  EXPECT_EQ(first.Count() + second.Count(), 480u) << "a record came twice";
  EXPECT_EQ(Committed(), (std::vector<Offset>{120, 120, 120, 120}));
}

// Its last drain, which takes longer than its session.
class KafkaSourceThatLeaves : public KafkaSourceOnBroker {
 protected:
  KafkaSourceThatLeaves() {
    broker->CreateTopic(topic, 2);
    Produce(10, 2);
    first.on_revoked = [&](const auto&, bool) { return first.Positions(); };
    second.on_revoked = [&](const auto&, bool) { return second.Positions(); };
  }
  static KafkaOptions Short(KafkaOptions options) {
    options.librdkafka["session.timeout.ms"] = "2000";
    return options;
  }
  void ExpectCommitted() {
    EXPECT_EQ(Committed(), (std::vector<Offset>{10, 10})) << first.Trace();
    EXPECT_EQ(first.results[CommitResult::kRejected], 0);
    EXPECT_EQ(first.losses, 0);
  }
  Reader second{Options(), "w2"};
  Reader first{Short(Options())};
};

TEST_F(KafkaSourceThatLeaves, IsAMemberUntilItsDrainHasEndedAndItsCommitIsTaken) {
  first.while_leaving = [&](const auto& meanwhile) {
    const auto began = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() < began + 5s) meanwhile();
  };
  ASSERT_TRUE(first.Reads(20));
  first.End();
  ExpectCommitted();
}

TEST_F(KafkaSourceThatLeaves, LearnsThatOthersWaitForItsDrain) {
  first.while_leaving = [&](const auto& meanwhile) {
    EXPECT_TRUE(second.Start());
    EXPECT_TRUE(WaitUntil(30s, [&] {
      meanwhile();
      return first.Locked([&] { return first.awaited_in_drain > 0; });
    })) << first.Trace();
  };
  ASSERT_TRUE(first.Reads(20));
  first.End();
  ExpectCommitted();
  ASSERT_TRUE(second.Owns(2));
  EXPECT_EQ(first.lost_in_drain, 0);
}

// A worker whose thread hangs for longer than max.poll.interval.ms, and another that takes over.
// What the first one would commit afterwards is not its own any more.
class KafkaSourceThatHung : public KafkaSourceOnBroker {
 protected:
  // `rival_first`: the other one joins before the interval has passed, so that the first one's
  // revocation was on its way when it was thrown out, and does not look like a loss.
  void HangAndComeBack(bool rival_first) {
    broker->CreateTopic(topic, 2);
    Produce(10, 2);
    first.on_revoked = [&](const auto&, bool) { return first.Positions(); };
    first.on_records = [&, blocked = false]() mutable {
      if (std::exchange(blocked, true)) return;
      EXPECT_TRUE(WaitUntil(60s, [&] { return second.AssignedCount() == 2; })) << second.Trace();
    };
    ASSERT_TRUE(first.Until([&] { return first.CountNow() > 0; }));
    const auto hung = std::chrono::steady_clock::now();
    const auto thrown_out = [&] { return std::chrono::steady_clock::now() > hung + 4s; };
    ASSERT_TRUE(WaitUntil(10s, [&] { return rival_first || thrown_out(); }));
    ASSERT_TRUE(second.Start());
    ASSERT_TRUE(first.Owns(1) && second.Owns(1)) << first.Trace() << second.Trace();
    EXPECT_EQ(Committed(), (std::vector<Offset>{0, 0}));
    EXPECT_EQ(first.Locked([&] { return first.results[CommitResult::kCommitted]; }), 0);
    rejected = first.Locked([&] { return first.results[CommitResult::kRejected]; });
    EXPECT_FALSE(first.Locked([&] { return first.fatal.has_value(); }));
  }
  static KafkaOptions Slow(KafkaOptions options) {
    options.librdkafka["session.timeout.ms"] = "2000";
    options.librdkafka["max.poll.interval.ms"] = "2000";
    return options;
  }
  Reader second{Options(), "w2"};
  Reader first{Slow(Options())};
  int rejected = 0;
};

TEST_F(KafkaSourceThatHung, CommitsNothingOfALostAssignmentAndJoinsAgain) {
  HangAndComeBack(false);
  EXPECT_EQ(first.losses, 1) << first.Trace();
  EXPECT_EQ(rejected, 0) << first.Trace();
}

TEST_F(KafkaSourceThatHung, CommitsNothingWhereItWasThrownOutWhileItsRevokeWasOnItsWay) {
  HangAndComeBack(true);
  EXPECT_EQ(rejected, 0) << first.Trace();
  EXPECT_NE(first.Trace().find("assignment_lost"), std::string::npos) << first.Trace();
}

}  // namespace
}  // namespace fencepost::consumer::testing
