#include "consumer/cli/dlq/content_difference.h"

#include <gmock/gmock.h>

namespace fencepost::cli {
namespace {

using consumer::Record;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Record Of(std::optional<std::string_view> value) {
  Record record;
  record.key = "k";
  record.value = value;
  return record;
}

TEST(ContentDifference, NamesThePartsOfJsonThatDiffer) {
  EXPECT_THAT(
      ContentDifference(Of(R"({"id":"o-1","amount":5,"lines":[{"sku":"a"}],"old":true})"),
                        Of(R"({"id":"o-1","amount":9,"lines":[{"sku":"b"}],"new":null})")),
      ElementsAre("value /amount: 5 there, 9 here", R"(value /lines/0/sku: "a" there, "b" here)",
                  "value /old: true there, nothing here", "value /new: nothing there, null here"));
  EXPECT_THAT(ContentDifference(Of(R"({"a":1})"), Of(R"({"a":1})")), IsEmpty());
  EXPECT_THAT(ContentDifference(Of(R"({"a":1.0})"), Of(R"({"a":1.00})")),
              ElementsAre("value: the same parts; how they are written differs, or digits beyond "
                          "17"));
}

TEST(ContentDifference, NamesWhatAnArrayHasMore) {
  EXPECT_THAT(ContentDifference(Of(R"({"a":[1]})"), Of(R"({"a":[1,2,{"b":3}]})")),
              ElementsAre("value /a/1: nothing there, 2 here",
                          R"(value /a/2: nothing there, {"b":3} here)"));
  EXPECT_THAT(ContentDifference(Of(R"({"a":{}})"), Of(R"({"a":{"-":1}})")),
              ElementsAre("value /a/-: nothing there, 1 here"));
}

// It was walked over by recursion, as deep as the value: 200 KB were enough for any stack.
TEST(ContentDifference, ShowsWhatIsNestedTooDeeplyAsItIs) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  EXPECT_THAT(ContentDifference(Of(deep), Of("[" + deep + "]")),
              ElementsAre(::testing::StartsWith("value: \"[[[[")));
}

TEST(ContentDifference, ShowsWhatIsNoJsonAsItIs) {
  EXPECT_THAT(ContentDifference(Of("one\x01"), Of(std::nullopt)),
              ElementsAre("value: base64:b25lAQ== there, null here"));
}

TEST(ContentDifference, NamesKeyAndHeaders) {
  Record there = Of("v");
  there.headers = {{"tenant", "00-a"}, {"same", "1"}, {"gone", std::nullopt}};
  Record here = Of("v");
  here.key.reset();
  here.headers = {{"same", "1"}, {"tenant", "00-b"}};
  EXPECT_THAT(ContentDifference(there, here),
              ElementsAre(R"(key: "k" there, null here)", "header gone: null there, none here",
                          R"(header tenant: "00-a" there, "00-b" here)"));
}

}  // namespace
}  // namespace fencepost::cli
