// What wakes a process that runs pipelines.
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <gtest/gtest.h>

#include "consumer/cli/run/run_signals.h"

namespace fencepost::cli {
namespace {

using Woken = RunSignals::Woken;

TEST(RunSignals, AWorkerThatEndsWhileAReloadIsAskedForIsNotForgotten) {
  const RunSignals signals;
  signals.Wake();
  raise(SIGHUP);
  EXPECT_EQ(signals.Wait(1000), Woken::kReload);
  EXPECT_EQ(signals.Wait(1000), Woken::kByWake);
  EXPECT_EQ(signals.Wait(0), Woken::kNot);
}

// A signal from somebody else: a process of its own, which has ended then. To this thread: another
// test may have left one that does not block it.
void SignalOfAnother(int signal) {
  const pid_t target = getpid();
  const pid_t pid = fork();
  if (pid == 0) _exit(syscall(SYS_tgkill, target, target, signal) == 0 ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  ASSERT_EQ(status, 0);
}

TEST(RunSignals, EveryStopCounts) {
  const RunSignals signals;
  SignalOfAnother(SIGINT);
  EXPECT_EQ(signals.Wait(1000), Woken::kStop);
  raise(SIGTERM);
  EXPECT_EQ(signals.Wait(1000), Woken::kStop);
}

}  // namespace
}  // namespace fencepost::cli
