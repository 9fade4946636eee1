#include "consumer/kafka/client/msk_login.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>

#include <fmt/format.h>

#include "consumer/aws/msk_token.h"
#include "consumer/kafka/client/rdkafka_holders.h"

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;

// Of a token's life as librdkafka is told: it asks again after 80% of it.
constexpr std::chrono::seconds kLeastLife{10};

// `region`: sasl.oauthbearer.config.
void OnTokenWanted(rd_kafka_t* client, const char* region, void* /*opaque*/) {
  using std::chrono::milliseconds;
  const auto now = std::chrono::system_clock::now();
  const auto token =
      AskMskToken(AwsOutside::Process(), region, std::chrono::floor<std::chrono::seconds>(now));
  if (!token) {
    // librdkafka tells of a failure where it is another one: of one that lasts, once a minute.
    const auto minute = std::chrono::floor<std::chrono::minutes>(now).time_since_epoch() % 24h;
    const std::string why =
        fmt::format("{} ({:02}:{:02} UTC)", token.error(), minute / 1h, minute % 1h / 1min);
    rd_kafka_oauthbearer_set_token_failure(client, why.c_str());
    return;
  }
  const auto ends =
      std::max<std::chrono::system_clock::time_point>(token->expires, now + kLeastLife);
  std::array<char, 512> why{};
  const auto error = rd_kafka_oauthbearer_set_token(
      client, token->text.c_str(),
      std::chrono::duration_cast<milliseconds>(ends.time_since_epoch()).count(), "fencepost",
      nullptr, 0, why.data(), why.size());
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    rd_kafka_oauthbearer_set_token_failure(client, why.data());
  }
}

}  // namespace

void LoginByMsk(rd_kafka_conf_t* conf, const std::string& region) {
  rd_kafka_conf_set(conf, "sasl.oauthbearer.config", region.c_str(), nullptr, 0);
  rd_kafka_conf_set_oauthbearer_token_refresh_cb(conf, &OnTokenWanted);
  rd_kafka_conf_enable_sasl_queue(conf, 1);
}

tl::expected<void, Error> AskForMskTokens(rd_kafka_t* client) {
  const rdkafka::Queue queue(rd_kafka_queue_get_sasl(client));
  if (!queue) return {};
  const rdkafka::Failure failure(rd_kafka_sasl_background_callbacks_enable(client));
  if (!failure) return {};
  return tl::unexpected(Error{"bad_config", rd_kafka_error_string(failure.get()), "kafka", ""});
}

}  // namespace fencepost::consumer
