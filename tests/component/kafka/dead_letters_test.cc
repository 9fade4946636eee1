// Dead letters that are refused, on the mock cluster; on a real broker: tests/e2e/kafka.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "consumer/kafka/client/admin.h"
#include "consumer/kafka/output/dead_letter_publisher.h"
#include "consumer/kafka/output/dead_letter_record.h"
#include "tests/component/kafka/mock_faults.h"
#include "tests/support/process.h"

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;
using fencepost::testing::WaitUntil;

constexpr std::int16_t kProduceRequest = 0;
constexpr int kTopicAuthorizationFailed = 29;

class NoObserver final : public ConsumerObserver {};

DeadLetter Letter() {
  DeadLetter letter;
  letter.id = 1;
  letter.where = {"in", 3};
  letter.record.offset = 40;
  letter.record.value = "a";
  letter.record_id = "o-1";
  letter.error_class = "404";
  return letter;
}

TEST(DeadLetters, ArePublishedOnceTheBrokerHasTakenThem) {  // 19
  auto cluster = MockCluster::Make();
  ASSERT_TRUE(cluster);
  ASSERT_TRUE((*cluster)->CreateTopic("dead", 1));
  KafkaOptions kafka;
  kafka.brokers = (*cluster)->brokers();
  NoObserver observer;
  std::mutex mutex;
  DeadLetterPublisher::Ids published;
  DeadLetterPublisher letters(
      kafka, DeadLetterOptions{"dead"}, "orders", &observer,
      [&](DeadLetterPublisher::Ids taken, const DeadLetterPublisher::Ids&) {
        const std::lock_guard lock(mutex);
        published.insert(published.end(), taken.begin(), taken.end());
      },
      [](bool, std::string) {});
  ASSERT_TRUE(letters.Start());
  FailRequests(**cluster, kProduceRequest, kTopicAuthorizationFailed, 2);
  letters.Publish({Letter()});
  ASSERT_TRUE(WaitUntil(20s, [&] {
    const std::lock_guard lock(mutex);
    return !published.empty();
  }));
  auto admin = KafkaAdmin::Make(kafka);
  ASSERT_TRUE(admin);
  EXPECT_EQ((*admin)->EndOffsets("dead", 5s), std::vector<Offset>{1});
}

TEST(DeadLetters, SayWhereTheyComeFromNowAndNotWhereAnEarlierOneDid) {
  DeadLetter letter = Letter();
  letter.record.headers = {{"own", "1"}, {"fencepost-offset", "7"}, {"fencepost-record-id", "x"}};
  const DeadLetterRecord record("dead", letter, "orders");
  std::map<std::string, int> times;
  for (const HeaderView& header : record.outgoing().headers) ++times[std::string(header.name)];
  EXPECT_EQ(times["own"], 1);
  EXPECT_EQ(times["fencepost-offset"], 1);
  EXPECT_EQ(times["fencepost-record-id"], 1);
}

}  // namespace
}  // namespace fencepost::consumer
