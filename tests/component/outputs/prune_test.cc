// What the ledger may forget, in every database.
#include <functional>
#include <utility>

#include <fmt/chrono.h>
#include <gmock/gmock.h>
#include <sqlite3.h>

#include "consumer/outputs/ledger/ledger.h"
#include "tests/component/outputs/store.h"

namespace fencepost::consumer {
namespace {

using std::chrono::hours;
using ::testing::ElementsAre;
using enum WriteResult;

class PruneTest : public StoreTest {
 protected:
  // `count` rows ID0001 and on, of offsets from 0, that were completed so many hours ago.
  void Rows(const std::string& pipeline, const std::string& id, const std::string& source,
            int count, int hours_ago) {
    const auto at = std::chrono::system_clock::now() - std::chrono::hours(hours_ago);
    const char* const format = IsMysql() ? "{:%Y-%m-%d %H:%M:%S}" : "{:%Y-%m-%dT%H:%M:%S}.000Z";
    const std::string time = fmt::format(fmt::runtime(format), fmt::gmtime(at));
    std::string rows;
    for (int i = 0; i < count; ++i) {
      rows += fmt::format("{}('{}', '{}{:05}', 1, 'w', '{}/{}', 1, '{}')", i == 0 ? "" : ",",
                          pipeline, id, i, source, i, time);
    }
    Exec("INSERT INTO fencepost_ledger VALUES " + rows);
  }
  std::string Count(const std::string& where) {
    return Exec("SELECT count(*) FROM fencepost_ledger WHERE " + where);
  }
  static PruneScope Scope(std::vector<SourceOffset> committed) {
    return {.keep = hours(1), .committed = std::move(committed), .topics = {"orders"}};
  }
};
INSTANTIATE_TEST_SUITE_P(Stores, PruneTest, kStores, StoreName);

TEST_P(PruneTest, ForgetsOldRowsOfItsOwnPipelineInSmallBatches) {
  const auto output = Open({});
  ASSERT_TRUE(output->Prepare());
  Rows("orders", "old", "orders/3", 7, 2);
  Rows("orders", "new", "orders/3", 3, 0);
  Rows("refunds", "old", "orders/3", 7, 2);
  const PruneScope scope = Scope({{{"orders", 3}, 100}});
  EXPECT_EQ(output->Prune(scope, 5).value(), 5u);
  EXPECT_EQ(output->Prune(scope, 5).value(), 2u);
  EXPECT_EQ(output->Prune(scope, 5).value(), 0u);
  EXPECT_EQ(Count("pipeline = 'orders'"), "3");
  EXPECT_EQ(Count("pipeline = 'refunds'"), "7");
}

TEST_P(PruneTest, KeepsRowsThatTheGroupHasNotCommittedHoweverOldTheyAre) {
  const auto output = Open({});
  ASSERT_TRUE(output->Prepare());
  Rows("orders", "a", "orders/3", 10, 2);
  Rows("orders", "b", "orders/4", 10, 2);
  Rows("orders", "c", "orders/33", 10, 2);
  EXPECT_EQ(output->Prune(Scope({}), 100).value(), 0u);
  EXPECT_EQ(output->Prune(Scope({{{"orders", 3}, 4}, {{"others", 4}, 10}}), 100).value(), 4u);
  EXPECT_EQ(Exec("SELECT min(source) FROM fencepost_ledger WHERE record_id LIKE 'a%'"),
            "orders/3/4");
  EXPECT_EQ(Count("record_id LIKE 'b%' OR record_id LIKE 'c%'"), "20");
}

// A restored backup: rows older than `keep`, and their records come again.
TEST_P(PruneTest, RecordsWhoseRowsAreOlderThanKeepAreSkippedWhenTheyComeAgain) {
  const auto output = Open({});
  Batch batch;
  for (int i = 0; i < 4; ++i) {
    batch.Add({.id = fmt::format("r{}", i),
               .offset = i,
               .value = R"({"amount":1})",
               .key = fmt::format("r{}", i)});
  }
  ASSERT_THAT(Results(*output, batch), ElementsAre(kCommitted, kCommitted, kCommitted, kCommitted));
  Exec(IsPostgres() ? "UPDATE fencepost_ledger SET completed_at = now() - interval '2 hours'"
                    : "UPDATE fencepost_ledger SET completed_at = '2020-01-01T00:00:00.000'");
  Exec("DELETE FROM effects");  // a second effect shows as a row
  EXPECT_EQ(output->Prune(Scope({{{"orders", 3}, 2}}), 100).value(), 2u);
  EXPECT_THAT(Results(*output, batch),
              ElementsAre(kCommitted, kCommitted, kOwnEarlier, kOwnEarlier));
  EXPECT_EQ(Effects(), "r0|1|NULL r1|1|NULL");
}

TEST_P(PruneTest, ForgetsRowsOfTopicsThatAreReadNoMore) {
  const auto output = Open({});
  ASSERT_TRUE(output->Prepare());
  Rows("orders", "gone", "former.topic/0", 5, 2);
  Rows("orders", "odd", "no source", 5, 2);
  Rows("orders", "b", "orders/0", 5, 2);
  EXPECT_EQ(output->Prune(Scope({}), 100).value(), 5u);
  EXPECT_EQ(Count("record_id LIKE 'gone%'"), "0");
}

TEST_P(PruneTest, FindsWhatMayGoBehindManyRowsThatMustStay) {
  const auto output = Open({});
  ASSERT_TRUE(output->Prepare());
  const int many = static_cast<int>(2 * kPruneWindow + 10);  // all of one time
  Rows("orders", "stays", "orders/7", many, 3);
  Rows("orders", "goes", "orders/3", 20, 2);
  const PruneScope scope = Scope({{{"orders", 3}, 100}});
  std::size_t gone = 0;
  for (int call = 0; call < 6; ++call) gone += output->Prune(scope, 10).value();
  EXPECT_EQ(Count("record_id LIKE 'goes%'"), "0");
  EXPECT_EQ(gone, 20u);
  EXPECT_EQ(Count("record_id LIKE 'stays%'"), std::to_string(many));
}

// Runs something of the test's just before a connection that was opened meanwhile begins its next
// transaction.
class BeforeTransaction {
 public:
  BeforeTransaction() { sqlite3_auto_extension(reinterpret_cast<void (*)()>(&Watch)); }
  ~BeforeTransaction() {
    sqlite3_cancel_auto_extension(reinterpret_cast<void (*)()>(&Watch));
    what_ = nullptr;
  }
  BeforeTransaction(const BeforeTransaction&) = delete;
  BeforeTransaction& operator=(const BeforeTransaction&) = delete;
  static void Run(std::function<void()> what) { what_ = std::move(what); }
  static bool Ran() { return !what_; }

 private:
  static int Watch(sqlite3* db, const char** /*error*/, const void* /*api*/) {
    return sqlite3_trace_v2(db, SQLITE_TRACE_STMT, &OnStatement, nullptr);
  }
  static int OnStatement(unsigned /*event*/, void* /*self*/, void* /*statement*/, void* sql) {
    const bool begins = std::string_view(static_cast<const char*>(sql)) == "BEGIN IMMEDIATE";
    if (begins && what_) std::exchange(what_, nullptr)();
    return 0;
  }
  static inline std::function<void()> what_;
};

TEST(PruneInSqlite, KeepsARowThatWasForgottenAndWrittenAnewAfterItWasFound) {
  Store store(Store::Kind::kSqlite);
  store.Exec("CREATE TABLE effects (id text, amount integer)");
  const BeforeTransaction before;
  const auto output = store.Open(Columns({{"id", "key"}, {"amount", "json:/amount"}}), {}, {});
  ASSERT_TRUE(output->Prepare());
  store.Exec(
      "INSERT INTO fencepost_ledger SELECT 'orders', column1, 1, 'w', 'orders/3/' || column2, 1,"
      " '2020-01-01T00:00:00.000Z' FROM (VALUES ('later', 1), ('old', 2), ('young', 3))");
  const PruneScope scope{
      .keep = hours(1), .committed = {{{"orders", 3}, 100}}, .topics = {"orders"}};
  BeforeTransaction::Run([&] {
    store.Exec(
        "UPDATE fencepost_ledger SET completed_at = '2999-01-01T00:00:00.000Z'"
        " WHERE record_id = 'young';"
        "UPDATE fencepost_ledger SET source = 'orders/3/100' WHERE record_id = 'later'");
  });
  EXPECT_EQ(output->Prune(scope, 10).value(), 1u);
  EXPECT_TRUE(BeforeTransaction::Ran());
  EXPECT_EQ(store.Exec("SELECT record_id FROM fencepost_ledger ORDER BY 1"), "later young");
}

TEST(PruneInSqlite, DoesNotFollowAStepOfTheHostsClock) {
  Store store(Store::Kind::kSqlite);
  store.Exec("CREATE TABLE effects (id text, amount integer)");
  locking::Now now = locking::ReadClocks();
  const auto output = store.Open(Columns({{"id", "key"}, {"amount", "json:/amount"}}), {},
                                 {.keep = {}, .group = "", .clock = [&now] { return now; }});
  const Batch batch{{.id = "a", .value = R"({"amount":1})", .key = "a"}};
  ASSERT_THAT(Results(*output, batch), ElementsAre(kCommitted));
  const PruneScope scope{
      .keep = hours(1), .committed = {{{"orders", 3}, 100}}, .topics = {"orders"}};
  now.wall += hours(24 * 30);
  EXPECT_EQ(output->Prune(scope, 10).value(), 0u) << "the host's clock jumped a month ahead";
  now.boot += hours(2);
  EXPECT_EQ(output->Prune(scope, 10).value(), 1u) << "and this time passed";
}

}  // namespace
}  // namespace fencepost::consumer
