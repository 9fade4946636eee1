// AWS_MSK_IAM against a real broker that checks tokens as Amazon MSK does, over TLS.
#include <cstdlib>
#include <memory>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/kafka/client/admin.h"
#include "consumer/kafka/client/producer.h"
#include "consumer/kafka/client/topic_reader.h"
#include "tests/support/certificates.h"
#include "tests/support/kafka_broker.h"
#include "tests/support/paths.h"
#include "tests/support/stub_server.h"

namespace fencepost::consumer::testing {
namespace {

using namespace std::chrono_literals;
using fencepost::testing::Certificates;
using fencepost::testing::KafkaBroker;
using fencepost::testing::KafkaBrokerOptions;
using fencepost::testing::SourcePath;
using fencepost::testing::StubServer;
using fencepost::testing::WaitUntil;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kKey = "ASIAEXAMPLE";
constexpr const char* kSecret = "s3cret/of+aws";
constexpr const char* kSession = "session//token+of==";

struct Msk {
  Certificates certificates{"IP:127.0.0.1"};
  KafkaBroker broker{Options()};

  KafkaBrokerOptions Options() {
    const std::string pem = certificates.Write(
        "both.pem", fencepost::testing::ReadFile(certificates.key()) +
                        fencepost::testing::ReadFile(certificates.certificate()));
    const std::string listener = "listener.name.s.";
    const std::string of_bearer = listener + "oauthbearer.sasl.";
    return {.config = {{"sasl.enabled.mechanisms", "OAUTHBEARER"},
                       {of_bearer + "jaas.config",
                        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule "
                        "required;"},
                       {of_bearer + "server.callback.handler.class", "MskTokens"},
                       {listener + "ssl.keystore.type", "PEM"},
                       {listener + "ssl.keystore.location", pem},
                       {"msk.region", "eu-west-1"},
                       {"msk.key", kKey},
                       {"msk.secret", kSecret},
                       {"msk.token", kSession}},
            .sasl_classes = {SourcePath("tests/support/MskTokens.java")}};
  }
};

class MskLogin : public ::testing::Test {
 protected:
  void SetUp() override {
    options.brokers = {msk->broker.sasl_bootstrap()};
    options.tls = true;
    options.tls_ca = msk->certificates.ca();
    options.sasl_mechanism = "AWS_MSK_IAM";
    options.sasl_region = "eu-west-1";
    SetKey(kSecret);
  }
  void TearDown() override {
    for (const std::string& name : set_) unsetenv(name.c_str());
  }
  void Set(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), 1);
    set_.push_back(name);
  }
  void SetKey(const std::string& secret) {
    Set("AWS_ACCESS_KEY_ID", kKey);
    Set("AWS_SECRET_ACCESS_KEY", secret);
    Set("AWS_SESSION_TOKEN", kSession);
  }
  void UnsetKey() {
    unsetenv("AWS_ACCESS_KEY_ID");
    unsetenv("AWS_SECRET_ACCESS_KEY");
    unsetenv("AWS_SESSION_TOKEN");
  }
  std::string ProblemOfAReader() {
    const auto reader = TopicReader::Make(options);
    const auto id = reader ? (*reader)->ClusterId(5s) : tl::unexpected(reader.error());
    return id ? "none" : id.error().Line();
  }

  // Started once a program.
  Msk* const msk = [] {
    static Msk one;
    return &one;
  }();
  const std::string topic = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  KafkaOptions options;

 private:
  std::vector<std::string> set_;
};

TEST_F(MskLogin, LetsEveryKindOfClientIn) {
  msk->broker.CreateTopic(topic, 1);
  const auto producer = Producer::Make(options);
  ASSERT_TRUE(producer) << producer.error().Line();
  ASSERT_TRUE((*producer)->Send({.topic = topic, .value = "order"}));
  const auto flushed = (*producer)->Flush(30s);
  ASSERT_TRUE(flushed) << flushed.error().Line();

  const auto reader = TopicReader::Make(options);
  ASSERT_TRUE(reader) << reader.error().Line();
  const auto ranges = (*reader)->Ranges(topic, 30s);
  ASSERT_TRUE(ranges) << ranges.error().Line();
  std::vector<std::string> values;
  const auto read = (*reader)->Read(
      *ranges,
      [&](const TopicRecord& one) {
        values.emplace_back(one.record.value.value_or(""));
        return true;
      },
      30s);
  ASSERT_TRUE(read) << read.error().Line();
  EXPECT_THAT(values, ElementsAre("order"));

  const auto admin = KafkaAdmin::Make(options);  // nobody polls it
  ASSERT_TRUE(admin) << admin.error().Line();
  const auto ends = (*admin)->EndOffsets(topic, 30s);
  ASSERT_TRUE(ends) << ends.error().Line();
  EXPECT_THAT(*ends, ElementsAre(1));
}

TEST_F(MskLogin, IsRefusedWithAnotherSecretOrForAnotherRegion) {
  SetKey("an0ther");
  EXPECT_THAT(ProblemOfAReader(),
              ::testing::AllOf(HasSubstr("invalid_token"), Not(HasSubstr("an0ther"))));
  SetKey(kSecret);
  options.sasl_region = "us-east-1";
  EXPECT_THAT(ProblemOfAReader(), HasSubstr("invalid_token"));
}

TEST_F(MskLogin, SaysWhyThereAreNoCredentials) {
  UnsetKey();
  Set("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://10.0.0.1/");
  EXPECT_THAT(ProblemOfAReader(),
              HasSubstr("no AWS credentials: by the container's endpoint: "
                        "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https:// nor http:// of"));
}

TEST_F(MskLogin, IsRenewedBeforeItsCredentialsEndThoughNobodyPolls) {
  UnsetKey();
  const auto in_twelve_seconds = [] {
    const std::time_t at = std::time(nullptr) + 12;
    std::array<char, 32> text{};
    std::tm parts{};
    (void)std::strftime(text.data(), text.size(), "%FT%TZ", gmtime_r(&at, &parts));
    return std::string(text.data());
  };
  StubServer pod([&](const StubServer::Request& request) -> StubServer::Answer {
    if (request.line != "GET /v1/credentials HTTP/1.1" ||
        request.headers.count("authorization") != 1 ||
        request.headers.at("authorization") != "pod") {
      return {.status = 401};
    }
    return {.body = fmt::format(R"({{"AccessKeyId": "{}", "SecretAccessKey": "{}", "Token": "{}",)"
                                R"( "Expiration": "{}"}})",
                                kKey, kSecret, kSession, in_twelve_seconds())};
  });
  Set("AWS_CONTAINER_CREDENTIALS_FULL_URI", pod.Url("/v1/credentials"));
  Set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "pod");
  Set("http_proxy", "http://127.0.0.1:9");  // which must not be asked
  const auto admin = KafkaAdmin::Make(options);
  ASSERT_TRUE(admin) << admin.error().Line();
  const auto id = (*admin)->ClusterId(30s);
  ASSERT_TRUE(id) << id.error().Line();
  EXPECT_EQ(pod.requests().size(), 1U);
  ASSERT_TRUE(WaitUntil(60s, "a second token", [&] { return pod.requests().size() >= 2; }));
}

}  // namespace
}  // namespace fencepost::consumer::testing
