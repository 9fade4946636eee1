// A guarantee that a pipeline cannot keep is refused before anything starts.
#include <gmock/gmock.h>

#include "tests/support/pipeline_servers.h"
#include "tests/support/worker_process.h"

namespace fencepost::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Guarantee : public ::testing::Test {
 protected:
  static PipelineText Text() {
    PipelineText text;
    text.name = text.topic = "orders";
    text.brokers = "127.0.0.1:1";
    text.nodes = "127.0.0.1:2";
    text.dsn = "postgresql://127.0.0.1:3/none";
    return text;
  }
  void ExpectRefused(const std::string& yaml, const std::string& what, const std::string& why) {
    const std::string file = folder_.Write("pipeline.yaml", yaml);
    const Finished lint = RunFencepost({"lint", file});
    EXPECT_EQ(lint.exit_code, 2) << yaml;
    EXPECT_THAT(lint.output + lint.error_output,
                AllOf(HasSubstr(file + ":"), HasSubstr(" error: "), HasSubstr(what), HasSubstr(why),
                      HasSubstr("otherwise write guarantee: at-least-once [guarantee]")));
    const Finished run = RunFencepost({"run", file, "--http", "127.0.0.1:0"});
    EXPECT_EQ(run.exit_code, 2) << yaml;
    EXPECT_EQ(run.output, "") << "nothing was started";
    EXPECT_THAT(run.error_output, AllOf(HasSubstr(what), HasSubstr(why)));
    std::string modest = yaml;
    modest.replace(modest.find("exactly-once"), 12, "at-least-once");
    const Finished accepted = RunFencepost({"lint", folder_.Write("modest.yaml", modest)});
    EXPECT_EQ(accepted.exit_code, 0) << accepted.output << accepted.error_output;
  }

  TempDir folder_;
};

TEST_F(Guarantee, IsRefusedForAnHttpHandlerThatIsNotIdempotent) {
  PipelineText text = Text();
  text.more = "handler: {http: {url: \"http://127.0.0.1:4/charge\"}}\n";
  ExpectRefused(text.Yaml(), "handler.http may run more than once for a record",
                "second call with the same Idempotency-Key has no second effect");
}

TEST_F(Guarantee, IsRefusedForAnExecHandlerThatIsNotIdempotent) {
  PipelineText text = Text();
  text.more = "handler: {exec: {command: [cat]}}\n";
  ExpectRefused(text.Yaml(), "handler.exec may run more than once for a record",
                "second run with the same record_id has no second effect");
}

TEST_F(Guarantee, IsRefusedForAFile) {
  PipelineText text = Text();
  text.output = "output: {file: {path: /tmp/none.jsonl}}\n";
  ExpectRefused(text.Yaml(), "output.file cannot keep exactly-once",
                "no transaction that holds the effect and the ledger");
}

TEST_F(Guarantee, IsRefusedForStdout) {
  PipelineText text = Text();
  text.output = "output: {stdout: {}}\n";
  ExpectRefused(text.Yaml(), "output.stdout cannot keep exactly-once",
                "no transaction that holds the effect and the ledger");
}

}  // namespace
}  // namespace fencepost::testing
