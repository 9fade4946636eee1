// Passwords in every place, servers that take them and servers that refuse them: nothing that the
// worker says has one.
#include <gmock/gmock.h>

#include "tests/e2e/metrics/metrics_test.h"
#include "tests/support/postgres_login.h"

namespace fencepost::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// Every secret of these tests has this in it; as curl sends "u:s3cret-http", it is the other.
constexpr const char* kSecret = "s3cret";
constexpr const char* kEncoded = "dTpzM2NyZXQtaHR0cA";

class Secrets : public MetricsTest {
 protected:
  struct Places {
    std::string redis_password;
    std::string redis_url_password;
    std::string sasl_password;
    std::string url;  // of the handler, without the scheme
    std::string dsn;
    std::string log;
  };

  static KafkaBroker& Broker() {
    static KafkaBroker broker(
        KafkaBrokerOptions{.sasl_user = "shown", .sasl_password = "s3cret-sasl"});
    return broker;
  }

  Secrets() : nodes_(3, {.config = {"user shown on >s3cret-redis ~* &* +@all"}}) {
    InitLocks(nodes_, "30s");
    for (std::size_t node = 0; node < 3; ++node) {
      nodes_[node].Command({"ACL", "SETUSER", "u", "on", ">s3cret-url", "~*", "+@all"});
    }
    Broker().CreateTopic(name_, 1);
    Broker().CreateTopic(DeadTopic(), 1);
  }

  WorkerOptions SecretWorker(const std::string& worker, const Places& places) {
    const std::string yaml = fmt::format(
        "version: 1\nname: {0}\nguarantee: exactly-once\n"
        "kafka:\n  brokers: [{1}]\n  topics: [{0}]\n  start_from: earliest\n"
        "  sasl: {{mechanism: PLAIN, username: shown, password: {6}}}\n"
        "record_id: json:/order_id\n"
        "lock: {{redis: {{nodes: [\"redis://u:{11}@{2}\", \"{3}\", \"{4}\"],"
        " username: shown, password: {5}}}}}\n"
        "handler:\n  http: {{url: \"http://u:s3cret-http@{7}\", idempotent: true,"
        " headers: {{X-Api-Key: s3cret-header}}}}\n"
        "dead_letter: {{topic: {8}}}\n"
        "output:\n  postgres:\n    dsn: {9}\n"
        "    table: effects\n    columns: {{order_id: json:/order_id, amount: json:/amount}}\n"
        "observe: {{log: {{level: debug, format: {10}}}, traces: {{endpoint: \"{12}\", sample: 1,"
        " headers: {{X-Otel: s3cret-collector}}}}}}\n",
        name_, Broker().sasl_bootstrap(), nodes_[0].address(), nodes_[1].address(),
        nodes_[2].address(), places.redis_password, places.sasl_password, places.url, DeadTopic(),
        places.dsn, places.log, places.redis_url_password, collector_.Url(""));
    return {.files = {folder_.Write(worker + ".yaml", yaml)}, .name = worker};
  }
  // Its pages and command line now, and after its end all that it has printed and traced.
  void ExpectNoSecretsOf(WorkerProcess& worker) const {
    std::string said = ReadFile(fmt::format("/proc/{}/cmdline", worker.pid()));
    EXPECT_THAT(said, HasSubstr("run"));
    for (const char* path : {"/", "/status", "/metrics", "/ready", "/live"}) {
      said += worker.Get(path).body;
    }
    EXPECT_THAT(said, HasSubstr("shown")) << "the settings are there";
    EXPECT_TRUE(worker.Stop(40s));
    said += worker.Log() + worker.Output();
    for (const auto& request : collector_.requests()) {
      EXPECT_EQ(request.headers.at("x-otel"), "s3cret-collector");
      said += request.body;
    }
    EXPECT_THAT(said, Not(HasSubstr(kSecret)));
    EXPECT_THAT(said, Not(HasSubstr(kEncoded)));
  }

  RedisServers nodes_;
  const StubServer collector_{[](const StubServer::Request&) { return StubServer::Answer(); }};
};

TEST_F(Secrets, AreInNothingThatAWorkerSaysWhenServersRefuseThem) {
  for (const std::string log : {"json", "text"}) {
    const std::string away = fmt::format("127.0.0.1:{}", FreePort());
    WorkerProcess worker(SecretWorker(log, {.redis_password = "s3cret-wrong",
                                            .redis_url_password = "s3cret-wrong",
                                            .sasl_password = "s3cret-wrong",
                                            .url = away + "/",
                                            .dsn = "postgresql://app:s3cret-dsn@" + away + "/none",
                                            .log = log}));
    EXPECT_TRUE(WaitUntil(
        60s,
        [&] {
          const std::string told = worker.Log();
          return told.find("WRONGPASS") != std::string::npos &&
                 told.find("output_unavailable") != std::string::npos &&
                 told.find("uthentication failed") != std::string::npos;
        },
        "the servers to refuse"))
        << worker.Log();
    EXPECT_EQ(worker.Log().find("\"event\":") != std::string::npos, log == "json");
    ExpectNoSecretsOf(worker);
  }
}

TEST_F(Secrets, AreInNothingThatAWorkerSaysWhenTheyAreUsed) {
  Answers("o-1", {503, 200});
  Answers("o-2", {404});
  const std::string url = service_.Url("/charge");
  std::string dsn = table_->dsn();
  dsn.insert(dsn.find('@'), ":s3cret-dsn");
  WorkerProcess worker(SecretWorker("text", {.redis_password = "s3cret-redis",
                                             .redis_url_password = "s3cret-url",
                                             .sasl_password = "s3cret-sasl",
                                             .url = url.substr(url.find("://") + 3),
                                             .dsn = dsn,
                                             .log = "text"}));
  TestProducer producer(Broker().bootstrap());
  for (const char* id : {"o-1", "o-2"}) {
    producer.Send(name_, 0, id, fmt::format(R"({{"order_id":"{}","amount":5}})", id));
  }
  producer.Flush();
  ExpectMoves(worker, "records_processed_total", {{"result", "dead_lettered"}});
  ExpectMoves(worker, "records_processed_total", {{"result", "done"}});
  ASSERT_GE(service_.requests().size(), 3u) << worker.Log();
  for (const auto& request : service_.requests()) {
    EXPECT_EQ(request.headers.at("x-api-key"), "s3cret-header");
    EXPECT_THAT(request.headers.at("authorization"), HasSubstr(kEncoded));
  }
  EXPECT_THAT(worker.Log(), HasSubstr("handler_failed"));
  ExpectNoSecretsOf(worker);
  EXPECT_FALSE(collector_.requests().empty());
  for (const TestRecord& letter : ReadTopic(Broker().bootstrap(), DeadTopic())) {
    for (const auto& [name, value] : letter.headers) {
      EXPECT_THAT(value.value_or(""), Not(HasSubstr(kSecret))) << name;
    }
  }
}

// A password that comes from a file, refused and taken, and the last words of a worker that ends by
// itself.
TEST_F(Secrets, OfADatabaseAreInNothingThatAWorkerSaysNorInItsLastWords) {
  PostgresServer server;
  const EffectsTable table(server, "shop");
  server.Exec("CREATE ROLE shown SUPERUSER LOGIN PASSWORD 's3cret-right'");
  DemandPasswords(server);
  const std::string url = service_.Url("/charge");
  Places places{.redis_password = "s3cret-redis",
                .redis_url_password = "s3cret-url",
                .sasl_password = "s3cret-sasl",
                .url = url.substr(url.find("://") + 3),
                .dsn = "",
                .log = "text"};
  const auto dsn = [&](const std::string& password) {
    return fmt::format(
        "host=127.0.0.1 port={} dbname=shop user=shown sslpassword=s3cret-ssl passfile={}",
        server.port(), Passfile(folder_, password));
  };
  {
    places.dsn = dsn("s3cret-wrong");
    WorkerProcess worker(SecretWorker("refused", places));
    EXPECT_TRUE(WaitUntil(
        60s,
        [&] {
          return worker.Readiness().find("password authentication failed") != std::string::npos;
        },
        "the database to refuse the login"))
        << worker.Log();
    ExpectNoSecretsOf(worker);
  }
  places.dsn = dsn("s3cret-right");
  WorkerProcess worker(SecretWorker("taken", places));
  TestProducer producer(Broker().bootstrap());
  const auto send = [&](const std::string& id) {
    producer.Send(name_, 0, id, fmt::format(R"({{"order_id":"{}","amount":5}})", id));
    producer.Flush();
  };
  send("o-1");
  ExpectMoves(worker, "records_processed_total", {{"result", "done"}});
  EXPECT_EQ(table.Count(), 1);
  table.Exec("ALTER TABLE fencepost_ledger RENAME TO elsewhere");
  send("o-2");
  ASSERT_EQ(worker.Wait(60s), 1) << worker.Log();
  EXPECT_THAT(worker.ErrorLines(), Contains(HasSubstr("fencepost_ledger")));
  EXPECT_THAT(worker.Log() + worker.Output(), Not(HasSubstr(kSecret)));
}

}  // namespace
}  // namespace fencepost::testing
