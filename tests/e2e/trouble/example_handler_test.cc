// consumer/examples/handler.cc: a handler in C++ in a program of one's own.
#include <gmock/gmock.h>

#include "tests/support/paths.h"
#include "tests/support/pipeline_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;

class ExampleHandler : public PipelineTest {};

TEST_F(ExampleHandler, GreetsEachNameOnceAndStopsOnSigterm) {
  Kafka().CreateTopic("names", 2);
  RedisServers nodes(3);
  InitLocks(nodes, "30s");  // it works with the library's own ttl
  table_->Exec("CREATE TABLE greetings (name text, greeting text)");
  TestProducer producer(Kafka().bootstrap());
  for (int i = 0; i < 100; ++i) {
    producer.Send("names", i % 2, std::nullopt, fmt::format("Ada {}", i % 80));
  }
  producer.Flush();
  Process example({.argv = {testing::FencepostBinary() + "_example_handler", Kafka().bootstrap(),
                            "names", nodes.list(), table_->dsn()}});
  EXPECT_TRUE(WaitUntil(seconds(30), "all names to be greeted", [&] {
    return CommittedToTheEnd(Kafka(), "greetings", "names");
  })) << example.Output();
  example.Kill(SIGTERM);
  EXPECT_EQ(example.Wait(seconds(10)), 0) << example.Output();
  EXPECT_EQ(table_->Value("SELECT count(*) || ' of ' || count(DISTINCT name) FROM greetings"
                          " WHERE greeting = 'Hello, ' || name AND name LIKE 'Ada %'"),
            "80 of 80");
  EXPECT_EQ(table_->Value("SELECT count(*) FROM greetings"), "80");
}

}  // namespace
}  // namespace fencepost::testing
