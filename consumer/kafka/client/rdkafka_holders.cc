#include "consumer/kafka/client/rdkafka_holders.h"

#include <atomic>
#include <chrono>
#include <future>
#include <system_error>
#include <thread>
#include <utility>

#include "consumer/kafka/client/logins.h"

namespace fencepost::consumer::rdkafka {
namespace {

constexpr std::chrono::seconds kPatience{3};

std::atomic<int> left_behind{0};

void DestroyNow(rd_kafka_t* rk) {
  const NoMoreTokens none(rk);
  rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
}

void Destroy(rd_kafka_t* rk) {
  ForgetPasswordFile(rk);
  std::promise<void> destroyed;
  const auto end = destroyed.get_future();
  try {
    std::thread([rk, destroyed = std::move(destroyed)]() mutable {
      DestroyNow(rk);
      destroyed.set_value();
    }).detach();
  } catch (const std::system_error&) {  // no thread could be started
    DestroyNow(rk);
    return;
  }
  if (end.wait_for(kPatience) != std::future_status::ready) ++left_behind;
}

}  // namespace

void EndClient(rd_kafka_t* client) {
  ForgetPasswordFile(client);
  const NoMoreTokens none(client);
  rd_kafka_destroy(client);
}

SharedConsumer ShareConsumer(rd_kafka_t* handle) { return {handle, &Destroy}; }

int ConsumersLeftBehind() { return left_behind; }

}  // namespace fencepost::consumer::rdkafka
