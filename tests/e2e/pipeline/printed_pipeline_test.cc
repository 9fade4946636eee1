// The smallest pipeline, as it is printed for users, with nothing but its addresses replaced.
#include "tests/support/paths.h"
#include "tests/support/pipeline_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;

constexpr int kRecords = 20'000;

void Replace(std::string& text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  ASSERT_NE(at, std::string::npos) << what << " is not in the example";
  text.replace(at, what.size(), with);
}

// The role of the example: it may read and write `effects`, and create the ledger.
void CreateApp(const EffectsTable& shop) {
  shop.Exec("CREATE ROLE app LOGIN");
  shop.Exec("GRANT SELECT, INSERT ON effects TO app; GRANT CREATE ON SCHEMA public TO app");
}

// As a managed one may be: what it refuses, and what it is set to.
RedisServerOptions Managed() {
  return {
      .maxmemory_policy = "volatile-lru",
      .config = {"rename-command CONFIG \"\"", "user app on >pw ~* &* +@all -@admin -@dangerous"}};
}

TEST(PrintedPipeline, RunsOnABareManagedRedisAtOnceWithAnOlderKafka) {
  KafkaBroker kafka("3.9.1");
  PostgresServer postgres;
  const EffectsTable shop(postgres, "shop");
  CreateApp(shop);
  const RedisServer redis(Managed());
  kafka.CreateTopic("orders", 12);

  std::string text = ReadFile(testing::SourcePath("config/examples/orders.yaml"));
  Replace(text, "127.0.0.1:9092", kafka.bootstrap());
  Replace(text, "127.0.0.1:6379", fmt::format("\"redis://app:pw@{}\"", redis.address()));
  Replace(text, "127.0.0.1/shop", fmt::format("127.0.0.1:{}/shop", postgres.port()));
  const TempDir folder;

  Orders orders(kafka.bootstrap(), "orders", 12, 1, 0.05);
  orders.Produce(kRecords);
  WorkerTeam team({.files = {folder.Write("orders.yaml", text)}});
  team.Start(3);
  EXPECT_TRUE(WaitUntil(seconds(20), "all workers to be ready", [&] { return team.AllReady(); }))
      << team.Tails();
  EXPECT_TRUE(WaitUntil(seconds(60), "all offsets to be committed", [&] {
    return CommittedToTheEnd(kafka, "orders", "orders");
  })) << team.Tails();
  EXPECT_NE(team[0].Log().find("INFO does not show its maxmemory-policy"), std::string::npos);
  EXPECT_EQ(team.StopAll(), "");
  team.Look();
  EXPECT_EQ(shop.Audit("orders", orders.unique()), "");
  EXPECT_EQ(team.Sum("fencepost_invariant_violations_total"), 0);
}

TEST(Audit, SeesWhatIsLostDoubledForeignOrNotInTheLedger) {
  PostgresServer postgres;
  const EffectsTable table(postgres, "audited");
  table.Exec(
      "CREATE TABLE fencepost_ledger (pipeline text, record_id text, token bigint);"
      "INSERT INTO effects VALUES ('o-0', 0, 5), ('o-1', 7, 6), ('o-2', 14, 7);"
      "INSERT INTO fencepost_ledger VALUES ('p', 'o-0', 5), ('p', 'o-1', 6), ('p', 'o-2', 7)");
  EXPECT_EQ(table.Audit("p", 3), "");
  EXPECT_EQ(table.Audit("p", 4),
            "orders that are lost: 1, the first is o-3\n"
            "orders that are not in the ledger: 1, the first is o-3\n");
  EXPECT_EQ(table.Audit("p", 2),
            "effects that nobody ordered: 1, the first is o-2\n"
            "ledger rows of no order: 1, the first is o-2\n");
  table.Exec("INSERT INTO effects VALUES ('o-1', 7, 8)");
  EXPECT_EQ(table.Audit("p", 3),
            "orders with more than one effect: 1, the first is o-1\n"
            "effects whose token is not the ledger's: 1, the first is o-1\n");
}

}  // namespace
}  // namespace fencepost::testing
