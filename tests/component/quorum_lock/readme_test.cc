// The example in locking/README.md is example.cc, and works.
#include <gmock/gmock.h>

#include "tests/component/quorum_lock/lock_fixture.h"
#include "tests/support/paths.h"

int ChargeOnce(const std::vector<std::string>& nodes, const std::string& invoice);

namespace fencepost::locking {
namespace {

class Readme : public LockFixture {};

TEST_F(Readme, ShowsAnExampleThatWorks) {
  EXPECT_EQ(ChargeOnce(nodes_.addresses(), "invoice-7"), 0);
  int marked = 0;
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    marked += nodes_[node].Command({"GET", "fencepost:{billing}:invoice-7"}).starts_with("D");
  }
  EXPECT_GE(marked, Quorum(3));
  EXPECT_EQ(ChargeOnce(nodes_.addresses(), "invoice-7"), 0);
}

TEST(ReadmeText, HoldsTheExampleToTheLetter) {
  const std::string root = testing::SourcePath();
  const std::string example = testing::ReadFile(root + "/tests/component/quorum_lock/example.cc");
  ASSERT_FALSE(example.empty());
  EXPECT_THAT(testing::ReadFile(root + "/locking/README.md"), ::testing::HasSubstr(example));
}

}  // namespace
}  // namespace fencepost::locking
