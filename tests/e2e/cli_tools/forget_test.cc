// fencepost forget on real servers: marks first, on all nodes, then rows.
#include "tests/e2e/cli_tools/tools_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::minutes;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class Forget : public ToolsTest {
 protected:
  [[nodiscard]] Finished Id(const std::string& id) const {
    return Tool({"forget"}, {"--id", id, "--execute"});
  }
  [[nodiscard]] Finished Range(int from, int to) const {
    return Tool({"forget"}, {"--topic", name_, "--partition", "0", "--from", std::to_string(from),
                             "--to", std::to_string(to), "--execute"});
  }
  // Orders o-0 … o-(records-1), all done.
  PipelineText Done(int records) {
    const PipelineText text = ToolsText();
    Orders orders(Kafka().bootstrap(), name_, 1);
    orders.Produce(records);
    RunWorker();
    EXPECT_EQ(LedgerRows(), records);
    for (int order = 0; order < records; ++order) PlantDone(Orders::Id(order));
    return text;
  }
};

TEST_F(Forget, LetsOneRecordTakeEffectAgainOnceTheOffsetIsMovedBack) {
  Done(3);
  const Finished forgotten = Id("o-1");
  EXPECT_EQ(forgotten.exit_code, 0) << forgotten.error_output;
  EXPECT_THAT(
      forgotten.output,
      AllOf(HasSubstr("1 DONE mark taken back on all 5 lock nodes, 1 ledger row deleted\n"),
            HasSubstr("the offset of group " + name_ + " does not move"),
            HasSubstr(fmt::format("kafka-consumer-groups.sh --bootstrap-server {} --group {} "
                                  "--topic {}:0 --to-offset 1 --reset-offsets --execute",
                                  Kafka().bootstrap(), name_, name_))));
  Kafka().admin().CommitOffsets(name_, name_, {0});
  RunWorker();
  EXPECT_EQ(table_->Value("SELECT string_agg(order_id || ' ' || n, ',' ORDER BY order_id) FROM "
                          "(SELECT order_id, count(*) n FROM effects GROUP BY 1) x"),
            "o-0 1,o-1 2,o-2 1");
}

TEST_F(Forget, IsADryRunUnlessItIsToldToExecute) {
  Done(3);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--id", "o-1"},
        {"--topic", name_, "--partition", "0", "--from", "1", "--to", "1"}}) {
    const Finished told = Tool({"forget"}, words);
    EXPECT_EQ(told.exit_code, 0) << told.error_output;
    EXPECT_THAT(told.output,
                AllOf(HasSubstr("1 DONE mark would be taken back on all 5 lock nodes, 1 ledger row "
                                "would be deleted\n"),
                      HasSubstr("nothing was changed: --execute does it\n")));
  }
  EXPECT_EQ(LedgerRows(), 3);
  EXPECT_EQ(Nodes()[0].Command({"GETRANGE", Key("o-1"), "0", "0"}), "D");
}

TEST_F(Forget, TakesARangeOfOffsets) {
  Done(5);
  const Finished forgotten = Range(1, 3);
  EXPECT_EQ(forgotten.exit_code, 0) << forgotten.error_output;
  EXPECT_THAT(forgotten.output,
              AllOf(HasSubstr(name_ + "/0 1 to 3: 3 records, 3 ids\n"),
                    HasSubstr("3 DONE marks taken back on all 5 lock nodes, 3 ledger rows deleted"),
                    HasSubstr(":0 --to-offset 1 ")));
  EXPECT_EQ(
      table_->Value("SELECT string_agg(record_id, ',' ORDER BY record_id) FROM fencepost_ledger"),
      "o-0,o-4");
}

TEST_F(Forget, TakesARangeOfATopicThatAPatternMatches) {
  PipelineText text = Done(2);
  text.topic = fmt::format("\"^{}\"", name_);
  Use(text);
  const Finished forgotten = Range(0, 1);
  EXPECT_EQ(forgotten.exit_code, 0) << forgotten.error_output;
  EXPECT_EQ(LedgerRows(), 0);
}

TEST_F(Forget, SaysThatThereWasNothingToForget) {
  Done(1);
  EXPECT_THAT(Id("o-99").output, HasSubstr("0 DONE marks taken back on all 5 lock nodes, 0 ledger "
                                           "rows deleted"));
  const Finished empty = Range(7, 9);
  EXPECT_EQ(empty.exit_code, 1);
  EXPECT_THAT(empty.error_output, HasSubstr("there is no id to forget in this range"));
}

TEST_F(Forget, DeletesNothingUnlessEveryNodeAnswers) {
  PipelineText text = Done(1);
  const std::string away = fmt::format("127.0.0.1:{}", FreePort());
  text.nodes.replace(text.nodes.rfind(',') + 1, std::string::npos, away);
  Use(text);
  const Finished forgotten = Id("o-0");
  EXPECT_EQ(forgotten.exit_code, 1);
  EXPECT_THAT(forgotten.error_output,
              AllOf(HasSubstr("fencepost: " + away + ": lock node e does not answer"),
                    HasSubstr("no ledger row was deleted; run it again when the node is back")));
  EXPECT_EQ(LedgerRows(), 1);
  EXPECT_EQ(Nodes()[0].Command({"GETRANGE", Key("o-0"), "0", "0"}), "D");
}

TEST_F(Forget, IsRefusedWhileAWorkerHoldsTheLock) {
  Done(2);
  PlantHeld("o-1", minutes(1), 1);
  const Finished forgotten = Range(0, 1);
  EXPECT_EQ(forgotten.exit_code, 1);
  EXPECT_THAT(
      forgotten.error_output,
      AllOf(ContainsRegex("fencepost: o-1 is held by a worker under token 88000000000000000 for "
                          "another 5[0-9] s\n"),
            HasSubstr("fencepost: 1 of the locks is held: its records are being processed; nothing "
                      "was forgotten; stop the workers")));
  EXPECT_EQ(LedgerRows(), 2);
  EXPECT_EQ(Nodes()[0].Command({"GETRANGE", Key("o-0"), "0", "0"}), "D");
}

TEST_F(Forget, ByPositionIsRefusedWhileAWorkerHoldsTheBlock) {
  PipelineText text = ToolsText();
  text.record_id = "position";
  text.block = "1024";
  Use(text);
  Orders orders(Kafka().bootstrap(), name_, 1);
  orders.Produce(3);
  RunWorker();
  const std::string block = fmt::format("{}/{}/0/0-1023", Kafka().admin().ClusterId(), name_);
  PlantHeld(block, minutes(1), 1);
  const Finished refused = Range(0, 1);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.error_output, AllOf(HasSubstr("fencepost: " + block + " is held by a worker"),
                                          HasSubstr("nothing was forgotten")));
  const auto done = [this] { return table_->Value("SELECT done::text FROM fencepost_positions"); };
  EXPECT_EQ(done(), "{[0,3)}");
  Nodes()[0].Command({"DEL", Key(block)});
  EXPECT_EQ(Range(0, 1).exit_code, 0);
  EXPECT_EQ(done(), "{[2,3)}");
}

TEST_F(Forget, ByPositionTakesARangeBackWhoseRecordsAreGone) {
  PipelineText text = ToolsText();
  text.record_id = "position";
  Use(text);
  Orders orders(Kafka().bootstrap(), name_, 1);
  orders.Produce(4);
  RunWorker();
  Kafka().admin().DeleteRecordsBefore(name_, 0, 4);
  EXPECT_EQ(Range(1, 2).exit_code, 0);
  EXPECT_EQ(table_->Value("SELECT done::text FROM fencepost_positions"), "{[0,1),[3,4)}");
}

TEST_F(Forget, TakesNoPositionBackUnlessEveryNodeAnswersAlsoWhereNoRecordIsLeft) {
  PipelineText text = ToolsText();
  text.record_id = "position";
  Use(text);
  Orders orders(Kafka().bootstrap(), name_, 1);
  orders.Produce(3);
  RunWorker();
  text.nodes.replace(text.nodes.rfind(',') + 1, std::string::npos,
                     fmt::format("127.0.0.1:{}", FreePort()));
  Use(text);
  const Finished forgotten = Range(7, 9);
  EXPECT_EQ(forgotten.exit_code, 1);
  EXPECT_THAT(forgotten.error_output, HasSubstr("lock node e does not answer"));
}

TEST_F(Forget, SaysWhatIsLeftWhenTheLedgerCannotBeReached) {
  PipelineText text = Done(1);
  PipelineText away = text;
  away.dsn = fmt::format("postgresql://postgres@127.0.0.1:{}/x", FreePort());
  Use(away);
  const Finished half = Id("o-0");
  EXPECT_EQ(half.exit_code, 1);
  EXPECT_THAT(half.error_output,
              AllOf(HasSubstr("; 1 marks were taken back and 0 ledger rows deleted"),
                    HasSubstr("run it again when the database answers")));
  Use(text);
  EXPECT_THAT(Id("o-0").output, HasSubstr("0 DONE marks taken back on all 5 lock nodes, 1 ledger "
                                          "row deleted"));
}

TEST_F(Forget, SaysWhatIsWrongWithTheCommandLine) {
  ToolsText();
  const auto refuses = [&](const std::vector<std::string>& words, const std::string& why) {
    const Finished refused = Tool({"forget"}, words);
    EXPECT_EQ(refused.exit_code, 2) << refused.output;
    EXPECT_THAT(refused.error_output, HasSubstr(why));
  };
  refuses({}, "name the records, either by --id ID or by --topic T --partition P --from O --to O");
  refuses({"--topic", name_, "--from", "1"}, "name the records");
  refuses({"--id", "o-1", "--topic", name_}, "name the records");
  refuses({"--topic", name_, "--partition", "0", "--from", "2", "--to", "1"},
          "--from is after --to");
  refuses({"--topic", name_, "--partition", "0", "--from", "-2", "--to", "1"}, "--from");
  refuses({"--topic", "bills", "--partition", "0", "--from", "0", "--to", "1"},
          "pipeline " + name_ + " does not read topic bills; it reads " + name_);
  const Finished partition =
      Tool({"forget"}, {"--topic", name_, "--partition", "7", "--from", "0", "--to", "1"});
  EXPECT_EQ(partition.exit_code, 1);
  EXPECT_THAT(partition.error_output, HasSubstr("has no partition 7; it has 1, counted from 0"));
}

}  // namespace
}  // namespace fencepost::testing
