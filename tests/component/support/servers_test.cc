#include "tests/support/servers.h"

#include <libpq-fe.h>

#include <cstdlib>
#include <ctime>
#include <memory>

#include <gtest/gtest.h>

#include "tests/support/mysql_server.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;

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

TEST(MysqlServer, SaysNothingWhilePausedAndKeepsWhatIsCommittedOverAKill) {
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

}  // namespace
}  // namespace fencepost::testing
