// PgBouncer between the worker and PostgreSQL: a session of its own is needed.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "tests/component/outputs/postgres_fixture.h"
#include "tests/support/process.h"

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using enum WriteResult;

// From 1.21 on it gives a session the statements that were prepared on another one, unless it is
// told not to; older ones do not know the setting.
std::string NoPreparedStatements() {
  const std::string version =
      testing::RunToEnd({.argv = {"/usr/sbin/pgbouncer", "--version"}}).output;
  int major = 0, minor = 0;
  EXPECT_EQ(std::sscanf(version.c_str(), "PgBouncer %d.%d", &major, &minor), 2) << version;
  return major > 1 || minor >= 21 ? "max_prepared_statements = 0\n" : "";
}

class PgBouncer : public PostgresTest {
 protected:
  // So many server connections for all clients.
  void Start(const std::string& mode, int size) {
    port_ = testing::FreePort();
    folder_.Write("pgbouncer.ini",
                  fmt::format("[databases]\n* = host=127.0.0.1 port={} user=postgres\n[pgbouncer]\n"
                              "listen_addr = 127.0.0.1\nlisten_port = {}\nunix_socket_dir =\n"
                              "auth_type = any\npool_mode = {}\ndefault_pool_size = {}\n"
                              "ignore_startup_parameters = extra_float_digits\n{}",
                              Server().port(), port_, mode, size, NoPreparedStatements()));
    testing::ProcessOptions bouncer;
    bouncer.argv = {"/usr/sbin/pgbouncer", folder_.File("pgbouncer.ini")};
    if (geteuid() == 0) bouncer.user = "postgres";  // it refuses to run as root
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
    process_.emplace(std::move(bouncer));
  }
  [[nodiscard]] std::unique_ptr<Output> Through(const std::string& worker) const {
    PostgresOptions options = Options();
    options.dsn = DsnAt(port_);
    return Open(options, worker);
  }

  testing::TempDir folder_;
  int port_ = 0;
  std::optional<testing::Process> process_;
};

TEST_F(PgBouncer, InTransactionModeIsRefusedWithItsNameAndNoRecordIsBlamed) {
  Start("transaction", 1);
  const auto first = Through("worker-1");
  ASSERT_TRUE(testing::WaitUntil(20s, "PgBouncer", [&] { return first->Prepare().has_value(); }));
  const auto second = Through("worker-2");  // on the same session
  const Batch batch{{.id = "a", .offset = 1}};
  const OutputError refused = Failure(*second, batch);
  EXPECT_EQ(refused.failure, WriteFailure::kUnavailable);
  EXPECT_THAT(refused.error.hint, HasSubstr("PgBouncer in transaction mode"));
}

// Two pipelines whose statements take the same parameters, and a pooler that gives the one the
// other's session: by the name of its statement alone it would write into the other's table.
TEST_F(PgBouncer, InTransactionModeGivesNoPipelineTheStatementOfAnother) {
  Exec("CREATE TABLE others (order_id text PRIMARY KEY, amount numeric(12,2))");
  Start("transaction", 1);
  PostgresOptions options = Options();
  options.dsn = DsnAt(port_);
  const auto first = Open(options, "worker-1");
  options.table = "others";
  const auto second = Open(options, "worker-2");
  ASSERT_TRUE(testing::WaitUntil(20s, "PgBouncer", [&] { return first->Prepare().has_value(); }));
  (void)second->Prepare();  // in the same session, beside the first one's
  const Batch batch{{.id = "a", .offset = 1}};
  (void)WriteOnce(*second, batch);
  EXPECT_EQ(Value("SELECT count(*) FROM effects"), "0");
}

TEST_F(PgBouncer, InSessionModeWorks) {
  Start("session", 2);
  const auto first = Through("worker-1");
  ASSERT_TRUE(testing::WaitUntil(20s, "PgBouncer", [&] { return first->Prepare().has_value(); }));
  const auto second = Through("worker-2");
  const Batch a{{.id = "a", .offset = 1}, {.id = "b", .offset = 2}};
  const Batch b{{.id = "b", .offset = 3}, {.id = "c", .offset = 4}};
  EXPECT_THAT(Results(*first, a), ElementsAre(kCommitted, kCommitted));
  EXPECT_THAT(Results(*second, b), ElementsAre(kDuplicate, kCommitted));
}

}  // namespace
}  // namespace fencepost::consumer
