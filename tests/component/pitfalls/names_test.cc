// What a name leaves behind on the nodes. The table of mistakes stands in leases_test.cc.
#include <gmock/gmock.h>

#include "tests/component/pitfalls/pitfall_fixture.h"

namespace fencepost::locking {
namespace {

using ::testing::Each;

// A thousand names: released, done, dropped by the destructor, or left to expire.
class NamePitfall : public PitfallTest {
 protected:
  static constexpr int kNames = 1000;
  static constexpr Millis kLongest = 3s;  // a mark stays for that and 2 × max_skew at least

  NamePitfall() : PitfallTest(kLongest) {}

  static QuorumLock::Options Short(QuorumLock::Options options) {
    options.lock.max_skew = 300ms;  // what a node keeps of a lease stays for twice that longer
    options.lock.ttl = kLongest;
    options.lock.remember_done = 1s;
    return options;
  }
  void UseThem(QuorumLock& lock) {
    std::vector<std::string> names;
    for (int i = 0; i < kNames; ++i) names.push_back("name-" + std::to_string(i));
    const AcquireOptions options{.wait = 20s, .watchdog = false};
    auto leases = lock.AcquireAll(names, options);
    for (std::size_t i = 0; i < leases.size(); ++i) {
      ASSERT_TRUE(leases[i]) << leases[i].error().Line();
      switch (i % 4) {
        case 0:
          leases[i]->ReleaseAsync();
          break;
        case 1:
          if (i < 400) done_ += leases[i]->Done().has_value() ? 1 : 0;  // each waits for the nodes
          break;
        case 2:
          leases[i] = Lease();
          break;
        default:
          expiring_.push_back(std::move(*leases[i]));
      }
    }
    EXPECT_GT(done_, 0);
  }
  // Keys of a node without an expiry, in one text; and how many there are in all.
  static std::string Endless(const testing::RedisServer& node) {
    return node.Command({"EVAL",
                         "local found, cursor = {}, '0' repeat local page = redis.call('SCAN', "
                         "cursor, 'COUNT', 1000) cursor = page[1] for _, key in ipairs(page[2]) do "
                         "if redis.call('PTTL', key) == -1 then table.insert(found, key) end end "
                         "until cursor == '0' return table.concat(found, ' ')",
                         "0"});
  }
  std::vector<std::string> EndlessEverywhere() {
    std::vector<std::string> all;
    for (std::size_t node = 0; node < nodes_.size(); ++node) all.push_back(Endless(nodes_[node]));
    return all;
  }

  std::vector<Lease> expiring_;
  int done_ = 0;
};

TEST_F(NamePitfall, NothingButTheSentinelStays) {
  const auto lock = Connect(Short(Options()));
  UseThem(*lock);
  EXPECT_GT(std::stoi(nodes_[0].Command({"DBSIZE"})), kNames / 2);
  EXPECT_THAT(EndlessEverywhere(), Each(std::string("fencepost::sentinel")));
  expiring_.clear();
  EXPECT_THAT(EndlessEverywhere(), Each(std::string("fencepost::sentinel")));
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    EXPECT_TRUE(WaitUntil(30s, "all names to be forgotten",
                          [&] { return nodes_[node].Command({"DBSIZE"}) == "1"; }))
        << nodes_[node].Command({"DBSIZE"}) << " keys";
  }
}

}  // namespace
}  // namespace fencepost::locking
