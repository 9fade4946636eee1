// The handler that takes a part of the value.
#include "tests/component/handlers/runner_fixture.h"

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;

class TakeRunner : public RunnerFixture {
 protected:
  void StartTake(std::string_view part) {
    Start({.kind = TakeHandlerOptions{Selector::Parse(part).value()}});
  }
};

TEST_F(TakeRunner, GivesThePartsOwnBytes) {
  StartTake("json:/after");
  for (const char* part :
       {R"({"id" : 9007199254740993, "price":1.50 ,"at":1716804532125001789,"n":1e400})",
        R"({"id":1,"s":"caf\u00e9 \" é","a":[ 1,  null ]})", "[ ]", "{}", R"("a \n b")", "-0.0",
        "true"}) {
    SCOPED_TRACE(part);
    EXPECT_EQ(ValueOf(fmt::format(R"({{"before":null, "after" : {} ,"op":"u"}})", part)), part);
  }
}

TEST_F(TakeRunner, TakesNullForANullValueAndSoATombstone) {
  StartTake("json:/after");
  EXPECT_THAT(ResultOf(R"({"before":{"id":1},"after":null})").value(), ElementsAre(std::nullopt));
  EXPECT_THAT(ResultOf({.value = std::nullopt}).value(), ElementsAre(std::nullopt));
}

TEST_F(TakeRunner, RefusesAValueThatDoesNotHaveThePart) {
  StartTake("json:/payload/after");
  EXPECT_EQ(Told(R"({"after":1})"),
            "bad_record, for good: json:/payload/after finds nothing in the value");
  EXPECT_EQ(Told("[1]"), "bad_record, for good: json:/payload/after finds nothing in the value");
  EXPECT_THAT(Told(R"({"payload":{"after":1}} {})"),
              ::testing::StartsWith("bad_record, for good: the value is not valid JSON: "));
  StartTake("json:/after?");
  EXPECT_THAT(ResultOf(R"({"id":1})").value(), ElementsAre(std::nullopt));
}

}  // namespace
}  // namespace fencepost::consumer
