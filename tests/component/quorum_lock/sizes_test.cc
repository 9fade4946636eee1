// What deploy/SIZING.md says that a mark takes on a node.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "locking/recipes/batch_lock.h"
#include "tests/component/quorum_lock/lock_fixture.h"
#include "tests/support/document.h"

namespace fencepost::locking {
namespace {

class OneNode : public LockFixture {
 protected:
  OneNode() : LockFixture(1) {}
  double UsedMemory() {
    const std::string info = nodes_[0].Command({"INFO", "memory"});
    return std::stod(info.substr(info.find("used_memory:") + 12));
  }
};

TEST_F(OneNode, KeepsADoneMarkInAsManyBytesAsTheDocumentSays) {
  constexpr int kMarks = 20'480;
  constexpr int kBatch = 512;
  constexpr std::size_t kKey = 39;  // as the document has it
  const auto lock = Connect();
  const auto mark = [&](int from) {
    std::vector<std::string> names;
    for (int i = from; i < from + kBatch; ++i) {
      names.push_back(fmt::format("order-{:016}", 7'919LL * i));
      EXPECT_EQ(("fencepost:{test}:" + names.back()).size(), kKey);
    }
    Batch batch = AcquireFree(*lock, names);
    ASSERT_EQ(batch.leases.size(), names.size());
    for (const auto& done : batch.Done(1)) ASSERT_TRUE(done);
  };
  mark(0);  // connections, scripts and their buffers are there
  const double before = UsedMemory();
  for (int done = kBatch; done < kMarks + kBatch; done += kBatch) mark(done);
  const double bytes = (UsedMemory() - before) / kMarks;
  const double stated =
      testing::Stated("deploy/SIZING.md", R"(memory of a lock node \| (\d+) bytes a DONE mark)");
  EXPECT_NEAR(bytes, stated, stated / 4);
}

}  // namespace
}  // namespace fencepost::locking
