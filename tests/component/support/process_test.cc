#include "tests/support/process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace fencepost::testing {
namespace {

using std::chrono::seconds;

// Gone, or a zombie that nobody has fetched yet.
bool Ended(pid_t pid) {
  const std::string stat = ReadFile("/proc/" + std::to_string(pid) + "/stat");
  return stat.empty() || stat.find(") Z") != std::string::npos;
}

// This program again, in another part: it starts a sleeper, writes its id into a file, and hangs.
constexpr const char* kRole = "FENCEPOST_TEST_SLEEPER_FILE";

[[maybe_unused]] const bool kPlayed = [] {
  const char* file = getenv(kRole);
  if (file == nullptr) return false;
  const Process sleeper({.argv = {"sleep", "1000"}});
  const TempDir dir;
  std::filesystem::rename(dir.Write("pid", std::to_string(sleeper.pid()) + "\n"), file);
  while (true) pause();
}();

TEST(Process, TakesItsChildrenWithItWhenItGoes) {
  pid_t child = 0;
  {
    Process process({.argv = {"sh", "-c", "sleep 1000 & echo $!; wait"}});
    ASSERT_TRUE(WaitUntil(seconds(5), [&] { return process.Output().ends_with("\n"); }));
    child = std::stoi(process.Output());
    EXPECT_EQ(kill(child, 0), 0);
  }
  EXPECT_TRUE(WaitUntil(seconds(5), [&] { return Ended(child); }));
}

TEST(Process, DiesWithTheTestProgramEvenWhenThatIsKilled) {
  const TempDir dir;
  const std::string file = dir.File("sleeper");
  const pid_t tester = fork();
  if (tester == 0) {
    setenv(kRole, file.c_str(), 1);
    setenv("TMPDIR", dir.path().c_str(), 1);
    execl("/proc/self/exe", "component_support", nullptr);
    _exit(1);
  }
  pid_t sleeper = 0;
  ASSERT_TRUE(WaitUntil(seconds(20), [&] {
    const std::string text = ReadFile(file);
    if (!text.ends_with("\n")) return false;
    sleeper = std::stoi(text);
    return true;
  }));
  EXPECT_EQ(kill(sleeper, 0), 0);
  kill(tester, SIGKILL);
  waitpid(tester, nullptr, 0);
  EXPECT_TRUE(WaitUntil(seconds(5), [&] { return Ended(sleeper); }));
}

}  // namespace
}  // namespace fencepost::testing
