#include "consumer/outputs/writer.h"

#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace fencepost::consumer {
namespace {

// Remembers with what scope it was pruned.
class PrunedOutput final : public Output {
 public:
  struct Seen {
    std::mutex mutex;
    int looks = 0;
    std::optional<PruneScope> scope;
    bool lost = false;  // pruning finds that the database lost commits
    std::string ended;
  };
  explicit PrunedOutput(Seen& seen) : seen_(seen) {}
  tl::expected<void, OutputError> Prepare() override { return {}; }
  tl::expected<std::vector<WriteOutcome>, OutputError> Write(const WriteRequest& request) override {
    return std::vector<WriteOutcome>(request.items.size());
  }
  tl::expected<std::vector<std::optional<LedgerEntry>>, OutputError> Lookup(
      const std::vector<std::string>& ids) override {
    const std::lock_guard lock(seen_.mutex);
    ++seen_.looks;
    return std::vector<std::optional<LedgerEntry>>(ids.size());
  }
  tl::expected<std::size_t, OutputError> Prune(const PruneScope& scope, std::size_t) override {
    const std::lock_guard lock(seen_.mutex);
    seen_.scope = scope;
    if (!seen_.lost) return 0;
    return tl::unexpected(
        OutputError{.error = {"lost_commits", "the database lost commits", "", ""}, .fatal = true});
  }
  void Interrupt() override {}

 private:
  Seen& seen_;
};

// It prunes every time that it has nothing else to do.
class PruningWriter : public ::testing::Test {
 protected:
  bool Holds(const std::function<bool()>& condition) {
    return testing::WaitUntil(std::chrono::seconds(10), [&] {
      const std::lock_guard lock(seen_.mutex);
      return condition();
    });
  }

  PrunedOutput::Seen seen_;
  ConsumerObserver observer_;
  Writer writer_{std::make_unique<PrunedOutput>(seen_),
                 PruneScope{.keep = std::chrono::hours(1), .committed = {}, .topics = {"orders"}},
                 &observer_,
                 {.written = [](auto, auto) {},
                  .looked_up = [](auto, auto) {},
                  .state = [](bool, const std::string&) {},
                  .fatal =
                      [this](const Error& error) {
                        const std::lock_guard lock(seen_.mutex);
                        seen_.ended = error.code;
                      }},
                 kMostInARow,
                 std::chrono::milliseconds(0)};
};

TEST_F(PruningWriter, PrunesNothingBeforeItKnowsWhatTheGroupHasCommitted) {
  writer_.Start();
  for (int look = 1; look <= 3; ++look) {
    writer_.LookUp(std::make_unique<LookupBatch>());
    ASSERT_TRUE(Holds([&] { return seen_.looks == look; }));
  }
  ASSERT_TRUE(Holds([&] { return !seen_.scope; }));
  writer_.SetPrunable({{{"orders", 3}, 17}});
  ASSERT_TRUE(Holds([&] { return seen_.scope.has_value(); }));
  writer_.Stop();
  EXPECT_EQ(seen_.scope->keep, std::chrono::hours(1));
  ASSERT_EQ(seen_.scope->committed.size(), 1u);
  EXPECT_EQ(seen_.scope->committed[0].next, 17);
  EXPECT_EQ(seen_.scope->topics.names(), std::vector<std::string>{"orders"});
}

TEST_F(PruningWriter, EndsWhenPruningFindsThatTheDatabaseLostCommits) {
  seen_.lost = true;
  writer_.SetPrunable({});
  writer_.Start();
  EXPECT_TRUE(Holds([&] { return seen_.ended == "lost_commits"; }));
}

}  // namespace
}  // namespace fencepost::consumer
