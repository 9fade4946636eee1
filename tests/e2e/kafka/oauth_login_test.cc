// OAUTHBEARER with tokens of a provider, against a real broker.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/json/json_text.h"
#include "consumer/kafka/client/admin.h"
#include "consumer/kafka/client/topic_reader.h"
#include "tests/support/jwt.h"
#include "tests/support/kafka_broker.h"
#include "tests/support/stub_server.h"

namespace fencepost::consumer::testing {
namespace {

using namespace std::chrono_literals;
using fencepost::testing::KafkaBroker;
using fencepost::testing::StubServer;
using fencepost::testing::UnsignedJwt;
using ::testing::HasSubstr;
using ::testing::Not;

class OauthLogin : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.brokers = {Broker().sasl_bootstrap()};
    options_.sasl_mechanism = "OAUTHBEARER";
    options_.oauth = {.token_url = provider_.Url("/token"),
                      .client_id = "billing",
                      .client_secret = "s3cret",
                      .scope = "kafka write",
                      .extensions = "tenant=a1"};
  }
  static KafkaBroker& Broker() {
    static KafkaBroker broker(
        {.config = {{"sasl.enabled.mechanisms", "OAUTHBEARER"},
                    {"listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config",
                     "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
                     "unsecuredLoginStringClaim_sub=\"broker\";"}},
         .sasl_user = "nobody",
         .sasl_password = "n"});
    return broker;
  }
  std::string ProblemOfAReader() {
    const auto reader = TopicReader::Make(options_);
    const auto id = reader ? (*reader)->ClusterId(20s) : tl::unexpected(reader.error());
    return id ? "none" : id.error().Line();
  }

  StubServer::Answer answer_{
      .body = fmt::format(R"({{"access_token":"{}","token_type":"Bearer","expires_in":600}})",
                          UnsignedJwt(600s))};
  const StubServer provider_{[this](const StubServer::Request&) { return answer_; }};
  KafkaOptions options_;
};

TEST_F(OauthLogin, AsksTheProviderAndLogsInWithItsToken) {
  EXPECT_EQ(ProblemOfAReader(), "none");
  ASSERT_FALSE(provider_.requests().empty());
  const StubServer::Request asked = provider_.requests().front();
  EXPECT_EQ(asked.line, "POST /token HTTP/1.1");
  EXPECT_EQ(asked.body, "grant_type=client_credentials&scope=kafka+write");
  EXPECT_EQ(asked.headers.at("authorization"), "Basic " + ToBase64("billing:s3cret"));
  const auto admin = KafkaAdmin::Make(options_);  // nobody polls it
  ASSERT_TRUE(admin) << admin.error().Line();
  EXPECT_TRUE((*admin)->ClusterId(20s));
}

TEST_F(OauthLogin, SaysWhatTheProviderRefuses) {
  answer_ = {.status = 401, .body = R"({"error":"invalid_client","error_description":"s3cret"})"};
  EXPECT_THAT(
      ProblemOfAReader(),
      ::testing::AllOf(HasSubstr("gave no token: HTTP 401 (invalid_client); check client_id"),
                       Not(HasSubstr("s3cret"))));
  answer_ = {.body = R"({"access_token":"no.jwt","expires_in":600})"};
  EXPECT_THAT(ProblemOfAReader(), Not(HasSubstr("no.jwt")));
}

}  // namespace
}  // namespace fencepost::consumer::testing
