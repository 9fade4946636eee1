// Passwords that hold what ends a password in an address: no part of one is taken for a host, and
// none is shown.
#include <map>

#include <gmock/gmock.h>

#include <fmt/format.h>

#include "consumer/outputs/postgres/postgres_dsn.h"
#include "tests/unit/config/pipeline_text.h"

namespace fencepost::config {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kPiece = "S3CRET";  // of every password
constexpr const char* kPasswords[] = {
    "plainS3CRET", "p@S3CRETss/w#rd", "a:bS3CRET@c", "S3CRET/x",        "12/S3CRET",
    "12?S3CRET/x", "50%41xS3CRET",    "S3CRET%off",  "h#S3CRET?a=b",    "a host=S3CRET",
    "a S3CRET",    "a\\S3CRET",       "a'S3CRET",    "a' host='S3CRET", "[S3CRET]"};

LoadResult Loaded(const std::string& from, const std::string& to, const std::string& password) {
  std::string text = kPipeline;
  text.replace(text.find(from), from.size(), to);
  Environment environment = FakeEnvironment();
  environment.variable = [&](const std::string& name) -> std::optional<std::string> {
    if (name == "DSN") return "postgresql://app:" + password + "@db:5432/shop";
    if (name == "PAIRS") return "host=db user=app password=" + password;
    return password;
  };
  return LoadText(text, "p.yaml", environment);
}

LoadResult WithPostgres(const std::string& keys, const std::string& password) {
  return Loaded("  sqlite:\n    path: orders.db\n", "  postgres:\n" + keys, password);
}

std::string Said(const LoadResult& result) {
  std::string said;
  for (const auto& line : Lines(result.findings)) said += line + "\n";
  for (const auto& line : Lines(result.advice)) said += line + "\n";
  if (!result.options) return said;
  for (const auto& [key, shown] : result.options->shown) said += key + ": " + shown + "\n";
  return said;
}

TEST(SplitPasswords, OfADsnAreRefusedAndNoPartOfThemIsShownOrTakenForAnAddress) {
  for (const char* keys : {"    dsn: postgresql://app:${SECRET}@db:5432/shop\n",
                           "    dsn: host=db user=app password=${SECRET}\n",
                           "    dsn: host=db user=app password='${SECRET}'\n", "    dsn: ${DSN}\n",
                           "    dsn: ${PAIRS}\n"}) {
    for (const char* password : kPasswords) {
      const LoadResult result = WithPostgres(keys, password);
      EXPECT_THAT(Said(result), Not(HasSubstr(kPiece))) << keys << password;
      if (!result.options) continue;
      const auto& postgres = std::get<consumer::PostgresOptions>(result.options->output);
      for (const consumer::DsnPart& part : consumer::PartsOfDsn(postgres.dsn)) {
        if (part.secret) continue;
        EXPECT_THAT(part.value, Not(HasSubstr(kPiece))) << keys << password << part.keyword;
      }
    }
  }
}

TEST(SplitPasswords, MayBeTheKeyOfTheirOwnWhateverTheyHold) {
  for (const char* address : {"    dsn: postgresql://app@db:5432/shop\n",
                              "    host: db\n    user: app\n    database: shop\n"}) {
    for (const char* password : kPasswords) {
      const LoadResult result =
          WithPostgres(fmt::format("{}    password: ${{SECRET}}\n", address), password);
      EXPECT_THAT(Said(result), Not(HasSubstr(kPiece))) << password;
      ASSERT_TRUE(result.options) << password;
      EXPECT_EQ(std::get<consumer::PostgresOptions>(result.options->output).password,
                Secret(password));
    }
  }
}

// The keys beside a dsn, whatever they hold, and in any of its forms.
TEST(Dsn, IsWhatDsnAndKeysSayTogether) {
  const auto parts = [](const std::string& keys) {
    const LoadResult result = WithPostgres(keys, "a' b\\c@d/e=f");
    EXPECT_TRUE(result.options) << Said(result);
    const auto& options = std::get<consumer::PostgresOptions>(result.options->output);
    std::map<std::string, std::string> said;
    for (const auto& part : consumer::PartsOfDsn(consumer::ConnectionString(options))) {
      said[part.keyword] = part.value;
    }
    return said;
  };
  using Parts = std::map<std::string, std::string>;
  const std::string odd = "a' b\\c@d/e=f";
  EXPECT_EQ(parts("    host: db\n"), (Parts{{"host", "db"}}));
  EXPECT_EQ(
      parts("    host: \"::1\"\n    port: 5433\n    user: ${SECRET}\n    database: ${SECRET}\n"
            "    sslmode: verify-full\n"),
      (Parts{{"host", "::1"},
             {"port", "5433"},
             {"user", odd},
             {"dbname", odd},
             {"sslmode", "verify-full"}}));
  for (const char* dsn :
       {"postgresql://db/shop?sslrootcert=a%20b", "host=db dbname=shop sslrootcert='a b'"}) {
    EXPECT_EQ(parts(fmt::format("    dsn: \"{}\"\n    user: ${{SECRET}}\n", dsn)),
              (Parts{{"host", "db"}, {"dbname", "shop"}, {"sslrootcert", "a b"}, {"user", odd}}));
  }
}

TEST(SplitPasswords, OfADsnAreToldWithWhatToDo) {
  const auto told = [](const std::string& keys, const std::string& password) {
    return Lines(WithPostgres(keys, password).findings);
  };
  EXPECT_THAT(told("    dsn: postgresql://app:${SECRET}@db/shop\n", "plain"),
              ElementsAre("p.yaml:14:10: error: output.postgres.dsn: its password is a ${…}, which "
                          "may hold what libpq does not take as it is, such as @ / : % ' or a "
                          "blank; give output.postgres.password [dsn]"));
  EXPECT_THAT(told("    dsn: host=db sslkey=k sslpassword=${SECRET}\n", "plain"),
              ElementsAre(HasSubstr("its sslpassword is a ${…}")));
  for (const char* dsn : {"${DSN}", "postgresql://app@db/shop?application_name=a@b"}) {
    EXPECT_THAT(
        told(fmt::format("    dsn: {}\n", dsn), "p@ss"),
        ElementsAre("p.yaml:14:10: error: output.postgres.dsn: it has an @ that does not end user "
                    "and password: write @ as %40, in options too, and / in a password as %2F, or "
                    "give the password as output.postgres.password [dsn]"));
  }
  EXPECT_THAT(told("    dsn: ${DSN}\n    password: ${SECRET}\n", "plain"),
              ElementsAre("p.yaml:15:15: error: output.postgres.password: output.postgres.dsn has "
                          "a password too; leave one of the two out [dsn]"));
  for (const char* dsn : {"postgresql:///shop?host=/run/postgresql", "postgresql://app@[::1]/shop",
                          "postgresql://app:p%40ss%2Fw@db-1:5432/shop?application_name=a%40b",
                          "${DSN}", "host=${HOST} user=app", "postgresql://app@${HOST}/shop"}) {
    EXPECT_THAT(told(fmt::format("    dsn: \"{}\"\n", dsn), "plain"),
                Not(Contains(HasSubstr("error"))))
        << dsn;
  }
}

// As written in the file, and by a variable.
TEST(SplitPasswords, OfOtherAddressesAreRefusedAndNoPartOfThemIsShown) {
  const struct {
    const char* from;
    const char* to;  // {}: the address
    std::vector<std::string> addresses;
  } keys[] = {
      {"brokers: [127.0.0.1:9092]",
       "brokers: [\"{}\"]",
       {"SASL_SSL://u:S3CRET@kafka:9092", "u:p@S3CRET@kafka:9092", "u:S3CRET/x@kafka:9092"}},
      {"  topics:",
       "  decode: {{value: avro, registry: {{url: \"{}\"}}}}\n  topics:",
       {"http://u:p@S3CRET@r:8081", "http://u:1/S3CRET@r", "u:S3CRET@r:8081"}},
      {"  topics:",
       "  sasl: {{mechanism: OAUTHBEARER, oauth: {{token_url: \"{}\", client_id: c, client_secret: "
       "s}}}}\n  topics:",
       {"https://u:p@S3CRET@idp/token", "https://u:1/S3CRET@idp/token"}},
      {"output:\n",
       "handler: {{http: {{url: \"{}\"}}}}\nguarantee: at-least-once\noutput:\n",
       {"http://u:p@S3CRET/w@service/", "http://u:12/S3CRET@service/", "http://u:12?S3CRET@service",
        "http://u:12#S3CRET@service", "u:S3CRET@service", "http://u:{S3CRET}@service/",
        "http://u:{S3CRET@service/", "http://{u:S3CRET@service}/", "http://u:S3CRET@s/{json:/a?}"}},
      {"nodes: [127.0.0.1:7001, ",
       "nodes: [\"{}\", ",
       {"redis://u:p@S3CRET@redis:7001", "redis://u:12/S3CRET@redis:7001", "u:S3CRET@redis:7001",
        "redis://u:12?S3CRET@redis:7001"}},
      {"  sqlite:\n    path: orders.db\n",
       "  mysql:\n    host: \"{}\"\n    user: u\n    database: d\n",
       {"mysql://u:S3CRET@db/shop", "u:p@S3CRET@db", "u:S3CRET@db", "db:3306"}},
      {"output:\n", "observe: {{http: \"{}\"}}\noutput:\n", {"http://u:S3CRET@0.0.0.0:9464"}},
  };
  for (const auto& key : keys) {
    for (const std::string& address : key.addresses) {
      for (const std::string& written : {address, std::string("${SECRET}")}) {
        const std::string to = fmt::format(fmt::runtime(key.to), written);
        const LoadResult result = Loaded(key.from, to, address);
        EXPECT_TRUE(HasErrors(result.findings)) << to << address;
        EXPECT_THAT(Said(result), Not(HasSubstr(kPiece))) << to;
      }
    }
  }
}

}  // namespace
}  // namespace fencepost::config
