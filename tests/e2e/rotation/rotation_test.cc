// A secret that a file has is changed while records come in, and the worker that needs it runs on.
#include "tests/e2e/rotation/rotation_test.h"

namespace fencepost::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

struct Row {
  const char* name;
  std::unique_ptr<Login> (*make)();
};

class EachLogin : public RotationTest, public ::testing::WithParamInterface<Row> {
 protected:
  EachLogin() : login_(GetParam().make()) {
    MakePipeline(login_->database());
    login_->AddTo(text_, Secret());
    value_ = [this](int order) { return login_->Value(order); };
  }
  ~EachLogin() override {  // those that use the login
    load_.reset();
    worker_.reset();
  }

  const std::unique_ptr<Login> login_;
};

TEST_P(EachLogin, TakesARotatedSecretUnderLoadWithoutARestartAndWithoutALoss) {
  WriteSecret(std::string(kFirst) + "\n");
  login_->Take({kFirst});
  Start();
  ExpectWorkGoesOn();
  login_->Take({kFirst, kSecond});
  WriteSecret(std::string(kSecond) + "\n");
  login_->Take({kSecond});
  login_->Disconnect();
  ExpectWorkGoesOn();
  EXPECT_FALSE(login_->LetsIn(kFirst));
  EXPECT_TRUE(login_->LetsIn(kSecond));
  ExpectTheTruth();
}

TEST_P(EachLogin, WaitsForItsFileAndForTheSecretThatTheServerWants) {
  login_->Take({kFirst});
  Start();
  const std::string missing = "the file " + secret_file() + ": No such file or directory";
  ExpectSaid(missing);
  EXPECT_TRUE(WaitUntil(kLong, "the worker not to be ready", [&] { return !worker_->Ready(); }));
  EXPECT_THAT(Said(), Contains(AllOf(HasSubstr("file_warning"), HasSubstr(missing))));
  WriteSecret(std::string(kFirst) + "\n");
  ExpectWorkGoesOn();
  ExpectReady(*worker_, kLong);
  login_->Take({kSecond});
  login_->Disconnect();
  ExpectSaid(login_->refusal());
  WriteSecret(kSecond);
  ExpectWorkGoesOn();
  ExpectReady(*worker_, kLong);
  ExpectTheTruth();
}

INSTANTIATE_TEST_SUITE_P(Of, EachLogin,
                         ::testing::Values(Row{"LockNodes", &MakeRedisLogin},
                                           Row{"Postgres", &MakePostgresLogin},
                                           Row{"Mysql", &MakeMysqlLogin},
                                           Row{"KafkaScram", &MakeKafkaScramLogin},
                                           Row{"KafkaToken", &MakeKafkaTokenLogin},
                                           Row{"HandlerBearer", &MakeHandlerBearerLogin},
                                           Row{"HandlerBasic", &MakeHandlerBasicLogin},
                                           Row{"HandlerToken", &MakeHandlerTokenLogin},
                                           Row{"RegistryBearer", &MakeRegistryBearerLogin},
                                           Row{"RegistryBasic", &MakeRegistryBasicLogin}),
                         [](const auto& row) { return std::string(row.param.name); });

class TheFile : public RotationTest {};

// The worker has worked before, and goes on once the file is good again.
TEST_F(TheFile, ThatHasNoSecretIsNamedWithoutWhatItHasAndIsReadAgainUntilItHasOne) {
  const auto login = MakePostgresLogin();
  MakePipeline(login->database());
  login->AddTo(text_, Secret());
  login->Take({kFirst});
  WriteSecret(kFirst);
  Start();
  ExpectReady(*worker_, kLong);
  const std::string line = kFirst;
  for (const std::string& text : {std::string(), std::string("\n\n"), line + "\n" + line + "\n",
                                  std::string((64 << 10) + 1 - line.size(), 's') + line}) {
    WriteSecret(text);
    login->Disconnect();
    ExpectSays(*worker_, "the file " + secret_file() + ": ", kLong);
    WriteSecret(line + "\n");
    ExpectReady(*worker_, kLong);
    ExpectWorkGoesOn();
  }
  std::filesystem::remove(secret_file());
  std::filesystem::create_directory(secret_file());
  login->Disconnect();
  ExpectSays(*worker_, "the file " + secret_file() + ": ", kLong);
  std::filesystem::remove(secret_file());
  WriteSecret(line);
  ExpectWorkGoesOn();
  ExpectTheTruth();
}

}  // namespace
}  // namespace fencepost::testing
