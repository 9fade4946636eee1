// Mutual exclusion on real Redis nodes while workers are killed and frozen and nodes are restarted,
// wiped, frozen, and their clocks jump; the same on one, three, five and seven nodes. On one node
// there is no wipe and no jump (judge.h). FENCEPOST_SEED repeats a schedule; `./dev torture locks`
// runs it for any length.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fault/mutual_exclusion/checker.h"
#include "tests/fault/mutual_exclusion/storm.h"
#include "tests/support/process.h"

namespace fencepost::torture {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TempDir;

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

const std::string& HistoryOf(int nodes) {
  static const TempDir folder;
  static std::map<int, std::string> paths;
  return paths[nodes] = folder.File(fmt::format("{}-nodes", nodes));
}

// One storm a size for all tests of it.
const StormReport& StormOf(const Size& size) {
  static std::map<int, StormReport> reports;
  const auto [at, is_new] = reports.try_emplace(size.nodes);
  if (is_new) {
    at->second = Weather({.nodes = size.nodes,
                          .length = size.length,
                          .seed = Seed(),
                          .history = HistoryOf(size.nodes)});
  }
  return at->second;
}

class MutualExclusion : public ::testing::TestWithParam<Size> {};

TEST_P(MutualExclusion, LosesNoFencedUpdateAndLetsNoTwoLeasesStandAtOnce) {
  const StormReport& report = StormOf(GetParam());
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
  if (GetParam().length < seconds(30)) return;
  EXPECT_GT(report.restarts, 0);
  EXPECT_GT(report.wipes, 0);
  EXPECT_GT(report.jumps, 0);
}

TEST_P(MutualExclusion, IsLinearizableToItsCallersAsIsTheCounterBehindTheFence) {
  if (!WhyNotChecked().empty()) GTEST_SKIP() << WhyNotChecked();
  (void)StormOf(GetParam());
  const Checked checked = CheckHistory(HistoryOf(GetParam().nodes));
  EXPECT_EQ(checked.verdict, Verdict::kLinearizable) << checked.text;
  (void)std::fprintf(stderr, "%s", checked.text.c_str());
}

INSTANTIATE_TEST_SUITE_P(On, MutualExclusion,
                         ::testing::Values(Size{1, seconds(11)}, Size{3, seconds(11)},
                                           Size{5, seconds(40)}, Size{7, seconds(11)}),
                         [](const auto& size) { return fmt::format("{}Nodes", size.param.nodes); });

TEST(MutualExclusionWithoutALock, IsFoundToBeNone) {
  const TempDir folder;
  const std::string history = folder.File("history");
  const StormReport report = Weather({.nodes = 1,
                                      .workers = 3,
                                      .names = 1,
                                      .length = milliseconds(1500),
                                      .seed = Seed(),
                                      .calm = true,
                                      .lawless = true,
                                      .history = history});
  EXPECT_FALSE(report.overlaps.empty());
  EXPECT_GT(report.unfenced_violations, 0);
  if (!WhyNotChecked().empty()) GTEST_SKIP() << WhyNotChecked();
  const Checked checked = CheckHistory(history);
  EXPECT_THAT(checked.text, HasSubstr("lock 0: NOT linearizable"));
}

}  // namespace
}  // namespace fencepost::torture
