// Mutual exclusion on real Redis nodes while workers are killed and frozen and nodes are restarted,
// wiped, frozen, and their clocks jump; the same on one, three, five and seven nodes. On one node
// there is no wipe and no jump (judge.h). FENCEPOST_SEED repeats a schedule; `./dev torture locks`
// runs it for any length.
#include <cstdio>
#include <cstdlib>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fault/mutual_exclusion/storm.h"

namespace fencepost::torture {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::IsEmpty;

constexpr const char* kThisProgram = "/proc/self/exe";

std::uint64_t Seed() {
  if (const char* given = std::getenv("FENCEPOST_SEED")) return std::stoull(given);
  return std::random_device()() % 1'000'000;
}

StormReport Weather(const StormOptions& options) {
  (void)std::fprintf(stderr, "seed %llu (FENCEPOST_SEED)\n",
                     static_cast<unsigned long long>(options.seed));
  Storm storm(options, std::filesystem::read_symlink(kThisProgram).string());
  StormReport report = storm.Run();
  (void)std::fprintf(stderr, "%s\n", report.Line(options).c_str());
  return report;
}

struct Size {
  int nodes;
  seconds length;
};

class MutualExclusion : public ::testing::TestWithParam<Size> {};

TEST_P(MutualExclusion, LosesNoFencedUpdateAndLetsNoTwoLeasesStandAtOnce) {
  const StormOptions options{
      .nodes = GetParam().nodes, .length = GetParam().length, .seed = Seed()};
  const StormReport report = Weather(options);
  EXPECT_THAT(report.overlaps, IsEmpty());
  EXPECT_THAT(report.disorders, IsEmpty());
  EXPECT_THAT(report.troubles, IsEmpty());
  // It was a storm, and the fence was needed.
  EXPECT_GT(report.tally.leases, 20);
  EXPECT_GT(report.increments, 20);
  EXPECT_GT(report.tally.losses, 0);
  EXPECT_GT(report.kills, 0);
  EXPECT_GT(report.stops, 0);
  EXPECT_GT(report.restarts + report.wipes + report.jumps + report.pauses, 0);
  EXPECT_GT(report.fenced_refusals, 0);
  EXPECT_GT(report.unfenced_violations, 0);
  if (options.length < seconds(30)) return;
  EXPECT_GT(report.restarts, 0);
  EXPECT_GT(report.wipes, 0);
  EXPECT_GT(report.jumps, 0);
}

INSTANTIATE_TEST_SUITE_P(On, MutualExclusion,
                         ::testing::Values(Size{1, seconds(11)}, Size{3, seconds(11)},
                                           Size{5, seconds(40)}, Size{7, seconds(11)}),
                         [](const auto& size) { return fmt::format("{}Nodes", size.param.nodes); });

TEST(MutualExclusionWithoutALock, IsFoundToBeNone) {
  const StormReport report = Weather({.nodes = 1,
                                      .workers = 3,
                                      .names = 1,
                                      .length = milliseconds(1500),
                                      .seed = Seed(),
                                      .calm = true,
                                      .lawless = true});
  EXPECT_FALSE(report.overlaps.empty());
  EXPECT_GT(report.unfenced_violations, 0);
}

}  // namespace
}  // namespace fencepost::torture
