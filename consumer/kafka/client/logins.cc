#include "consumer/kafka/client/logins.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "consumer/aws/msk_token.h"
#include "consumer/handlers/http/oauth_client.h"
#include "consumer/json/json_text.h"
#include "consumer/kafka/client/rdkafka_holders.h"
#include "locking/base/secret.h"

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;
using SystemTime = std::chrono::system_clock::time_point;

// Of a token's life as librdkafka is told: it asks again after 80% of it.
constexpr std::chrono::seconds kLeastLife{5};
constexpr Millis kLimit{15'000};

struct Login {
  std::string region;  // of MSK; empty: by `oauth`
  OauthOptions oauth;
  bool operator==(const Login&) const = default;
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

class EndingClients {
 public:
  void Add(const rd_kafka_t* client) {
    const std::lock_guard lock(mutex_);
    all_.insert(client);
  }
  void Remove(const rd_kafka_t* client) {
    const std::lock_guard lock(mutex_);
    all_.erase(client);
  }
  bool Has(const rd_kafka_t* client) const {
    const std::lock_guard lock(mutex_);
    return all_.contains(client);
  }
  static EndingClients& OfProcess() {
    static EndingClients& clients = *new EndingClients;
    return clients;
  }

 private:
  mutable std::mutex mutex_;
  std::set<const rd_kafka_t*> all_;
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

tl::expected<Token, std::string> AskProvider(const OauthOptions& oauth, const rd_kafka_t* client) {
  const auto ends = [client] { return EndingClients::OfProcess().Has(client); };
  HttpHandlerOptions options;
  options.auth.oauth = oauth;
  return AskForToken(options, "fencepost", kLimit, ends).map([](FreshToken token) {
    return Token{std::move(token.text), std::chrono::system_clock::now() + token.life};
  });
}

void OnTokenWanted(rd_kafka_t* client, const char* number, void* /*opaque*/) {
  using std::chrono::milliseconds;
  const auto now = std::chrono::system_clock::now();
  const Login login = Logins::OfProcess().At(number);
  const auto token =
      login.region.empty() ? AskProvider(login.oauth, client) : AskMsk(login.region, now);
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

constexpr std::chrono::seconds kBetweenLooks{2};

std::string SettingOf(const rd_kafka_conf_t* conf, const char* name) {
  std::array<char, 4096> text{};
  std::size_t size = text.size();
  if (rd_kafka_conf_get(conf, name, text.data(), &size) != RD_KAFKA_CONF_OK) return "";
  return text.data();
}

class PasswordFiles {
 public:
  // Never destroyed, as its thread.
  static PasswordFiles& OfProcess() {
    static PasswordFiles& files = *new PasswordFiles;
    return files;
  }

  // Empty: it could never be read.
  std::string Now(const std::string& path) {
    const auto text = Secret::OfFile(path).Read();
    const std::lock_guard lock(mutex_);
    std::string& last = last_[path];
    if (text && last.empty()) last = *text;
    return text.value_or(last);
  }

  void Add(rd_kafka_t* client, std::string user, const std::string& path) {
    const std::lock_guard lock(mutex_);
    const Client& added = clients_[client] = {std::move(user), path};
    TellOne(client, added.user, last_[path]);  // it may have changed since the client was made
    if (!std::exchange(started_, true)) std::thread([this] { Run(); }).detach();
  }

  void Remove(rd_kafka_t* client) {
    const std::lock_guard lock(mutex_);
    clients_.erase(client);
  }

 private:
  struct Client {
    std::string user;
    std::string path;
  };

  [[noreturn]] void Run() {
    for (;;) {
      std::this_thread::sleep_for(kBetweenLooks);
      for (const auto& [path, before] : Known()) {
        const auto text = Secret::OfFile(path).Read();
        if (text && *text != before) Tell(path, *text);
      }
    }
  }

  std::map<std::string, std::string> Known() {
    const std::lock_guard lock(mutex_);
    return last_;
  }

  void Tell(const std::string& path, const std::string& password) {
    const std::lock_guard lock(mutex_);
    last_[path] = password;
    for (const auto& [client, login] : clients_) {
      if (login.path == path) TellOne(client, login.user, password);
    }
  }

  static void TellOne(rd_kafka_t* client, const std::string& user, const std::string& password) {
    if (password.empty()) return;
    const rdkafka::Failure ignored(
        rd_kafka_sasl_set_credentials(client, user.c_str(), password.c_str()));
  }

  std::mutex mutex_;
  bool started_ = false;
  std::map<std::string, std::string> last_;  // by path: what clients were told; empty: nothing
  std::map<rd_kafka_t*, Client> clients_;
};

// A client is told of its file by a text of its configuration, which these mechanisms do not use.
constexpr const char* kCarrier = "sasl.oauthbearer.config";

}  // namespace

NoMoreTokens::NoMoreTokens(const rd_kafka_t* client) : client_(client) {
  EndingClients::OfProcess().Add(client_);
}

NoMoreTokens::~NoMoreTokens() { EndingClients::OfProcess().Remove(client_); }

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
  const std::string file = of(kClientSecretFile);
  const Login login{
      .region = of(kMskSetting),
      .oauth = {.token_url = of(kTokenUrl),
                .client_id = of(kClientId),
                .client_secret = file.empty() ? of(kClientSecret) : Secret::OfFile(file),
                .scope = of(kScope),
                .extensions = of(kExtensions)}};
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

void LoginByFile(rd_kafka_conf_t* conf, const KafkaSettings& settings) {
  const auto path = settings.find(kPasswordFile);
  if (path == settings.end()) return;
  constexpr const char* kNone = " ";  // librdkafka makes no client without one
  const std::string password = PasswordFiles::OfProcess().Now(path->second);
  rd_kafka_conf_set(conf, "sasl.password", password.empty() ? kNone : password.c_str(), nullptr, 0);
  rd_kafka_conf_set(conf, kCarrier, path->second.c_str(), nullptr, 0);
}

void FollowPasswordFile(rd_kafka_t* client) {
  const rd_kafka_conf_t* const conf = rd_kafka_conf(client);
  const std::string path = SettingOf(conf, kCarrier);
  if (path.empty() || SettingOf(conf, "sasl.mechanism") == "OAUTHBEARER") return;
  PasswordFiles::OfProcess().Add(client, SettingOf(conf, "sasl.username"), path);
}

void ForgetPasswordFile(rd_kafka_t* client) { PasswordFiles::OfProcess().Remove(client); }

}  // namespace fencepost::consumer
