// A batch leaves what its rows would leave one after the other, whatever its mix of upserts and
// tombstones.
#include <map>
#include <random>

#include <gmock/gmock.h>

#include "tests/component/outputs/store.h"

namespace fencepost::consumer {
namespace {

using enum WriteResult;

struct Change {
  int key = 0;
  bool deletes = false;
  std::optional<int> fence;
  int amount = 0;
};

RowRules Rules(OnConflict rule, bool fenced) {
  RowRules rules{.on_conflict = rule, .key = {"id"}, .on_null_value = OnNull::kDelete};
  if (!fenced) return rules;
  rules.fence_column = "version";
  rules.fence_by = Parsed("header:v?");
  return rules;
}

// The table as a map, and each change applied to it alone.
class Oracle {
 public:
  Oracle(OnConflict rule, bool fenced) : rule_(rule), fenced_(fenced) {}

  void Insert(int key, std::optional<int> fence) { rows_[key] = {0, fence, "old"}; }
  // Whether it lost to a higher fence.
  bool Apply(const Change& change) {
    const auto at = rows_.find(change.key);
    const bool stands = at != rows_.end();
    if (!stands) {
      if (!change.deletes) rows_[change.key] = {change.amount, FenceOf(change), "new"};
      return false;
    }
    if (fenced_ && !(change.fence && (!at->second.fence || *change.fence > *at->second.fence))) {
      return at->second.fence && (!change.fence || *change.fence < *at->second.fence);
    }
    if (change.deletes) {
      rows_.erase(at);
    } else if (rule_ == OnConflict::kUpdate) {
      at->second.amount = change.amount;
      at->second.fence = fenced_ ? change.fence : at->second.fence;
    }
    return false;
  }
  [[nodiscard]] std::string Text() const {
    std::string text;
    for (const auto& [key, row] : rows_) {
      text += fmt::format("{}k{}|{}|{}|{}", text.empty() ? "" : " ", key, row.amount,
                          row.fence ? std::to_string(*row.fence) : "NULL", row.note);
    }
    return text;
  }

 private:
  struct Row {
    int amount = 0;
    std::optional<int> fence;
    std::string note;  // "old": the table's row of the beginning, with its other columns
  };
  [[nodiscard]] std::optional<int> FenceOf(const Change& change) const {
    return fenced_ ? change.fence : std::nullopt;
  }

  const OnConflict rule_;
  const bool fenced_;
  std::map<int, Row> rows_;
};

class OrderTest : public StoreTest {
 protected:
  static void Add(Batch& batch, int number, const Change& change) {
    std::vector<std::pair<std::string, std::optional<std::string>>> headers;
    if (change.fence) headers.emplace_back("v", std::to_string(*change.fence));
    // The ids fall, so that their order is not that of the records.
    batch.Add({.id = fmt::format("{:06}", 999'999 - number),
               .offset = number,
               .value = fmt::format(R"({{"amount":{}}})", change.amount),
               .key = fmt::format("k{}", change.key),
               .tombstone = change.deletes,
               .headers = std::move(headers)});
  }
  std::string Table() { return Exec("SELECT id, amount, version, note FROM effects ORDER BY id"); }

  // Batches of a few keys with many ties; rows that stand at first, some without a fence.
  void CompareWithOracle(OnConflict rule, bool fenced, unsigned seed, bool with_deletes = true) {
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    Exec("DROP TABLE IF EXISTS fencepost_ledger");
    const auto output = store_->Open(ByKey(), Rules(rule, fenced));
    int number = 0;
    for (int round = 0; round < 20; ++round) {
      Exec("DELETE FROM effects");
      Oracle oracle(rule, fenced);
      for (int key = 0; key < 4; ++key) {
        if (below(2) == 0) continue;
        const auto fence = below(4) == 0 ? std::nullopt : std::optional(below(12));
        oracle.Insert(key, fence);
        Exec(fmt::format("INSERT INTO effects VALUES ('k{}', 0, {}, 'old')", key,
                         fence ? std::to_string(*fence) : "NULL"));
      }
      Batch batch;
      std::string story;
      std::vector<bool> lost;
      for (int i = 1 + below(24); i > 0; --i) {
        const Change change{.key = below(4),
                            .deletes = with_deletes && below(3) == 0,
                            .fence = below(8) == 0 ? std::nullopt : std::optional(below(12)),
                            .amount = 100 + i};
        Add(batch, number++, change);
        lost.push_back(oracle.Apply(change));
        story += fmt::format(" k{}{}{}", change.key, change.deletes ? "-" : "+",
                             change.fence ? std::to_string(*change.fence) : "null");
      }
      const auto outcomes = WriteAll(*output, batch);
      ASSERT_TRUE(outcomes) << outcomes.error().error.Line();
      for (std::size_t i = 0; i < lost.size(); ++i) {
        ASSERT_EQ((*outcomes)[i].result, kCommitted);
        if (with_deletes && IsPostgres()) continue;  // a key's deletions make it a guess there
        ASSERT_EQ((*outcomes)[i].lost_to_newer, lost[i])
            << "seed " << seed << " round " << round << " change " << i << story;
      }
      ASSERT_EQ(Table(), oracle.Text()) << "seed " << seed << " round " << round << story;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Stores, OrderTest, kStores, StoreName);

TEST_P(OrderTest, AStaleTombstoneOfABatchLeavesTheRowThatStandsAndWhatHangsOnIt) {
  Exec(fmt::format("CREATE TABLE children (parent {} REFERENCES effects (id) ON DELETE CASCADE)",
                   Text()));
  Exec("INSERT INTO effects VALUES ('k1', 1, 7, 'kept')");
  Exec("INSERT INTO children VALUES ('k1')");
  const auto output = store_->Open(ByKey(), Rules(OnConflict::kUpdate, true));
  Batch batch;
  Add(batch, 1, {.key = 1, .fence = 9, .amount = 2});
  Add(batch, 2, {.key = 1, .deletes = true, .fence = 8});
  EXPECT_EQ(Results(*output, batch), All(2, kCommitted));
  EXPECT_EQ(Table(), "k1|2|9|kept");
  EXPECT_EQ(Exec("SELECT * FROM children"), "k1");
}

TEST_P(OrderTest, ABatchWithAFenceLeavesWhatItsRowsLeaveOneAfterTheOther) {
  for (const unsigned seed : {1u, 2u, 3u}) CompareWithOracle(OnConflict::kUpdate, true, seed);
}

TEST_P(OrderTest, ARowIsSaidToHaveLostIfItsFenceIsLowerThanThatOfTheRowBeforeIt) {
  for (const unsigned seed : {6u, 7u, 8u}) {
    CompareWithOracle(OnConflict::kUpdate, true, seed, /*with_deletes=*/false);
  }
}

TEST_P(OrderTest, AStaleDeletionIsSaidToHaveLostAndOneOfNoRowIsNot) {
  Exec("INSERT INTO effects VALUES ('k1', 1, 7, 'kept')");
  const auto output = store_->Open(ByKey(), Rules(OnConflict::kUpdate, true));
  Batch batch;
  Add(batch, 1, {.key = 1, .deletes = true, .fence = 6});
  Add(batch, 2, {.key = 2, .deletes = true, .fence = 6});
  Add(batch, 3, {.key = 3, .fence = 6});
  const auto outcomes = WriteAll(*output, batch);
  ASSERT_TRUE(outcomes);
  EXPECT_TRUE((*outcomes)[0].lost_to_newer);
  EXPECT_FALSE((*outcomes)[1].lost_to_newer);
  EXPECT_FALSE((*outcomes)[2].lost_to_newer);
}

TEST_P(OrderTest, ABatchWithoutAFenceLeavesWhatItsRowsLeaveOneAfterTheOther) {
  CompareWithOracle(OnConflict::kUpdate, false, 4);
  CompareWithOracle(OnConflict::kIgnore, false, 5);
}

}  // namespace
}  // namespace fencepost::consumer
