// Secrets that are not the dsn's own password: nothing that is said shows them.
#include <unistd.h>

#include <gmock/gmock.h>

#include "tests/component/outputs/batch.h"
#include "tests/support/postgres_login.h"

namespace fencepost::consumer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RunToEnd;

// A server with TLS and passwords.
class PostgresSecrets : public ::testing::Test {
 protected:
  class Server {
   public:
    Server() {
      if (geteuid() == 0) Run({"chown", kUser, folder_.path().string()});
      Run({"openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj",
           "/CN=localhost", "-keyout", folder_.File("key"), "-out", folder_.File("cert")},
          kUser);
      server_ = std::make_unique<testing::PostgresServer>(
          testing::PostgresOptions{.config = {"ssl=on", "ssl_key_file=" + folder_.File("key"),
                                              "ssl_cert_file=" + folder_.File("cert")}});
      testing::DemandPasswords(*server_);
    }
    [[nodiscard]] testing::PostgresServer& operator*() const { return *server_; }

   private:
    static constexpr const char* kUser = "postgres";  // the server's

    testing::TempDir folder_;
    std::unique_ptr<testing::PostgresServer> server_;
  };
  static testing::PostgresServer& Postgres() {
    static const Server server;
    return *server;
  }
  static void Run(std::vector<std::string> words, const std::string& user = "") {
    const auto finished = RunToEnd({.argv = std::move(words), .user = user});
    ASSERT_EQ(finished.exit_code, 0) << finished.output;
  }
  // What is said of a dsn with these settings besides.
  static std::string Refusal(const std::string& settings, const std::string& password = "") {
    const auto prepared =
        MakePostgresOutput({.dsn = fmt::format("host=127.0.0.1 port={} dbname=postgres {}",
                                               Postgres().port(), settings),
                            .password = password,
                            .table = "effects",
                            .columns = OrderColumns()},
                           "orders", "worker-1")
            ->Prepare();
    return prepared ? "" : prepared.error().error.Line();
  }

  testing::TempDir folder_;
};

// The user has the name of the secret, since a server quotes no password.
TEST_F(PostgresSecrets, APasswordFromAFileIsNotShown) {
  Postgres().Exec("CREATE ROLE \"s3cret-file\" LOGIN PASSWORD 'another'");
  const std::string passfile = testing::Passfile(folder_, "s3cret-file");
  EXPECT_THAT(Refusal("user=s3cret-file passfile=" + passfile),
              AllOf(HasSubstr("password authentication failed for user \"***\""),
                    Not(HasSubstr("s3cret"))));
}

TEST_F(PostgresSecrets, ThePasswordOfAClientsKeyIsNotShown) {
  const std::string key = folder_.File("s3cret-key.pem");
  const std::string certificate = folder_.File("client.pem");
  Run({"openssl", "req", "-x509", "-newkey", "rsa:2048", "-passout", "pass:another", "-days", "1",
       "-subj", "/CN=client", "-keyout", key, "-out", certificate});
  EXPECT_THAT(
      Refusal(fmt::format("user=postgres sslmode=require sslcert={} sslkey={} sslpassword={}",
                          certificate, key, "s3cret-key")),
      AllOf(HasSubstr("could not load private key file"), HasSubstr("***.pem"),
            Not(HasSubstr("s3cret"))));
}

TEST_F(PostgresSecrets, APasswordOfItsOwnIsTakenAsItIsAndNotShown) {
  const std::string password = R"(s3cret p@ss/w#r:d\%41"x)";
  Postgres().Exec("CREATE ROLE apart LOGIN PASSWORD '" + password + "'");
  EXPECT_THAT(Refusal("user=apart", password), HasSubstr("effects"));
  EXPECT_THAT(Refusal("user=apart password=another", password), HasSubstr("effects"));
  Postgres().Exec("CREATE ROLE \"s3cret-apart\" LOGIN PASSWORD 'another'");
  EXPECT_THAT(Refusal("user=s3cret-apart", "s3cret-apart"),
              AllOf(HasSubstr("password authentication failed for user \"***\""),
                    Not(HasSubstr("s3cret"))));
}

// Not even its host, which would be looked up in DNS, where a dsn reaches an output unchecked.
TEST_F(PostgresSecrets, APartOfAPasswordIsNoHost) {
  for (const char* dsn : {"postgresql://app:p@S3CRET/w@127.0.0.1/shop",
                          "postgresql://app:12/S3CRET@127.0.0.1/shop"}) {
    const auto prepared =
        MakePostgresOutput({.dsn = dsn, .table = "effects", .columns = OrderColumns()}, "orders",
                           "worker-1")
            ->Prepare();
    ASSERT_FALSE(prepared);
    EXPECT_EQ(prepared.error().error.code, "bad_dsn");
    EXPECT_THAT(prepared.error().error.Line(), Not(HasSubstr("S3CRET")));
  }
}

}  // namespace
}  // namespace fencepost::consumer
