#include "consumer/kafka/client/settings.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consumer/kafka/client/logins.h"
#include "consumer/kafka/source/kafka_health.h"

namespace fencepost::consumer {
namespace {

KafkaOptions Options() {
  KafkaOptions options;
  options.brokers = {"a:1", "b:2"};
  options.topics = {"orders"};
  options.group = "billing";
  return options;
}

TEST(KafkaSettings, KeepOffsetsAndIsolationInOurHands) {
  const KafkaSettings settings = ConsumerSettings(Options(), "worker-1");
  EXPECT_EQ(settings.at("bootstrap.servers"), "a:1,b:2");
  EXPECT_EQ(settings.at("group.id"), "billing");
  EXPECT_EQ(settings.at("client.id"), "worker-1");
  EXPECT_EQ(settings.at("enable.auto.commit"), "false");
  EXPECT_EQ(settings.at("enable.auto.offset.store"), "false");
  EXPECT_EQ(settings.at("auto.offset.reset"), "error");
  EXPECT_EQ(settings.at("isolation.level"), "read_committed");
  EXPECT_EQ(settings.at("partition.assignment.strategy"), "range");
  EXPECT_FALSE(settings.contains("security.protocol"));
  EXPECT_TRUE(MakeConf(settings));
}

TEST(KafkaSettings, NameAWorkerAndWhereItIsReached) {
  struct Row {
    MemberName name;
    const char *client_id, *instance_id;
  };
  for (const Row& row :
       {Row{{"w-1", ""}, "fencepost-w-1", "fencepost-w-1"},
        Row{{"w-1", "h:9464"}, "fencepost-w-1@h:9464", "fencepost-w-1"},
        Row{{"w-1", "[fd00::1]:9464"}, "fencepost-w-1@[fd00::1]:9464", "fencepost-w-1"},
        Row{{"a@h:1", ""}, "fencepost-a@h:1@", "fencepost-a@h:1"},
        Row{{"a@b", "h:1"}, "fencepost-a@b@h:1", "fencepost-a@b"},
        Row{{"", ""}, "fencepost-", "fencepost-"}}) {
    const std::string id = ClientIdOf(row.name);
    EXPECT_EQ(id, row.client_id);
    EXPECT_EQ(MemberNameIn(id), row.name);
    KafkaOptions options = Options();
    options.static_members = true;
    const KafkaSettings settings = ConsumerSettings(options, id);
    EXPECT_EQ(settings.at("client.id"), row.client_id);
    EXPECT_EQ(settings.at("group.instance.id"), row.instance_id);
  }
  EXPECT_EQ(MemberNameIn("kcat"), (MemberName{"kcat", ""}));
  EXPECT_EQ(MemberNameIn(""), MemberName());
}

TEST(KafkaSettings, WaitFifteenSecondsForADeadMemberUnlessTheUserSaysOtherwise) {
  KafkaOptions options = Options();
  EXPECT_EQ(ConsumerSettings(options, "w").at("session.timeout.ms"), "15000");
  options.librdkafka = {{"session.timeout.ms", "6000"}};
  EXPECT_EQ(ConsumerSettings(options, "w").at("session.timeout.ms"), "6000");
}

TEST(KafkaSettings, PassTheUsersOwnThrough) {
  KafkaOptions options = Options();
  options.librdkafka = {{"fetch.wait.max.ms", "7"}, {"socket.timeout.ms", "9000"}};
  EXPECT_EQ(ConsumerSettings(options, "w").at("fetch.wait.max.ms"), "7");
  EXPECT_EQ(ConnectionSettings(options).at("socket.timeout.ms"), "9000");
  EXPECT_FALSE(ConnectionSettings(options).contains("fetch.wait.max.ms"));
}

TEST(KafkaSettings, LetProducersCompressAndTheBrokersDecideWhatIsTooLarge) {
  KafkaOptions options = Options();
  EXPECT_EQ(ProducerSettings(options).at("compression.type"), "lz4");
  EXPECT_EQ(ProducerSettings(options).at("message.max.bytes"), "67108864");
  options.librdkafka = {{"compression.codec", "zstd"},    {"linger.ms", "50"},
                        {"message.max.bytes", "1000000"}, {"fetch.wait.max.ms", "7"},
                        {"session.timeout.ms", "6000"},   {"socket.timeout.ms", "9000"}};
  KafkaSettings own = ProducerSettings(options);
  EXPECT_EQ(own.at("compression.type"), "zstd");
  EXPECT_EQ(own.at("linger.ms"), "50");
  EXPECT_EQ(own.at("socket.timeout.ms"), "9000");
  EXPECT_EQ(own.at("message.max.bytes"), "67108864") << "a dead letter must not be lost to it";
  EXPECT_FALSE(own.contains("fetch.wait.max.ms"));
  EXPECT_FALSE(own.contains("session.timeout.ms"));
  EXPECT_FALSE(own.contains("compression.codec"));
  SetSingles(own, options);
  EXPECT_EQ(own.at("compression.type"), "zstd");
  EXPECT_TRUE(MakeConf(own));
  options.librdkafka.clear();
  KafkaSettings singles = ProducerSettings(options);
  SetSingles(singles, options);
  EXPECT_EQ(singles.at("compression.type"), "gzip");
}

TEST(KafkaSettings, FetchNoFurtherAheadThanThePipelineHasRoom) {
  KafkaOptions options = Options();
  EXPECT_EQ(ConsumerSettings(options, "w").at("queued.max.messages.kbytes"), "65536");
  EXPECT_EQ(ConsumerSettings(options, "w", 8 << 20).at("queued.max.messages.kbytes"), "8192");
  EXPECT_EQ(ConsumerSettings(options, "w", 1).at("queued.max.messages.kbytes"), "1024");
  EXPECT_EQ(ConsumerSettings(options, "w").at("fetch.max.bytes"), "16777216");
  options.librdkafka = {{"message.max.bytes", "20000000"}};
  EXPECT_FALSE(ConsumerSettings(options, "w").contains("fetch.max.bytes"));
  auto conf = MakeConf(ConsumerSettings(options, "w"));
  ASSERT_TRUE(conf);
  EXPECT_TRUE(MakeHandle(RD_KAFKA_CONSUMER, *conf));
}

TEST(KafkaSettings, ChooseTheProtocolByWhatIsGiven) {
  KafkaOptions options = Options();
  options.sasl_mechanism = "SCRAM-SHA-512";
  EXPECT_EQ(ConnectionSettings(options).at("security.protocol"), "sasl_plaintext");
  options.tls_ca = "/ca.pem";
  EXPECT_EQ(ConnectionSettings(options).at("security.protocol"), "sasl_ssl");
  options.sasl_mechanism.clear();
  EXPECT_EQ(ConnectionSettings(options).at("security.protocol"), "ssl");
}

TEST(KafkaSettings, AskForTokensWhereAProviderIsGiven) {
  KafkaOptions options = Options();
  options.sasl_mechanism = "OAUTHBEARER";
  options.oauth = {.token_url = "https://id/token",
                   .client_id = "billing",
                   .client_secret = "s3cret",
                   .scope = "kafka",
                   .extensions = ""};
  const KafkaSettings settings = ConnectionSettings(options);
  EXPECT_FALSE(settings.contains("sasl.oauthbearer.method"));
  EXPECT_EQ(settings.at(kTokenUrl), "https://id/token");
  EXPECT_EQ(settings.at(kClientSecret), "s3cret");
  const auto login = [](const KafkaSettings& of) {
    const auto conf = MakeConf(of);
    std::array<char, 100> text{};
    std::size_t size = text.size();
    if (conf) rd_kafka_conf_get(conf->get(), "sasl.oauthbearer.config", text.data(), &size);
    return std::string(text.data());
  };
  const std::string number = login(settings);
  EXPECT_THAT(number, ::testing::MatchesRegex("[0-9]+")) << "no secret, which debug logs show";
  EXPECT_EQ(login(settings), number);
  options.oauth.client_id = "shop";
  EXPECT_NE(login(ConnectionSettings(options)), number);
  EXPECT_THAT(ExtensionsIn("logicalCluster=lkc-1 , none, a=b=c"),
              ::testing::ElementsAre("logicalCluster", "lkc-1", "a", "b=c"));
}

TEST(KafkaSettings, AskAmazonForTokensOfARegion) {
  KafkaOptions options = Options();
  options.tls = true;
  options.sasl_mechanism = "AWS_MSK_IAM";
  options.sasl_region = "eu-west-1";
  options.librdkafka = {{"log_level", "0"}};
  const KafkaSettings settings = ConnectionSettings(options);
  EXPECT_EQ(settings.at("security.protocol"), "sasl_ssl");
  EXPECT_EQ(settings.at("sasl.mechanism"), "OAUTHBEARER");
  EXPECT_EQ(settings.at(kMskSetting), "eu-west-1");
  EXPECT_FALSE(settings.contains("sasl.oauthbearer.method"));
  EXPECT_TRUE(MakeConf(settings));
}

TEST(KafkaSettings, RefuseWhatWouldBreakTheGuarantee) {
  for (const char* name : {"enable.auto.commit", "isolation.level", "auto.offset.reset",
                           "enable.auto.offset.store", "partition.assignment.strategy",
                           "group.protocol", "allow.auto.create.topics", "topic.blacklist"}) {
    KafkaOptions options = Options();
    options.librdkafka[name] = "x";
    const auto checked = CheckKafkaOptions(options);
    ASSERT_FALSE(checked) << name;
    EXPECT_EQ(checked.error().code, "bad_config");
    EXPECT_NE(checked.error().Line().find(name), std::string::npos);
  }
  EXPECT_TRUE(CheckKafkaOptions(Options()));
}

TEST(KafkaSettings, LetNoClientCreateATopic) {
  for (const rd_kafka_type_t type : {RD_KAFKA_CONSUMER, RD_KAFKA_PRODUCER}) {
    auto conf = MakeConf({{"log_level", "0"}});
    ASSERT_TRUE(conf);
    const auto handle = MakeHandle(type, *conf);
    ASSERT_TRUE(handle);
    std::array<char, 16> value{};
    std::size_t size = value.size();
    rd_kafka_conf_get(rd_kafka_conf(handle->get()), "allow.auto.create.topics", value.data(),
                      &size);
    EXPECT_STREQ(value.data(), "false");
  }
}

TEST(KafkaSettings, RefuseTopicsThatCannotBeRead) {
  KafkaOptions options = Options();
  for (const std::vector<std::string>& topics : std::vector<std::vector<std::string>>{
           {}, {""}, {"^orders("}, {"^orders.*", "__consumer_offsets"}}) {
    options.topics = topics;
    ASSERT_FALSE(CheckKafkaOptions(options)) << ::testing::PrintToString(topics);
    EXPECT_EQ(CheckKafkaOptions(options).error().code, "bad_config");
  }
  options.topics = {"^orders.*", "returns"};
  EXPECT_TRUE(CheckKafkaOptions(options));
}

TEST(KafkaSettings, KeepInternalTopicsFromPatterns) {
  KafkaOptions options = Options();
  EXPECT_FALSE(ConsumerSettings(options, "w").contains("topic.blacklist"));
  options.topics = {"^.*"};
  EXPECT_EQ(ConsumerSettings(options, "w").at("topic.blacklist"), "^__");
}

TEST(KafkaSettings, NeverPrintAPassword) {
  const auto conf = MakeConf({{"sasl.password", "hunter2"}, {"nonsense", "hunter2"}});
  ASSERT_FALSE(conf);
  EXPECT_EQ(conf.error().Line().find("hunter2"), std::string::npos);
}

TEST(KafkaErrors, MeanTheEndOnlyWhereRecordsWouldBePassedOver) {
  EXPECT_EQ(MeaningOf(RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET), Meaning::kOutOfRange);
  EXPECT_EQ(MeaningOf(RD_KAFKA_RESP_ERR__BAD_COMPRESSION), Meaning::kUnreadable);
  EXPECT_EQ(MeaningOf(RD_KAFKA_RESP_ERR__TRANSPORT), Meaning::kTransient);
  EXPECT_EQ(MeaningOf(RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN), Meaning::kBrokersAway);
  EXPECT_EQ(MeaningOf(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART), Meaning::kTopicMissing);
  EXPECT_EQ(MeaningOf(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED), Meaning::kForbidden);
  EXPECT_EQ(MeaningOf(RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL), Meaning::kNotJoined);
}

TEST(KafkaErrors, OfALoginBySCRAMNameTheBrokersThatThisClientCannotLogInAt) {
  constexpr auto kLogin = RD_KAFKA_RESP_ERR__AUTHENTICATION;
  const auto by = [](const char* mechanism) {
    ClusterOptions cluster;
    cluster.sasl_mechanism = mechanism;
    return cluster;
  };
  EXPECT_NE(LoginHint(kLogin, by("SCRAM-SHA-512"), 0x020002ff).find("Kafka 4"), std::string::npos);
  EXPECT_EQ(LoginHint(kLogin, by("SCRAM-SHA-512"), 0x020601ff), "");
  EXPECT_EQ(LoginHint(kLogin, by("PLAIN"), 0x020002ff), "");
  ClusterOptions away = by("PLAIN");
  away.sasl_password = Secret::OfFile("/none");
  EXPECT_EQ(LoginHint(kLogin, away, 0x020002ff),
            " (kafka.sasl.password: the file /none: No such file or directory)");
  EXPECT_EQ(LoginHint(RD_KAFKA_RESP_ERR__TRANSPORT, by("SCRAM-SHA-512"), 0x020002ff), "");
}

}  // namespace
}  // namespace fencepost::consumer
