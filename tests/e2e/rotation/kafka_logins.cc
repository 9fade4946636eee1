// Kafka: a user that the broker keeps, and a provider of tokens.
#include <cstdlib>
#include <stdexcept>

#include <fmt/format.h>

#include "tests/e2e/rotation/http_login.h"
#include "tests/support/jwt.h"

namespace fencepost::testing {
namespace {

// Debian's librdkafka has no SCRAM with Kafka 4.
constexpr const char* kVersion = "3.9.1";
constexpr Deadline kLong{60'000};

void AddSasl(PipelineText& text, const std::string& keys) {
  text.brokers = RotationKafka().sasl_bootstrap();
  text.start_from += "\n  sasl: {" + keys + "}";
}

void EndConnections() {
  RotationKafka().Stop();
  RotationKafka().Start();
}

class Scram : public Login {
 public:
  void AddTo(PipelineText& text, const std::string& secret) const override {
    AddSasl(text, "mechanism: SCRAM-SHA-256, username: rotated, password: " + secret);
  }
  void Take(const std::vector<std::string>& secrets) override {
    if (secrets.back() == taken_) return;
    taken_ = secrets.back();
    const char* home = std::getenv("JAVA_HOME");
    const Finished done = RunToEnd(
        {.argv = {home == nullptr ? "java" : std::string(home) + "/bin/java", "-cp",
                  (CacheDir() / (std::string("kafka-") + kVersion) / "libs" / "*").string(),
                  "kafka.admin.ConfigCommand", "--bootstrap-server", RotationKafka().bootstrap(),
                  "--alter", "--entity-type", "users", "--entity-name", "rotated", "--add-config",
                  fmt::format("SCRAM-SHA-256=[password={}]", taken_)}});
    if (done.exit_code != 0) throw std::runtime_error(done.output);
    RequireWithin(kLong, "the broker to know the password", [&] { return LetsIn(taken_); });
  }
  void Disconnect() override { EndConnections(); }
  [[nodiscard]] bool LetsIn(const std::string& secret) const override {
    return KafkaAdmin(RotationKafka().sasl_bootstrap(), {{"security.protocol", "SASL_PLAINTEXT"},
                                                         {"sasl.mechanisms", "SCRAM-SHA-256"},
                                                         {"sasl.username", "rotated"},
                                                         {"sasl.password", secret}})
        .Answers(std::chrono::seconds(5));
  }
  [[nodiscard]] std::string refusal() const override { return "uthentication failed"; }

 private:
  std::string taken_;
};

// It is the provider that is logged in at.
class KafkaToken : public HttpLogin {
 public:
  KafkaToken() : HttpLogin(Scheme::kBasic, [](const Request&) { return Issue(); }) {}
  void AddTo(PipelineText& text, const std::string& secret) const override {
    AddSasl(text, fmt::format("mechanism: OAUTHBEARER, oauth: {{token_url: \"{}\", client_id: "
                              "rotated, client_secret: {}}}",
                              Url("/token"), secret));
  }
  // With the secret that holds then a token was asked for before.
  void Disconnect() override {
    const std::size_t before = asked();
    RequireWithin(kLong, "a token to be asked for", [&] { return asked() > before; });
    EndConnections();
  }
  [[nodiscard]] std::string refusal() const override { return "gave no token: HTTP 401"; }

 private:
  static Answer Issue() {
    constexpr std::chrono::seconds kLife{10};
    return {.body = fmt::format(R"({{"access_token":"{}","token_type":"Bearer","expires_in":{}}})",
                                UnsignedJwt(kLife), kLife.count())};
  }
};

}  // namespace

KafkaBroker& RotationKafka() {
  const std::string package = "org.apache.kafka.common.security.";
  const std::string listener = "listener.name.sasl_plaintext.";
  static KafkaBroker broker({.version = kVersion,
                             .config = {{"sasl.enabled.mechanisms", "SCRAM-SHA-256,OAUTHBEARER"},
                                        {listener + "scram-sha-256.sasl.jaas.config",
                                         package + "scram.ScramLoginModule required;"},
                                        {listener + "oauthbearer.sasl.jaas.config",
                                         package + "oauthbearer.OAuthBearerLoginModule required "
                                                   "unsecuredLoginStringClaim_sub=\"broker\";"}},
                             .sasl_user = "nobody",
                             .sasl_password = "n"});
  return broker;
}

std::unique_ptr<Login> MakeKafkaScramLogin() { return std::make_unique<Scram>(); }
std::unique_ptr<Login> MakeKafkaTokenLogin() { return std::make_unique<KafkaToken>(); }

}  // namespace fencepost::testing
