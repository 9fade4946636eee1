// `when` as a list of conditions: how they are written, and what they say of a record.
#include "consumer/pipeline/record_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

using ::testing::HasSubstr;

TEST(Condition, ThatIsNoneSaysWhatItShouldBe) {
  struct Row {
    const char* text;
    const char* problem;
  };
  const Row rows[] = {
      {"", "SELECTOR = TEXT or SELECTOR exists"},
      {"json:/a", "SELECTOR = TEXT or SELECTOR exists"},
      {"json:/a=b", "with blanks between"},
      {"json:/a != b", "give a jq program"},
      {"json:/a == b", "give a jq program"},
      {"key  exists", "not a selector"},
      {"type = b", "not a selector"},
      {"json:a = b", "as in json:/order/id"},
      {"json:/a? = b", "leave the ? out"},
      {"json:/a?default exists", "leave the ? out"},
      {"position = b", "no id, token or worker yet"},
      {"record_id = b", "no id, token or worker yet"},
      {"token exists", "no id, token or worker yet"},
      {"worker = w", "no id, token or worker yet"},
      {"record:/a = b", "no id, token or worker yet"},
      {"=a = a", "no id, token or worker yet"},
  };
  for (const Row& row : rows) {
    const auto parsed = ParseCondition(row.text);
    ASSERT_FALSE(parsed) << row.text;
    EXPECT_THAT(parsed.error(), HasSubstr(row.problem)) << row.text;
  }
}

class Conditions : public ::testing::Test {
 protected:
  Conditions() {
    record_.key = "k";
    record_.offset = 7;
    record_.timestamp = Millis(1700000000000);
    record_.value = R"({"type":"order","n":1.50,"ok":true,"none":null,"s":" a = b","o":{"a": 1}})";
    record_.headers = {{"h", "old"}, {"h", "new"}, {"empty", std::nullopt}};
  }
  // What does not hold; "": all do; "bad: …".
  std::string Lacks(const std::vector<const char*>& texts, bool as_original = false) {
    std::vector<FilterOptions::Condition> all;
    for (const char* text : texts) all.push_back(ParseCondition(text).value());
    const auto filter = MakeConditionFilter(std::move(all));
    Record record = record_;
    Filter(*filter, as_original, where_, record);
    if (!record.problem.empty()) return "bad: " + record.problem;
    return record.filtered ? filter->WhyNot() : "";
  }

  Record record_;
  const TopicPartition where_{"orders", 3};
};

TEST_F(Conditions, CompareWhatThereIsAsText) {
  for (const char* holds :
       {"key = k", "key exists", "value exists", "topic = orders", "partition = 3", "offset = 7",
        "timestamp = 1700000000000", "header:h = new", "json:/type = order", "json:/n = 1.50",
        "json:/ok = true", "json:/s =  a = b", "json:/o exists", R"(json:/o = {"a": 1})"}) {
    EXPECT_EQ(Lacks({holds}), "") << holds;
  }
  for (const char* not_so :
       {"key = K", "key = ", "topic = order", "partition = 03", "header:h = old", "header:x exists",
        "header:empty exists", "header:empty = ", "json:/type = Order", "json:/n = 1.5",
        "json:/none exists", "json:/none = null", "json:/no = x", "json:/type/x exists"}) {
    EXPECT_EQ(Lacks({not_so}), std::string(not_so) + " does not hold");
  }
}

TEST_F(Conditions, AllHoldOrTheFirstThatDoesNotIsNamed) {
  EXPECT_EQ(Lacks({"json:/type = order", "key = k"}), "");
  EXPECT_EQ(Lacks({"json:/type = order", "key = x", "topic = x"}), "key = x does not hold");
}

TEST_F(Conditions, OfANullValueOrKeyDoNotHold) {
  record_.value.reset();
  record_.key.reset();
  for (const char* text : {"value exists", "json:/type = order", "key exists", "key:/a = b"}) {
    EXPECT_EQ(Lacks({text}), std::string(text) + " does not hold");
  }
}

TEST_F(Conditions, OfWhatIsNoJsonMakeTheRecordBadWhereItIsAsked) {
  record_.value = "{";
  EXPECT_THAT(Lacks({"json:/type = order"}), HasSubstr("bad: when: the value is not valid JSON"));
  EXPECT_THAT(Lacks({"key:/a exists"}), HasSubstr("bad: when: the key is not valid JSON"));
  EXPECT_EQ(Lacks({"key = x", "json:/type = order"}), "key = x does not hold");
  record_.value = "5";
  EXPECT_EQ(Lacks({"json:/type = order"}), "json:/type = order does not hold");
}

TEST_F(Conditions, AreNotAskedOfARecordThatIsBadAlready) {
  record_.problem = "the value cannot be decoded";
  EXPECT_EQ(Lacks({"key = x"}), "bad: the value cannot be decoded");
}

TEST_F(Conditions, OfAReplayLookWhereItsOriginalWas) {
  record_.headers = {
      {"fencepost-topic", "orders"}, {"fencepost-partition", "1"}, {"fencepost-offset", "42"}};
  EXPECT_EQ(Lacks({"partition = 1", "offset = 42"}, true), "");
  EXPECT_EQ(Lacks({"partition = 3", "offset = 7"}, false), "");
}

}  // namespace
}  // namespace fencepost::consumer
