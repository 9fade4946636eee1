#include "consumer/kafka/source/matched_topics.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Matched : public ::testing::Test {
 protected:
  static std::vector<KnownTopic> Topics(const std::vector<std::string>& names) {
    std::vector<KnownTopic> topics;
    for (const std::string& name : names) topics.push_back({name, 1});
    return topics;
  }
  static std::vector<KnownTopic> Numbered(std::size_t count) {
    std::vector<KnownTopic> topics;
    for (std::size_t i = 0; i < count; ++i) topics.push_back({fmt::format("t{:04}", i), 1});
    return topics;
  }
  std::vector<std::string> Notes() { return std::exchange(notes_, {}); }

 private:
  std::vector<std::string> notes_;

 protected:
  MatchedTopics matched{{"orders", "^t.*"},
                        [this](locking::Severity severity, auto event, auto text) {
                          const bool warns = severity == locking::Severity::kWarn;
                          notes_.push_back(fmt::format("{}{}: {}", warns ? "! " : "", event, text));
                        }};
};

TEST_F(Matched, TopicsAreToldAsTheyComeAndGo) {
  EXPECT_FALSE(matched.Take(Topics({"orders", "t1", "t2"})));
  EXPECT_THAT(Notes(), ElementsAre("topics_found: read: orders, t1, t2"));
  EXPECT_FALSE(matched.Take(Topics({"orders", "t1", "t2"})));
  EXPECT_THAT(Notes(), IsEmpty());
  EXPECT_FALSE(matched.Take(Topics({"t2", "t3"})));
  EXPECT_THAT(Notes(), ElementsAre("! topics_gone: not there any more, and not read: orders, t1",
                                   "topics_found: read: t3"));
  EXPECT_EQ(matched.now(), Topics({"t2", "t3"}));
}

TEST_F(Matched, TopicsThatAreManyAreCounted) {
  EXPECT_FALSE(matched.Take(Numbered(22)));
  const std::vector<std::string> notes = Notes();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], ::testing::StartsWith("topics_found: read: t0000, t0001, "));
  EXPECT_THAT(notes[0], ::testing::EndsWith("t0019 and 2 more"));
}

TEST_F(Matched, TopicsCameLaterThatWereNotThereAtFirst) {
  EXPECT_FALSE(matched.Take(Topics({"t1"})));
  EXPECT_FALSE(matched.Take(Topics({"orders", "t1", "t2"})));
  EXPECT_FALSE(matched.CameLater("t1"));
  EXPECT_TRUE(matched.CameLater("t2"));
  EXPECT_FALSE(matched.CameLater("orders")) << "it is named";
  EXPECT_FALSE(matched.Take(Topics({"t2"})));
  EXPECT_FALSE(matched.Take(Topics({"t1", "t2"})));
  EXPECT_TRUE(matched.CameLater("t1")) << "it is another";
}

TEST_F(Matched, TopicsThatComeAgainAfterThereWasNoneCameLater) {
  EXPECT_FALSE(matched.Take(Topics({"orders", "t1"})));
  Notes();
  matched.TakeNoneThatMatches();
  EXPECT_THAT(Notes(), ElementsAre("! topics_gone: not there any more, and not read: t1"));
  EXPECT_EQ(matched.now(), Topics({"orders"})) << "it is named";
  EXPECT_FALSE(matched.Take(Topics({"orders", "t1"})));
  EXPECT_TRUE(matched.CameLater("t1"));
}

TEST_F(Matched, TopicsCameLaterWhereThereWasNoneFromTheStart) {
  matched.TakeNoneThatMatches();
  EXPECT_THAT(Notes(), IsEmpty());
  EXPECT_FALSE(matched.Take(Topics({"orders", "t1"})));
  EXPECT_TRUE(matched.CameLater("t1"));
  EXPECT_FALSE(matched.CameLater("orders"));
}

TEST_F(Matched, TopicsAreAtMostAThousand) {
  EXPECT_FALSE(matched.Take(Numbered(kMostTopics)));
  const auto refused = matched.Take(Numbered(kMostTopics + 1));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, "too_many_topics");
  EXPECT_EQ(refused->Line().find("kafka.topics: 1001 topics match"), 0u) << refused->Line();
  EXPECT_EQ(matched.now().size(), kMostTopics);
}

}  // namespace
}  // namespace fencepost::consumer
