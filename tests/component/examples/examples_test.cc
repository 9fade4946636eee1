// The programs of locking/examples, several processes of each, on real nodes.
#include <sqlite3.h>

#include <algorithm>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/support/lock_store.h"
#include "tests/support/paths.h"

namespace fencepost::locking {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::LockStore;
using testing::Process;
using testing::TempDir;
using testing::WaitUntil;

class Example : public ::testing::Test {
 protected:
  std::unique_ptr<Process> Run(const std::string& name, std::vector<std::string> arguments) {
    std::vector<std::string> argv = {testing::BuildPath("example_") + name, "--redis",
                                     store_.list(), "--ttl-ms", "1500"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return std::make_unique<Process>(testing::ProcessOptions{.argv = argv});
  }
  // How often each first word stands in a file.
  static std::map<std::string, int> FirstWords(const std::string& path) {
    std::map<std::string, int> words;
    std::istringstream lines(testing::ReadFile(path));
    for (std::string line; std::getline(lines, line);) ++words[line.substr(0, line.find(' '))];
    return words;
  }
  static std::size_t Lines(const std::string& text) {
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  static void ExpectSuccess(Process& process) {
    EXPECT_EQ(process.Wait(30s), 0) << process.Output();
  }

  LockStore store_{3};
  TempDir folder_;
};

TEST_F(Example, WaitLockCountsInOneFileOneAtATime) {
  const std::string file = folder_.File("counter");
  std::vector<std::unique_ptr<Process>> processes;
  for (int i = 0; i < 3; ++i) {
    processes.push_back(Run("wait_lock", {"--file", file, "--rounds", "20"}));
  }
  for (const auto& process : processes) ExpectSuccess(*process);
  EXPECT_EQ(std::atoi(testing::ReadFile(file).c_str()), 60);
}

TEST_F(Example, CronOnceRunsAJobOncePerMinuteEvenWhenItsHostDies) {
  const std::string log = folder_.File("log");
  const std::vector<std::string> job = {"--log",    log,     "--job",    "report",
                                        "--minute", "22:46", "--work-ms"};
  const auto with = [&](const char* work) {
    auto arguments = job;
    arguments.emplace_back(work);
    return arguments;
  };
  const auto dying = Run("cron_once", with("60000"));
  ASSERT_TRUE(WaitUntil(20s, [&] { return dying->Output().starts_with("running"); }));
  std::vector<std::unique_ptr<Process>> hosts;
  for (int i = 0; i < 3; ++i) hosts.push_back(Run("cron_once", with("50")));
  dying->Kill();
  for (const auto& host : hosts) ExpectSuccess(*host);
  EXPECT_EQ(testing::ReadFile(log), "report/22:46\n");
  const auto late = Run("cron_once", with("50"));
  ExpectSuccess(*late);
  EXPECT_EQ(late->Output(), "report/22:46 has run\n");
}

TEST_F(Example, NotificationBatchSendsEachOnceAndAKilledWorkersBatchAgain) {
  const std::string sent = folder_.File("sent");
  const auto worker = [&](const char* name, const char* send_ms) {
    return Run("notification_batch", {"--out", sent, "--worker", name, "--items", "120", "--batch",
                                      "10", "--send-ms", send_ms});
  };
  const auto first = worker("a", "2");
  const auto second = worker("b", "2");
  const auto dying = worker("c", "20");
  ASSERT_TRUE(WaitUntil(
      20s, [&] { return testing::ReadFile(sent).find(" c\n") != std::string::npos; }, "its work"));
  dying->Kill();
  ExpectSuccess(*first);
  ExpectSuccess(*second);
  const auto words = FirstWords(sent);
  EXPECT_EQ(words.size(), 120U);
  int again = 0;
  for (const auto& [name, times] : words) again += times - 1;
  EXPECT_LE(again, 10);
}

TEST_F(Example, ExactlyOnceStreamAppliesEachOrderOnceWhateverDies) {
  const std::string path = folder_.File("shop.db");
  const auto worker = [&] {
    return Run("exactly_once_stream", {"--db", path, "--items", "100", "--work-ms", "3"});
  };
  const auto dying = worker();
  ASSERT_TRUE(WaitUntil(
      20s, [&] { return Lines(dying->Output()) >= 3; }, "some orders"));
  const auto first = worker();
  dying->Kill();
  const auto third = worker();
  ExpectSuccess(*first);
  ExpectSuccess(*third);
  // The nodes forget what is done: the ledger alone decides.
  for (std::size_t node = 0; node < store_.nodes().size(); ++node) {
    std::istringstream keys(store_.nodes()[node].Command({"KEYS", "fencepost:{orders}:*"}));
    for (std::string key; std::getline(keys, key);) store_.nodes()[node].Command({"DEL", key});
  }
  const auto again = worker();
  ExpectSuccess(*again);
  EXPECT_THAT(again->Output(), HasSubstr("applied 90\n"));
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  std::string row;
  sqlite3_exec(
      db, "SELECT count(*) || ' ' || count(DISTINCT id) || ' ' || sum(amount) FROM effects",
      [](void* out, int, char** values, char**) {
        *static_cast<std::string*>(out) = values[0];
        return 0;
      },
      &row, nullptr);
  sqlite3_close(db);
  int sum = 0;
  for (int i = 0; i < 100; ++i) sum += i % 10 == 9 ? 0 : i * 100;
  EXPECT_EQ(row, "90 90 " + std::to_string(sum));
}

TEST_F(Example, FailoverElectsAnotherWhenItsLeaderEnds) {
  const std::string journal = folder_.File("journal");
  const auto first = Run("failover", {"--journal", journal, "--worker", "a"});
  ASSERT_TRUE(WaitUntil(20s, [&] { return first->Output().starts_with("elected"); }));
  const auto second = Run("failover", {"--journal", journal, "--worker", "b"});
  ASSERT_TRUE(
      WaitUntil(10s, [&] { return testing::ReadFile(journal).find(" a\n") != std::string::npos; }));
  first->Kill(SIGTERM);
  ExpectSuccess(*first);
  EXPECT_THAT(first->Output(), HasSubstr("deposed"));
  EXPECT_TRUE(
      WaitUntil(20s, [&] { return testing::ReadFile(journal).find(" b\n") != std::string::npos; }));
}

TEST_F(Example, SaysWhatIsMissing) {
  const auto finished = testing::RunToEnd({.argv = {testing::BuildPath("example_wait_lock")}});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_EQ(finished.output, "--file is missing; give it a value\n");
}

}  // namespace
}  // namespace fencepost::locking
