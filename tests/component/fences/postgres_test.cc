// deploy/postgres/fence.sql
#include <libpq-fe.h>

#include <atomic>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/component/fences/holder.h"
#include "tests/support/paths.h"

namespace fencepost::fences {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using testing::PostgresServer;

std::string FenceSql() {
  return testing::ReadFile(testing::SourcePath("deploy/postgres/fence.sql"));
}

// One connection, so that a transaction can stay open between two statements of a test.
class Session {
 public:
  explicit Session(const std::string& dsn) : connection_(PQconnectdb(dsn.c_str()), &PQfinish) {
    if (PQstatus(connection_.get()) != CONNECTION_OK) {
      throw std::runtime_error(PQerrorMessage(connection_.get()));
    }
  }
  // The SQLSTATE of what went wrong; "" when nothing did.
  std::string Run(const std::string& sql) {
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(
        PQexec(connection_.get(), sql.c_str()), &PQclear);
    const char* state = PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
    value_ = PQntuples(result.get()) > 0 ? PQgetvalue(result.get(), 0, 0) : "";
    message_ = PQresultErrorMessage(result.get());
    return state == nullptr ? "" : state;
  }
  std::string Admit(const std::string& resource, const std::string& token) {
    return Run(fmt::format("SELECT fencepost_admit('{}', {})", resource, token));
  }
  [[nodiscard]] const std::string& value() const { return value_; }
  [[nodiscard]] const std::string& message() const { return message_; }
  [[nodiscard]] int pid() const { return PQbackendPID(connection_.get()); }

 private:
  std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
  std::string value_;
  std::string message_;
};

PostgresServer& Server() {
  static PostgresServer server;
  return server;
}

// A database of its own for each test.
template <typename Base>
class WithDatabase : public Base {
 protected:
  WithDatabase() {
    static int number = 0;
    database_ = fmt::format("{}_{}", std::is_same_v<Base, HolderTest> ? "held" : "fence", ++number);
    Server().Exec("CREATE DATABASE " + database_);
    Server().Exec(FenceSql(), database_);
    Server().Exec("CREATE TABLE account (id int PRIMARY KEY, owner text)", database_);
    Server().Exec("INSERT INTO account VALUES (7, 'nobody')", database_);
  }
  std::string Value(const std::string& sql) { return Server().Value(sql, database_); }
  std::string database_;
};

class PostgresFence : public WithDatabase<::testing::Test> {
 protected:
  Session Open(const std::string& user = "postgres") {
    return Session(Server().dsn(database_, user));
  }
  // Until that session waits for a lock.
  void AwaitWaiting(int pid) {
    testing::RequireWithin(seconds(20), "the other transaction to wait", [&] {
      return Value(fmt::format("SELECT wait_event_type FROM pg_stat_activity WHERE pid = {}",
                               pid)) == "Lock";
    });
  }
};
class FrozenPostgresHolder : public WithDatabase<HolderTest> {};

TEST_F(FrozenPostgresHolder, IsRefusedWhenItWritesAfterTheNextOne) {
  const auto write = [&](const std::string& owner) {
    return fmt::format(
        "psql -X -q -v ON_ERROR_STOP=1 -v VERBOSITY=verbose '{}' <<END\n"
        "BEGIN;\n"
        "SELECT fencepost_admit('account-7', $FENCEPOST_TOKEN);\n"
        "UPDATE account SET owner = '{}' WHERE id = 7;\n"
        "COMMIT;\n"
        "END\n",
        Server().dsn(database_), owner);
  };
  const Late late = WriteLate(write("frozen"), write("next"));
  EXPECT_NE(late.code, 0);
  EXPECT_THAT(late.holder->Said(), HasSubstr("ZF001"));
  EXPECT_THAT(late.holder->Said(), HasSubstr(late.winner + " was admitted"));
  EXPECT_EQ(Value("SELECT owner FROM account"), "next");
}

TEST_F(PostgresFence, AdmitsEqualAndHigherTokensAndRaisesForLowerOnes) {
  Session session = Open();
  EXPECT_EQ(session.Admit("a", "9007199254740993"), "");
  EXPECT_EQ(session.value(), "t");
  EXPECT_EQ(session.Admit("a", "9007199254740993"), "");
  EXPECT_EQ(session.Admit("a", "9007199254740992"), "ZF001");
  EXPECT_THAT(session.message(), HasSubstr("9007199254740993 was admitted"));
  EXPECT_EQ(session.Admit("a", "9223372036854775807"), "");
  EXPECT_EQ(session.Admit("b", "1"), "");
  EXPECT_EQ(Value("SELECT count(*) FROM fencepost_fence"), "2");
}

TEST_F(PostgresFence, RefusesWhatIsNoToken) {
  Session session = Open();
  for (const char* token : {"0", "-1", "NULL"}) EXPECT_EQ(session.Admit("a", token), "22023");
  EXPECT_EQ(session.Run("SELECT fencepost_admit(NULL, 5)"), "22023");
  EXPECT_EQ(Value("SELECT count(*) FROM fencepost_fence"), "0");
}

TEST_F(PostgresFence, ForgetsWhatWasRolledBack) {
  Session session = Open();
  session.Run("BEGIN");
  EXPECT_EQ(session.Admit("a", "9"), "");
  session.Run("ROLLBACK");
  EXPECT_EQ(session.Admit("a", "5"), "");
}

TEST_F(PostgresFence, MakesTransactionsOfAResourceWaitForEachOther) {
  for (const bool first_of_all : {true, false}) {
    Session high = Open();
    Session low = Open();
    const std::string resource = first_of_all ? "new" : "known";
    if (!first_of_all) high.Admit(resource, "1");
    high.Run("BEGIN");
    ASSERT_EQ(high.Admit(resource, "9"), "");
    std::string state = "none";
    std::thread other([&] { state = low.Admit(resource, "8"); });
    AwaitWaiting(low.pid());
    EXPECT_EQ(high.Run("COMMIT"), "");
    other.join();
    EXPECT_EQ(state, "ZF001");
  }
}

TEST_F(PostgresFence, LosesNoUpdateOfManyConcurrentHolders) {
  std::atomic<int> next{0};
  std::atomic<int> admitted{0};
  Server().Exec("UPDATE account SET owner = '0'", database_);
  const auto work = [&] {
    Session session = Open();
    for (int i = 0; i < 50; ++i) {
      session.Run("BEGIN");
      const std::string state = session.Admit("a", std::to_string(++next));
      if (state.empty()) {
        session.Run("SELECT owner::int + 1 FROM account");
        session.Run("UPDATE account SET owner = " + session.value());
        ++admitted;
      } else {
        EXPECT_EQ(state, "ZF001");
      }
      session.Run(state.empty() ? "COMMIT" : "ROLLBACK");
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Value("SELECT owner FROM account"), std::to_string(admitted));
  EXPECT_EQ(Value("SELECT token FROM fencepost_fence"), "200");
}

TEST_F(PostgresFence, IsSafeUnderASnapshotThatIsOlderThanTheFence) {
  Session old = Open();
  ASSERT_EQ(old.Admit("a", "5"), "");
  old.Run("BEGIN ISOLATION LEVEL REPEATABLE READ");
  old.Run("SELECT owner FROM account");
  ASSERT_EQ(Open().Admit("a", "6"), "");
  EXPECT_EQ(old.Admit("a", "5"), "40001");
  old.Run("ROLLBACK");
  EXPECT_EQ(old.Admit("a", "5"), "ZF001");
}

TEST_F(PostgresFence, IsInstalledTwiceWithoutHarmKeepingGrantsAndTokens) {
  Server().Exec("CREATE ROLE app LOGIN", database_);
  Server().Exec("GRANT EXECUTE ON FUNCTION fencepost_admit(text, bigint) TO app", database_);
  ASSERT_EQ(Open("app").Admit("a", "9"), "");
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(Open().Run(FenceSql()), ""); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Open("app").Admit("a", "8"), "ZF001");
  EXPECT_EQ(Open("app").Admit("a", "9"), "");
  Server().Exec("REVOKE ALL ON FUNCTION fencepost_admit(text, bigint) FROM app", database_);
  Server().Exec("DROP ROLE app", database_);
}

TEST_F(PostgresFence, IsOpenOnlyToThoseWhoWereGrantedItAndTheyCannotLowerIt) {
  Server().Exec("CREATE ROLE writer LOGIN", database_);
  Session writer = Open("writer");
  EXPECT_EQ(writer.Admit("a", "9"), "42501");
  Server().Exec("GRANT EXECUTE ON FUNCTION fencepost_admit(text, bigint) TO writer", database_);
  EXPECT_EQ(writer.Admit("a", "9"), "");
  EXPECT_EQ(writer.Run("UPDATE fencepost_fence SET token = 1"), "42501");
  // A table of the caller's own does not stand in for the fence.
  EXPECT_EQ(writer.Run("CREATE TEMP TABLE fencepost_fence (resource text PRIMARY KEY,"
                       " token bigint, admitted_at timestamptz)"),
            "");
  writer.Run("SET search_path = pg_temp");
  EXPECT_EQ(writer.Run("SELECT public.fencepost_admit('a', 8)"), "ZF001");
  Server().Exec("REVOKE ALL ON FUNCTION fencepost_admit(text, bigint) FROM writer", database_);
}

TEST_F(PostgresFence, LandsInTheSchemaOfWhoeverInstallsIt) {
  Session owner = Open();
  ASSERT_EQ(owner.Run("CREATE SCHEMA \"Odd one\""), "");
  ASSERT_EQ(owner.Run("SET search_path = \"Odd one\""), "");
  ASSERT_EQ(owner.Run(FenceSql()), "") << owner.message();
  EXPECT_EQ(Open().Run("SELECT \"Odd one\".fencepost_admit('a', 9)"), "");
  EXPECT_EQ(Value("SELECT token FROM \"Odd one\".fencepost_fence"), "9");
  EXPECT_EQ(Value("SELECT count(*) FROM public.fencepost_fence"), "0");
}

}  // namespace
}  // namespace fencepost::fences
