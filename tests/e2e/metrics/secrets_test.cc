// Passwords in every place, servers that refuse them: nothing that the worker says has one.
#include <gmock/gmock.h>

#include "tests/e2e/metrics/metrics_test.h"

namespace fencepost::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

class Secrets : public MetricsTest {
 protected:
  Secrets() : nodes_(3, {.config = {"requirepass another"}}) {}
  RedisServers nodes_;
};

TEST_F(Secrets, AreInNothingThatAWorkerSays) {
  const std::string yaml = fmt::format(
      "version: 1\nname: {0}\nguarantee: exactly-once\n"
      "kafka:\n  brokers: [{1}]\n  topics: [{0}]\n  start_from: earliest\n"
      "  sasl: {{mechanism: PLAIN, username: shown, password: s3cret-sasl}}\n"
      "record_id: json:/order_id\n"
      "lock: {{redis: {{nodes: [\"redis://u:s3cret-url@{2}\", \"{3}\", \"{4}\"], username: shown,"
      " password: s3cret-redis}}}}\n"
      "handler:\n  http: {{url: \"http://u:s3cret-http@127.0.0.1:{5}/\", idempotent: true,"
      " headers: {{Authorization: \"Bearer s3cret-header\"}}}}\n"
      "output:\n  postgres:\n    dsn: postgresql://app:s3cret-dsn@127.0.0.1:{5}/none\n"
      "    table: effects\n    columns: {{order_id: json:/order_id}}\n"
      "observe: {{log: {{level: debug}}}}\n",
      name_, Kafka().bootstrap(), nodes_[0].address(), nodes_[1].address(), nodes_[2].address(),
      FreePort());
  WorkerProcess worker({.binary = FENCEPOST_BINARY,
                        .files = {folder_.Write("secrets.yaml", yaml)},
                        .name = "worker-1"});
  EXPECT_TRUE(WaitUntil(
      60s,
      [&] {
        const std::string log = worker.Log();
        return log.find("WRONGPASS") != std::string::npos &&
               log.find("output_unavailable") != std::string::npos;
      },
      "the servers to refuse"))
      << worker.Log();
  std::string said = worker.Get("/").body + worker.Get("/status").body +
                     worker.Get("/metrics").body + worker.Get("/ready").body;
  EXPECT_THAT(said, HasSubstr("shown")) << "the settings are there";
  EXPECT_TRUE(worker.Stop(40s));
  said += worker.Log() + worker.Output();
  EXPECT_THAT(said, Not(HasSubstr("s3cret")));
}

}  // namespace
}  // namespace fencepost::testing
