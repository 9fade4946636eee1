// Behind a record that takes no effect, nothing of its order chain takes effect.
#include <gmock/gmock.h>

#include "tests/component/outputs/store.h"

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;
using enum WriteResult;

class ChainsTest : public StoreTest {
 protected:
  // One row an account; who comes last overwrites.
  [[nodiscard]] std::unique_ptr<Output> OpenAccounts() {
    return Open({.on_conflict = OnConflict::kUpdate, .key = {"id"}});
  }
  static Batch::Entry Change(const char* id, Offset offset, const char* account, int amount,
                             std::uint64_t chain) {
    return {.id = id,
            .offset = offset,
            .value = fmt::format(R"({{"amount":{}}})", amount),
            .key = account,
            .chain = chain};
  }
};

TEST_P(ChainsTest, ALaterChangeOfTheSameKeyWaitsBehindAnIdWithOtherContent) {
  const auto output = OpenAccounts();
  const Batch first{Change("a1", 1, "a", 1, 7)};
  ASSERT_THAT(Results(*output, first), ElementsAre(kCommitted));
  Batch batch;
  batch.Add(Change("a0", 2, "a", 5, 7));
  Batch::Entry other = Change("a1", 3, "a", 9, 7);
  other.crc = 99;
  batch.Add(std::move(other));
  batch.Add(Change("b1", 4, "b", 1, 8));
  batch.Add(Change("a2", 5, "a", 2, 7));
  const auto outcomes = WriteAll(*output, batch);
  ASSERT_TRUE(outcomes) << outcomes.error().error.Line();
  EXPECT_EQ((*outcomes)[0].result, kCommitted) << "it stands before the conflict";
  EXPECT_EQ((*outcomes)[1].result, kIdConflict);
  EXPECT_THAT((*outcomes)[1].detail, ::testing::HasSubstr("orders/3/1"));
  EXPECT_EQ((*outcomes)[2].result, kCommitted);
  EXPECT_EQ((*outcomes)[3].result, kNotWritten);
  EXPECT_EQ(Effects(), "a|5|NULL b|1|NULL");
  EXPECT_EQ(Ledger(), "a0 a1 b1");
}

// By id and by position, with more records than one part of the search.
TEST_P(ChainsTest, EachKeysChangesTakeEffectInOrderUpToTheFirstThatIsRefused) {
  for (const bool by_position : {false, true}) {
    Exec("DELETE FROM effects");
    if (by_position) Exec("DELETE FROM fencepost_ledger");
    const auto output =
        Open({.on_conflict = OnConflict::kUpdate, .key = {"id"}}, {.by_position = by_position});
    constexpr int kKeys = 7;
    constexpr int kChanges = 140;
    Batch batch;
    for (int n = 0; n < kChanges; ++n) {
      const int key = n % kKeys;
      // Key 2 ends at its fifth change, key 5 at its first; the others have them all.
      const bool refused = (key == 2 && n == 4 * kKeys + 2) || n == 5;
      const std::string id =
          by_position ? fmt::format("C/orders/3/{}", n + 1000) : fmt::format("c{}", n);
      batch.Add({.id = id,
                 .offset = n + 1000,
                 .value = fmt::format(R"({{"amount":{}}})", refused ? 13 : 100 + n),
                 .key = fmt::format("k{}-{:03}", key, n),
                 .chain = static_cast<std::uint64_t>(key + 1)});
    }
    const auto results = Results(*output, batch);
    std::vector<WriteResult> due;
    for (int n = 0; n < kChanges; ++n) {
      const int key = n % kKeys;
      const int last = key == 2 ? 4 * kKeys + 2 : key == 5 ? 5 : kChanges;
      due.push_back(n < last ? kCommitted : n == last ? kBadRecord : kNotWritten);
    }
    EXPECT_EQ(results, due);
    EXPECT_EQ(Exec("SELECT id FROM effects WHERE id LIKE 'k2%' OR id LIKE 'k5%' ORDER BY id"),
              "k2-002 k2-009 k2-016 k2-023");
    EXPECT_EQ(Exec("SELECT count(*) FROM effects"), "104");
    EXPECT_EQ(Results(*output, batch), [&] {
      for (WriteResult& result : due) {
        if (result == kCommitted) result = kOwnEarlier;
      }
      return due;
    }()) << "what was refused is not done, and what was written is";
  }
}

INSTANTIATE_TEST_SUITE_P(Databases, ChainsTest, kStores, StoreName);

}  // namespace
}  // namespace fencepost::consumer
