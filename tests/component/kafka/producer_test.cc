#include "consumer/kafka/client/producer.h"

#include <filesystem>
#include <set>
#include <string>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "consumer/kafka/client/admin.h"
#include "tests/component/kafka/mock_faults.h"
#include "tests/component/kafka/orders_on_mock.h"

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;

class ProducerOnMock : public OrdersOnMock {
 protected:
  ProducerOnMock() : OrdersOnMock(3) {}
};

OutgoingRecord To(std::int32_t partition) {
  OutgoingRecord record;
  record.topic = "orders";
  record.partition = partition;
  record.value = "v";
  return record;
}

TEST_F(ProducerOnMock, WaitsWhileItsQueueIsFullAndDeliversEverything) {
  auto producer = Producer::Make(options, {{"queue.buffering.max.messages", "10"}});
  ASSERT_TRUE(producer);
  for (int i = 0; i < 500; ++i) ASSERT_TRUE((*producer)->Send(To(i % 3)));
  ASSERT_TRUE((*producer)->Flush(10s));
  auto admin = KafkaAdmin::Make(options);
  ASSERT_TRUE(admin);
  EXPECT_EQ((*admin)->EndOffsets("orders", 5s), (std::vector<Offset>{167, 167, 166}));
}

// --- connections that are half open --------------------------------------------------------------

// This process' connections to others.
std::set<int> Connections() {
  std::set<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    sockaddr_in peer{};
    socklen_t size = sizeof(peer);
    const int got = getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size);
    if (got == 0 && peer.sin_family == AF_INET) found.insert(fd);
  }
  return found;
}

int OptionOf(int fd, int level, int name) {
  int value = -1;
  socklen_t length = sizeof(value);
  (void)getsockopt(fd, level, name, &value, &length);
  return value;
}

// The mock cluster accepts them in this process, as sockets without these options.
TEST_F(ProducerOnMock, ClosesConnectionsWhoseOtherEndIsGoneWithoutAWordWithinSeconds) {
  const std::set<int> before = Connections();
  auto producer = Producer::Make(options, {});
  ASSERT_TRUE(producer);
  ASSERT_TRUE((*producer)->Send(To(0)));
  ASSERT_TRUE((*producer)->Flush(10s));
  int watched = 0;
  for (const int fd : Connections()) {
    if (before.contains(fd) || OptionOf(fd, SOL_SOCKET, SO_KEEPALIVE) != 1) continue;
    ++watched;
    EXPECT_EQ(OptionOf(fd, IPPROTO_TCP, TCP_KEEPIDLE), 10);
    EXPECT_EQ(OptionOf(fd, IPPROTO_TCP, TCP_KEEPINTVL), 5);
    EXPECT_EQ(OptionOf(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 25'000)
        << "with less, one keepalive that is lost ends a connection";
  }
  EXPECT_GE(watched, 1);
}

TEST_F(ProducerOnMock, TellsWhereEachRecordWent) {
  auto producer = Producer::Make(options);
  ASSERT_TRUE(producer);
  std::vector<Offset> offsets;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE((*producer)->Send(To(2), [&](tl::expected<Offset, Error> done) {
      ASSERT_TRUE(done);
      offsets.push_back(*done);
    }));
  }
  ASSERT_TRUE((*producer)->Flush(10s));
  EXPECT_EQ(offsets, (std::vector<Offset>{0, 1, 2, 3, 4}));
}

TEST_F(ProducerOnMock, GivesUpOnAFullQueueAfterItsLimit) {
  SetBrokerUp(*cluster, false);
  auto producer = Producer::Make(options, {{"queue.buffering.max.messages", "2"}});
  ASSERT_TRUE(producer);
  tl::expected<void, Error> sent;
  for (int i = 0; i < 3 && sent; ++i) sent = (*producer)->Send(To(0), nullptr, 50ms);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, "kafka_queue_full");
  EXPECT_FALSE((*producer)->Flush(50ms));
}

TEST_F(ProducerOnMock, TellsTheReasonOfARefusal) {
  auto producer = Producer::Make(options, {{"message.timeout.ms", "300"}});
  ASSERT_TRUE(producer);
  ASSERT_TRUE((*producer)->Send(To(17)));  // no such partition
  const auto flushed = (*producer)->Flush(10s);
  ASSERT_FALSE(flushed);
  EXPECT_TRUE((*producer)->Flush(1s));  // told once
}

}  // namespace
}  // namespace fencepost::consumer
