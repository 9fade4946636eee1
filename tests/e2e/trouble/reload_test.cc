// SIGHUP reloads the files of a running worker; a terminal that goes away is a stop with a drain.
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include <gmock/gmock.h>

#include "tests/e2e/trouble/trouble_test.h"
#include "tests/support/paths.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

class Reload : public TroubleTest {
 protected:
  static void Replace(std::string& text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  }
  ::testing::AssertionResult Says(WorkerProcess& worker, const std::string& text) {
    return WaitUntil(seconds(20), text,
                     [&] { return worker.Log().find(text) != std::string::npos; });
  }
};

TEST_F(Reload, TakesUpWhatItCanAndSaysWhatNeedsARestart) {
  PipelineText text = Text(1);
  text.more = Http() + DeadLetters() + "retry: {attempts: 1000, backoff: {initial: 50ms}}\n";
  const WorkerOptions options = Worker(text);
  Answers("o-1", {503});
  WorkerProcess worker(options);
  SendOrder(0, "o-1", "k");
  EXPECT_TRUE(WaitUntil(seconds(20), "retries", [&] { return CallsOf("o-1") >= 2; }));
  std::string file = text.Yaml();
  Replace(file, "attempts: 1000,", "attempts: 1000, never: [503],");
  Replace(file, "ttl: 3s", "ttl: 4s");
  std::ofstream(options.files[0]) << file;
  worker.Hangup();
  EXPECT_TRUE(Says(worker, "retry.never is applied; lock.ttl needs a restart")) << worker.Log();
  EXPECT_TRUE(AllCommitted()) << worker.Log();
  EXPECT_EQ(Letters().size(), 1u);
  EXPECT_THAT(worker.Get("/status").body, HasSubstr("retry.never"));
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
}

// Each by what would not come for a long time without it.
TEST_F(Reload, AppliesConcurrencyRateAndLogLevel) {
  PipelineText text = Text(1);
  const std::string slow = "rate_limit: 0.001, url: ";
  std::string http = Http();
  Replace(http, "url: ", slow);
  text.more = http + "processing: {concurrency: 1}\nobserve: {log: {level: info}}\n";
  const WorkerOptions options = Worker(text);
  HangOn(0);
  WorkerProcess worker(options);
  for (int i = 0; i < 6; ++i) SendOrder(0, fmt::format("o-{}", i), fmt::format("k-{}", i));
  EXPECT_TRUE(WaitUntil(seconds(40), "a call that hangs", [&] { return AllCalls() == 1; }));
  const auto change = [&](const std::string& from, const std::string& to) {
    Replace(text.more, from, to);
    std::ofstream(options.files[0]) << text.Yaml();
    worker.Hangup();
  };
  change("level: info", "level: error");
  EXPECT_TRUE(Says(worker, "observe.log.level is applied")) << worker.Log();
  change("concurrency: 1}", "concurrency: 2}");
  change(slow, "url: ");
  EXPECT_TRUE(Effects(5)) << "the first one's call holds up no other: " << AllCalls();
  EXPECT_THAT(worker.Log(), Not(HasSubstr("processing.concurrency")));
  change("level: error", "level: info");
  service_.Release();
  EXPECT_TRUE(Effects(6));
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  EXPECT_THAT(worker.Log(), HasSubstr("\"event\":\"stopping\""));
}

TEST_F(Reload, OfAFileWithAnErrorChangesNothing) {
  const PipelineText text = Text(1);
  const WorkerOptions options = Worker(text);
  WorkerProcess worker(options);
  std::ofstream(options.files[0]) << text.Yaml() << "retry: {atempts: 3}\n";
  worker.Hangup();
  EXPECT_TRUE(Says(worker, "(see stderr): nothing was changed")) << worker.Log();
  EXPECT_THAT(worker.Log(), HasSubstr("did you mean \"attempts\""));
  SendOrder(0, "o-1", "k");
  EXPECT_TRUE(Effects(1)) << worker.Log();
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
}

TEST_F(Reload, ReadsTheSharedFileAgainAndKeepsWhatIsSet) {
  PipelineText text = Text(1);
  WorkerOptions options = Worker(text);
  const auto shared = [&](const std::string& level) {
    return folder_.Write("shared.yaml", "observe: {log: {level: " + level + "}}\n");
  };
  for (const std::string& word : {std::string("--with"), shared("info"), std::string("--set"),
                                  std::string("processing.concurrency=2")}) {
    options.files.push_back(word);
  }
  WorkerProcess worker(options);
  shared("debug");
  worker.Hangup();
  EXPECT_TRUE(Says(worker, "observe.log.level is applied")) << worker.Log();
  EXPECT_THAT(worker.Log(), Not(HasSubstr("processing.concurrency")));
  folder_.Write("shared.yaml", "lok: {}\n");
  worker.Hangup();
  EXPECT_TRUE(Says(worker, "(see stderr): nothing was changed")) << worker.Log();
  EXPECT_THAT(worker.Log(), HasSubstr("shared.yaml:1:1: error: unknown key"));
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
}

TEST_F(Reload, APipelineIsPausedAndResumedOverHttp) {
  PipelineText text = Text(2);
  text.more = "observe: {control: loopback}\n";
  WorkerProcess worker(Worker(text));
  SendOrder(0, "o-1", "k");
  EXPECT_TRUE(Effects(1)) << worker.Log();
  const auto post = [&](const std::string& path, const std::string& body = "") {
    return HttpPost("127.0.0.1", worker.port(), path, body).status;
  };
  EXPECT_EQ(post("/pipelines/" + name_ + "/pause"), 200);
  EXPECT_EQ(post("/pipelines/other/pause"), 404);
  ExpectSays(worker, "paused");
  SendOrder(0, "o-2", "k");
  SendOrder(1, "o-3", "k");
  EXPECT_TRUE(Shows(worker, "fencepost_consumer_lag_records", {}, 2));
  EXPECT_TRUE(Shows(worker, "fencepost_locks_held", {}, 0));
  EXPECT_EQ(table_->Value("SELECT count(*) FROM effects"), "1");
  EXPECT_EQ(post("/pipelines/" + name_ + "/resume"), 200);
  EXPECT_TRUE(Effects(3)) << worker.Log();
  EXPECT_EQ(post("/log/level", "loud"), 400);
  EXPECT_EQ(post("/log/level", "error"), 200);
  EXPECT_EQ(worker.Stop(), 0) << worker.Log();
  EXPECT_THAT(worker.Log(), Not(HasSubstr("\"event\":\"stopping\"")));
}

TEST_F(Reload, ATerminalThatGoesAwayIsAStopWithADrain) {
  const WorkerOptions options = Worker(Text(1));
  int terminal = -1;
  const pid_t pid = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (pid == 0) {
    const std::string binary = FencepostBinary();
    execl(binary.c_str(), binary.c_str(), "run", options.files[0].c_str(), nullptr);
    _exit(127);
  }
  std::string said;
  char buffer[4096];
  while (said.find("the worker is ready") == std::string::npos) {
    const ssize_t n = read(terminal, buffer, sizeof buffer);
    ASSERT_GT(n, 0) << said;
    said.append(buffer, static_cast<std::size_t>(n));
  }
  close(terminal);
  int status = 0;
  EXPECT_TRUE(WaitUntil(seconds(30), "the worker to end",
                        [&] { return waitpid(pid, &status, WNOHANG) == pid; }));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace fencepost::testing
