// Which changes of a file a running worker takes up, and what is said of the others.
#include "consumer/cli/run/reload.h"

#include <gtest/gtest.h>

namespace fencepost::cli {
namespace {

using consumer::PipelineOptions;

PipelineOptions Shown(std::vector<std::pair<std::string, std::string>> settings) {
  PipelineOptions options;
  options.shown = std::move(settings);
  return options;
}

TEST(Reload, AppliesRetriesConcurrencyRateAndLogLevel) {
  PipelineOptions before = Shown({{"retry.attempts", "3"},
                                  {"retry.never", "4xx"},
                                  {"processing.concurrency", "64"},
                                  {"handler.http.rate_limit", "5"}});
  before.handler.kind = consumer::HttpHandlerOptions();
  const Changes changes = ChangesOf(before, Shown({{"retry.attempts", "5"},
                                                   {"processing.concurrency", "8"},
                                                   {"handler.http.rate_limit", "7"},
                                                   {"observe.log.level", "debug"}}));
  EXPECT_EQ(changes.Text(),
            "handler.http.rate_limit, observe.log.level, processing.concurrency, retry.attempts, "
            "retry.never are applied");
}

TEST(Reload, OfConcurrencyNeedsARestartWhereProcessesOrThreadsWereStarted) {
  PipelineOptions before = Shown({{"processing.concurrency", "64"}});
  before.handler.kind = consumer::ExecHandlerOptions();
  EXPECT_EQ(ChangesOf(before, Shown({{"processing.concurrency", "8"}})).Text(),
            "processing.concurrency needs a restart");
}

TEST(Reload, NamesWhatNeedsARestart) {
  const Changes changes =
      ChangesOf(Shown({{"name", "a"}, {"retry.attempts", "3"}, {"lock.ttl", "30s"}}),
                Shown({{"name", "b"}, {"retry.attempts", "4"}}));
  EXPECT_EQ(changes.Text(), "retry.attempts is applied; lock.ttl, name need a restart");
}

TEST(Reload, ComparesSecretsAndDoesNotTellThem) {
  PipelineOptions before = Shown({{"kafka.sasl.password", "(not shown)"}});
  PipelineOptions after = before;
  after.kafka.sasl_password = "new";
  EXPECT_EQ(ChangesOf(before, after).Text(), "a secret needs a restart");
  after = before;
  after.kafka.oauth.client_secret = "new";
  EXPECT_EQ(ChangesOf(before, after).Text(), "a secret needs a restart");
  after = before;
  after.observe.control_token = "new";
  EXPECT_EQ(ChangesOf(before, after).Text(), "a secret needs a restart");
  after = before;
  consumer::KafkaOutputOptions kafka;
  before.output = kafka;
  kafka.encode.registry.password = "new";
  after.output = kafka;
  EXPECT_EQ(ChangesOf(before, after).Text(), "a secret needs a restart");
  EXPECT_EQ(ChangesOf(before, before).Text(), "nothing has changed");
  before.output = consumer::PostgresOptions{.dsn = "host=db", .password = "old"};
  after.output = consumer::PostgresOptions{.dsn = "host=db", .password = "new"};
  EXPECT_EQ(ChangesOf(before, after).Text(), "a secret needs a restart");
}

}  // namespace
}  // namespace fencepost::cli
