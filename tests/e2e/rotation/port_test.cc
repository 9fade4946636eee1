// The secrets of a worker's own port, which it reads at each request.
#include "consumer/json/json_text.h"
#include "tests/e2e/rotation/rotation_test.h"

namespace fencepost::testing {
namespace {

struct Row {
  const char* name;
  const char* observe;  // @ is the secret
  bool basic = false;
  bool posts = false;
};

class ThePort : public RotationTest, public ::testing::WithParamInterface<Row> {
 protected:
  // What who says this secret is answered.
  [[nodiscard]] int Status(const std::string& secret) const {
    const std::string credentials =
        GetParam().basic ? "Basic " + consumer::ToBase64("ops:" + secret) : "Bearer " + secret;
    std::vector<std::string> curl{"curl",        "--silent",     "--noproxy",
                                  "*",           "--output",     "/dev/null",
                                  "--write-out", "%{http_code}", "--max-time",
                                  "20",          "--header",     "Authorization: " + credentials};
    if (GetParam().posts) curl.emplace_back("-dinfo");
    curl.push_back(fmt::format("http://127.0.0.1:{}/{}", worker_->port(),
                               GetParam().posts ? "log/level" : "metrics"));
    return std::stoi(RunToEnd({.argv = curl}).output);
  }
  void ExpectTakesAlone(const std::string& secret) const {
    EXPECT_EQ(Status(secret), 200);
    for (const char* other : {kFirst, kSecond, kSecret, ""}) {
      if (other == secret) continue;
      EXPECT_THAT(Status(other), ::testing::AnyOf(401, 403)) << other;
    }
  }
  void ExpectTakesNothing() const {
    for (const char* any : {kFirst, kSecond, kSecret, ""}) {
      EXPECT_THAT(Status(any), ::testing::AnyOf(401, 403)) << any;
    }
    EXPECT_EQ(worker_->Get("/live").status, 200);
  }
};

TEST_P(ThePort, TakesTheSecretThatItsFileHasNowAndNoneWhereThatHasNone) {
  WriteSecret(std::string(kFirst) + "\n");
  MakePipeline(RotationPostgres());
  std::string observe = GetParam().observe;
  observe.replace(observe.find('@'), 1, Secret());
  text_.more += "observe:\n" + observe;
  Start();
  ExpectWorkGoesOn();
  ExpectTakesAlone(kFirst);
  WriteSecret(kSecond);
  ExpectTakesAlone(kSecond);
  const std::string at = fmt::format("127.0.0.1:{}", worker_->port());
  EXPECT_EQ(RunFencepost({"health", file_, "--http", at}).exit_code, 0);
  std::filesystem::remove(secret_file());
  ExpectTakesNothing();
  ExpectSaid("the file " + secret_file() + ": No such file or directory");
  for (const std::string& bad :
       {std::string(), std::string("\n"), std::string(kFirst) + "\n" + kSecond}) {
    WriteSecret(bad);
    ExpectTakesNothing();
  }
  WriteSecret(kFirst);
  ExpectTakesAlone(kFirst);
  ExpectWorkGoesOn();
  ExpectTheTruth();
}

INSTANTIATE_TEST_SUITE_P(
    By, ThePort,
    ::testing::Values(Row{"Bearer", "  auth: {bearer: @, open: [live, ready]}\n"},
                      Row{.name = "Basic",
                          .observe = "  auth: {basic: {username: ops, password: @}, open: [live,"
                                     " ready]}\n",
                          .basic = true},
                      Row{.name = "ControlToken",
                          .observe = "  control: token\n  control_token: @\n",
                          .posts = true}),
    [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace fencepost::testing
