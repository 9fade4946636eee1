// The port of `run` as a pipeline file says it, and those who ask it by the same file.
#include <gmock/gmock.h>

#include <fstream>

#include "tests/support/certificates.h"
#include "tests/support/worker_process.h"

namespace fencepost::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kToken = "tok%41en";

// Servers of which none is there: /live is 200 all the same.
std::string WithPort(const std::string& name, const std::string& observe) {
  return "version: 1\nname: " + name +
         "\nguarantee: at-least-once\nkafka: {brokers: [\"127.0.0.1:1\"], topics: [orders]}\n"
         "record_id: position\nlock: {redis: {nodes: [\"127.0.0.1:1\"]}}\noutput: {stdout: {}}\n"
         "on_bad_record: stop\n" +
         observe;
}

class ThePort : public ::testing::Test {
 protected:
  std::string Tls() const {
    return "  tls: {certificate: " + certificates_.certificate() + ", key: " + certificates_.key() +
           "}\n";
  }
  std::string File(const std::string& name, const std::string& keys) const {
    return certificates_.Write(name + ".yaml", WithPort(name, "observe:\n" + keys));
  }
  Certificates certificates_;
};

TEST_F(ThePort, OfAFileIsAskedByHealthWithTheSameFile) {
  const std::string file = File("one", Tls() + "  auth: {bearer: \"" + kToken + "\"}\n");
  const WorkerProcess worker({.files = {file}});
  EXPECT_THAT(worker.Log(), AllOf(HasSubstr("listening on https://127.0.0.1:"),
                                  ::testing::Not(HasSubstr(kToken))));
  const std::string at = "127.0.0.1:" + std::to_string(worker.port());
  const Finished good = RunFencepost({"health", file, "--http", at});
  EXPECT_EQ(good.exit_code, 0) << good.error_output;
  EXPECT_EQ(good.output, "live\n");
  EXPECT_EQ(RunFencepost({"health", "--http", at}).exit_code, 1) << "without TLS";
  const std::string other = File("other", Tls() + "  auth: {bearer: wrong}\n");
  const Finished wrong = RunFencepost({"health", other, "--http", at});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.error_output, HasSubstr("/live: 401 the request needs the credentials"));
}

// Who has another certificate of the same CA must not get the credentials.
TEST_F(ThePort, OfAnotherCertificateOfTheCaIsNotAsked) {
  certificates_.Issue("other", Certificates::kNode);
  const auto with = [&](const std::string& name, const std::string& chain) {
    return File(name, "  tls: {certificate: " + chain + ", key: " + certificates_.key(name) +
                          "}\n  auth: {bearer: \"" + kToken + "\"}\n");
  };
  const auto chain = [&](const std::string& name) {
    std::string text;
    for (const std::string& file : {certificates_.certificate(name), certificates_.ca()}) {
      std::ifstream in(file);
      text.append(std::istreambuf_iterator<char>(in), {});
    }
    return certificates_.Write(name + "-chain.pem", text);
  };
  const std::string own = with("node", chain("node"));
  const WorkerProcess worker({.files = {own}});
  const std::string at = "127.0.0.1:" + std::to_string(worker.port());
  const Finished good = RunFencepost({"health", own, "--http", at});
  EXPECT_EQ(good.exit_code, 0) << good.error_output;
  const Finished other = RunFencepost({"health", with("other", chain("other")), "--http", at});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.error_output, HasSubstr("no answer"));
}

TEST_F(ThePort, OfSeveralFilesIsKeptShutByAnyOfThem) {
  const std::string open = certificates_.Write("open.yaml", WithPort("open", ""));
  const std::string shut = File("shut", "  auth: {basic: {username: a, password: b}}\n");
  const WorkerProcess worker({.files = {open, shut}});
  EXPECT_EQ(worker.Get("/live").status, 401);
  const std::string other = File("other", "  auth: {bearer: b}\n");
  const Finished differ = RunFencepost({"run", shut, other, "--http", "127.0.0.1:0"});
  EXPECT_EQ(differ.exit_code, 2);
  EXPECT_THAT(differ.error_output,
              HasSubstr("the files differ in observe.tls, observe.auth or observe.advertise"));
}

TEST_F(ThePort, OfSeveralFilesShowsNothingOfACollectorsPathAndTakesItFromAnyOfThem) {
  const std::string silent = certificates_.Write("silent.yaml", WithPort("silent", ""));
  const std::string traced =
      File("traced", "  traces: {endpoint: \"http://u:S3CRET@127.0.0.1:1/S3CRET?key=S3CRET\"}\n");
  const WorkerProcess worker({.files = {silent, traced}});
  const std::string status = worker.Get("/status").body;
  EXPECT_THAT(status, AllOf(HasSubstr("observe.traces.endpoint"), HasSubstr("127.0.0.1:1"),
                            ::testing::Not(HasSubstr("S3CRET"))));
  EXPECT_THAT(worker.Log(), AllOf(HasSubstr("traces go to http://127.0.0.1:1"),
                                  ::testing::Not(HasSubstr("S3CRET"))));
}

TEST_F(ThePort, OfSeveralFilesIsNotOpenedWhereTheyDifferInTraces) {
  const std::string one = File("one", "  traces: {endpoint: \"http://127.0.0.1:1\"}\n");
  const std::string same = File("same", "  traces: {endpoint: \"http://127.0.0.1:1\"}\n");
  for (const char* const keys : {"{endpoint: \"http://127.0.0.1:2\"}",
                                 "{endpoint: \"http://127.0.0.1:1\", slow: 2s}", "{sample: 0.5}"}) {
    const std::string other = File("other", std::string("  traces: ") + keys + "\n");
    const Finished differ = RunFencepost({"run", one, same, other, "--http", "127.0.0.1:0"});
    EXPECT_EQ(differ.exit_code, 2) << keys;
    EXPECT_THAT(differ.error_output, HasSubstr("the files differ in observe.traces;")) << keys;
  }
}

TEST_F(ThePort, WithoutItsCertificateEndsTheStart) {
  const std::string file = File("one", "  tls: {certificate: /none.crt, key: /none.key}\n");
  const Finished run = RunFencepost({"run", file, "--http", "127.0.0.1:0"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.error_output,
              HasSubstr("observe.tls.certificate: /none.crt cannot be read: No such file"));
}

}  // namespace
}  // namespace fencepost::testing
