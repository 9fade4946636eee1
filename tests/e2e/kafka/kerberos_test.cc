// Workers that log in by Kerberos: a real KDC, and a real broker that lets only its principals in.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/kafka_broker.h"
#include "tests/support/kdc.h"
#include "tests/support/pipeline_servers.h"
#include "tests/support/sqlite_file.h"
#include "tests/support/worker_process.h"

namespace fencepost::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

struct Realm {
  Kdc kdc{20s};
  KafkaBroker broker{Options()};

  KafkaBrokerOptions Options() {
    const std::string keytab = kdc.Keytab("kafka/127.0.0.1");
    return {.config = {{"sasl.enabled.mechanisms", "GSSAPI"},
                       {"sasl.kerberos.service.name", "kafka"},
                       {"listener.name.sasl_plaintext.gssapi.sasl.jaas.config",
                        fmt::format("com.sun.security.auth.module.Krb5LoginModule required "
                                    "useKeyTab=true storeKey=true isInitiator=false "
                                    "principal=\"kafka/127.0.0.1\" keyTab=\"{}\";",
                                    keytab)}},
            .sasl_user = "nobody",
            .sasl_password = "n",
            .java_options = {"-Djava.security.krb5.conf=" + kdc.krb5_conf()}};
  }
};

class Kerberos : public ::testing::Test {
 protected:
  void SetUp() override {
    realm->broker.CreateTopic(name, 1);
    realm->broker.CreateTopic(name + ".dead", 1);
  }
  [[nodiscard]] std::string File(const std::string& keytab) const {
    return folder.Write(
        "p.yaml", fmt::format("version: 1\nname: {0}\nguarantee: exactly-once\n"
                              "kafka:\n"
                              "  brokers: [\"{1}\"]\n"
                              "  topics: [{0}]\n"
                              "  start_from: earliest\n"
                              "  sasl: {{mechanism: GSSAPI, kerberos: {{keytab: \"{2}\"}}}}\n"
                              "record_id: json:/order_id\n"
                              "lock: {{redis: {{nodes: [\"{3}\"]}}}}\n"
                              "dead_letter: {{topic: {0}.dead}}\n"
                              "output:\n  sqlite:\n    path: {4}\n    table: effects\n"
                              "    columns: {{order_id: json:/order_id, amount: json:/amount}}\n",
                              name, realm->broker.sasl_bootstrap(), keytab, redis.address(),
                              table.sqlite_path()));
  }
  [[nodiscard]] std::map<std::string, std::string> Env() const {
    return {{"KRB5_CONFIG", realm->kdc.krb5_conf()}};
  }
  [[nodiscard]] WorkerOptions Worker(const std::string& keytab) const {
    return {.files = {File(keytab)}, .name = "worker-1", .env = Env()};
  }
  void Send(const std::string& value) const {
    TestProducer producer(realm->broker.bootstrap());
    producer.Send(name, 0, "k", value);
    producer.Flush();
  }
  void ExpectEffects(const WorkerProcess& worker, int rows) const {
    EXPECT_TRUE(
        WaitUntil(60s, fmt::format("{} effects", rows), [&] { return table.Count() == rows; }))
        << worker.Readiness() << worker.Log();
  }

  // Started once a program.
  Realm* const realm = [] {
    static Realm one;
    return &one;
  }();
  const std::string name = [] {
    static int number = 0;
    return fmt::format("kerberos-{}", ++number);
  }();
  TempDir folder;
  RedisServer redis;
  SqliteFiles files{folder.path().string()};
  EffectsTable table{files, name};
};

TEST_F(Kerberos, LetsEveryKindOfClientIn) {
  const std::string keytab = realm->kdc.Keytab("worker");
  WorkerProcess worker(Worker(keytab));
  Send(Orders::Value(0));
  Send("no JSON");
  Send(Orders::Value(1));
  ExpectEffects(worker, 2);
  EXPECT_TRUE(WaitUntil(60s, "the offsets to be committed", [&] {
    return CommittedToTheEnd(realm->broker, name, name);
  })) << worker.Log();
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  const Finished letters = RunFencepost({"dlq", "list", File(keytab)}, Env());
  EXPECT_THAT(letters.output, HasSubstr("bad_record")) << letters.error_output;
}

TEST_F(Kerberos, IsWaitedForUntilTheKeytabIsTheRightOne) {
  const std::string old = realm->kdc.Keytab("worker");
  const std::string right = realm->kdc.Keytab("worker");
  const std::string keytab = folder.File("worker.keytab");
  for (const auto& wrong : {old, std::string()}) {
    SCOPED_TRACE(wrong.empty() ? "no file" : "an old key");
    std::filesystem::remove(keytab);
    if (!wrong.empty()) std::filesystem::copy_file(wrong, keytab);
    WorkerProcess worker(Worker(keytab));
    ExpectSays(worker, "Failed to initialize SASL authentication");
    std::filesystem::copy_file(right, keytab, std::filesystem::copy_options::overwrite_existing);
    ExpectReady(worker);
    EXPECT_EQ(worker.ErrorLines(), std::vector<std::string>());
    EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  }
}

TEST_F(Kerberos, IsRenewedBeforeItsTicketEnds) {
  const std::string keytab = realm->kdc.Keytab("worker");
  WorkerProcess worker(Worker(keytab));
  ExpectReady(worker);
  const std::string own = folder.File("own");
  const Finished taken =
      RunToEnd({.argv = {"kinit", "-c", own, "-k", "-t", keytab, "worker"}, .env = Env()});
  ASSERT_EQ(taken.exit_code, 0) << taken.output;
  ASSERT_TRUE(WaitUntil(60s, "a ticket of the same age to end", [&] {
    return RunToEnd({.argv = {"klist", "-s", own}, .env = Env()}).exit_code != 0;
  }));
  realm->broker.Kill();
  realm->broker.Start();
  Send(Orders::Value(0));
  ExpectEffects(worker, 1);
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
}

}  // namespace
}  // namespace fencepost::testing
