// The demo, as a user runs it: its last line is a JSON object that scripts may rely on.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/paths.h"
#include "tests/support/servers.h"

namespace fencepost::testing {
namespace {

std::string LastLine(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  const std::size_t start = text.rfind('\n', end);
  return text.substr(start + 1, end - start);
}

TEST(Demo, EndsWithEveryUniqueIdInEffectOnceAfterAKillAndAFreeze) {
  ProcessOptions options;
  options.argv = {testing::FencepostBinary(), "demo", "--records", "8000", "--seed", "7"};
  const Finished demo = RunToEnd(std::move(options), std::chrono::seconds(200));
  ASSERT_EQ(demo.exit_code, 0) << demo.output << demo.error_output;
  const auto told = nlohmann::json::parse(LastLine(demo.output));
  EXPECT_EQ(told["produced"], 8000);
  EXPECT_EQ(told["effects"], told["unique"]);
  EXPECT_EQ(told["lost"], 0);
  EXPECT_EQ(told["duplicated"], 0);
  EXPECT_EQ(told["workers_killed"], 1);
  EXPECT_EQ(told["workers_frozen"], 1);
  EXPECT_GT(told["dedupe_skipped"], 0);
  for (const char* key :
       {"lock_contended", "lock_expired", "fencing_rejected", "records_per_second"}) {
    EXPECT_TRUE(told.contains(key)) << key;
  }
}

TEST(Demo, RefusesTooFewWorkersAsAUsageError) {
  ProcessOptions options;
  options.argv = {testing::FencepostBinary(), "demo", "--workers", "2"};
  EXPECT_EQ(RunToEnd(std::move(options)).exit_code, 2);
}

}  // namespace
}  // namespace fencepost::testing
