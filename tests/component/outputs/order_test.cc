// A batch leaves what its rows would leave one after the other, whatever its mix of upserts and
// tombstones.
#include <map>
#include <random>
#include <sstream>

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
  static void Add(Batch& batch, int number, const Change& change, bool by_position = false) {
    std::vector<std::pair<std::string, std::optional<std::string>>> headers;
    if (change.fence) headers.emplace_back("v", std::to_string(*change.fence));
    // The ids fall, so that their order is not that of the records.
    batch.Add({.id = by_position ? fmt::format("C/orders/3/{}", number)
                                 : fmt::format("{:06}", 999'999 - number),
               .offset = number,
               .value = fmt::format(R"({{"amount":{}}})", change.amount),
               .key = fmt::format("k{}", change.key),
               .tombstone = change.deletes,
               .headers = std::move(headers)});
  }
  std::string Table() { return Exec("SELECT id, amount, version, note FROM effects ORDER BY id"); }

  // Batches of a few keys with many ties; rows that stand at first, some without a fence.
  void CompareWithOracle(OnConflict rule, bool fenced, unsigned seed) {
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
                            .deletes = below(3) == 0,
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

// What a change meets: "+5" writes its row with the fence 5, "-5" deletes it, "+" and "-" have no
// fence. L: it lost.
struct Fences {
  const char* stands;  // "": no row, "+": one without a fence
  const char* changes;
  const char* lost;
};
constexpr Fences kFences[] = {
    {"", "+5", "."},
    {"", "-5", "."},
    {"", "-", "."},
    {"", "+5 +5", ".."},
    {"", "+5 +4", ".L"},
    {"", "+4 +5", ".."},
    {"", "+3 +2 +4 +3", ".L.L"},
    {"", "+5 -6 -6", "..."},  // Debezium: a deletion, and its tombstone
    {"", "+5 -6 -", "..."},
    {"5", "-6 -6", ".."},
    {"5", "-6 -4 -", "..."},
    {"5", "-6 +4 -3", "..L"},
    {"5", "-6 +4 -5 +4 +3", "....L"},
    {"7", "+6 -8 +5 -4", "L..L"},
    {"5", "-4 -5 -6 -5", "L..."},
    {"5", "+5", "."},
    {"5", "-5", "."},
    {"5", "+4", "L"},
    {"5", "-4", "L"},
    {"5", "+", "L"},
    {"5", "-", "L"},
    {"+", "+ -", ".."},
    {"+", "+1 + -", ".LL"},
    {"+", "-1 +", ".."},
};

// Each change in a batch of its own, all in one, and all in one with a record that is refused; each
// row of the table has its key.
TEST_P(OrderTest, AChangeIsSaidToHaveLostWhereItMeetsARowOfItsKeyWithAHigherFence) {
  enum class As : std::uint8_t { kAlone, kTogether, kApart };
  std::vector<std::vector<Change>> changes;
  for (std::istringstream words; const Fences& fences : kFences) {
    const int key = static_cast<int>(changes.size());
    auto& row = changes.emplace_back();
    words.clear();
    words.str(fences.changes);
    for (std::string word; words >> word;) {
      row.push_back({.key = key, .deletes = word[0] == '-', .fence = {}, .amount = 2});
      if (word.size() > 1) row.back().fence = std::stoi(word.substr(1));
    }
  }
  int number = 0;
  for (const bool by_position : {false, true}) {
    Exec("DROP TABLE IF EXISTS fencepost_ledger");
    const auto output =
        store_->Open(ByKey(), Rules(OnConflict::kUpdate, true), {.by_position = by_position});
    for (const As as : {As::kAlone, As::kTogether, As::kApart}) {
      Exec("DELETE FROM effects");
      for (std::size_t row = 0; row < changes.size(); ++row) {
        const std::string_view stands = kFences[row].stands;
        if (stands.empty()) continue;
        Exec(fmt::format("INSERT INTO effects VALUES ('k{}', 1, {}, 'old')", row,
                         stands == "+" ? "NULL" : stands));
      }
      std::vector<std::string> lost(changes.size());
      const std::size_t batches = as == As::kAlone ? 5 : 1;
      for (std::size_t place = 0; place < batches; ++place) {
        Batch batch;
        std::vector<std::size_t> rows;
        for (std::size_t row = 0; row < changes.size(); ++row) {
          for (std::size_t i = 0; i < changes[row].size(); ++i) {
            if (as == As::kAlone && i != place) continue;
            Add(batch, number++, changes[row][i], by_position);
            rows.push_back(row);
          }
        }
        std::vector<bool> newer;
        for (std::size_t i = 0; as == As::kAlone && i < rows.size(); ++i) {
          newer.push_back(output->HasNewer(batch.items()[i]).value());
        }
        if (as == As::kApart) Add(batch, number++, {.key = -1, .amount = 13}, by_position);
        const auto outcomes = WriteAll(*output, batch);
        ASSERT_TRUE(outcomes) << outcomes.error().error.Line();
        for (std::size_t i = 0; i < rows.size(); ++i) {
          const bool is = (*outcomes)[i].lost_to_newer;
          lost[rows[i]] += is ? 'L' : '.';
          EXPECT_TRUE(as != As::kAlone || newer[i] == is) << kFences[rows[i]].changes;
        }
      }
      for (std::size_t row = 0; row < changes.size(); ++row) {
        EXPECT_EQ(lost[row], kFences[row].lost)
            << kFences[row].stands << ": " << kFences[row].changes << ", way "
            << static_cast<int>(as) << (by_position ? " by position" : "");
      }
    }
  }
}

TEST_P(OrderTest, ABatchWithoutAFenceLeavesWhatItsRowsLeaveOneAfterTheOther) {
  CompareWithOracle(OnConflict::kUpdate, false, 4);
  CompareWithOracle(OnConflict::kIgnore, false, 5);
}

}  // namespace
}  // namespace fencepost::consumer
