// What the shell offers, asked of a real bash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace fencepost::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// What bash offers behind these words, the last of which is not complete.
std::string Offered(const std::string& words) {
  const std::string script = "source <(" + FencepostBinary() + " completion bash); COMP_WORDS=(" +
                             FencepostBinary() + " " + words +
                             "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _fencepost; echo "
                             "${COMPREPLY[@]}";
  const Finished done = RunToEnd({.argv = {"/bin/bash", "-c", script}});
  EXPECT_EQ(done.exit_code, 0) << done.output;
  return done.output;
}

TEST(Completion, OffersCommandsTheirCommandsAndTheirOptions) {
  EXPECT_EQ(Offered("li"), "lint\n");
  EXPECT_EQ(Offered("locks i"), "init inspect\n");
  EXPECT_THAT(Offered("locks init --if"), StartsWith("--if-missing"));
  EXPECT_EQ(Offered("run --wor"), "--worker\n");
}

TEST(Completion, LeavesFilesToTheShell) {
  EXPECT_EQ(Offered("run ord"), "\n");
  EXPECT_EQ(Offered("run ''"), "\n");
}

TEST(Completion, ForFishNamesEachWordWithWhatItDoes) {
  const auto fish = [](std::vector<std::string> words) {
    words.insert(words.begin(), {FencepostBinary(), "completion", "fish"});
    return RunToEnd({.argv = words}).output;
  };
  EXPECT_THAT(fish({}), HasSubstr("(fencepost completion fish -- "));
  EXPECT_THAT(fish({"--", "lin"}), StartsWith("lint\tcheck pipeline files"));
  EXPECT_EQ(fish({"--", "run", "--wor"}), "--worker\tthis worker's name\n");
}

TEST(Completion, OfAnotherShellIsAUsageError) {
  EXPECT_EQ(RunToEnd({.argv = {FencepostBinary(), "completion", "tcsh"}}).exit_code, 2);
}

}  // namespace
}  // namespace fencepost::testing
