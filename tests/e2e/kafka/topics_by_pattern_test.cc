// KafkaSource with a pattern among its topics, against a real broker.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "consumer/kafka/client/admin.h"
#include "consumer/kafka/client/group_lag.h"
#include "tests/component/kafka/reader.h"
#include "tests/e2e/kafka/broker_fixture.h"

namespace fencepost::consumer::testing {
namespace {

using fencepost::testing::TestProducer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class TopicsByPattern : public OnBroker {
 protected:
  // Of the topics `topic`-…: all that end with letters.
  KafkaOptions Matching(StartFrom start) const {
    KafkaOptions options = Options(start);
    options.topics = {fmt::format("^{}-[a-z]+", topic)};
    return options;
  }
  std::string Named(const std::string& end) const { return topic + "-" + end; }
  void Make(const std::string& end, int records, int partitions = 1) const {
    broker->CreateTopic(Named(end), partitions);
    Produce(end, records, partitions);
  }
  void Produce(const std::string& end, int records, int partitions = 1) const {
    TestProducer producer(broker->bootstrap());
    for (int i = 0; i < records; ++i) {
      for (int p = 0; p < partitions; ++p) producer.Send(Named(end), p, "k", "v");
    }
    producer.Flush();
  }
  std::vector<Offset> Committed(const std::string& end) const {
    return broker->admin().CommittedOffsets(topic + "-group", Named(end));
  }
};

std::vector<Offset> Range(Offset from, Offset to) {
  std::vector<Offset> all;
  for (Offset o = from; o < to; ++o) all.push_back(o);
  return all;
}

TEST_F(TopicsByPattern, AreReadWhereTheyMatchAsAWholeAndNowhereElse) {
  Make("a", 3);
  Make("b", 4, 2);
  Make("c1", 5);
  broker->CreateTopic("x" + Named("a"), 1);
  KafkaOptions options = Matching(StartFrom::kEarliest);
  options.topics.push_back(Named("c1"));
  options.topics.push_back(Named("a"));  // also matched
  options.topics.push_back("^__consumer_[a-z]+");
  Reader sink(options);
  ASSERT_TRUE(sink.Reads(3 + 8 + 5));
  ASSERT_TRUE(sink.Owns(4));
  EXPECT_THAT(sink.Trace(), HasSubstr(fmt::format("topics_found: read: {}, {}, {}", Named("a"),
                                                  Named("b"), Named("c1"))));
}

TEST_F(TopicsByPattern, ThatAppearWhileAWorkerRunsAreReadFromTheirBeginning) {
  Make("a", 3);
  Reader sink(Matching(StartFrom::kLatest));
  sink.on_revoked = [&](const auto&, bool) { return sink.Positions(); };
  ASSERT_TRUE(sink.Owns(1));
  EXPECT_THAT(Committed("a"), ElementsAre(3));
  Make("new", 5, 2);
  ASSERT_TRUE(sink.Reads(10));
  EXPECT_EQ(sink.Offsets({Named("new"), 0}), Range(0, 5));
  EXPECT_EQ(sink.Offsets({Named("new"), 1}), Range(0, 5));
  Produce("a", 2);
  ASSERT_TRUE(sink.Reads(12));
  EXPECT_EQ(sink.Offsets({Named("a"), 0}), Range(3, 5));
}

TEST_F(TopicsByPattern, ThatAppearWhileNobodyLooksAreReadFromTheirBeginning) {
  Make("a", 3);
  {
    Reader sink(Matching(StartFrom::kLatest));
    ASSERT_TRUE(sink.Owns(1));
  }
  Make("0", 1);   // not matched
  Make("aa", 5);  // its owner finds the group's offset of another topic
  Reader sink(Matching(StartFrom::kLatest));
  ASSERT_TRUE(sink.Reads(5));
  EXPECT_EQ(sink.Offsets({Named("aa"), 0}), Range(0, 5));
}

TEST_F(TopicsByPattern, ThatAppearWhereThereWasNoneAreReadFromTheirBeginning) {
  Reader sink(Matching(StartFrom::kLatest));
  ASSERT_TRUE(sink.Until([&] {
    return !sink.reasons.empty() &&
           sink.reasons.back() == "a topic that kafka.topics matches does not exist (yet)";
  }));
  EXPECT_FALSE(sink.up);
  const std::string told =
      "topic_missing: a topic that kafka.topics matches does not exist (yet), or this user may not "
      "see it: create it, or grant READ";
  EXPECT_TRUE(sink.Until([&] { return std::ranges::find(sink.notes, told) != sink.notes.end(); }));
  Make("a", 5);
  ASSERT_TRUE(sink.Reads(5));
  EXPECT_TRUE(sink.Locked([&] { return sink.up; })) << sink.Trace();
}

TEST_F(TopicsByPattern, ThatAreThereWhenAGroupBeginsAtTheEndAllBeginThere) {
  for (const char* end : {"a", "b", "c", "d"}) Make(end, 10, 2);
  RecordingSink sinks[2];
  std::atomic<bool> committed_first = true;
  std::vector<std::unique_ptr<KafkaSource>> sources;
  for (RecordingSink& sink : sinks) {
    sink.on_assigned = [&](const auto&) {
      for (const char* end : {"a", "b", "c", "d"}) {
        if (Committed(end) != std::vector<Offset>{10, 10}) committed_first = false;
      }
    };
    sources.push_back(
        std::make_unique<KafkaSource>(Matching(StartFrom::kLatest), "w", &sink, &sink));
    ASSERT_TRUE(sources.back()->Start());
  }
  ASSERT_TRUE(WaitUntil(
      60s, [&] { return sinks[0].AssignedCount() == 4 && sinks[1].AssignedCount() == 4; }))
      << sinks[0].Trace() << sinks[1].Trace();
  EXPECT_TRUE(committed_first) << sinks[0].Trace() << sinks[1].Trace();
  EXPECT_EQ(sinks[0].Count() + sinks[1].Count(), 0u);
}

TEST_F(TopicsByPattern, ThatVanishAreToldAndTheOthersGoOn) {
  Make("a", 3);
  Make("b", 3);
  Reader sink(Matching(StartFrom::kEarliest));
  sink.on_revoked = [&](const auto&, bool) { return sink.Positions(); };
  ASSERT_TRUE(sink.Reads(6));
  broker->admin().DeleteTopic(Named("b"));
  ASSERT_TRUE(sink.Until([&] { return sink.assigned.size() == 1 && sink.up; }));
  EXPECT_THAT(sink.Trace(), HasSubstr(fmt::format(
                                "topics_gone: not there any more, and not read: {}", Named("b"))));
  EXPECT_THAT(sink.Trace(), Not(HasSubstr("does not exist"))) << "it is to be expected";
  Produce("a", 2);
  ASSERT_TRUE(sink.Reads(8));
  EXPECT_FALSE(sink.fatal);
  Make("b", 4);  // another one of its name
  ASSERT_TRUE(sink.Reads(12));
  EXPECT_EQ(sink.Offsets({Named("b"), 0}), (std::vector<Offset>{0, 1, 2, 0, 1, 2, 3}));
}

TEST_F(TopicsByPattern, ThatAllVanishAndComeAgainAreToldAndReadFromTheirBeginning) {
  Make("a", 3);
  Reader sink(Matching(StartFrom::kLatest));
  ASSERT_TRUE(sink.Owns(1));
  EXPECT_THAT(Committed("a"), ElementsAre(3));
  broker->admin().DeleteTopic(Named("a"));
  ASSERT_TRUE(sink.Until([&] {
    return std::ranges::any_of(
        sink.notes, [](const std::string& note) { return note.starts_with("topics_gone: "); });
  }));
  Make("a", 5);
  ASSERT_TRUE(sink.Reads(5));
  EXPECT_EQ(sink.Offsets({Named("a"), 0}), Range(0, 5));
  EXPECT_FALSE(sink.fatal);
}

TEST_F(TopicsByPattern, CountInTheLagOfTheirGroup) {
  Make("a", 3);
  Make("b", 4);
  Reader sink(Matching(StartFrom::kEarliest));
  ASSERT_TRUE(sink.Reads(7));
  std::atomic<std::int64_t> lag = -1;
  const GroupLag asked(Matching(StartFrom::kEarliest), 50ms, [&](std::int64_t now) { lag = now; });
  EXPECT_TRUE(WaitUntil(30s, [&] { return lag == 7; })) << lag;
  sink.source.Commit(sink.Positions());
  EXPECT_TRUE(WaitUntil(30s, [&] { return lag == 0; })) << lag;
}

TEST_F(TopicsByPattern, HaveNoLagWhereTheyAreAllGone) {
  std::atomic<std::int64_t> lag = -1;
  const GroupLag asked(Matching(StartFrom::kEarliest), 50ms, [&](std::int64_t now) { lag = now; });
  EXPECT_TRUE(WaitUntil(30s, [&] { return lag == 0; })) << lag;
}

}  // namespace
}  // namespace fencepost::consumer::testing
