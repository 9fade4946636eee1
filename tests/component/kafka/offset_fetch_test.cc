// Where an assignment begins when the group's offsets are not told at once.
#include <gtest/gtest.h>

#include "consumer/kafka/client/producer.h"
#include "consumer/kafka/source/source.h"
#include "tests/component/kafka/mock_faults.h"
#include "tests/component/kafka/orders_on_mock.h"
#include "tests/component/kafka/reader.h"

namespace fencepost::consumer::testing {
namespace {

constexpr std::int16_t kOffsetFetchRequest = 9;
constexpr int kGroupAuthorizationFailed = 30;

class OffsetFetch : public OrdersOnMock {
 protected:
  OffsetFetch() { options.start_from = StartFrom::kLatest; }
  void Produce(int count) {
    auto producer = Producer::Make(options);
    ASSERT_TRUE(producer);
    OutgoingRecord record;
    record.topic = "orders";
    record.partition = 0;
    record.value = "v";
    for (int i = 0; i < count; ++i) ASSERT_TRUE((*producer)->Send(record));
    ASSERT_TRUE((*producer)->Flush(10s));
  }
};

TEST_F(OffsetFetch, ThatFailsIsNotTakenForAGroupWithoutOffsets) {
  Produce(10);
  {
    Reader sink(options);
    ASSERT_TRUE(sink.Owns(2));
  }
  Produce(5);  // behind what is committed: nobody has read them
  FailRequests(*cluster, kOffsetFetchRequest, kGroupAuthorizationFailed, 1);
  Reader sink(options, "w2");
  ASSERT_TRUE(sink.Owns(2));
  Produce(1);
  ASSERT_TRUE(WaitUntil(20s, [&] { return sink.Count() > 0; })) << sink.Trace();
  EXPECT_EQ(sink.Offsets({"orders", 0}).front(), 10);
}

}  // namespace
}  // namespace fencepost::consumer::testing
