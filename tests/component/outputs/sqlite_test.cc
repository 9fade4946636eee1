// The SQLite output: what one Write does, and what it says of each record.
#include <gmock/gmock.h>

#include "tests/component/outputs/sqlite_fixture.h"

namespace fencepost::consumer {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using enum WriteResult;

TEST_F(SqliteTest, ATriggerThatRollsBackAndADeferredKeyRefuseOneRecordAlone) {
  Exec(
      "CREATE TABLE known (id text PRIMARY KEY); INSERT INTO known VALUES ('a'), ('b'), ('d');"
      "CREATE TABLE picky (order_id text REFERENCES known DEFERRABLE INITIALLY DEFERRED, amount "
      "int);"
      "CREATE TRIGGER t BEFORE INSERT ON picky WHEN NEW.amount = 13 BEGIN"
      " SELECT raise(ROLLBACK, 'not thirteen'); END");
  SqliteOptions options = Options();
  options.table = "picky";
  const Batch batch{
      {.id = "a", .offset = 1}, {.id = "b", .offset = 13}, {.id = "c", .offset = 3}, {.id = "d"}};
  const auto outcomes = WriteAll(*Open(options), batch);
  ASSERT_TRUE(outcomes) << outcomes.error().error.Line();
  EXPECT_EQ((*outcomes)[0].result, kCommitted);
  EXPECT_THAT((*outcomes)[1].detail, HasSubstr("not thirteen"));
  EXPECT_THAT((*outcomes)[2].detail, HasSubstr("FOREIGN KEY"));
  EXPECT_EQ((*outcomes)[3].result, kCommitted);
  EXPECT_EQ(Exec("SELECT group_concat(record_id, ' ') FROM fencepost_ledger"), "a d");
}

TEST_F(SqliteTest, AnErrorOfOneRecordRefusesItAloneWhateverSqliteCallsIt) {
  struct Case {
    const char *table, *sql;
  };
  const Case cases[] = {
      {"g",
       "CREATE TABLE g (id text, body text,"
       " kind text GENERATED ALWAYS AS (json_extract(body, '$.kind')) STORED)"},
      {"i",
       "CREATE TABLE i (id text, body text);"
       "CREATE INDEX kinds ON i (json_extract(body, '$.kind'))"},
      {"r",
       "CREATE TABLE r (id text, body text); CREATE TRIGGER t BEFORE INSERT ON r"
       " BEGIN SELECT json_extract(NEW.body, '$.kind'); END"},
      {"c", "CREATE TABLE c (id text, body text CHECK (json_valid(body)))"},
  };
  for (const Case& one : cases) {
    Exec(one.sql);
    SqliteOptions options = Options();
    options.table = one.table;
    options.columns = Columns({{"id", "key"}, {"body", "value"}});
    const auto output = MakeSqliteOutput(options, one.table, "w");
    const Batch batch{{.id = "a", .offset = 1, .value = R"({"kind":"a"})", .key = "a"},
                      {.id = "b", .offset = 2, .value = "not json", .key = "b"},
                      {.id = "c", .offset = 3, .value = R"({"kind":"c"})", .key = "c"}};
    EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted, kBadRecord, kCommitted))
        << one.table;
  }
}

TEST_F(SqliteTest, BindsByTheColumnsDeclaredType) {
  Exec(
      "CREATE TABLE wide (i integer, r real, t text, raw blob, n integer) STRICT;"
      "CREATE TABLE loose (i bigint, r double, t varchar, raw blob, n)");
  for (const char* table : {"wide", "loose"}) {
    SqliteOptions options = Options();
    options.table = table;
    options.columns = Columns(
        {{"I", "json:/i"}, {"r", "json:/r"}, {"t", "json:/t"}, {"raw", "key"}, {"n", "json:/n?"}});
    const Batch batch{{.id = std::string("b") + table,
                       .value = R"({"i":9007199254740993,"r":1.5,"t":12})",
                       .key = std::string("\x00\xff", 2)}};
    ASSERT_THAT(Results(*Open(options), batch), ElementsAre(kCommitted));
    EXPECT_EQ(
        Exec(fmt::format("SELECT i||' '||typeof(i)||' '||typeof(r)||' '||typeof(t)||' '||hex(raw)"
                         "||' '||typeof(raw)||' '||typeof(n) FROM {}",
                         table)),
        "9007199254740993 integer real text 00FF blob null");
  }
}

TEST_F(SqliteTest, SaysWhatIsWrongWithTheFile) {
  SqliteOptions options = Options();
  options.path = folder_.File("none.db");
  EXPECT_THAT(Refusal(options), HasSubstr("No such file"));
  EXPECT_FALSE(std::filesystem::exists(options.path)) << "no file by mistake";
  options.path = folder_.Write("text.db", std::string(5000, 'x'));
  EXPECT_THAT(Refusal(options), HasSubstr("not a database"));
}

TEST_F(SqliteTest, ADatabaseInMemoryIsSharedWithinTheProcess) {
  const std::string uri = "file:shared-effects?mode=memory&cache=shared";
  sqlite3* beside = nullptr;
  ASSERT_EQ(sqlite3_open_v2(uri.c_str(), &beside,
                            SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI, nullptr),
            SQLITE_OK);
  std::swap(beside, db_);
  Exec("CREATE TABLE effects (order_id text PRIMARY KEY, amount int)");
  SqliteOptions options = Options();
  options.path = uri;
  {
    const auto output = Open(options);
    const Batch batch{{.id = "a", .offset = 1}, {.id = "b", .offset = 2}};
    EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted, kCommitted));
    Exec("BEGIN; INSERT INTO effects VALUES ('held', 1)");
    const Batch more{{.id = "c", .offset = 3}};
    EXPECT_EQ(Failure(*output, more).error.code, "output_locked");
    Exec("ROLLBACK");
    EXPECT_THAT(Results(*output, more), ElementsAre(kCommitted));
    EXPECT_THAT(Results(*output, batch), ElementsAre(kOwnEarlier, kOwnEarlier));
  }
  EXPECT_EQ(Exec("SELECT group_concat(order_id, ' ') FROM effects"), "a b c");
  std::swap(beside, db_);
  sqlite3_close(beside);
  EXPECT_EQ(Exec("SELECT count(*) FROM effects"), "0") << "the file is another database";
  options.path = ":memory:";
  EXPECT_THAT(Refusal(options), HasSubstr("nobody else sees :memory:; use file:NAME?mode=memory"));
  options.path = "file:" + folder_.File("none.db");
  EXPECT_THAT(Refusal(options), HasSubstr("unable to open database file"));
}

TEST_F(SqliteTest, AWriterFrozenInsideItsTransactionIsPatienceAndNothingIsLost) {
  const auto output = Open();
  ASSERT_TRUE(output->Prepare());
  Exec("BEGIN IMMEDIATE");
  const Batch batch{{.id = "a"}};
  const OutputError written = Failure(*output, batch);
  EXPECT_EQ(written.error.code, "output_locked");
  EXPECT_THAT(written.error.Line(), HasSubstr("database is locked"));
  Exec("ROLLBACK");
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted));
}

TEST_F(SqliteTest, AFileThatIsLockedWhenItIsOpenedIsPreparedWithTheNextWrite) {
  const auto output = Open();
  Exec("BEGIN EXCLUSIVE");
  const Batch batch{{.id = "a"}};
  EXPECT_EQ(Failure(*output, batch).error.code, "output_locked");
  Exec("ROLLBACK");
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted));
  EXPECT_EQ(Exec("SELECT count(*) FROM fencepost_ledger"), "1");
}

TEST_F(SqliteTest, InterruptEndsTheWaitForTheLock) {
  const auto output = Open();
  ASSERT_TRUE(output->Prepare());
  Exec("BEGIN IMMEDIATE");
  const Batch batch{{.id = "a"}};
  auto written = WriteAside(*output, batch);
  output->Interrupt();
  EXPECT_EQ(written.wait_for(4s), std::future_status::ready);
  EXPECT_EQ(Failure(written.get()).error.code, "interrupted");
}

TEST_F(SqliteTest, ConvertsEpochsAndEncodedBytesWhereTheColumnSaysSo) {
  Exec("CREATE TABLE t (at text, raw blob)");
  SqliteOptions options = Options();
  options.table = "t";
  options.columns = Columns({{"at", "json:/at"}, {"raw", "json:/raw"}});
  options.columns[0].conversion = Conversion::kMillis;
  options.columns[1].conversion = Conversion::kHex;
  const auto output = Open(options);
  const Batch good{{.id = "a", .offset = 1, .value = R"({"at":1735689600123,"raw":"c0ffee"})"}};
  ASSERT_EQ(WriteAll(*output, good).value().at(0).result, WriteResult::kCommitted);
  EXPECT_EQ(Exec("SELECT at || ' ' || hex(raw) FROM t"), "2025-01-01T00:00:00.123000Z C0FFEE");
  const Batch bad{{.id = "b", .offset = 2, .value = R"({"at":1,"raw":"s3cret"})"},
                  {.id = "c", .offset = 3, .value = R"({"at":1,"raw":""})"}};
  const auto outcomes = WriteAll(*output, bad).value();
  EXPECT_EQ(outcomes.at(0).result, WriteResult::kBadRecord);
  EXPECT_EQ(outcomes.at(0).detail, "column raw (BLOB) from json:/raw is not hex");
  EXPECT_EQ(outcomes.at(1).result, WriteResult::kCommitted);
}

}  // namespace
}  // namespace fencepost::consumer
