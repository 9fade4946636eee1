// What wakes a process that runs pipelines.
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

TEST(RunSignals, EveryStopCounts) {
  const RunSignals signals;
  raise(SIGINT);
  EXPECT_EQ(signals.Wait(1000), Woken::kStop);
  raise(SIGTERM);
  EXPECT_EQ(signals.Wait(1000), Woken::kStop);
}

}  // namespace
}  // namespace fencepost::cli
