// Rules on rows where PostgreSQL has more to say than SQLite: rights, types, races.
#include <latch>
#include <thread>

#include <gmock/gmock.h>

#include "tests/component/outputs/postgres_fixture.h"

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using enum WriteResult;

class PostgresRulesTest : public PostgresTest {
 protected:
  PostgresRulesTest() { Exec("CREATE TABLE items (id text PRIMARY KEY, n int, version bigint)"); }
  [[nodiscard]] PostgresOptions Fenced() const {
    return {.dsn = Dsn(),
            .table = "items",
            .columns = Columns({{"id", "key"}, {"n", "json:/n"}}),
            .rules = {.on_conflict = OnConflict::kUpdate,
                      .key = {"id"},
                      .fence_column = "version",
                      .fence_by = Selector::Parse("offset").value(),
                      .on_null_value = OnNull::kDelete}};
  }
};

TEST_F(PostgresRulesTest, SaysWhichRightsTheRulesNeed) {
  Exec(
      "CREATE ROLE mover LOGIN; REVOKE ALL ON SCHEMA public FROM PUBLIC;"
      "GRANT USAGE, CREATE ON SCHEMA public TO mover; GRANT INSERT ON items TO mover");
  PostgresOptions options = Fenced();
  options.dsn = Dsn("mover");
  for (const char* right : {"DELETE", "SELECT", "UPDATE"}) {
    EXPECT_THAT(Refusal(options), HasSubstr(fmt::format("GRANT {} ON public.items", right)));
    Exec(fmt::format("GRANT {} ON items TO mover", right));
  }
  const auto output = Open(options);
  const Batch batch{{.id = "1", .offset = 1, .value = R"({"n":1})", .key = "a"},
                    {.id = "2", .offset = 2, .key = "a", .tombstone = true}};
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted, kCommitted));
  Exec("DROP OWNED BY mover; DROP ROLE mover");
}

TEST_F(PostgresRulesTest, AFenceNeedsATypeThatCompares) {
  PostgresOptions options = Fenced();
  Exec("ALTER TABLE items ALTER version TYPE json USING null");
  EXPECT_THAT(Refusal(options),
              HasSubstr("public.items.version is json, which cannot be compared; a fence needs a "
                        "type with an order, such as bigint or timestamptz"));
  Exec("ALTER TABLE items ALTER version TYPE varchar(9)");
  EXPECT_THAT(Refusal(options), HasSubstr("its column public.items.version is character "
                                          "varying, so '9' compares greater than '10'"));
  options.rules.fence_by = Selector::Parse("header:etag").value();
  EXPECT_EQ(Refusal(options), "");
  Exec("ALTER TABLE items ALTER version TYPE timestamptz USING now()");
  options.rules.fence_by = Selector::Parse("timestamp").value();
  const auto output = Open(options);
  const Batch batch{{.id = "1", .value = R"({"n":1})", .key = "a"}};
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted));
}

// Two keys that differ as text can be one key in the table.
TEST_F(PostgresRulesTest, KeysAreComparedAsTheTableDoes) {
  Exec(
      "CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);"
      "CREATE TABLE loose (id text COLLATE nocase, k numeric(6,1), n int, PRIMARY KEY (id, k))");
  PostgresOptions options = Fenced();
  options.table = "loose";
  options.columns = Columns({{"id", "key"}, {"k", "header:k"}, {"n", "json:/n"}});
  options.rules = {
      .on_conflict = OnConflict::kUpdate, .key = {"k", "id"}, .on_null_value = OnNull::kDelete};
  const auto output = Open(options);
  const auto entry = [](const char* id, const char* key, const char* k, int n) {
    return Batch::Entry{
        .id = id, .value = fmt::format(R"({{"n":{}}})", n), .key = key, .headers = {{"k", k}}};
  };
  const Batch batch{entry("1", "Ada", "1", 1), entry("2", "ADA", "1.0", 2),
                    entry("3", "ada", "01", 3), entry("4", "ada", "1.00", 4)};
  EXPECT_EQ(Results(*output, batch), All(4, kCommitted));
  EXPECT_EQ(Value("SELECT string_agg(n::text, ' ') FROM loose"), "4");
  const Batch gone{{.id = "5", .key = "aDa", .tombstone = true, .headers = {{"k", "1"}}}};
  EXPECT_THAT(Results(*output, gone), ElementsAre(kCommitted));
  EXPECT_EQ(Value("SELECT count(*) FROM loose"), "0");
}

TEST_F(PostgresRulesTest, WorkersThatUpdateTheSameKeysInOtherOrdersEndWithTheHighestFences) {
  constexpr int kWriters = 3;
  constexpr int kRounds = 15;
  constexpr int kKeys = 60;
  std::latch start(kWriters);
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      const auto output = Open(Fenced(), fmt::format("worker-{}", w));
      ASSERT_TRUE(output->Prepare());
      start.arrive_and_wait();
      for (int round = 0; round < kRounds; ++round) {
        Batch batch;
        for (int i = 0; i < kKeys; ++i) {
          const int key = (i * 7 + w * 31 + round) % kKeys;
          const int offset = round * 1000 + w * 100 + key;
          batch.Add({.id = fmt::format("{}", offset),
                     .offset = offset,
                     .value = fmt::format(R"({{"n":{}}})", offset),
                     .key = fmt::format("k{}", key)});
        }
        auto outcomes = WriteOnce(*output, batch);
        while (!outcomes && outcomes.error().retry_at_once) {
          outcomes = WriteOnce(*output, batch);
        }
        ASSERT_TRUE(outcomes) << outcomes.error().error.Line();
        for (const WriteOutcome& outcome : *outcomes) EXPECT_EQ(outcome.result, kCommitted);
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(Value(fmt::format("SELECT count(*) FROM items WHERE n = version AND n = {} +"
                              " substr(id, 2)::int",
                              (kRounds - 1) * 1000 + (kWriters - 1) * 100)),
            std::to_string(kKeys));
}

TEST_F(PostgresRulesTest, DeletionsStayQuickInATableThatWasEmptyAtFirst) {
  const auto output = Open(Fenced());
  Exec("ALTER TABLE items SET (autovacuum_enabled = off)");
  Exec("VACUUM ANALYZE items");
  for (int i = 0; i < 8; ++i) {
    const Batch one{{.id = fmt::format("f{}", i), .key = "x", .tombstone = true}};
    ASSERT_THAT(Results(*output, one), ElementsAre(kCommitted));
  }
  Exec("INSERT INTO items SELECT 'k' || i, i, 0 FROM generate_series(1, 500000) i");
  Batch batch;
  for (int i = 0; i < 500; ++i) {
    batch.Add({.id = fmt::format("o{}", i),
               .offset = 1 + i,
               .key = fmt::format("k{}", 1 + i * 900),
               .tombstone = true});
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(Results(*output, batch), All(500, kCommitted));
  // The table row by row for each key takes minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
  EXPECT_EQ(Value("SELECT count(*) FROM items"), "499500");
}

TEST_F(PostgresRulesTest, LookupsStayQuickInALargeLedger) {
  const auto output = Open(Fenced());
  ASSERT_TRUE(output->Prepare());
  Exec("ALTER TABLE fencepost_ledger SET (autovacuum_enabled = off)");
  std::vector<std::string> ids;
  for (int i = 0; i < 500; ++i) ids.push_back(fmt::format("x{}", 1 + i * 500));
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(output->Lookup(ids));
  Exec(
      "INSERT INTO fencepost_ledger SELECT 'orders', 'x' || i, i, 'w', 's', 1, now()"
      " FROM generate_series(1, 300000) i");
  const auto begin = std::chrono::steady_clock::now();
  const auto found = output->Lookup(ids);
  EXPECT_EQ(output->Forget({"x1", "x2"}).value(), 2u);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
  ASSERT_TRUE(found);
  for (std::size_t i = 0; i < 500; ++i) EXPECT_EQ((*found)[i]->token.value(), 1 + i * 500);
}

}  // namespace
}  // namespace fencepost::consumer
