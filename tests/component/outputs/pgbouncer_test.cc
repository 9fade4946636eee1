// PgBouncer between the worker and PostgreSQL: a session of its own is needed.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "tests/component/outputs/postgres_fixture.h"
#include "tests/support/process.h"

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using enum WriteResult;

class PgBouncer : public PostgresTest {
 protected:
  // In transaction mode one server connection for all clients.
  void Start(const std::string& mode) {
    port_ = testing::FreePort();
    folder_.Write("pgbouncer.ini",
                  fmt::format("[databases]\n* = host=127.0.0.1 port={} user=postgres\n[pgbouncer]\n"
                              "listen_addr = 127.0.0.1\nlisten_port = {}\nunix_socket_dir =\n"
                              "auth_type = any\npool_mode = {}\ndefault_pool_size = {}\n"
                              "ignore_startup_parameters = extra_float_digits\n",
                              Server().port(), port_, mode, mode == "session" ? 2 : 1));
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
  Start("transaction");
  const auto first = Through("worker-1");
  ASSERT_TRUE(testing::WaitUntil(
      20s, [&] { return first->Prepare().has_value(); }, "PgBouncer"));
  const auto second = Through("worker-2");  // on the same session
  const Batch batch{{.id = "a", .offset = 1}};
  const auto refused = second->Write({.items = batch.items(), .offsets = {}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().failure, WriteFailure::kUnavailable);
  EXPECT_THAT(refused.error().error.hint, HasSubstr("PgBouncer in transaction mode"));
}

TEST_F(PgBouncer, InSessionModeWorks) {
  Start("session");
  const auto first = Through("worker-1");
  ASSERT_TRUE(testing::WaitUntil(
      20s, [&] { return first->Prepare().has_value(); }, "PgBouncer"));
  const auto second = Through("worker-2");
  const Batch a{{.id = "a", .offset = 1}, {.id = "b", .offset = 2}};
  const Batch b{{.id = "b", .offset = 3}, {.id = "c", .offset = 4}};
  EXPECT_THAT(Results(*first, a), ElementsAre(kCommitted, kCommitted));
  EXPECT_THAT(Results(*second, b), ElementsAre(kDuplicate, kCommitted));
}

}  // namespace
}  // namespace fencepost::consumer
