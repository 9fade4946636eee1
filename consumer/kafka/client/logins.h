// How clients log in otherwise than with a text: with tokens, or with a password in a file.
//
// Tokens are of Amazon MSK by IAM, or of an OIDC provider. librdkafka asks for one when a client
// starts and after 80% of its life, and again after ten seconds where there was none, which is an
// error of its own (_AUTHENTICATION). It is asked for on the client's background thread, so that a
// client that nobody polls has one too.
//
// With a password librdkafka logs in at each connect as it was told last: so a thread of the
// process reads each file every two seconds, and tells the clients of it what has changed.
#pragma once

#include <librdkafka/rdkafka.h>

#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "consumer/kafka/client/settings.h"
#include "consumer/pipeline/options.h"
#include "locking/base/error.h"

namespace fencepost::consumer {

// What stands for a login among settings; none of these is librdkafka's. The region, or what
// OauthOptions has.
constexpr std::string_view kTokenSettings = "fencepost.";
inline constexpr const char* kMskSetting = "fencepost.msk.region";
inline constexpr const char* kTokenUrl = "fencepost.oauth.token_url";
inline constexpr const char* kClientId = "fencepost.oauth.client_id";
inline constexpr const char* kClientSecret = "fencepost.oauth.client_secret";
inline constexpr const char* kClientSecretFile = "fencepost.oauth.client_secret.file";
inline constexpr const char* kScope = "fencepost.oauth.scope";
inline constexpr const char* kExtensions = "fencepost.oauth.extensions";

// Before the client is made; nothing where it logs in otherwise. Thread-safe. The process keeps
// each login that differs from all others.
void LoginByToken(rd_kafka_conf_t* conf, const KafkaSettings& settings);
// After it; nothing where it logs in otherwise.
tl::expected<void, Error> AskForTokens(rd_kafka_t* client);

// While it lives, the client's tokens are not waited for: who ends it would wait for them. Any
// thread.
class NoMoreTokens {
 public:
  explicit NoMoreTokens(const rd_kafka_t* client);
  ~NoMoreTokens();
  NoMoreTokens(const NoMoreTokens&) = delete;
  NoMoreTokens& operator=(const NoMoreTokens&) = delete;

 private:
  const rd_kafka_t* const client_;
};

// "a=1,b=2" of sasl.oauth.extensions as names and values, one after the other; what has no = is
// left out.
std::vector<std::string> ExtensionsIn(std::string_view text);

// --- passwords of PLAIN and SCRAM in a file ------------------------------------------------------

// The path, among settings (ConnectionSettings); it is none of librdkafka's.
inline constexpr const char* kPasswordFile = "fencepost.sasl.password.file";

// Before the client is made; nothing where there is no such file. Takes what the file holds, or
// what it held last; where it could never be read, the brokers refuse the client until it can.
void LoginByFile(rd_kafka_conf_t* conf, const KafkaSettings& settings);
// After it; until rdkafka::EndClient.
void FollowPasswordFile(rd_kafka_t* client);
void ForgetPasswordFile(rd_kafka_t* client);

}  // namespace fencepost::consumer
