// The checks of audit.h see what they are for.
#include "tests/e2e/life/audit.h"

namespace fencepost::testing {
namespace {

using ::testing::Test;

// o-1 and o-2 of one key and o-3 of another in partition 0; o-1 once more in partition 1.
class Audit : public Test {
 protected:
  static TestRecord Sent(int partition, std::int64_t offset, const char* key, const char* id) {
    return {.partition = partition,
            .key = key,
            .value = std::string(R"({"order_id":")") + id + R"("})",
            .offset = offset};
  }
  static Effect Of(int order, int partition, std::int64_t offset, int life = 0) {
    return {.order = order, .amount = order * 7, .position = {partition, offset}, .life = life};
  }
  static Call Asked(const char* id, const char* source, std::int64_t begin, std::int64_t end,
                    int life = 0) {
    return {.record_id = id,
            .token = 1 + begin,
            .source = source,
            .life = life,
            .begin_ns = begin,
            .end_ns = end};
  }
  const Stream stream_{{Sent(0, 0, "k", "o-1"), Sent(0, 1, "k", "o-2"), Sent(0, 2, "l", "o-3"),
                        Sent(1, 0, "k", "o-1")}};
  const std::vector<Effect> good_ = {Of(1, 0, 0), Of(2, 0, 1), Of(3, 0, 2)};
};

TEST_F(Audit, OfEffectsSeesTheLostTheDoubledAndTheForeign) {
  EXPECT_EQ(OnceForEachOrder(good_, stream_), "");
  EXPECT_EQ(OnceForEachOrder({Of(1, 0, 0), Of(1, 1, 0), Of(2, 0, 1)}, stream_),
            "lost orders: 1, the first is o-3\n"
            "orders with a further effect: 1, the first is o-1 of 1/0 by life 0\n");
  EXPECT_EQ(OnceForEachPosition({Of(1, 0, 0), Of(2, 0, 1), Of(3, 0, 2), Of(3, 0, 2)}, stream_),
            "positions without an output: 1, the first is 1/0\n"
            "positions with a further output: 1, the first is 0/2\n");
  EXPECT_EQ(Genuine(good_, stream_, 1), "");
  EXPECT_NE(Genuine(good_, stream_, 2), "");
  EXPECT_NE(Genuine({Of(2, 0, 0)}, stream_, 1), "");
}

TEST_F(Audit, OfRepeatsBlamesWhoMayNotRepeat) {
  EXPECT_EQ(RepeatedOnlyBy({Of(1, 0, 0, 1), Of(1, 1, 0, 2), Of(1, 0, 0, 1)}, {1}), "");
  EXPECT_NE(RepeatedOnlyBy({Of(1, 0, 0, 1), Of(1, 1, 0, 2)}, {3}), "");
}

TEST_F(Audit, OfTheOrderCountsFirstAppearancesInEachChain) {
  EXPECT_EQ(InOrder({Of(1, 0, 0), Of(3, 0, 2), Of(2, 0, 1), Of(1, 0, 0)}, stream_, "key"), "");
  EXPECT_NE(InOrder({Of(1, 0, 0), Of(3, 0, 2), Of(2, 0, 1)}, stream_, "partition"), "");
  EXPECT_NE(InOrder({Of(2, 0, 1), Of(1, 0, 0)}, stream_, "key"), "");
  EXPECT_EQ(Overtaken({Of(1, 0, 0), Of(3, 0, 2), Of(2, 0, 1), Of(1, 1, 0)}), 1);
}

TEST_F(Audit, OfCallsSeesTheUnexplainedTheForgedAndThoseAtOneTime) {
  const Call first = Asked("o-1", "t/0/0", 10, 20, 5);
  Call refused = first;
  refused.refused = true;
  const Call again = Asked("o-1", "t/1/0", 30, 40);
  EXPECT_EQ(Explained({refused, again}, {}), "");
  EXPECT_EQ(Explained({first, again}, {5}), "");
  EXPECT_NE(Explained({first, again}, {6}), "");
  EXPECT_NE(Explained({first, again}, {}, {6}), "");
  EXPECT_EQ(Explained({first, again}, {}, {0}), "");

  const Call beside = Asked("o-2", "t/0/1", 15, 25);
  EXPECT_NE(Apart({first, beside}, stream_, "key", {}), "");
  EXPECT_EQ(Apart({first, beside}, stream_, "key", {5}), "");
  EXPECT_EQ(Apart({first, Asked("o-3", "t/0/2", 15, 25)}, stream_, "key", {}), "");
  EXPECT_NE(Apart({first, Asked("o-3", "t/0/2", 15, 25)}, stream_, "partition", {}), "");

  EXPECT_EQ(Genuine(std::vector{first}, stream_, false), "");
  EXPECT_NE(Genuine({Asked("o-2", "t/0/0", 1, 2)}, stream_, false), "");
  EXPECT_EQ(Genuine({Asked("cluster/t/0/1", "t/0/1", 1, 2)}, stream_, true), "");
  EXPECT_NE(EachCalled(std::vector{first, beside}, stream_, false), "");
  EXPECT_EQ(EachCalled({first, beside, Asked("o-3", "t/0/2", 1, 2)}, stream_, false), "");
  EXPECT_NE(EachCalled({first, beside, Asked("o-3", "t/0/2", 1, 2)}, stream_, true), "");
}

}  // namespace
}  // namespace fencepost::testing
