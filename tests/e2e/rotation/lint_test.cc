// Files of secrets that are not there, or are no secrets, as `lint` tells them.
#include <gmock/gmock.h>

#include "tests/support/worker_process.h"

namespace fencepost::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// Lines of a pipeline file in which @ is the secret of that key.
struct Row {
  const char* key;
  const char* kafka = "";
  const char* redis = "";
  const char* more = "";
  const char* output = "  stdout: {}\n";
};

constexpr Row kRows[] = {
    {.key = "kafka.sasl.password",
     .kafka = "  sasl: {mechanism: PLAIN, username: a, password: @}\n"},
    {.key = "kafka.sasl.password",
     .kafka = "  sasl: {mechanism: SCRAM-SHA-512, username: a, password: @}\n"},
    {.key = "kafka.sasl.oauth.client_secret",
     .kafka = "  sasl: {mechanism: OAUTHBEARER, oauth: {token_url: \"https://h/t\", client_id: a,"
              " client_secret: @}}\n"},
    {.key = "kafka.decode.registry.password",
     .kafka = "  decode: {value: avro, registry: {url: \"https://h\", username: a,"
              " password: @}}\n"},
    {.key = "kafka.decode.registry.bearer",
     .kafka = "  decode: {value: avro, registry: {url: \"https://h\", bearer: @}}\n"},
    {.key = "lock.redis.password", .redis = "    username: a\n    password: @\n"},
    {.key = "handler.http.auth.basic.password",
     .more = "handler: {http: {url: \"https://h/\", auth: {basic: {username: a, password: @}}}}\n"},
    {.key = "handler.http.auth.bearer",
     .more = "handler: {http: {url: \"https://h/\", auth: {bearer: @}}}\n"},
    {.key = "handler.http.auth.oauth2.client_secret",
     .more = "handler: {http: {url: \"https://h/\", auth: {oauth2: {token_url: \"https://h/t\","
             " client_id: a, client_secret: @}}}}\n"},
    {.key = "output.postgres.password",
     .output = "  postgres: {host: h, user: a, database: b, password: @, table: t,"
               " columns: {id: json:/id}}\n"},
    {.key = "output.mysql.password",
     .output = "  mysql: {host: h, user: a, database: b, password: @, table: t,"
               " columns: {id: json:/id}}\n"},
    {.key = "observe.auth.bearer", .more = "observe: {http: \"127.0.0.1:0\", auth: {bearer: @}}\n"},
    {.key = "observe.auth.basic.password",
     .more = "observe: {http: \"127.0.0.1:0\", auth: {basic: {username: a, password: @}}}\n"},
    {.key = "observe.control_token",
     .more = "observe: {http: \"127.0.0.1:0\", control: token, control_token: @}\n"},
};

class AFileOfASecret : public ::testing::Test {
 protected:
  Finished Lint(const Row& row) const {
    std::string text = std::string("version: 1\nname: orders\nguarantee: at-least-once\n") +
                       "record_id: json:/id\non_bad_record: stop\n" +
                       "kafka:\n  brokers: [\"h:9092\"]\n  topics: [orders]\n" + row.kafka +
                       "lock:\n  redis:\n    nodes: [\"h:6379\"]\n" + row.redis + row.more +
                       "output:\n" + row.output;
    text.replace(text.find('@'), 1, "{file: " + secret_ + "}");
    return RunFencepost({"lint", folder_.Write("orders.yaml", text)});
  }

  TempDir folder_;
  const std::string secret_ = folder_.File("secret");
};

TEST_F(AFileOfASecret, ThatIsMissingIsAWarningOfEachKeyAndNothingIsSaidOfOneThatIsThere) {
  for (const Row& row : kRows) {
    std::filesystem::remove(secret_);
    const Finished missing = Lint(row);
    EXPECT_EQ(missing.exit_code, 0) << row.key << missing.output;
    EXPECT_THAT(missing.output,
                ContainsRegex(std::string("warning: ") + row.key + "[^\n]*the file " + secret_ +
                              ": No such file or directory"));
    (void)folder_.Write("secret", "s3cret\n");
    const Finished there = Lint(row);
    EXPECT_EQ(there.exit_code, 0) << row.key << there.output;
    EXPECT_THAT(there.output, AllOf(Not(HasSubstr(secret_)), Not(HasSubstr("s3cret")))) << row.key;
  }
}

TEST_F(AFileOfASecret, ThatIsEmptyOrLongOrHasSeveralLinesIsAWarningToo) {
  for (const std::string& text : {std::string(), std::string("\n"), std::string("s3cret\ns3cret"),
                                  "s3cret" + std::string(64 << 10, 's')}) {
    (void)folder_.Write("secret", text);
    const Finished lint = Lint(kRows[0]);
    EXPECT_EQ(lint.exit_code, 0) << lint.output;
    EXPECT_THAT(lint.output, AllOf(ContainsRegex(std::string("warning: ") + kRows[0].key +
                                                 "[^\n]*the file " + secret_ + ": "),
                                   Not(HasSubstr("s3cret"))));
  }
}

}  // namespace
}  // namespace fencepost::testing
