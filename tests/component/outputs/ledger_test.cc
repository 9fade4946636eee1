// The ledger by id: what one Write does, and what it says of each record, in every database.
#include <atomic>
#include <thread>

#include <gmock/gmock.h>

#include "tests/component/outputs/store.h"

namespace fencepost::consumer {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using enum WriteResult;

class LedgerTest : public StoreTest {
 protected:
  static Batch::Entry Entry(const std::string& id, Offset offset, int amount = 1) {
    return {
        .id = id, .offset = offset, .value = fmt::format(R"({{"amount":{}}})", amount), .key = id};
  }
};
INSTANTIATE_TEST_SUITE_P(Stores, LedgerTest, kStores, StoreName);

TEST_P(LedgerTest, WritesEffectsAndLedgerRowsOfNewRecords) {
  const auto output = Open({});
  Batch batch{Entry("o-1", 9, 7)};
  Batch::Entry second = Entry("o-2", 8, 8);
  second.token = 77;
  second.crc = 0xffffffffu;
  batch.Add(second);
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted, kCommitted));
  EXPECT_EQ(Effects(), "o-1|7|NULL o-2|8|NULL");
  EXPECT_EQ(Exec("SELECT pipeline, record_id, token, worker, source, content_crc"
                 " FROM fencepost_ledger WHERE record_id = 'o-2'"),
            "orders|o-2|77|worker-1|orders/3/8|4294967295");
}

TEST_P(LedgerTest, JudgesRecordsThatTheLedgerKnowsByContentThenSourceThenToken) {
  const auto output = Open({});
  const auto write = [&](Offset offset, std::uint64_t token, std::uint32_t crc) {
    Batch::Entry entry = Entry("a", offset);
    entry.token = token;
    entry.crc = crc;
    return Results(*output, Batch{entry}).at(0);
  };
  ASSERT_EQ(write(1, 50, 7), kCommitted);
  EXPECT_EQ(write(1, 60, 7), kOwnEarlier);
  EXPECT_EQ(write(1, 40, 7), kOwnEarlier);
  EXPECT_EQ(write(2, 49, 7), kFenced);
  EXPECT_EQ(write(2, 50, 7), kDuplicate);
  EXPECT_EQ(write(2, 60, 7), kDuplicate);
  EXPECT_EQ(write(1, 50, 8), kIdConflict);
  EXPECT_EQ(write(2, 40, 8), kIdConflict);
  EXPECT_EQ(Effects(), "a|1|NULL");
  EXPECT_EQ(Exec("SELECT token FROM fencepost_ledger"), "50");
}

TEST_P(LedgerTest, ARecordThatMakesNoRowLeavesItsIdToAnotherContent) {
  for (const std::uint64_t chain : {std::uint64_t{0}, std::uint64_t{7}}) {
    const std::string id = fmt::format("a{}", chain);
    const auto output = Open({});
    const auto write = [&](Offset offset, std::uint32_t crc, bool makes_row) {
      Batch::Entry entry = Entry(id, offset, static_cast<int>(crc));
      entry.token = 50;
      entry.crc = crc;
      entry.chain = chain;
      if (!makes_row) entry.values.emplace();
      return Results(*output, Batch{entry}).at(0);
    };
    const auto row = [&] {
      return Exec(
          fmt::format("SELECT token, source, content_crc FROM fencepost_ledger"
                      " WHERE record_id = '{}'",
                      id));
    };
    EXPECT_EQ(write(1, 7, false), kNoOutput);
    EXPECT_EQ(row(), "0|orders/3/1|7");
    EXPECT_EQ(write(1, 7, false), kOwnEarlier) << "its COMMIT was not answered";
    EXPECT_EQ(write(2, 7, true), kDuplicate) << "the same content";
    EXPECT_EQ(write(3, 8, false), kNoOutput);
    EXPECT_EQ(row(), "0|orders/3/1|7");
    EXPECT_EQ(write(4, 9, true), kCommitted);
    EXPECT_EQ(row(), "50|orders/3/4|9");
    EXPECT_EQ(write(1, 7, false), kNoOutput) << "it came again";
    EXPECT_EQ(write(5, 10, true), kIdConflict);
    EXPECT_EQ(write(4, 9, true), kOwnEarlier);
    EXPECT_EQ(row(), "50|orders/3/4|9");
    EXPECT_EQ(Exec(fmt::format("SELECT amount FROM effects WHERE id = '{}'", id)), "9");
  }
}

TEST_P(LedgerTest, AChainWhoseIdsWereFilteredIsWrittenInItsOrder) {
  const auto output = Open({.on_conflict = OnConflict::kUpdate, .key = {"id"}});
  const auto entry = [](const std::string& id, Offset offset, std::uint32_t crc) {
    Batch::Entry one = Entry(id, offset, static_cast<int>(offset));
    one.key = "account";
    one.crc = crc;
    one.chain = 7;
    return one;
  };
  for (const int round : {0, 1}) {  // the second time it is known that rows give way
    Batch filtered;
    for (const char* id : {"a", "b"}) {
      Batch::Entry one = entry(fmt::format("{}{}", id, round), 1, 1);
      one.values.emplace();
      filtered.Add(std::move(one));
    }
    ASSERT_THAT(Results(*output, filtered), All(2, kNoOutput));
    Batch batch;
    batch.Add(entry(fmt::format("c{}", round), 2, 1));
    batch.Add(entry(fmt::format("b{}", round), 3, 2));
    batch.Add(entry(fmt::format("a{}", round), 4, 2));
    Batch::Entry none = entry(fmt::format("d{}", round), 5, 2);
    none.values.emplace();
    batch.Add(std::move(none));
    EXPECT_THAT(Results(*output, batch),
                ElementsAre(kCommitted, kCommitted, kCommitted, kNoOutput));
    EXPECT_EQ(Effects(), "account|4|NULL");
  }
  EXPECT_EQ(Exec("SELECT count(*) FROM fencepost_ledger WHERE token = 0"), "2");
}

// The forms are written by statements of their own.
TEST_P(LedgerTest, ARecordThatIsNotWrittenLeavesTheRowOfAnotherContentThatMadeNone) {
  const std::vector<RowRules> forms = {
      {},
      {.on_conflict = OnConflict::kUpdate, .key = {"id"}},
      {.on_conflict = OnConflict::kUpdate, .key = {"id"}, .on_null_value = OnNull::kDelete}};
  for (std::size_t form = 0; form < forms.size(); ++form) {
    const auto output = Open(forms[form]);
    const auto entry = [&](const char* name, Offset offset, int amount, std::uint64_t chain = 0) {
      Batch::Entry one = Entry(fmt::format("{}{}", name, form), offset, amount);
      one.crc = static_cast<std::uint32_t>(amount);
      one.chain = chain;
      return one;
    };
    Batch filtered;
    for (const char* name : {"refused", "behind"}) {
      Batch::Entry one = entry(name, 1, 1);
      one.values.emplace();
      filtered.Add(std::move(one));
    }
    ASSERT_THAT(Results(*output, filtered), All(2, kNoOutput));
    const auto rows = [&] {
      return Exec(
          fmt::format("SELECT record_id, token, content_crc FROM fencepost_ledger"
                      " WHERE record_id IN ('refused{0}', 'behind{0}')"
                      " ORDER BY record_id DESC",
                      form));
    };
    const std::string before = fmt::format("refused{0}|0|1 behind{0}|0|1", form);
    ASSERT_EQ(rows(), before);
    ASSERT_THAT(Results(*output, Batch{entry("known", 2, 1)}), ElementsAre(kCommitted));
    const Batch batch{entry("known", 3, 2, 7), entry("behind", 4, 2, 7), entry("refused", 5, 13),
                      entry("taken", 6, 2)};
    EXPECT_THAT(Results(*output, batch),
                ElementsAre(kIdConflict, kNotWritten, kBadRecord, kCommitted))
        << form;
    EXPECT_EQ(rows(), before) << form;
    const Batch mended{entry("behind", 4, 2), entry("refused", 5, 2), entry("bad", 7, 13)};
    EXPECT_THAT(Results(*output, mended), ElementsAre(kCommitted, kCommitted, kBadRecord));
    EXPECT_EQ(rows(), fmt::format("refused{0}|1|2 behind{0}|1|2", form));
  }
}

TEST_P(LedgerTest, ANullThatIsSkippedMakesNoRow) {
  const auto output = Open({.on_null_value = OnNull::kSkip});
  Batch::Entry null = Entry("a", 1);
  null.tombstone = true;
  EXPECT_THAT(Results(*output, Batch{null}), ElementsAre(kNoOutput));
  Batch::Entry other = Entry("a", 2);
  other.crc = 9;
  EXPECT_THAT(Results(*output, Batch{other}), ElementsAre(kCommitted));
}

TEST_P(LedgerTest, PipelinesDoNotShareIds) {
  const auto output = Open({});
  ASSERT_TRUE(output->Prepare());
  Exec(
      "INSERT INTO fencepost_ledger VALUES ('refunds', 'a', 1, 'w', 'orders/3/1', 1,"
      " '2026-01-02 03:04:05')");
  EXPECT_THAT(Results(*output, Batch{Entry("a", 1)}), ElementsAre(kCommitted));
}

TEST_P(LedgerTest, IsolatesTheBadRowsOfALargeBatch) {
  const auto output = Open({});
  Batch::Entry first = Entry("o-0100", 1);
  first.crc = 99;
  ASSERT_THAT(Results(*output, Batch{first}), ElementsAre(kCommitted));
  Batch batch;
  for (int i = 0; i < 500; ++i) {
    Batch::Entry entry = Entry(fmt::format("o-{:04}", i), i, 1000 + i);
    if (i == 250) entry.key = "o-0000";                // the primary key of effects
    if (i == 251) entry.value = R"({"amount":13})";    // a CHECK
    if (i == 252) entry.key = std::string("a\0b", 3);  // no text
    if (i == 499) entry.value = "{}";                  // the selector
    batch.Add(std::move(entry));
  }
  const auto outcomes = WriteAll(*output, batch);
  ASSERT_TRUE(outcomes) << outcomes.error().error.Line();
  for (std::size_t i = 0; i < 500; ++i) {
    const bool bad = (i >= 250 && i <= 252) || i == 499;
    const WriteResult expected = bad ? kBadRecord : i == 100 ? kIdConflict : kCommitted;
    EXPECT_EQ((*outcomes)[i].result, expected) << i << (*outcomes)[i].detail;
    EXPECT_EQ((*outcomes)[i].detail.empty(), expected == kCommitted) << i;
    EXPECT_EQ((*outcomes)[i].detail.find('\n'), std::string::npos);
  }
  EXPECT_EQ(Exec("SELECT count(*) FROM effects"), "496");
  EXPECT_EQ(Exec("SELECT count(*) FROM fencepost_ledger"), "496");
}

TEST_P(LedgerTest, BytesThatAreNoTextAreABadRecordButFitAColumnOfBytes) {
  const auto output = store_->Open(Columns({{"id", "key"}, {"note", "value"}}), {});
  const Batch batch{{.id = "1", .value = "\xff\xfe", .key = "a"},
                    {.id = "2", .value = "fine", .key = "b"}};
  EXPECT_THAT(Results(*output, batch), ElementsAre(kBadRecord, kCommitted));
  Exec(fmt::format("ALTER TABLE effects ADD raw {}", IsPostgres() ? "bytea" : "blob"));
  const auto bytes = store_->Open(Columns({{"id", "key"}, {"raw", "value"}}), {});
  const Batch other{{.id = "3", .value = "\xff\xfe", .key = "c"}};
  EXPECT_THAT(Results(*bytes, other), ElementsAre(kCommitted));
  EXPECT_EQ(Exec(fmt::format("SELECT {} FROM effects WHERE id = 'c'",
                             IsPostgres() ? "upper(encode(raw, 'hex'))" : "hex(raw)")),
            "FFFE");
}

TEST_P(LedgerTest, WritersThatRaceForTheSameIdsCommitEachOnce) {
  constexpr int kWriters = 3;
  constexpr int kIds = 300;
  ASSERT_TRUE(Open({})->Prepare());
  std::atomic<int> committed = 0;
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      const auto output = store_->Open(ByKey(), {}, {}, fmt::format("worker-{}", w));
      for (int from = 0; from < kIds; from += 50) {
        Batch batch;
        for (int i = 0; i < 50; ++i) {
          batch.Add(Entry(fmt::format("o-{}", (from + i + w * 100) % kIds), w * 1000 + from + i));
        }
        // As the Writer does: what is locked for long is tried again.
        auto outcomes = WriteOnce(*output, batch);
        EXPECT_TRUE(outcomes || !IsPostgres()) << outcomes.error().error.Line();
        while (!outcomes) outcomes = WriteOnce(*output, batch);
        for (const WriteOutcome& outcome : *outcomes) committed += outcome.result == kCommitted;
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(committed, kIds);
  EXPECT_EQ(Exec("SELECT count(*) FROM effects"), std::to_string(kIds));
}

TEST_P(LedgerTest, ALedgerThatIsGoneInTheMiddleOfARunIsNotCreatedAgain) {
  const auto output = Open({});
  const Batch batch{Entry("a", 1)};
  ASSERT_THAT(Results(*output, batch), ElementsAre(kCommitted));
  Exec("ALTER TABLE fencepost_ledger RENAME TO elsewhere");
  EXPECT_FALSE(WriteAll(*output, batch));
  const auto gone = WriteAll(*output, batch);
  ASSERT_FALSE(gone);
  EXPECT_TRUE(gone.error().fatal);
  EXPECT_THAT(gone.error().error.Line(),
              AllOf(HasSubstr("fencepost_ledger"), HasSubstr("is gone")));
  Exec("ALTER TABLE elsewhere RENAME TO fencepost_ledger");
  EXPECT_THAT(Results(*output, batch), ElementsAre(kOwnEarlier));
  EXPECT_EQ(Effects(), "a|1|NULL");
}

TEST_P(LedgerTest, AnErrorThatAllRecordsShareMakesNoneOfThemBad) {
  const auto output = Open({});
  ASSERT_TRUE(output->Prepare());
  Exec(IsPostgres()
           ? "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
             " PERFORM no_such_function(); RETURN NEW; END $$;"
             "CREATE TRIGGER t BEFORE INSERT ON effects FOR EACH ROW EXECUTE FUNCTION broken()"
       : IsMysql() ? "CREATE TRIGGER t BEFORE INSERT ON effects FOR EACH ROW"
                     " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'closed for the day'"
                   : "CREATE TRIGGER t BEFORE INSERT ON effects BEGIN"
                     " SELECT raise(ABORT, 'closed for the day'); END");
  Batch batch;
  for (int i = 0; i < 500; ++i) batch.Add(Entry(fmt::format("o-{}", i), i));
  EXPECT_EQ(Results(*output, batch), All(500, kNotWritten));
  Exec(IsPostgres() ? "DROP TRIGGER t ON effects" : "DROP TRIGGER t");
  EXPECT_EQ(Results(*output, batch), All(500, kCommitted));
}

TEST_P(LedgerTest, IdsAndValuesAreNeverSql) {
  const char* const quote = IsMysql() ? "`" : "\"";
  const std::string column = IsMysql() ? "c``1; x" : "c\"\"1; x";
  const std::string table = "Robert'); DROP TABLE effects;--";
  Exec(fmt::format("CREATE TABLE {0}{1}{0} ({0}{2}{0} {3})", quote, table, column, Text()));
  const auto output = store_->Open(
      {.columns = {{.name = IsMysql() ? "c`1; x" : "c\"1; x", .selector = *Parsed("key")}},
       .worker = "w'); DROP TABLE effects;--",
       .table = IsMysql() ? table : quote + table + quote});
  const std::string text = "'; DROP TABLE effects;--";
  const Batch batch{{.id = R"({"a",NULL}\'); DROP TABLE effects;--)", .key = text}};
  EXPECT_THAT(Results(*output, batch), ElementsAre(kCommitted));
  EXPECT_THAT(Results(*output, batch), ElementsAre(kOwnEarlier));
  EXPECT_EQ(Exec(fmt::format("SELECT * FROM {0}{1}{0}", quote, table)), text);
  EXPECT_EQ(Ledger(), batch.items()[0].record_id);
  EXPECT_EQ(Exec("SELECT count(*) FROM effects"), "0");
}

// --- what the catalogue says: one row a check; what follows from it is in unit/outputs ---

TEST_P(LedgerTest, PrepareFindsTablesAndColumnsAsTheyAre) {
  const char* const twice = std::string_view(GetParam()) == "sqlite"
                                ? "integer GENERATED ALWAYS AS (amount * 2) VIRTUAL"
                                : "integer GENERATED ALWAYS AS (amount * 2) STORED";
  EXPECT_THAT(Refusal(Columns({{"id", "key"}, {"amont", "offset"}}), {}),
              HasSubstr("effects has no column amont; it has id, amount, version, note"));
  Exec(fmt::format("ALTER TABLE effects ADD twice {}", twice));
  EXPECT_EQ(Refusal({}), "");
  EXPECT_THAT(Refusal(Columns({{"id", "key"}, {"twice", "offset"}}), {}),
              HasSubstr("effects.twice is a generated column"));
  Exec("DROP TABLE effects");
  EXPECT_THAT(Refusal({}), HasSubstr("there is no table effects"));
  Exec(
      fmt::format("CREATE TABLE effects (id {0}, amount integer, must {0} NOT NULL,"
                  " may {0} NOT NULL DEFAULT 'x')",
                  Text()));
  EXPECT_THAT(Refusal({}), HasSubstr("effects.must is NOT NULL without default"));
}

TEST_P(LedgerTest, PrepareFindsUniqueIndexesAndHowAFenceCompares) {
  RowRules rules{.on_conflict = OnConflict::kUpdate, .key = {"id", "amount"}};
  EXPECT_THAT(Refusal(rules), HasSubstr(IsMysql() ? "has no unique index on (`id`, `amount`)"
                                                  : "has no unique index on (\"id\", \"amount\")"));
  if (!IsMysql()) {  // which has no such index
    Exec("CREATE UNIQUE INDEX part ON effects (amount, id) WHERE amount > 0");
    EXPECT_THAT(Refusal(rules), HasSubstr("has no unique index"));
  }
  Exec("CREATE UNIQUE INDEX whole ON effects (amount, id)");
  EXPECT_EQ(Refusal(rules), "");
  rules.fence_column = "note";
  rules.fence_by = Parsed("offset");
  EXPECT_THAT(Refusal(rules), HasSubstr("so '9' compares greater than '10'"));
  rules.fence_column = "version";
  EXPECT_EQ(Refusal(rules), "");
  if (!Is("sqlite")) return;
  for (const char* type : {"varchar(9)", "blob", ""}) {  // by the affinity
    Exec(fmt::format("ALTER TABLE effects DROP version; ALTER TABLE effects ADD version {}", type));
    EXPECT_THAT(Refusal(rules), HasSubstr("so '9' compares greater than '10'")) << type;
  }
  rules.key = {"ID", "amount"};
  EXPECT_THAT(Refusal(rules), HasSubstr("the key column ID is not among the columns"));
}

TEST_P(LedgerTest, PrepareFindsALedgerThatWouldNotKeepItsRows) {
  Exec(
      fmt::format("CREATE TABLE fencepost_ledger (pipeline {0}, record_id {0}, token bigint,"
                  " worker {0})",
                  Text()));
  EXPECT_THAT(Refusal({}), HasSubstr("has no column source"));
  Exec("DROP TABLE fencepost_ledger");
  ASSERT_TRUE(Open({})->Prepare());
  Exec("ALTER TABLE fencepost_ledger RENAME TO made");
  Exec("CREATE TABLE fencepost_ledger AS SELECT * FROM made");
  EXPECT_THAT(Refusal({}), HasSubstr("has no primary key (pipeline, record_id)"));
}

}  // namespace
}  // namespace fencepost::consumer
