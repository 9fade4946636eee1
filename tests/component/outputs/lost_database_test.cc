// A database that another one took the place of, and a ledger that went away.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "tests/component/outputs/positions.h"
#include "tests/component/outputs/postgres_fixture.h"
#include "tests/component/outputs/sqlite_fixture.h"

namespace fencepost::consumer {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using enum WriteResult;

// --- servers -------------------------------------------------------------------------------------

class LostCommitsTest : public PositionsTest {
 protected:
  [[nodiscard]] std::unique_ptr<Output> OpenById() { return StoreTest::Open({}); }
  static Batch::Entry Entry(const std::string& id, Offset offset) {
    return {.id = id, .offset = offset, .value = R"({"amount":1})", .key = id};
  }
  // The connection's end is noticed by a write that fails.
  static std::string Again(Output& output, const Batch& batch) {
    const std::string said = Trouble(output, batch);
    return said.find("fatal") == std::string::npos && !said.empty() ? Trouble(output, batch) : said;
  }
};
INSTANTIATE_TEST_SUITE_P(Servers, LostCommitsTest, kServers, StoreName);

TEST_P(LostCommitsTest, StopTheWorkerWithTheirOffsets) {
  const auto output = OpenById();
  for (int i = 0; i < 5; ++i) {
    ASSERT_THAT(Results(*output, Batch{Entry(fmt::format("a{}", i), 10 + i)}),
                ElementsAre(kCommitted));
  }
  Exec("DELETE FROM fencepost_ledger WHERE record_id >= 'a3'");
  Exec("DELETE FROM effects");
  store_->Restart();
  const Batch next{Entry("a5", 15)};
  const std::string said = Again(*output, next);
  EXPECT_THAT(said, AllOf(HasSubstr("fatal: 127.0.0.1:"), HasSubstr("lost 2 commits"),
                          HasSubstr("orders,3,13)"), HasSubstr("--reset-offsets")));
  EXPECT_EQ(Trouble(*output, next), said) << "each time it is asked";
  EXPECT_EQ(Exec("SELECT count(*) FROM effects"), "0");
}

// The one that did some of them again knows nothing of the others.
TEST_P(LostCommitsTest, ByPositionAreFoundBelowThoseThatAnotherWorkerDidAgain) {
  const auto output = Open("worker-1");
  ASSERT_EQ(Results(*output, Orders(20, 25)), All(5, kCommitted));
  Exec("UPDATE fencepost_positions SET done = '{[20,22),[24,30)}', worker = 'worker-2'");
  store_->Restart();
  EXPECT_THAT(Again(*output, Orders(30, 31)),
              AllOf(HasSubstr("fatal: 127.0.0.1:"), HasSubstr("lost 2 commits"),
                    HasSubstr("orders,3,22)"), HasSubstr("--reset-offsets")));
  EXPECT_EQ(Exec("SELECT count(*) FROM effects"), "5");
}

TEST_P(LostCommitsTest, AreNoneWhereTheServerKeptEverythingOrSomebodyTookThemBack) {
  const auto by_id = OpenById();
  const Batch first{Entry("a", 1)};
  ASSERT_THAT(Results(*by_id, first), ElementsAre(kCommitted));
  store_->Restart();
  EXPECT_EQ(Again(*by_id, first), "");
  ASSERT_EQ(OpenById()->Forget({"a"}).value(), 1u);
  store_->Disconnect();
  EXPECT_EQ(Again(*by_id, Batch{Entry("b", 2)}), "");
}

TEST_P(LostCommitsTest, ByPositionAreNoneWhereSomebodyTookThemBackOrDeletedTheRow) {
  const auto output = Open("worker-1");
  ASSERT_EQ(Results(*output, Orders(20, 25)), All(5, kCommitted));
  ASSERT_EQ(Open("cli")->Forget({Id(22)}).value(), 1u);
  store_->Restart();
  EXPECT_EQ(Again(*output, Orders(25, 26)), "");
  EXPECT_EQ(Done(), "{[20,22),[23,26)}");
  Exec("DELETE FROM fencepost_positions");
  store_->Disconnect();
  EXPECT_EQ(Again(*output, Orders(26, 27)), "");
}

using LostPostgresTest = PostgresTest;

TEST_F(LostPostgresTest, ALedgerThatWasEmptiedStopsTheWorker) {
  const auto output = Open();
  const Batch batch{{.id = "a", .offset = 1}};
  ASSERT_THAT(Results(*output, batch), ElementsAre(kCommitted));
  Exec("TRUNCATE fencepost_ledger");
  store_.Disconnect();
  EXPECT_NE(Trouble(*output, batch), "");
  EXPECT_THAT(Trouble(*output, batch), HasSubstr("fatal: "));
}

// --- SQLite --------------------------------------------------------------------------------------

class ReplacedSqliteTest : public SqliteTest {
 protected:
  // Nothing of the test's own has the file open.
  ReplacedSqliteTest() {
    sqlite3_close(db_);
    db_ = nullptr;
  }
  // Another file in the place of it and its log.
  void Replace(const std::string& by) const {
    for (const char* file : {"", "-wal", "-shm"}) fs::remove(path_ + file);
    fs::rename(folder_.File(by), path_);
  }
  // A copy of the file with what its log holds, as `VACUUM INTO` makes one.
  void CopyTo(const std::string& file) { Look("VACUUM INTO '" + folder_.File(file) + "'"); }
  static ino_t Inode(const std::string& path) {
    struct stat about {};
    EXPECT_EQ(stat(path.c_str(), &about), 0) << path;
    return about.st_ino;
  }
  // In a connection that ends.
  std::string Look(const std::string& sql) {
    sqlite3_open(path_.c_str(), &db_);
    const std::string cell = Exec(sql);
    sqlite3_close(db_);
    db_ = nullptr;
    return cell;
  }
  std::string Ids() { return Look("SELECT group_concat(order_id) FROM effects"); }

  const Batch a_{{.id = "a", .offset = 1}}, b_{{.id = "b", .offset = 2}},
      c_{{.id = "c", .offset = 3}};
};

TEST_F(ReplacedSqliteTest, AnOlderFileInItsPlaceStopsTheWorkerWithTheOffsets) {
  const auto output = Open();
  ASSERT_THAT(Results(*output, a_), ElementsAre(kCommitted));
  CopyTo("backup.db");
  ASSERT_THAT(Results(*output, b_), ElementsAre(kCommitted));
  Replace("backup.db");
  const std::string said = Trouble(*output, c_);
  EXPECT_THAT(said, AllOf(HasSubstr("fatal: "), HasSubstr("lost 1 commit of"),
                          HasSubstr("another file took its place"), HasSubstr("orders,3,2)")));
  EXPECT_EQ(Trouble(*output, c_), said);
  EXPECT_EQ(Ids(), "a");
}

TEST_F(ReplacedSqliteTest, ARowThatWasOnlyFoundIsMissedTooInAnOlderFile) {
  const auto output = Open();
  ASSERT_THAT(Results(*output, a_), ElementsAre(kCommitted));
  CopyTo("backup.db");
  ASSERT_THAT(Results(*Open(), b_), ElementsAre(kCommitted));
  ASSERT_THAT(Results(*output, b_), ElementsAre(kOwnEarlier));
  Replace("backup.db");
  EXPECT_THAT(Trouble(*output, b_), AllOf(HasSubstr("lost 1 commit of"), HasSubstr("orders,3,2)")));
}

// A file system gives the inode of a removed file to the next one that is made.
TEST_F(ReplacedSqliteTest, AFileThatWasMadeAnewIsAnotherOneWhateverItsInode) {
  const auto output = Open();
  ASSERT_THAT(Results(*output, a_), ElementsAre(kCommitted));
  CopyTo("backup.db");
  ASSERT_THAT(Results(*output, b_), ElementsAre(kCommitted));
  const auto inode = Inode(path_);
  fs::rename(path_, path_ + ".away");
  ASSERT_THAT(Trouble(*output, c_), HasSubstr("No such file")) << "it has closed the file";
  for (const char* file : {".away", "-wal", "-shm"}) fs::remove(path_ + file);
  // Until one has it, if the file system gives it away at all.
  std::string made = folder_.Write("made-0", "");
  for (int i = 1; i < 2000 && Inode(made) != inode; ++i) {
    made = folder_.Write(fmt::format("made-{}", i), "");
  }
  fs::rename(made, path_);
  fs::copy_file(folder_.File("backup.db"), path_, fs::copy_options::overwrite_existing);
  EXPECT_THAT(Trouble(*output, c_),
              AllOf(HasSubstr("fatal: "), HasSubstr("another file took its place")));
  EXPECT_EQ(Ids(), "a");
}

TEST_F(ReplacedSqliteTest, AFileThatHoldsAllThatWasCommittedIsGoneOnWith) {
  const auto output = Open();
  ASSERT_THAT(Results(*output, a_), ElementsAre(kCommitted));
  CopyTo("copy.db");
  Replace("copy.db");
  EXPECT_THAT(Results(*output, b_), ElementsAre(kCommitted));
  EXPECT_EQ(Ids(), "a,b");
}

TEST_F(ReplacedSqliteTest, WhatSomebodyTookBackIsNoLossInACopyOfTheFile) {
  SqliteOptions options = Options();
  options.columns = Columns({{"order_id", "key"}, {"amount", "json:/amount"}});
  const auto open = [&](const std::string& worker) {
    return MakeSqliteOutput(options, "orders", worker, {.by_position = true});
  };
  const auto output = open("worker-1");
  ASSERT_THAT(Results(*output, Orders(0, 3)), ElementsAre(kCommitted, kCommitted, kCommitted));
  ASSERT_EQ(open("forget")->Forget({Id(1)}).value(), 1u);
  CopyTo("copy.db");
  Replace("copy.db");
  EXPECT_EQ(Trouble(*output, Orders(3, 4)), "");
  EXPECT_EQ(Look("SELECT done FROM fencepost_positions"), "{[0,1),[2,4)}");
}

TEST_F(ReplacedSqliteTest, TheLogOfTheFormerFileIsNotPlayedIntoTheNewOne) {
  const auto output = Open();
  ASSERT_THAT(Results(*output, a_), ElementsAre(kCommitted));
  CopyTo("copy.db");
  fs::rename(folder_.File("copy.db"), path_);
  EXPECT_THAT(Trouble(*output, b_), AllOf(HasSubstr("effects.db-wal"), HasSubstr("remove")));
  for (const char* file : {"-wal", "-shm"}) fs::remove(path_ + file);
  EXPECT_THAT(Results(*output, b_), ElementsAre(kCommitted));
  EXPECT_EQ(Ids(), "a,b");
}

TEST_F(ReplacedSqliteTest, AFileThatWentAwayIsWaitedFor) {
  const auto output = Open();
  ASSERT_THAT(Results(*output, a_), ElementsAre(kCommitted));
  fs::rename(path_, path_ + ".away");
  EXPECT_THAT(Trouble(*output, b_), HasSubstr("effects.db: No such file"));
  fs::rename(path_ + ".away", path_);
  EXPECT_THAT(Results(*output, b_), ElementsAre(kCommitted));
  EXPECT_EQ(Ids(), "a,b");
}

// Another process asks; closing a descriptor of the file would have ended the locks of this one.
TEST_F(ReplacedSqliteTest, AFileThatWasOpenedAgainIsLockedAgainstOtherProcesses) {
  const auto output = Open();
  ASSERT_THAT(Results(*output, a_), ElementsAre(kCommitted));
  fs::rename(path_, path_ + ".away");
  EXPECT_NE(Trouble(*output, b_), "");
  fs::rename(path_ + ".away", path_);
  ASSERT_THAT(Results(*output, b_), ElementsAre(kCommitted));
  EXPECT_THAT(
      testing::RunToEnd({.argv = {"sqlite3", path_, "PRAGMA journal_mode = DELETE"}}).output,
      HasSubstr("database is locked"));
}

}  // namespace
}  // namespace fencepost::consumer
