#include "consumer/kafka/client/token_login.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <deque>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "consumer/aws/msk_token.h"
#include "consumer/handlers/http/oauth_client.h"
#include "consumer/kafka/client/rdkafka_holders.h"

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;
using SystemTime = std::chrono::system_clock::time_point;

// Of a token's life as librdkafka is told: it asks again after 80% of it.
constexpr std::chrono::seconds kLeastLife{5};
constexpr std::chrono::seconds kUnsaidLife{300};  // where the provider does not say it
constexpr Millis kLimit{2800};  // whoever ends a client waits for it, for 3 s at most

struct Login {
  std::string region;  // of MSK; empty: by `oauth`
  OauthOptions oauth;
  [[nodiscard]] auto All() const {
    return std::tie(region, oauth.token_url, oauth.client_id, oauth.client_secret, oauth.scope,
                    oauth.extensions);
  }
  bool operator==(const Login& other) const { return All() == other.All(); }
};

// librdkafka's callback is told of a client's login by one text of its configuration, which its
// debug log shows: so it is a number, and what it stands for is here.
class Logins {
 public:
  std::string NumberOf(const Login& login) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(all_, login);
    const auto number = found - all_.begin();
    if (found == all_.end()) all_.push_back(login);
    return fmt::to_string(number);
  }
  Login At(std::string_view number) const {
    std::size_t place = 0;
    std::from_chars(number.data(), number.data() + number.size(), place);
    const std::lock_guard lock(mutex_);
    return all_.at(place);
  }
  // Never destroyed: a client that is left behind may ask while the process ends.
  static Logins& OfProcess() {
    static Logins& logins = *new Logins;
    return logins;
  }

 private:
  mutable std::mutex mutex_;
  std::deque<Login> all_;
};

struct Token {
  std::string text;
  SystemTime ends;
};

tl::expected<Token, std::string> AskMsk(const std::string& region, SystemTime now) {
  return AskMskToken(AwsOutside::Process(), region, std::chrono::floor<std::chrono::seconds>(now))
      .map([](MskToken token) {
        return Token{std::move(token.text), token.expires};
      });
}

tl::expected<Token, std::string> AskProvider(const OauthOptions& oauth) {
  HttpHandlerOptions options;
  options.auth.oauth = oauth;
  return AskForToken(options, "fencepost", kLimit).map([](FreshToken token) {
    const auto life = token.life.value_or(kUnsaidLife);
    return Token{std::move(token.text), std::chrono::system_clock::now() + life};
  });
}

void OnTokenWanted(rd_kafka_t* client, const char* number, void* /*opaque*/) {
  using std::chrono::milliseconds;
  const auto now = std::chrono::system_clock::now();
  const Login login = Logins::OfProcess().At(number);
  const auto token = login.region.empty() ? AskProvider(login.oauth) : AskMsk(login.region, now);
  if (!token) {
    // librdkafka tells of a failure where it is another one: of one that lasts, once a minute.
    const auto minute = std::chrono::floor<std::chrono::minutes>(now).time_since_epoch() % 24h;
    const std::string why =
        fmt::format("{} ({:02}:{:02} UTC)", token.error(), minute / 1h, minute % 1h / 1min);
    rd_kafka_oauthbearer_set_token_failure(client, why.c_str());
    return;
  }
  const auto ends =
      std::max<SystemTime>(token->ends, std::chrono::system_clock::now() + kLeastLife);
  const std::vector<std::string> extensions = ExtensionsIn(login.oauth.extensions);
  std::vector<const char*> texts;
  for (const std::string& text : extensions) texts.push_back(text.c_str());
  std::array<char, 512> why{};
  const auto error = rd_kafka_oauthbearer_set_token(
      client, token->text.c_str(),
      std::chrono::duration_cast<milliseconds>(ends.time_since_epoch()).count(), "fencepost",
      texts.data(), texts.size(), why.data(), why.size());
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    rd_kafka_oauthbearer_set_token_failure(client, why.data());
  }
}

}  // namespace

// Without blanks around it.
static std::string_view Trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

std::vector<std::string> ExtensionsIn(std::string_view text) {
  std::vector<std::string> all;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    const std::size_t equals = one.find('=');
    if (equals == std::string_view::npos) continue;
    all.emplace_back(Trimmed(one.substr(0, equals)));
    all.emplace_back(Trimmed(one.substr(equals + 1)));
  }
  return all;
}

void LoginByToken(rd_kafka_conf_t* conf, const KafkaSettings& settings) {
  const auto of = [&](const char* name) {
    const auto found = settings.find(name);
    return found == settings.end() ? "" : found->second;
  };
  const Login login{
      .region = of(kMskSetting),
      .oauth = {of(kTokenUrl), of(kClientId), of(kClientSecret), of(kScope), of(kExtensions)}};
  if (login.region.empty() && login.oauth.token_url.empty()) return;
  const std::string number = Logins::OfProcess().NumberOf(login);
  rd_kafka_conf_set(conf, "sasl.oauthbearer.config", number.c_str(), nullptr, 0);
  rd_kafka_conf_set_oauthbearer_token_refresh_cb(conf, &OnTokenWanted);
  rd_kafka_conf_enable_sasl_queue(conf, 1);
}

tl::expected<void, Error> AskForTokens(rd_kafka_t* client) {
  const rdkafka::Queue queue(rd_kafka_queue_get_sasl(client));
  if (!queue) return {};
  const rdkafka::Failure failure(rd_kafka_sasl_background_callbacks_enable(client));
  if (!failure) return {};
  return tl::unexpected(Error{"bad_config", rd_kafka_error_string(failure.get()), "kafka", ""});
}

}  // namespace fencepost::consumer
