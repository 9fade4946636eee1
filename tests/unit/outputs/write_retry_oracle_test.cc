// Tables, batches and chains drawn at random, and what must hold of all of them.
#include <deque>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "tests/unit/outputs/scripted_table.h"

namespace fencepost::consumer {
namespace {

class Drawn {
 public:
  explicit Drawn(unsigned seed) : random_(seed), run_(table_) {
    most_chains_ = Pick({1, 3, 20, 1000});
    const int bad = Pick({0, 0, 1, 5, 30});
    const int locked = Pick({0, 0, 0, 2});
    for (int id = 0; id < kItems; ++id) {
      chain_[id] = Chance(70) ? 1 + static_cast<std::uint64_t>(Below(most_chains_)) : 0;
      if (Chance(bad)) table_.refused.insert(id);
      if (Chance(Pick({0, 3}))) table_.unruly.insert(id);
      if (Chance(2)) table_.conflicting.insert(id);
      if (Chance(locked)) table_.locked.insert(id);
      if (Chance(2)) table_.cost[id] = 40;
    }
    table_.savepoints = Chance(70);
    if (Chance(40)) table_.most_cost = Pick({39, 60, 200});
    if (Chance(40)) table_.most_items = static_cast<std::size_t>(Pick({7, 60, 300}));
  }

  // As the flow: what is not written comes again, what is refused is dead at once; two batches are
  // out at a time, so each but the first is filled before the one before it is answered.
  void Run() {
    std::set<int> waiting;
    for (int id = 0; id < kItems; ++id) waiting.insert(id);
    std::deque<Out> out;
    for (int round = 0; round < 1000 && !(waiting.empty() && out.empty()); ++round) {
      if (round == 100) table_.locked.clear();
      while (out.size() < 2 && !waiting.empty()) {
        Out& batch = out.emplace_back();
        batch.answered = run_.batch();
        for (int size = 1 + Below(150); size > 0 && !waiting.empty(); --size) {
          batch.ids.push_back(*waiting.begin());
          waiting.erase(waiting.begin());
        }
      }
      for (const int id : Write(out.front())) waiting.insert(id);
      out.pop_front();
    }
    left_ = waiting.size() + out.size();
  }

  void Check() {
    EXPECT_EQ(left_, 0u) << "everything is decided in the end";
    for (int id = 0; id < kItems; ++id) {
      const bool mine = Guilty(id);
      EXPECT_NE(mine, table_.committed.contains(id)) << id;
      EXPECT_EQ(mine, dead_.contains(id)) << id;
    }
    for (const auto& [chain, ids] : table_.order) {
      EXPECT_TRUE(std::ranges::is_sorted(ids)) << "chain " << chain;
    }
  }

 private:
  static constexpr int kItems = 600;
  struct Out {
    std::vector<int> ids;
    std::uint64_t answered = 0;
  };

  int Below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool Chance(int percent) { return Below(100) < percent; }
  int Pick(std::vector<int> from) { return from[random_() % from.size()]; }
  [[nodiscard]] bool Guilty(int id) const {
    const bool slow = table_.cost.contains(id) && table_.cost.at(id) > table_.most_cost;
    return slow || table_.refused.contains(id) || table_.unruly.contains(id) ||
           table_.conflicting.contains(id);
  }

  // What comes again.
  std::vector<int> Write(const Out& batch) {
    Items items;
    for (const int id : batch.ids) items.Add(id, chain_[id]);
    table_.transactions = 0;
    const auto outcomes = run_.Write(items, batch.answered);
    EXPECT_LE(table_.transactions, 3 * static_cast<int>(batch.ids.size()) + 40);
    std::vector<int> again;
    std::set<std::uint64_t> held;
    for (std::size_t i = 0; i < batch.ids.size(); ++i) {
      const int id = batch.ids[i];
      const WriteResult result = outcomes[i].result;
      if (result == WriteResult::kNotWritten) {
        again.push_back(id);
      } else if (!EffectIsWritten(result)) {
        dead_.insert(id);
      } else {
        EXPECT_FALSE(held.contains(chain_[id])) << id << " took effect behind one that did not";
      }
      if (!EffectIsWritten(result) && chain_[id] != 0) held.insert(chain_[id]);
    }
    return again;
  }

  std::mt19937 random_;
  ScriptedTable table_;
  PlanRun run_;
  int most_chains_ = 1;
  std::map<int, std::uint64_t> chain_;
  std::set<int> dead_;
  std::size_t left_ = 0;
};

TEST(WriteRetryOracle, GoodRecordsAreCommittedInOrderAndOnlyTheGuiltyAreBad) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    Drawn drawn(seed);
    drawn.Run();
    drawn.Check();
    if (::testing::Test::HasFailure()) {
      FAIL() << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace fencepost::consumer
