// What a topic's settings do to records.
#include "consumer/kafka/client/topic_rules.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;

std::string Text(const TopicRules& rules) {
  const auto span = [](const std::optional<Millis>& one) {
    return one ? std::to_string(one->count()) : "-";
  };
  return fmt::format("{} {} {}{}{}", span(rules.retention), span(rules.before), span(rules.after),
                     rules.compacted ? " compacted" : "", rules.own_time ? " own time" : "");
}

TEST(TopicRules, AreWhatItsSettingsSay) {
  constexpr const char* kMax = "9223372036854775807";
  const std::pair<KafkaSettings, const char*> rows[] = {
      {{}, "- - -"},
      {{{"cleanup.policy", "delete"}, {"retention.ms", "604800000"}}, "604800000 - -"},
      {{{"cleanup.policy", "delete"}, {"retention.ms", "-1"}}, "- - -"},
      {{{"cleanup.policy", "compact"}, {"retention.ms", "1"}}, "- - - compacted"},
      {{{"cleanup.policy", "compact,delete"}, {"retention.ms", "1"}}, "1 - - compacted"},
      {{{"message.timestamp.before.max.ms", kMax}, {"message.timestamp.after.max.ms", "3600000"}},
       "- - 3600000"},
      {{{"message.timestamp.before.max.ms", "7"}, {"message.timestamp.after.max.ms", kMax}},
       "- 7 -"},
      {{{"message.timestamp.difference.max.ms", "9"}}, "- 9 9"},
      {{{"message.timestamp.difference.max.ms", kMax}, {"message.timestamp.before.max.ms", "5"}},
       "- 5 -"},
      {{{"message.timestamp.type", "LogAppendTime"}, {"message.timestamp.before.max.ms", "5"}},
       "- - - own time"},
      {{{"message.timestamp.type", "CreateTime"}, {"message.timestamp.before.max.ms", "0"}},
       "- 0 -"},
  };
  for (const auto& [settings, text] : rows) EXPECT_EQ(Text(TopicRules::Of(settings)), text);
}

TEST(TopicRules, TakeATimeWithinTheirBoundsThatIsNotNearOne) {
  const Millis now = 1'800'000'000s;
  TopicRules rules;
  EXPECT_TRUE(rules.Takes(Millis(0), now));
  EXPECT_TRUE(rules.Takes(Millis::max(), now));
  rules.before = 1h;
  rules.after = 1h;
  EXPECT_TRUE(rules.Takes(now, now));
  EXPECT_TRUE(rules.Takes(now - 59min, now));
  EXPECT_FALSE(rules.Takes(now - 60min, now)) << "a moment later it is too old";
  EXPECT_TRUE(rules.Takes(now + 59min, now));
  EXPECT_FALSE(rules.Takes(now + 60min, now));
  for (const Millis time : {Millis::min(), Millis(-1), Millis(0), Millis::max()}) {
    EXPECT_FALSE(rules.Takes(time, now)) << time.count();
  }
}

}  // namespace
}  // namespace fencepost::consumer
