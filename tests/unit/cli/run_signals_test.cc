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

}  // namespace
}  // namespace fencepost::cli
