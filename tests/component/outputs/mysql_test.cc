// What is MySQL's own: types, races, lost commits, words. Against MariaDB.
#include <gmock/gmock.h>

#include <csignal>
#include <future>

#include "consumer/outputs/mysql/mysql_connection.h"
#include "tests/component/outputs/store.h"
#include "tests/support/paths.h"

namespace fencepost::consumer {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using enum WriteResult;

std::unique_ptr<Output> Made(MysqlOptions options, std::vector<Column> columns,
                             OutputTerms terms = {}) {
  options.columns = std::move(columns);
  return MakeMysqlOutput(options, "orders", "worker-1", std::move(terms));
}

// --- types: the table of consumer/outputs/mysql ---

struct Row {
  const char* name;
  const char* type;
  const char* json;    // the value at /v
  const char* stored;  // as the column says it in text; nullptr: the record is bad
  const char* why = "";
  Conversion conversion = Conversion::kNone;
  const char* selector = "json:/v";
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class MysqlTypes : public ::testing::TestWithParam<Row> {};

TEST_P(MysqlTypes, StoreTheValueOrNameColumnTypeAndSelector) {
  const Row& row = GetParam();
  MysqlStore store;
  store.Exec(fmt::format("CREATE TABLE effects (id varchar(20), v {} NULL)", row.type));
  auto columns = Columns({{"id", "record_id"}, {"v", row.selector}});
  columns[1].conversion = row.conversion;
  const auto output = Made(store.Options(), columns);
  const Batch good{{.id = "null", .offset = 1, .value = R"({"v":null})", .key = "k"}};
  if (std::string_view(row.selector) == "json:/v") {
    ASSERT_EQ(WriteAll(*output, good).value().at(0).result, kCommitted);
    EXPECT_EQ(store.Exec("SELECT v IS NULL FROM effects"), "1");
  }
  const Batch batch{
      {.id = "a", .offset = 2, .value = fmt::format(R"({{"v":{}}})", row.json), .key = "k\"1"},
      {.id = "b", .offset = 3, .value = R"({"v":null})", .key = "k"}};
  const auto outcomes = WriteAll(*output, batch);
  ASSERT_TRUE(outcomes) << outcomes.error().error.Line();
  const WriteOutcome& outcome = outcomes->at(0);
  if (row.stored != nullptr) {
    EXPECT_EQ(outcome.result, kCommitted) << outcome.detail;
    EXPECT_EQ(store.Exec("SELECT if('" + std::string(row.type) +
                         "' IN ('blob', 'bit(1)'), hex(v), v) FROM effects WHERE id = 'a'"),
              row.stored);
    return;
  }
  ASSERT_EQ(outcome.result, kBadRecord);
  EXPECT_EQ(outcomes->at(1).result, kCommitted) << "it holds back no other";
  const std::string place = fmt::format("column v ({}) from {}", row.type, row.selector);
  EXPECT_THAT(outcome.detail, AllOf(HasSubstr(place), HasSubstr(row.why)));
  EXPECT_THAT(outcome.shown, AllOf(HasSubstr(place), Not(HasSubstr("s3cret"))));
}

INSTANTIATE_TEST_SUITE_P(
    Values, MysqlTypes,
    ::testing::Values(
        Row{"WholeNumber", "int(11)", "1.0", "1"}, Row{"Exponent", "bigint(20)", "1e3", "1000"},
        Row{"Fraction", "int(11)", "1.5", nullptr, "is not a whole number"},
        Row{"TooLarge", "tinyint(4)", "300", nullptr, "out of the type's range"},
        Row{"NegativeUnsigned", "int(10) unsigned", "-1", nullptr, "out of the type's range"},
        Row{"Boolean", "tinyint(1)", "true", "1"}, Row{"Bit", "bit(1)", "true", "1"},
        Row{"TextThatIsANumber", "int(11)", R"("12")", "12"},
        Row{"TextThatIsNone", "int(11)", R"("s3cret")", nullptr, "Incorrect integer value"},
        Row{"Decimal", "decimal(10,2)", "12.50", "12.50"}, Row{"Double", "double", "0.1", "0.1"},
        Row{"Text", "varchar(20)", R"("it's \"q\" \\ ü")", R"(it's "q" \ ü)"},
        Row{"TooLong", "varchar(3)", R"("s3cret")", nullptr, "Data too long"},
        Row{"TextOfAnObject", "text", R"({"a": 1})", R"({"a": 1})"},
        Row{"JsonString", "json", R"("123")", R"("123")"},
        Row{"JsonObject", "json", R"({"a":[1,"x"]})", R"({"a":[1,"x"]})"},
        Row{"JsonNumber", "json", "12.50", "12.50"},
        Row{"JsonOfKey", "json", "1", R"("k\"1")", "", Conversion::kNone, "key"},
        Row{"BytesAsTheyAre", "blob", R"("ab")", "6162"},
        Row{"Base64", "blob", R"("AP8=")", "00FF", "", Conversion::kBase64},
        Row{"Hex", "blob", R"("00ff")", "00FF", "", Conversion::kHex},
        Row{"HexInText", "varchar(20)", R"("00ff")", nullptr, "the column is not binary",
            Conversion::kHex},
        Row{"Date", "date", R"("2026-11-22")", "2026-11-22"},
        Row{"DateOfSeconds", "date", "1700000000", "2023-11-14", "", Conversion::kSeconds},
        Row{"Utc", "datetime(3)", R"("2026-11-22T13:05:00.250Z")", "2026-11-22 13:05:00.250"},
        Row{"Offset", "datetime(6)", R"("2026-11-22T01:05:00.25+02:30")",
            "2026-11-21 22:35:00.250000"},
        Row{"PlainTime", "timestamp", R"("2026-11-22 13:05:00")", "2026-11-22 13:05:00"},
        Row{"Milliseconds", "datetime(3)", "1700000000123", "2023-11-14 22:13:20.123", "",
            Conversion::kMillis},
        Row{"TimestampOfTheRecord", "datetime(3)", "1", "2023-11-14 22:13:20.123", "",
            Conversion::kNone, "timestamp"},
        Row{"NoTime", "datetime", R"("s3cret")", nullptr, "Incorrect datetime value"}),
    [](const auto& each) { return std::string(each.param.name); });

// --- the transaction ---

class MysqlTest : public ::testing::Test {
 protected:
  MysqlTest() {
    store_.Exec(
        "CREATE TABLE effects (id varchar(100) PRIMARY KEY, amount int CHECK (amount <> 13))");
  }
  [[nodiscard]] std::unique_ptr<Output> Open(OutputTerms terms = {}) const {
    return Made(store_.Options(), Columns({{"id", "key"}, {"amount", "json:/amount"}}),
                std::move(terms));
  }
  static Batch::Entry Entry(const std::string& id, Offset offset) {
    return {.id = id, .offset = offset, .value = R"({"amount":1})", .key = id};
  }
  // For a row that another transaction holds. `what`: of whom, where it does not come to that.
  bool AWriterWaits(const char* what) {
    const auto waits = [this] {
      return store_.Exec(
                 "SELECT count(*) FROM information_schema.processlist"
                 " WHERE id <> connection_id() AND info LIKE '%FOR UPDATE'") != "0";
    };
    return testing::WaitUntil(std::chrono::seconds(10), what, waits);
  }
  // "fatal: LINE" or "LINE" of the write that must fail; "" when it succeeds.
  static std::string Trouble(Output& output, const Batch& batch) {
    const auto written = WriteAll(output, batch);
    if (written) return "";
    return (written.error().fatal ? "fatal: " : "") + written.error().error.Line();
  }
  MysqlStore store_;
};

TEST_F(MysqlTest, ARowThatAnotherTransactionHoldsIsWaitedForAndThenADuplicate) {
  const auto output = Open();
  ASSERT_TRUE(output->Prepare());
  MysqlConnection holder(store_.Options());
  ASSERT_TRUE(holder.Connect());
  ASSERT_TRUE(holder.Query("START TRANSACTION"));
  ASSERT_TRUE(holder.Query(
      "INSERT INTO fencepost_ledger VALUES ('orders', 'a', 9, 'w2', 'orders/3/1', 1, now(6))"));
  const Batch batch{Entry("a", 1)};
  auto results = std::async(std::launch::async, [&] { return Results(*output, batch); });
  EXPECT_TRUE(AWriterWaits("the writer to wait"));
  EXPECT_TRUE(holder.Query("COMMIT"));
  EXPECT_THAT(results.get(), ElementsAre(::testing::Ne(kCommitted)));
  EXPECT_EQ(store_.Exec("SELECT count(*) FROM effects"), "0");
}

TEST_F(MysqlTest, AnIdThatAnotherWriterInsertsMeanwhileMakesAllOfItBeDoneAgain) {
  const auto output = Open();
  const Batch first{Entry("b", 1)};
  ASSERT_THAT(Results(*output, first), ElementsAre(kCommitted));
  MysqlConnection holder(store_.Options());
  ASSERT_TRUE(holder.Connect());
  ASSERT_TRUE(holder.Query("START TRANSACTION"));
  ASSERT_TRUE(holder.Query("UPDATE fencepost_ledger SET worker = 'w2' WHERE record_id = 'b'"));
  const Batch batch{Entry("a", 2), Entry("b", 1)};
  auto write = std::async(std::launch::async,
                          [&] { return output->Write({.items = batch.items(), .offsets = {}}); });
  EXPECT_TRUE(AWriterWaits("the writer to have seen that a is missing, and to wait for b"));
  store_.Exec(
      "INSERT INTO fencepost_ledger VALUES ('orders', 'a', 9, 'w2', 'orders/3/7', 1, now(6))");
  EXPECT_TRUE(holder.Query("COMMIT"));
  const auto failed = write.get();
  ASSERT_FALSE(failed);
  EXPECT_TRUE(failed.error().retry_at_once) << failed.error().error.Line();
  EXPECT_THAT(Results(*output, batch), ElementsAre(kFenced, kOwnEarlier));
  EXPECT_EQ(store_.Exec("SELECT id FROM effects"), "b");
}

// 2^53 + 1 and its neighbour are one number to a double.
TEST_F(MysqlTest, FencesOfMoreThan53BitsAreCompared) {
  store_.Exec("ALTER TABLE effects ADD version bigint");
  MysqlOptions options = store_.Options();
  options.rules = {.on_conflict = OnConflict::kUpdate,
                   .key = {"id"},
                   .fence_column = "version",
                   .fence_by = Parsed("header:version"),
                   .on_null_value = OnNull::kDelete};
  const auto output = Made(options, Columns({{"id", "key"}, {"amount", "json:/amount?"}}));
  store_.Exec("INSERT INTO effects VALUES ('k', 1, 9007199254740993)");
  Batch stale;
  stale.Add(
      {.id = "1", .key = "k", .tombstone = true, .headers = {{"version", "9007199254740992"}}});
  EXPECT_THAT(Results(*output, stale), ElementsAre(kCommitted));
  EXPECT_EQ(store_.Exec("SELECT count(*) FROM effects"), "1");
  Batch newer;
  newer.Add(
      {.id = "2", .key = "k", .tombstone = true, .headers = {{"version", "9007199254740994"}}});
  EXPECT_THAT(Results(*output, newer), ElementsAre(kCommitted));
  EXPECT_EQ(store_.Exec("SELECT count(*) FROM effects"), "0");
}

TEST_F(MysqlTest, ARecordThatIsLargerThanAStatementMayBeIsItsOwnFault) {
  testing::MysqlServer server({.arguments = {"--max-allowed-packet=1M"}});
  server.Exec("CREATE DATABASE shop");
  server.Exec("CREATE TABLE effects (id varchar(100) PRIMARY KEY, amount longtext)", "shop");
  MysqlOptions options = server.Options("shop");
  options.host = "localhost";  // by TCP all the same
  options.table = "effects";
  const auto output = Made(options, Columns({{"id", "key"}, {"amount", "json:/amount"}}));
  Batch batch;
  batch.Add(Entry("a", 1));
  batch.Add({.id = "b",
             .offset = 2,
             .value = R"({"amount":")" + std::string(2 << 20, 'x') + "\"}",
             .key = "b"});
  batch.Add(Entry("c", 3));
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted, kBadRecord, kCommitted));
}

TEST_F(MysqlTest, AClientThatIsFrozenInATransactionHoldsItsRowsForSecondsOnly) {
  const auto output = Open();
  ASSERT_TRUE(output->Prepare());
  MysqlConnection frozen(store_.Options());
  ASSERT_TRUE(frozen.Connect());
  ASSERT_TRUE(frozen.Query("START TRANSACTION"));
  ASSERT_TRUE(frozen.Query(
      "INSERT INTO fencepost_ledger VALUES ('orders', 'a', 9, 'w2', 'orders/3/1', 1, now(6))"));
  const Batch batch{Entry("a", 1)};
  EXPECT_TRUE(testing::WaitUntil(std::chrono::seconds(60), "the row", [&] {
    const auto outcomes = WriteAll(*output, batch);
    return outcomes && outcomes->at(0).result == kCommitted;
  }));
  EXPECT_EQ(store_.Exec("SELECT worker FROM fencepost_ledger"), "worker-1");
}

TEST_F(MysqlTest, IdsAreBytes) {
  const auto output = Open();
  const Batch batch{Entry("a", 1), Entry("A", 2), Entry("a ", 3)};
  store_.Exec("ALTER TABLE effects DROP PRIMARY KEY, MODIFY id text");
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted, kCommitted, kCommitted));
}

TEST_F(MysqlTest, TablesWithoutTransactionsAreRefusedForExactlyOnce) {
  store_.Exec("ALTER TABLE effects ENGINE=MyISAM");
  const auto prepared = Open({.exactly_once = true})->Prepare();
  ASSERT_FALSE(prepared);
  EXPECT_THAT(prepared.error().error.Line(), HasSubstr("effects is MyISAM, which has no"));
  EXPECT_TRUE(Open()->Prepare());
}

TEST_F(MysqlTest, TheLedgerOfItsFileIsTheOneThatAWorkerMakes) {
  const auto made = [&] { return store_.Exec("SHOW CREATE TABLE fencepost_ledger"); };
  ASSERT_TRUE(Open()->Prepare());
  const std::string by_worker = made();
  store_.Exec("DROP TABLE fencepost_ledger");
  store_.Exec(testing::ReadFile(testing::SourcePath("deploy/mysql/ledger.sql")));
  EXPECT_EQ(made(), by_worker);
}

TEST_F(MysqlTest, ALedgerWhoseKeyHoldsAPartOfAColumnIsRefused) {
  ASSERT_TRUE(Open()->Prepare());
  store_.Exec(
      "ALTER TABLE fencepost_ledger DROP PRIMARY KEY,"
      " ADD UNIQUE (pipeline, record_id, source(20))");
  EXPECT_FALSE(Open()->Prepare());
}

TEST_F(MysqlTest, ALoginThatIsRefusedIsNoRecordsDoing) {
  MysqlOptions options = store_.Options();
  options.user = "locked";
  options.password = "";
  store_.Exec("CREATE USER IF NOT EXISTS locked ACCOUNT LOCK");
  store_.Exec("GRANT ALL ON *.* TO locked");
  const auto output = Made(options, Columns({{"id", "key"}, {"amount", "json:/amount"}}));
  const auto written = WriteAll(*output, Batch{Entry("a", 1)});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().failure, WriteFailure::kUnavailable) << written.error().error.Line();
}

TEST_F(MysqlTest, AWrongPasswordAndAMissingDatabaseAreNamed) {
  MysqlOptions options = store_.Options();
  options.user = "nobody";
  EXPECT_THAT(Made(options, Columns({{"id", "key"}}))->Prepare().error().error.Line(),
              AllOf(HasSubstr("Access denied"), HasSubstr("check user, password")));
  options = store_.Options();
  options.database = "none";
  EXPECT_THAT(Made(options, Columns({{"id", "key"}}))->Prepare().error().error.Line(),
              HasSubstr("Unknown database"));
}

TEST_F(MysqlTest, AFrozenServerIsLeftAtAnInterrupt) {
  testing::MysqlServer server;
  server.Exec("CREATE DATABASE shop");
  server.Exec("CREATE TABLE effects (id varchar(100) PRIMARY KEY, amount int)", "shop");
  MysqlOptions options = server.Options("shop");
  options.table = "effects";
  const auto output = Made(options, Columns({{"id", "key"}, {"amount", "json:/amount"}}));
  ASSERT_TRUE(output->Prepare());
  kill(server.pid(), SIGSTOP);
  const Batch batch{Entry("a", 1)};
  auto write = std::async(std::launch::async, [&] { return Trouble(*output, batch); });
  output->Interrupt();
  EXPECT_THAT(write.get(), HasSubstr("interrupted"));
  kill(server.pid(), SIGCONT);
}

}  // namespace
}  // namespace fencepost::consumer
