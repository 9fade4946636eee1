// The rights in Kafka that deploy/operations/kafka.md lists are enough, for workers and commands.
#include "tests/e2e/cli_tools/tools_test.h"

namespace fencepost::testing {
namespace {

using ::testing::HasSubstr;
using Right = KafkaAdmin::Right;

class Rights : public ToolsTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(Rights, InKafkaAreThoseOfTheManual) {
  KafkaBroker broker(
      {.config = {{"authorizer.class.name",
                   "org.apache.kafka.metadata.authorizer.StandardAuthorizer"},
                  {"super.users", "User:ANONYMOUS"}},  // of the listeners without a password
       .sasl_user = "app",
       .sasl_password = "secret"});
  PipelineText text = ToolsText();
  broker.CreateTopic(name_, 1);
  broker.CreateTopic(dead_, 1);
  broker.admin().Allow("User:app", Right::kRead, name_);
  broker.admin().AllowGroup("User:app", name_);
  broker.admin().Allow("User:app", Right::kWrite, dead_);
  broker.admin().Allow("User:app", Right::kDescribe, dead_);
  text.brokers = broker.sasl_bootstrap();
  text.start_from += "\n  sasl: {mechanism: PLAIN, username: app, password: secret}";
  text.record_id = GetParam();
  Use(text);
  const auto produce = [&] {
    TestProducer producer(broker.bootstrap());
    producer.Send(name_, 0, "k", R"({"order_id":"x","amount":"no number"})");
    for (int i = 0; i < 50; ++i) producer.Send(name_, 0, "k", Orders::Value(i));
    producer.Flush();
  };
  for (int round = 1; round <= 2; ++round) {
    produce();
    WorkerProcess worker({.files = {file_}, .name = "worker-1"});
    EXPECT_TRUE(WaitUntil(std::chrono::seconds(60), "all to be committed", [&] {
      return CommittedToTheEnd(broker, name_, name_);
    })) << worker.Log();
    EXPECT_EQ(worker.Stop(), 0) << worker.Log();
    EXPECT_EQ(ReadTopic(broker.bootstrap(), dead_).size(), static_cast<std::size_t>(round));
  }
  EXPECT_THAT(Tool({"explain"}, {name_, "0", "1"}).output, HasSubstr("Done: its effect was"));
  const Finished forgotten =
      Tool({"forget"}, {"--topic", name_, "--partition", "0", "--from", "1", "--to", "2"});
  EXPECT_EQ(forgotten.exit_code, 0) << forgotten.error_output;
  EXPECT_THAT(Tool({"dlq", "list"}).error_output, HasSubstr("grant READ and DESCRIBE"));
  broker.admin().Allow("User:app", Right::kRead, dead_);
  EXPECT_THAT(Tool({"dlq", "list"}).output, HasSubstr("2 dead letters in "));
}

INSTANTIATE_TEST_SUITE_P(Ids, Rights, ::testing::Values("position", "json:/order_id"),
                         [](const auto& each) {
                           return std::string(each.index == 0 ? "ByPosition" : "ById");
                         });

}  // namespace
}  // namespace fencepost::testing
