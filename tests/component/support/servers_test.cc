#include "tests/support/servers.h"

#include <libpq-fe.h>

#include <cstdlib>
#include <ctime>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/mysql_server.h"

namespace fencepost::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

TEST(RedisServer, ForgetsOrKeepsItsKeysOverARestartAsAsked) {
  RedisServer redis;
  EXPECT_EQ(redis.Command({"SET", "a", "1"}), "OK");
  redis.Restart(RedisServer::Data::kKeep);
  EXPECT_EQ(redis.Command({"GET", "a"}), "1");
  redis.Restart(RedisServer::Data::kWipe);
  EXPECT_EQ(redis.Command({"GET", "a"}), "(nil)");
}

TEST(RedisServer, KeepsKeysOverACrashWithAnAppendOnlyFile) {
  RedisServer redis({.appendonly = true, .config = {"appendfsync always"}});
  redis.Command({"SET", "a", "1"});
  redis.Kill();
  EXPECT_EQ(redis.Command({"PING"}), "(no connection)");
  redis.Start();
  EXPECT_EQ(redis.Command({"GET", "a"}), "1");
}

TEST(RedisServer, IsSilentWhilePaused) {
  RedisServer redis;
  redis.Pause();
  EXPECT_TRUE(WaitUntil(seconds(5), [&] {
    return ReadFile("/proc/" + std::to_string(redis.pid()) + "/stat").find(") T ") !=
           std::string::npos;
  }));
  redis.Resume();
  EXPECT_EQ(redis.Command({"PING"}), "PONG");
}

TEST(RedisServer, SpeaksOnItsUnixSocketAndEvictsNothing) {
  RedisServer redis;
  EXPECT_TRUE(std::filesystem::is_socket(redis.unix_address().substr(5)));
  EXPECT_EQ(redis.Command({"CONFIG", "GET", "maxmemory-policy"}), "maxmemory-policy\nnoeviction");
}

TEST(RedisServer, JumpsItsClockWhileItRunsAndKeepsItOverARestart) {
  RedisServer redis({.own_clock = true});
  const auto off = [&] {
    const std::string seconds_now = redis.Command({"TIME"});
    return std::stoll(seconds_now) - static_cast<long long>(std::time(nullptr));
  };
  EXPECT_LE(std::abs(off()), 2);
  redis.Command({"SET", "a", "1", "EX", "30"});
  redis.ShiftClock(seconds(60));
  EXPECT_GE(off(), 58);
  EXPECT_EQ(redis.Command({"GET", "a"}), "(nil)");
  redis.Restart(RedisServer::Data::kWipe);
  EXPECT_GE(off(), 58);
  redis.ShiftClock(seconds(-60));
  EXPECT_LE(off(), -58);
}

TEST(RedisServers, AreIndependent) {
  RedisServers five(5);
  EXPECT_EQ(five.addresses().size(), 5U);
  five[0].Command({"SET", "a", "1"});
  EXPECT_EQ(five[4].Command({"GET", "a"}), "(nil)");
  EXPECT_NE(five[0].Command({"INFO", "server"}), five[1].Command({"INFO", "server"}));
}

TEST(PostgresServer, KeepsCommittedRowsOverStopAndCrash) {
  PostgresServer postgres;
  postgres.Exec("create table t(a int, b text); insert into t values (1, null)");
  postgres.Restart();
  EXPECT_EQ(postgres.Value("select a from t"), "1");
  postgres.Exec("insert into t values (2, 'x')");
  postgres.Kill();
  postgres.Start();
  EXPECT_THAT(postgres.Exec("select a, b from t order by a"),
              ElementsAre(ElementsAre("1", std::nullopt), ElementsAre("2", "x")));
  EXPECT_THROW(postgres.Exec("select nonsense"), std::runtime_error);
}

TEST(PostgresServer, IsFrozenWithItsSessionsAndLeavesNoneOfThemBehindWhenItIsKilledThen) {
  PostgresServer postgres;
  const std::unique_ptr<PGconn, decltype(&PQfinish)> session(PQconnectdb(postgres.dsn().c_str()),
                                                             &PQfinish);
  ASSERT_EQ(PQstatus(session.get()), CONNECTION_OK);
  const pid_t backend = PQbackendPID(session.get());
  const auto state = [](pid_t pid) {
    const std::string text = ReadFile("/proc/" + std::to_string(pid) + "/stat");
    return text.empty() ? ' ' : text.at(text.rfind(')') + 2);
  };
  postgres.Pause();
  EXPECT_TRUE(
      WaitUntil(seconds(5), [&] { return state(postgres.pid()) == 'T' && state(backend) == 'T'; }));
  postgres.Resume();
  EXPECT_EQ(postgres.Value("select 1"), "1");
  EXPECT_NE(state(backend), 'T');
  postgres.Pause();
  postgres.Kill();
  EXPECT_TRUE(WaitUntil(seconds(10), [&] { return state(backend) == ' '; }));
  postgres.Start();
  EXPECT_EQ(postgres.Value("select 1"), "1");
}

TEST(MysqlServer, KeepsCommittedRowsOverStopAndCrashAndSaysNothingWhilePaused) {
  MysqlServer mysql;
  mysql.Exec("create database d; create table d.t(a int); insert into d.t values (1)");
  mysql.Restart();
  const auto session = mysql.Open("d");
  session->Exec("start transaction; insert into t values (2)");
  EXPECT_EQ(mysql.Value("select count(*) from t", "d"), "1");
  session->Exec("commit");
  mysql.Pause();
  EXPECT_THROW(mysql.Exec("select 1"), std::runtime_error);
  mysql.Resume();
  EXPECT_EQ(mysql.Value("select count(*) from t", "d"), "2");
  mysql.Pause();
  mysql.Kill();
  EXPECT_THROW(session->Exec("select 1"), std::runtime_error);
  mysql.Start();
  EXPECT_EQ(mysql.Value("select count(*) from t", "d"), "2");
}

class Broker : public ::testing::TestWithParam<std::string> {};

TEST_P(Broker, KeepsRecordsOffsetsAndTransactionsApart) {
  KafkaBroker kafka(GetParam());
  KafkaAdmin& admin = kafka.admin();
  kafka.CreateTopic("orders", 2);
  EXPECT_FALSE(admin.ClusterId().empty());
  EXPECT_EQ(admin.PartitionCount("orders"), 2);
  EXPECT_EQ(admin.PartitionCount("nothing"), 0);  // and does not come into being by asking

  TestProducer producer(kafka.bootstrap());
  TestRecord record;
  record.topic = "orders";
  record.partition = 1;
  record.key = "k";
  record.headers = {{"h", "v"}, {"none", std::nullopt}};
  record.timestamp_ms = 1234567890123;
  producer.Send(record);
  producer.Send("orders", 0, std::nullopt, "value");
  producer.Flush();
  EXPECT_THAT(admin.EndOffsets("orders"), ElementsAre(1, 1));

  TestProducer transactional(kafka.bootstrap(), "tx");
  transactional.Begin();
  transactional.Send("orders", 0, "k", "aborted");
  transactional.Abort();
  transactional.Begin();
  transactional.Send("orders", 0, "k", "committed");
  transactional.Commit();

  const auto seen = ReadTopic(kafka.bootstrap(), "orders");
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[0].value, "value");
  EXPECT_EQ(seen[0].key, std::nullopt);
  EXPECT_EQ(seen[1].value, "committed");
  EXPECT_EQ(seen[2].value, std::nullopt);
  EXPECT_EQ(seen[2].Header("h"), "v");
  EXPECT_EQ(seen[2].timestamp_ms, 1234567890123);
  EXPECT_EQ(ReadTopic(kafka.bootstrap(), "orders", false).size(), 4U);

  EXPECT_THAT(admin.CommittedOffsets("group", "orders"), ElementsAre(-1, -1));
  admin.CommitOffsets("group", "orders", {1, 0});
  EXPECT_THAT(admin.CommittedOffsets("group", "orders"), ElementsAre(1, 0));
  admin.DeleteRecordsBefore("orders", 0, 1);
  EXPECT_THAT(admin.StartOffsets("orders"), ElementsAre(1, 0));
  admin.AddPartitions("orders", 3);
  EXPECT_EQ(admin.PartitionCount("orders"), 3);
  admin.DeleteTopic("orders");
  EXPECT_EQ(admin.PartitionCount("orders"), 0);
}

TEST_P(Broker, ComesBackAtTheSameAddressWithItsRecords) {
  KafkaBroker kafka(GetParam());
  kafka.CreateTopic("orders", 1);
  {
    TestProducer producer(kafka.bootstrap());
    producer.Send("orders", 0, "k", "v");
    producer.Flush();
  }
  kafka.Kill();
  EXPECT_FALSE(kafka.admin().Answers(milliseconds(200)));
  kafka.Start();
  EXPECT_TRUE(WaitUntil(seconds(20), [&] { return kafka.admin().PartitionCount("orders") == 1; }));
  EXPECT_EQ(ReadTopic(kafka.bootstrap(), "orders").size(), 1U);
  kafka.Stop();
}

INSTANTIATE_TEST_SUITE_P(Versions, Broker, ::testing::Values("4.2.0", "3.9.1"),
                         [](const auto& version) {
                           return version.param == "4.2.0" ? "Kafka4" : "Kafka3";
                         });

TEST(MockKafka, TakesRecordsAndCommits) {
  MockKafka kafka;
  kafka.CreateTopic("orders", 2);
  TestProducer producer(kafka.bootstrap());
  producer.Send("orders", 1, "k", "v");
  producer.Flush();
  EXPECT_EQ(ReadTopic(kafka.bootstrap(), "orders").size(), 1U);
  KafkaAdmin admin(kafka.bootstrap());
  EXPECT_THAT(admin.EndOffsets("orders"), ElementsAre(0, 1));
  admin.CommitOffsets("group", "orders", {0, 1});
  EXPECT_THAT(admin.CommittedOffsets("group", "orders"), ElementsAre(0, 1));
}

}  // namespace
}  // namespace fencepost::testing
