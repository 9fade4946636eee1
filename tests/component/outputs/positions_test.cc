// The ledger by position, a row a partition: what the databases must do alike.
#include <latch>
#include <thread>

#include <gmock/gmock.h>

#include "tests/component/outputs/positions.h"

namespace fencepost::consumer {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using enum WriteResult;

INSTANTIATE_TEST_SUITE_P(Stores, PositionsTest, kStores, StoreName);

TEST_P(PositionsTest, EffectsOfAPartitionHaveOneRowThatHoldsTheirOffsets) {
  const auto output = Open("worker-1");
  EXPECT_THAT(Results(*output, Orders(5, 8, {.token = 77})), All(3, kCommitted));
  EXPECT_EQ(Effects(), "5|5 6|6 7|7");
  EXPECT_EQ(Exec("SELECT pipeline, cluster, topic, " + Name("partition") +
                 ", done, token, worker FROM fencepost_positions"),
            "orders|C|orders|3|{[5,8)}|77|worker-1");
  EXPECT_THAT(Results(*output, Orders(8, 10)), All(2, kCommitted));
  EXPECT_EQ(Done(), "{[5,10)}");
}

TEST_P(PositionsTest, WorkOutOfOrderLeavesRangesThatMerge) {
  const auto output = Open("worker-1");
  EXPECT_THAT(Results(*output, Orders(4, 6)), All(2, kCommitted));
  EXPECT_THAT(Results(*output, Orders(1, 2)), All(1, kCommitted));
  EXPECT_EQ(Done(), "{[1,2),[4,6)}");
  EXPECT_THAT(Results(*output, Orders(0, 6)), ElementsAre(kCommitted, kOwnEarlier, kCommitted,
                                                          kCommitted, kOwnEarlier, kOwnEarlier));
  EXPECT_EQ(Done(), "{[0,6)}");
  EXPECT_EQ(Effects(), "0|0 1|1 2|2 3|3 4|4 5|5");
}

TEST_P(PositionsTest, OffsetsThatHaveNoRecordAreDoneWithTheRecordBehindThem) {
  const auto output = Open("worker-1");
  Batch batch;
  batch.Add(Order(20));
  batch.Add(Order(23, {.gap = 2}));
  EXPECT_THAT(Results(*output, batch), All(2, kCommitted));
  EXPECT_EQ(Done(), "{[20,24)}");
}

TEST_P(PositionsTest, ARecordThatIsDoneIsJudgedByTheLastWriteToItsPartition) {
  ASSERT_THAT(Results(*Open("worker-1"), Orders(1, 2, {.token = 50})), ElementsAre(kCommitted));
  const auto other = Open("worker-2");
  EXPECT_THAT(Results(*other, Orders(1, 2, {.token = 49})), ElementsAre(kFenced));
  EXPECT_THAT(Results(*other, Orders(1, 2, {.token = 50})), ElementsAre(kDuplicate));
  EXPECT_THAT(Results(*Open("worker-1"), Orders(1, 2, {.token = 49})), ElementsAre(kOwnEarlier));
  EXPECT_EQ(Exec("SELECT token, worker FROM fencepost_positions"), "50|worker-1");
  EXPECT_EQ(Effects(), "1|1");
}

TEST_P(PositionsTest, TheIdCountsAndWhereTheRecordWasReadIsDoneWithIt) {
  const auto output = Open("worker-1");
  Batch replay;
  replay.Add(Order(7, {.read_at = 900, .gap = 4}));
  EXPECT_THAT(Results(*output, replay), ElementsAre(kCommitted));
  EXPECT_EQ(Done(), "{[7,8),[896,901)}");
  EXPECT_EQ(Exec("SELECT anchors FROM fencepost_positions"), "");
  EXPECT_EQ(WriteResult::kOwnEarlier, Results(*output, Orders(7, 8)).at(0));
}

TEST_P(PositionsTest, DeadLettersThatComeBackAmongTheOthersLeaveOneRange) {
  const auto output = Open("worker-1");
  Batch first;
  for (Offset offset = 20; offset < 50; ++offset) {
    if (offset % 3 != 1) first.Add(Order(offset));  // the others are dead letters
  }
  ASSERT_THAT(Results(*output, first), All(20, kCommitted));
  for (int i = 0; i < 2; ++i) {  // the second time each is done already
    Batch back;
    for (Offset offset = 50; offset < 70; ++offset) {
      const bool replay = offset % 2 == 0;
      const Offset read = i == 0 ? offset : offset + 20;
      back.Add(replay ? Order(22 + (offset - 50) / 2 * 3, {.read_at = read}) : Order(read));
    }
    EXPECT_THAT(Results(*output, back), Each(AnyOf(kCommitted, kOwnEarlier)));
  }
  EXPECT_EQ(Done(), "{[20,90)}");
  EXPECT_EQ(Exec("SELECT count(*) FROM effects"), "50");
}

Batch::Entry Letter(Offset offset, OrderAt at = {}) {
  Batch::Entry entry = Order(offset, at);
  entry.letter = true;
  return entry;
}

TEST_P(PositionsTest, DeadLettersLeaveNoHoleAndCanBeReplayedOnce) {
  const auto output = Open("worker-1");
  Batch batch;
  for (Offset offset = 0; offset < 200; ++offset) {
    batch.Add(offset % 2 == 0 ? Order(offset) : Letter(offset, {.token = 5}));
  }
  const auto results = Results(*output, batch);
  ASSERT_EQ(results.size(), 200u);
  for (std::size_t i = 0; i < 200; ++i) EXPECT_EQ(results[i], i % 2 == 0 ? kCommitted : kNoOutput);
  EXPECT_EQ(Done(), "{[0,200)}");
  EXPECT_EQ(Exec("SELECT count(*) FROM effects"), "100");
  EXPECT_EQ(Exec("SELECT pipeline, token, worker, source, content_crc FROM fencepost_ledger"
                 " WHERE record_id = 'C/orders/3/7'"),
            "orders|0|worker-1|orders/3/7|1");
  const auto again = Open("worker-2");
  EXPECT_THAT(Results(*again, Batch{Order(7)}), ElementsAre(kFenced)) << "it was read again";
  EXPECT_THAT(Results(*again, Batch{Letter(7)}), ElementsAre(kFenced));
  EXPECT_THAT(Results(*again, Batch{Order(7, {.read_at = 300}), Order(8, {.read_at = 301})}),
              ElementsAre(kCommitted, kFenced));
  EXPECT_EQ(Exec("SELECT count(*) FROM effects WHERE id = '7'"), "1");
  EXPECT_THAT(Results(*again, Batch{Order(7, {.read_at = 302})}), ElementsAre(kOwnEarlier));
  EXPECT_EQ(Exec("SELECT count(*) FROM fencepost_ledger"), "99");
  EXPECT_EQ(Done(), "{[0,200),[300,303)}");
}

TEST_P(PositionsTest, TenThousandDeadLettersLeaveARowOfOneRange) {
  const auto output = Open("worker-1");
  for (Offset begin = 0; begin < 20'000; begin += 500) {
    Batch batch;
    for (Offset offset = begin; offset < begin + 500; ++offset) {
      batch.Add(offset % 2 == 1 ? Letter(offset) : Order(offset));
    }
    const auto results = WriteOnce(*output, batch);
    ASSERT_TRUE(results) << results.error().error.Line();
  }
  EXPECT_EQ(Done(), "{[0,20000)}");
  EXPECT_EQ(Exec("SELECT count(*) FROM fencepost_ledger"), "10000");
}

TEST_P(PositionsTest, AReplayThatFailsAgainStaysADeadLetter) {
  const auto output = Open("worker-1");
  ASSERT_THAT(Results(*output, Batch{Letter(7)}), ElementsAre(kNoOutput));
  Results(*output, Batch{Letter(7, {.read_at = 20})});
  EXPECT_EQ(Done(), "{[7,8),[20,21)}");
  EXPECT_EQ(Exec("SELECT record_id, source FROM fencepost_ledger"), "C/orders/3/7|orders/3/7");
  EXPECT_THAT(Results(*output, Batch{Order(7, {.read_at = 21})}), ElementsAre(kCommitted));
  // One whose first letter left a hole, as those of versions before did.
  EXPECT_THAT(Results(*output, Batch{Letter(9, {.read_at = 22})}), ElementsAre(kNoOutput));
  EXPECT_THAT(Results(*output, Batch{Order(9, {.read_at = 23})}), ElementsAre(kCommitted));
  EXPECT_THAT(Results(*output, Batch{Order(9, {.read_at = 24})}), ElementsAre(kOwnEarlier));
}

TEST_P(PositionsTest, AReplayThatTheTableRefusesIsStillTheDeadLetterThatItWas) {
  for (const std::int32_t partition : {3, 4}) {  // it is read in the same partition, and in another
    const auto output = Open("worker-1");
    ASSERT_THAT(Results(*output, Batch{Letter(13, {.partition = partition})}),
                ElementsAre(kNoOutput));
    const Offset from = 20 + partition * 100;
    const auto replay = [&](Offset offset, int amount) {
      Batch::Entry entry = Order(13, {.partition = partition, .read_at = from + offset});
      entry.partition = 3;
      entry.value = fmt::format(R"({{"amount":{}}})", amount);
      return entry;
    };
    const std::string id = Id(13, partition);
    const auto letters = [&] {
      return Exec(fmt::format("SELECT token FROM fencepost_ledger WHERE record_id = '{}'", id));
    };
    EXPECT_THAT(Results(*output, Batch{replay(0, 13), Order(from + 1)}),
                ElementsAre(kBadRecord, kCommitted));
    EXPECT_EQ(letters(), "0");
    EXPECT_THAT(Done(partition), HasSubstr("[13,14)"));
    EXPECT_EQ(output->Lookup({id}).value()[0]->token, locking::Token());
    Batch::Entry letter = replay(0, 13);
    letter.letter = true;
    EXPECT_THAT(Results(*output, Batch{letter}), ElementsAre(kOwnEarlier));
    EXPECT_EQ(letters(), "0");
    EXPECT_THAT(Results(*output, Batch{replay(2, 14), Order(from + 3)}), All(2, kCommitted));
    EXPECT_EQ(letters(), "");
    EXPECT_THAT(Results(*output, Batch{replay(4, 14)}), ElementsAre(kOwnEarlier));
    EXPECT_THAT(Done(), HasSubstr(fmt::format("[{},{})", from, from + 5)));
  }
  EXPECT_EQ(Exec("SELECT count(*) FROM effects WHERE amount = 14"), "2");
}

TEST_P(PositionsTest, ADeadLetterThatComesLateTakesNothingFromAnEffect) {
  const auto output = Open("worker-1");
  ASSERT_THAT(Results(*output, Batch{Order(7)}), ElementsAre(kCommitted));
  EXPECT_THAT(Results(*output, Batch{Letter(7)}), ElementsAre(kOwnEarlier));
  EXPECT_EQ(Exec("SELECT count(*) FROM fencepost_ledger"), "0");
  EXPECT_THAT(Results(*output, Batch{Order(7, {.read_at = 20})}), ElementsAre(kOwnEarlier));
}

TEST_P(PositionsTest, LookingUpAndForgettingKnowDeadLetters) {
  const auto output = Open("worker-1");
  Batch batch;
  for (Offset offset = 5; offset < 13; ++offset) {
    batch.Add(offset % 2 == 0 ? Order(offset) : Letter(offset));
  }
  batch.Add(Letter(7, {.partition = 33}));
  Results(*output, batch);
  const auto entries = output->Lookup({Id(6), Id(7), Id(13)}).value();
  ASSERT_TRUE(entries[0] && entries[1]);
  EXPECT_NE(entries[0]->token, locking::Token());
  EXPECT_EQ(entries[1]->token, locking::Token());
  EXPECT_EQ(entries[1]->source, "orders/3/7");
  EXPECT_FALSE(entries[1]->crc) << "in place it is no conflict, whatever came of the topic";
  EXPECT_FALSE(entries[2]);
  EXPECT_EQ(output->Forget({Id(7), Id(8)}).value(), 2u);
  EXPECT_EQ(output->ForgetOffsets(*ParsePositionId(Id(10)), 100).value(), 3u);
  EXPECT_EQ(Exec("SELECT record_id FROM fencepost_ledger ORDER BY record_id"),
            "C/orders/3/5 C/orders/3/9 C/orders/33/7");
  EXPECT_EQ(Done(), "{[5,7),[9,10)}");
  EXPECT_THAT(Results(*output, Batch{Order(7)}), ElementsAre(kCommitted));
  EXPECT_THAT(Results(*output, Batch{Order(7, {.read_at = 50})}), ElementsAre(kOwnEarlier));
}

TEST_P(PositionsTest, ADeadLettersRowIsPrunedAndItsOffsetStaysDone) {
  const auto output = Open("worker-1");
  Results(*output, Batch{Letter(7), Letter(8)});
  Exec("UPDATE fencepost_ledger SET completed_at = '2020-01-02 03:04:05'");
  const PruneScope scope{
      .keep = std::chrono::seconds(60), .committed = {{{"orders", 3}, 8}}, .topics = {"orders"}};
  EXPECT_EQ(output->Prune(scope, 100).value(), 1u);
  EXPECT_EQ(Exec("SELECT record_id FROM fencepost_ledger"), "C/orders/3/8");
  EXPECT_THAT(Results(*output, Batch{Order(7, {.read_at = 20})}), ElementsAre(kOwnEarlier));
}

TEST_P(PositionsTest, AReplayFromAnotherClusterSaysNothingOfTheSameOffsetThere) {
  const auto output = Open("worker-1");
  Batch replay;
  Batch::Entry entry = Order(7, {.gap = 4});
  entry.id = "D/orders/3/7";
  replay.Add(entry);
  EXPECT_THAT(Results(*output, replay), ElementsAre(kCommitted));
  EXPECT_EQ(Exec("SELECT cluster, done, anchors FROM fencepost_positions ORDER BY cluster"),
            "C|{[3,8)}| D|{[7,8)}|");
}

TEST_P(PositionsTest, AReplayByAWorkerThatKnowsOlderAnchorsKeepsThoseThatAreStored) {
  const auto replayer = Open("worker-2");
  ASSERT_THAT(Results(*replayer, Orders(0, 1)), ElementsAre(kCommitted));
  ASSERT_THAT(Results(*Open("worker-1"), Orders(1, 60)), Each(AnyOf(kCommitted, kBadRecord)));
  const std::string stored = Exec("SELECT anchors FROM fencepost_positions");
  Batch replay;
  replay.Add(Order(200, {.read_at = 900}));
  EXPECT_THAT(Results(*replayer, replay), ElementsAre(kCommitted));
  EXPECT_EQ(Exec("SELECT anchors FROM fencepost_positions"), stored);
}

TEST_P(PositionsTest, ARecordWithAnIdOfAnotherFormIsBadAndNothingOfItsBatchIsWrittenBehindIt) {
  const auto output = Open("worker-1");
  Batch batch;
  batch.Add({.id = "o-1", .offset = 1, .key = "o-1", .chain = 1});
  batch.Add(Order(2, {.chain = 1}));
  batch.Add(Order(3));
  EXPECT_THAT(Results(*output, batch), ElementsAre(kBadRecord, kNotWritten, kCommitted));
  EXPECT_EQ(Done(), "{[3,4)}");
}

TEST_P(PositionsTest, ABadRowsOffsetIsNotDoneAndTheOthersOfItsBatchAre) {
  const auto output = Open("worker-1");
  const auto results = Results(*output, Orders(0, 40));  // the table refuses 13
  ASSERT_EQ(results.size(), 40u);
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i], i == 13 ? kBadRecord : kCommitted) << i;
  }
  EXPECT_EQ(Done(), "{[0,13),[14,40)}");
}

TEST_P(PositionsTest, WritersThatRaceForTheSamePartitionsCommitEachRecordOnce) {
  constexpr int kWriters = 3;
  constexpr int kRounds = 6;
  constexpr int kRecords = 40;
  std::latch start(kWriters);
  std::vector<int> committed(kWriters), standing(kWriters);
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      const auto output = Open(fmt::format("worker-{}", w));
      // SQLite refuses at once where several make the file at a time.
      EXPECT_TRUE(testing::WaitUntil(std::chrono::seconds(20), "the database",
                                     [&] { return output->Prepare().has_value(); }));
      start.arrive_and_wait();
      for (int round = 0; round < kRounds; ++round) {
        Batch batch;  // the partitions in an order of each writer's own
        for (int i = 0; i < kRecords; ++i) {
          const int n = (i * 7 + w * 13) % kRecords;
          batch.Add(Order(round * 100 + n / 4,
                          {.token = static_cast<std::uint64_t>(w + 1), .partition = n % 4}));
        }
        for (const WriteResult result : ResultsOfRetries(*output, batch)) {
          committed[static_cast<std::size_t>(w)] += result == kCommitted;
          standing[static_cast<std::size_t>(w)] += EffectIsWritten(result);
        }
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(committed[0] + committed[1] + committed[2], kRounds * kRecords);
  EXPECT_THAT(standing, Each(kRounds * kRecords));
  EXPECT_EQ(Exec("SELECT count(*) FROM effects"), std::to_string(kRounds * kRecords));
}

TEST_P(PositionsTest, TellsWhatIsDoneAndTakesItBack) {
  const auto output = Open("worker-1");
  ASSERT_THAT(Results(*output, Orders(0, 10, {.token = 9})), All(10, kCommitted));
  const auto entries = output->Lookup({Id(3), "o-1", Id(10), Id(3, 4)}).value();
  ASSERT_TRUE(entries[0]);
  EXPECT_EQ(entries[0]->source, "orders/3/3");
  EXPECT_EQ(entries[0]->worker, "worker-1");
  EXPECT_EQ(entries[0]->token.value(), 9u);
  EXPECT_EQ(entries[0]->crc, std::nullopt);
  EXPECT_THAT(entries[0]->completed_at,
              ::testing::MatchesRegex("[0-9]{4}-..-..T..:..:..\\.[0-9]{3}Z"));
  EXPECT_FALSE(entries[1]);
  EXPECT_FALSE(entries[2]);
  EXPECT_FALSE(entries[3]);
  EXPECT_EQ(output->Forget({Id(3), Id(4), Id(10), "o-1", Id(3, 4)}).value(), 2u);
  EXPECT_EQ(Done(), "{[0,3),[5,10)}");
  EXPECT_FALSE(output->Lookup({Id(3)}).value().front());
  EXPECT_EQ(output->Forget({Id(3)}).value(), 0u);
  EXPECT_EQ(output->ForgetOffsets(ParsePositionId(Id(6)).value(), 7).value(), 2u);
  EXPECT_EQ(Done(), "{[0,3),[5,6),[8,10)}");
  EXPECT_NE(Exec("SELECT anchors FROM fencepost_positions"), "");
  const Offset last = std::numeric_limits<Offset>::max();
  EXPECT_EQ(output->ForgetOffsets(ParsePositionId(Id(0)).value(), last).value(), 6u);
  EXPECT_EQ(Exec("SELECT done, anchors FROM fencepost_positions"), "{}|")
      << "of what was taken back nothing is known, not even that it was another log";
  EXPECT_EQ(
      output->Prune({.keep = std::chrono::seconds(0), .committed = {}, .topics = {}}, 10).value(),
      0u);
}

// Without a fence, as in RulesTest.
TEST_P(PositionsTest, ALateWriteOfAFrozenWorkerChangesNothing) {
  const RowRules rules{.on_conflict = OnConflict::kUpdate, .key = {"id"}};
  const auto open = [&](const char* worker) {
    OutputTerms terms;
    terms.by_position = true;
    return store_->Open(ByKey(), rules, std::move(terms), worker);
  };
  const auto change = [](Offset offset, std::uint64_t token) {
    Batch::Entry entry = Order(offset, {.token = token});
    entry.key = "7";
    return entry;
  };
  const auto frozen = open("worker-1");
  const auto next = open("worker-2");
  ASSERT_TRUE(frozen->Prepare());
  const Batch first{change(1, 1)};
  const Batch both{change(1, 2), change(2, 2)};
  EXPECT_EQ(Results(*next, both), All(2, kCommitted));
  EXPECT_EQ(Results(*frozen, first), All(1, kFenced));
  EXPECT_EQ(Effects(), "7|2");
  EXPECT_EQ(Results(*next, both), All(2, kOwnEarlier));
  EXPECT_EQ(Effects(), "7|2");
}

TEST_P(PositionsTest, ARowThatSomebodyDeletedIsMadeAgain) {
  const auto output = Open("worker-1");
  ASSERT_THAT(Results(*output, Orders(0, 1)), ElementsAre(kCommitted));
  Exec("DELETE FROM fencepost_positions");
  if (IsPostgres()) {  // which writes without a look
    EXPECT_TRUE(Failure(*output, Orders(1, 3)).retry_at_once);
    EXPECT_EQ(Exec("SELECT count(*) FROM effects"), "1") << "nothing is written without its row";
  }
  EXPECT_EQ(Results(*output, Orders(1, 3)), All(2, kCommitted));
  EXPECT_EQ(Done(), "{[1,3)}");
}

TEST_P(PositionsTest, ALedgerThatIsGoneInTheMiddleOfARunIsNotCreatedAgain) {
  const auto output = Open("worker-1");
  ASSERT_THAT(Results(*output, Orders(0, 1)), ElementsAre(kCommitted));
  Exec("DROP TABLE fencepost_positions");
  EXPECT_FALSE(WriteAll(*output, Orders(1, 2)));
  const auto gone = WriteAll(*output, Orders(1, 2));
  ASSERT_FALSE(gone);
  EXPECT_TRUE(gone.error().fatal);
  EXPECT_THAT(gone.error().error.Line(), HasSubstr("fencepost_positions"));
}

TEST_P(PositionsTest, ALedgerWithoutItsKeyIsRefused) {
  ASSERT_TRUE(Open("worker-1")->Prepare());
  Exec("ALTER TABLE fencepost_positions RENAME TO made");
  Exec("CREATE TABLE fencepost_positions AS SELECT * FROM made");
  const auto prepared = Open("worker-1")->Prepare();
  ASSERT_FALSE(prepared);
  EXPECT_THAT(prepared.error().error.Line(),
              HasSubstr("no primary key (pipeline, cluster, topic, partition)"));
}

TEST_P(PositionsTest, KnowsTheTopicsOfWhichSomethingIsDone) {
  const auto output = Open("worker-1");
  EXPECT_FALSE(output->KnowsTopic("orders").value());
  ASSERT_THAT(Results(*output, Orders(0, 1)), ElementsAre(kCommitted));
  EXPECT_TRUE(output->KnowsTopic("orders").value());
  EXPECT_FALSE(output->KnowsTopic("order").value());
}

TEST_P(PositionsTest, ALogIsComparedOnceAnAssignmentAndNotWithoutARecordThatWasDone) {
  int reads = 0;
  std::vector<Offset> asked;
  const ReadLog read = [&](const LogQuestion& question) {
    ++reads;
    asked = question.offsets;
    EXPECT_EQ(question.cluster, "C");
    EXPECT_EQ(question.where, (TopicPartition{"orders", 3}));
    return LogState{.end = 100, .records = {RecordAt(asked.front())}};
  };
  const auto output = Open("worker-1", {.read_log = read});
  ASSERT_THAT(Results(*output, Orders(0, 5)), All(5, kCommitted));
  ASSERT_THAT(Results(*output, Orders(5, 9)), All(4, kCommitted));
  EXPECT_EQ(reads, 0);
  ASSERT_THAT(Results(*output, Orders(5, 10)),
              ElementsAre(kOwnEarlier, kOwnEarlier, kOwnEarlier, kOwnEarlier, kCommitted));
  ASSERT_THAT(Results(*output, Orders(5, 6)), ElementsAre(kOwnEarlier));
  ASSERT_TRUE(output->Lookup({Id(5)}).value().front());
  EXPECT_EQ(reads, 1);
  EXPECT_EQ(asked.front(), 8) << "the newest that was done before this batch";
  output->OnAssignment(2);
  ASSERT_TRUE(output->Lookup({Id(5)}).value().front());
  EXPECT_EQ(reads, 2);
  ASSERT_THAT(Results(*output, Orders(5, 6, {.epoch = 3})), ElementsAre(kOwnEarlier));
  EXPECT_EQ(reads, 3);
}

TEST_P(PositionsTest, ATopicThatWasRecreatedStopsTheWorkerBeforeARecordIsTakenForDone) {
  ASSERT_THAT(Results(*Open("worker-1"), Orders(0, 5)), All(5, kCommitted));
  const auto another = [](const LogQuestion& asked) {
    LogState log{.end = 9, .records = {}};
    for (const Offset offset : asked.offsets)
      log.records.push_back(RecordAt(offset, offset < 5 ? 5 : 1));
    return log;
  };
  const auto output = Open("worker-2", {.read_log = another});
  for (int i = 0; i < 2; ++i) {  // whoever asks again hears the same, whatever was written
    const OutputError written = Failure(*output, Orders(4, 8));
    EXPECT_TRUE(written.fatal);
    EXPECT_THAT(written.error.Line(),
                AllOf(HasSubstr("orders/3"), HasSubstr("recreated"), HasSubstr("another name"),
                      HasSubstr("fencepost forget")));
    EXPECT_EQ(written.error.code, "topic_replaced");
  }
  const auto found = Open("worker-3", {.read_log = another})->Lookup({Id(2)});
  ASSERT_FALSE(found);
  EXPECT_TRUE(found.error().fatal);
}

TEST_P(PositionsTest, ATruncatedTopicStopsTheWorkerAndOneWhoseRecordsAreGoneDoesNot) {
  ASSERT_THAT(Results(*Open("worker-1"), Orders(0, 5)), All(5, kCommitted));
  LogState log{.end = 4, .records = {}};
  const ReadLog read = [&](const LogQuestion&) { return log; };
  const auto truncated = Open("worker-2", {.read_log = read})->Lookup({Id(2)});
  ASSERT_FALSE(truncated);
  EXPECT_TRUE(truncated.error().fatal);
  log = {.end = 5, .records = {}};
  EXPECT_TRUE(Open("worker-2", {.read_log = read})->Lookup({Id(2)}).value().front());
}

TEST_P(PositionsTest, OffsetsThatBeginAgainBelowWhatIsDoneStopTheWorkerBeforeItsFirstWrite) {
  ASSERT_THAT(Results(*Open("worker-1"), Orders(500, 505)), All(5, kCommitted));
  int reads = 0;
  LogState log{.end = 9, .records = {}};
  const ReadLog read = [&](const LogQuestion&) {
    ++reads;
    return log;
  };
  const auto output = Open("worker-2", {.read_log = read});
  for (int i = 0; i < 2; ++i) {
    const OutputError written = Failure(*output, Orders(0, 5));
    EXPECT_TRUE(written.fatal);
    EXPECT_EQ(written.error.code, "topic_replaced");
  }
  EXPECT_EQ(Exec("SELECT count(*) FROM effects"), "5") << "nothing of the new log took effect";
  log = {.end = 505, .records = {RecordAt(504)}};
  reads = 0;
  EXPECT_THAT(Results(*output, Orders(0, 5)), All(5, kCommitted));
  EXPECT_THAT(Results(*output, Orders(5, 9)), All(4, kCommitted));
  EXPECT_EQ(reads, 1) << "once an assignment";
  EXPECT_THAT(Results(*output, Orders(9, 10, {.epoch = 2})), All(1, kCommitted));
  EXPECT_EQ(reads, 2);
  EXPECT_THAT(Results(*output, Orders(505, 506, {.epoch = 3})), All(1, kCommitted));
  EXPECT_EQ(reads, 3) << "though nothing is done behind it";
}

TEST_P(PositionsTest, RowsByIdAreNotPassedOverByAPipelineThatHasPositionsNow) {
  ASSERT_THAT(Results(*store_->Open(ByKey(), {}, {}), Orders(0, 2)), All(2, kCommitted));
  for (const bool look_only : {true, false}) {
    EXPECT_THAT(consumer::Refusal(*Open("worker-1", {.look_only = look_only})),
                AllOf(HasSubstr("fencepost_ledger has rows of pipeline orders"),
                      HasSubstr("another name")));
  }
  Exec("DELETE FROM fencepost_ledger");
  EXPECT_THAT(Results(*Open("worker-1"), Orders(2, 3)), ElementsAre(kCommitted)) << "once they go";
}

TEST_P(PositionsTest, RowsByPositionAreNotPassedOverByAPipelineThatHasIdsNow) {
  ASSERT_THAT(Results(*Open("worker-1"), Orders(0, 2)), All(2, kCommitted));
  const auto by_id = [&] { return store_->Open(ByKey(), {}, {}); };
  const auto prepared = by_id()->Prepare();
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().error.code, "output_schema");
  EXPECT_THAT(prepared.error().error.Line(),
              AllOf(HasSubstr("fencepost_positions has rows of pipeline orders"),
                    HasSubstr("with record_id: an id only the second is read"),
                    HasSubstr("DELETE FROM fencepost_positions WHERE pipeline = 'orders'")));
  EXPECT_FALSE(by_id()->Write({.items = Orders(0, 2).items(), .offsets = {}}));
  EXPECT_EQ(Exec("SELECT count(*) FROM effects"), "2");
  Exec("DELETE FROM fencepost_positions");
  EXPECT_TRUE(by_id()->Prepare()) << "once they are gone";
}

TEST_P(PositionsTest, BrokersThatAreAwayAndTheLogOfAnotherClusterStopNobody) {
  ASSERT_THAT(Results(*Open("worker-1"), Orders(0, 5)), All(5, kCommitted));
  const auto away = [](const LogQuestion&) -> tl::expected<std::optional<LogState>, Error> {
    return tl::unexpected(Error{"kafka_unreachable", "no broker answers", "", ""});
  };
  const auto found = Open("worker-2", {.read_log = away})->Lookup({Id(2)});
  ASSERT_FALSE(found);
  EXPECT_FALSE(found.error().fatal);
  EXPECT_THAT(found.error().error.Line(), HasSubstr("no broker answers"));
  const auto other = [](const LogQuestion&) -> tl::expected<std::optional<LogState>, Error> {
    return std::nullopt;
  };
  EXPECT_TRUE(Open("worker-2", {.read_log = other})->Lookup({Id(2)}).value().front());
}

}  // namespace
}  // namespace fencepost::consumer
