// fencepost explain on real servers: what it says of one record at each point of its life.
#include <nlohmann/json.hpp>

#include "tests/e2e/cli_tools/tools_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class Explain : public ToolsTest {
 protected:
  [[nodiscard]] Finished At(int offset, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{name_, "0", std::to_string(offset)};
    words.insert(words.end(), more.begin(), more.end());
    return Tool({"explain"}, words);
  }
  void Says(int offset, const ::testing::Matcher<std::string>& what) const {
    const Finished explained = At(offset);
    EXPECT_EQ(explained.exit_code, 0) << explained.error_output;
    EXPECT_THAT(explained.output, what);
  }
};

TEST_F(Explain, FollowsARecordFromWaitingToDone) {
  ToolsText();
  Orders orders(Kafka().bootstrap(), name_, 1);
  orders.Produce(3);
  Says(0, AllOf(HasSubstr("id o-0, checksum "), HasSubstr("no row of this id"),
                HasSubstr("has committed nothing of this partition"),
                HasSubstr("start_from: earliest")));
  RunWorker();
  Says(0, AllOf(HasSubstr("what happened: Done: its effect was"), HasSubstr("by worker worker-1"),
                HasSubstr("committed offset 3"), HasSubstr("key \"customer-0\""),
                HasSubstr("none in " + dead_)));
  Says(3, AllOf(HasSubstr("There is no such record yet"), HasSubstr("next offset is 3")));
}

TEST_F(Explain, IsAskedOfAWorkerByWhoMayControlIt) {
  ToolsText(1, "observe: {control: loopback}\n");
  Send(0, Orders::Value(1));
  Send(0, R"({"order_id":"o-1","amount":999})");
  WorkerProcess worker({.files = {file_}, .name = "worker-1"});
  ASSERT_TRUE(AllCommitted()) << worker.Log();
  const auto asked = [&](const std::string& which, const std::string& pipeline) {
    return HttpPost("127.0.0.1", worker.port(), "/pipelines/" + pipeline + "/explain", which);
  };
  for (const std::string& which : {name_ + "/0/1", name_ + "/0/1\n"}) {
    const HttpResponse told = asked(which, name_);
    EXPECT_EQ(told.status, 200);
    EXPECT_THAT(told.body, AllOf(HasSubstr("an id conflict"), HasSubstr("difference  value /"),
                                 HasSubstr(dead_ + "/0/0"), HasSubstr("what will happen next: ")));
  }
  EXPECT_THAT(asked("id=o-1", name_).body, HasSubstr("what happened: "));
  for (const char* wrong : {"", "id=", "nonsense", "other/0/1", "a/b/0/1", "id"}) {
    EXPECT_EQ(asked(wrong, name_).status, 400) << wrong;
  }
  EXPECT_EQ(asked(name_ + "/0/1", "other").status, 404);
  EXPECT_THAT(worker.Log(), HasSubstr("POST /pipelines/" + name_ + "/explain from 127.0.0.1"));
}

TEST_F(Explain, TellsADuplicateAndAConflictFromTheRecordThatTookEffect) {
  ToolsText();
  Send(0, Orders::Value(1));
  Send(0, Orders::Value(1));
  Send(0, R"({"order_id":"o-1","amount":999})");
  RunWorker();
  Says(1, AllOf(HasSubstr("Another record with the same id and the same content took effect: " +
                          name_ + "/0/0"),
                HasSubstr("it was skipped")));
  Says(2, AllOf(HasSubstr("an id conflict"), HasSubstr("difference  value /"),
                HasSubstr(dead_ + "/0/0"), HasSubstr("--as-new-id")));
}

TEST_F(Explain, TellsThatANullValueMadeNoRowAndLeftItsIdToTheNext) {
  const PipelineText text = ToolsText(1, "handler: {take: \"json:/body?\"}\n");
  Use(text.Yaml() + "    on_null_value: skip\n");
  Send(0, R"({"order_id":"b","body":null})");
  Send(0, R"({"order_id":"b"})");
  Send(0, R"({"order_id":"b","body":{"order_id":"b","amount":2}})");
  RunWorker();
  for (const int offset : {0, 1}) {
    Says(offset, AllOf(HasSubstr("since its value is null (on_null_value: skip). It leaves its id"),
                       HasSubstr("of another record (" + name_ + "/0/2)")));
  }
}

TEST_F(Explain, TellsWhichConditionLeavesARecordOut) {
  ToolsText(1, "when: [json:/amount exists]\n");
  Send(0, R"({"order_id":"o-1"})");
  Send(0, Orders::Value(1));
  RunWorker();
  Says(0, AllOf(HasSubstr("when        filtered: json:/amount exists does not hold"),
                HasSubstr("what happened: Filtered: "), HasSubstr("committed offset 2")));
  Says(1, HasSubstr("what happened: Done: its effect was"));
}

TEST_F(Explain, TellsADeadLetter) {
  ToolsText();
  Send(0, R"({"amount":4711})");
  Send(0, Orders::Value(1));
  RunWorker();
  Says(0,
       AllOf(HasSubstr("no record id"), HasSubstr("It failed (bad_record"),
             HasSubstr("was published to " + dead_ + "/0/0"), HasSubstr("fencepost dlq replay")));
}

TEST_F(Explain, TellsWhoHoldsTheLockAndWhatBecomesOfIt) {
  ToolsText();
  Orders orders(Kafka().bootstrap(), name_, 1);
  orders.Produce(3);
  PlantHeld(Orders::Id(0), minutes(1));
  Says(0, AllOf(HasSubstr("held under token 88000000000000000"), HasSubstr("is being processed"),
                ContainsRegex("another one takes over within 5[0-9] s")));
  PlantHeld(Orders::Id(1), minutes(1), 2);
  Says(1, HasSubstr("no majority (3 are needed)"));
  PlantHeld(Orders::Id(2), -seconds(1));
  Says(2, AllOf(HasSubstr("past its deadline"), HasSubstr("takes the lock over")));
}

TEST_F(Explain, TellsThatTheBlockOfItsOffsetIsHeld) {
  PipelineText text = ToolsText();
  text.record_id = "position";
  text.block = "1024";
  Use(text);
  Send(0, Orders::Value(1));
  const std::string block = fmt::format("{}/{}/0/0-1023", Kafka().admin().ClusterId(), name_);
  PlantHeld(block, minutes(1));
  Says(0, AllOf(HasSubstr(Key(block) + ", of a block of offsets"),
                HasSubstr("another one of its block of offsets, is being processed")));
}

TEST_F(Explain, FindsARecordByItsId) {
  ToolsText();
  Send(0, Orders::Value(7));
  RunWorker();
  const Finished known = Tool({"explain"}, {"--id", "o-7"});
  EXPECT_EQ(known.exit_code, 0) << known.error_output;
  EXPECT_THAT(known.output, AllOf(HasSubstr(name_ + "/0/0 (as its ledger row says)"),
                                  HasSubstr("Done: its effect was committed")));
  Bury({{.id = "o-9", .offset = 1}, {.id = "o-9", .offset = 2}});
  EXPECT_THAT(Tool({"explain"}, {"--id", "o-9"}).output, HasSubstr(name_ + "/0/2 (as "))
      << "the newest letter's";
  const Finished unknown = Tool({"explain"}, {"--id", "o-8"});
  EXPECT_EQ(unknown.exit_code, 0) << unknown.error_output;
  EXPECT_THAT(unknown.output, HasSubstr("No part knows this id"));
}

TEST_F(Explain, TellsOfARecordThatIsTriedAgainByItsIdToo) {
  ToolsText(1,
            fmt::format("handler: {{http: {{url: \"http://127.0.0.1:{}/\", idempotent: true}}}}\n",
                        FreePort()));
  Send(0, Orders::Value(7));
  const WorkerProcess worker({.files = {file_}, .name = "worker-1"});
  std::string told;
  EXPECT_TRUE(WaitUntil(seconds(30), "an outage to be told",
                        [&] {
                          told = Tool({"explain"}, {"--id", "o-7"}).output;
                          return told.find("counted as unavailable") != std::string::npos;
                        }))
      << told << worker.Log();
  EXPECT_THAT(
      told, AllOf(HasSubstr(name_ + "/0/0 (as the group's offsets say)"),
                  HasSubstr("Its handler was not reached, last at"), HasSubstr(" (connection).")));
}

TEST_F(Explain, IsOneJsonObjectWhenAsked) {
  ToolsText();
  Send(0, Orders::Value(7));
  RunWorker();
  PlantDone("o-7");
  const Finished explained = At(0, {"--json"});
  EXPECT_EQ(explained.exit_code, 0) << explained.error_output;
  const nlohmann::json json = nlohmann::json::parse(explained.output);
  EXPECT_EQ(json["verdict"], "done");
  EXPECT_EQ(json["id"], "o-7");
  EXPECT_EQ(json["kafka"]["committed"], 1);
  EXPECT_EQ(json["lock"].size(), 5u);
  EXPECT_EQ(json["lock"][0]["state"], "done");
  EXPECT_EQ(json["ledger"]["row"]["source"], name_ + "/0/0");
}

TEST_F(Explain, TellsThePartsThatItReachesWhenOthersAreAway) {
  PipelineText text = ToolsText();
  Send(0, Orders::Value(7));
  RunWorker();
  PlantDone("o-7");
  PipelineText away = text;
  away.dsn = fmt::format("postgresql://postgres@127.0.0.1:{}/x", FreePort());
  const std::string port = std::to_string(FreePort());
  away.nodes.replace(away.nodes.rfind(':') + 1, std::string::npos, port);
  Use(away);
  Says(0, AllOf(HasSubstr("e  127.0.0.1:" + port + "  not reachable: "),
                HasSubstr("a  " + Nodes()[0].address() + "  DONE"),
                HasSubstr("ledger      not known: "), HasSubstr("committed offset 1"),
                HasSubstr("The ledger could not be asked, and it decides")));
  away = text;
  away.brokers = fmt::format("127.0.0.1:{}", FreePort());
  Use(away);
  const Finished blind = At(0);
  EXPECT_EQ(blind.exit_code, 1);
  EXPECT_THAT(blind.output,
              AllOf(HasSubstr("record      not known: "), HasSubstr("no broker of " + away.brokers),
                    HasSubstr("so its id is not known")));
  EXPECT_THAT(blind.error_output, HasSubstr("--id RECORD_ID asks them"));
  const Finished by_id = Tool({"explain"}, {"--id", "o-7"});
  EXPECT_EQ(by_id.exit_code, 0) << by_id.error_output;
  EXPECT_THAT(by_id.output, AllOf(HasSubstr("no broker of"), HasSubstr("Done: its effect")));
}

TEST_F(Explain, FailsWhereNothingCanBeReached) {
  PipelineText text = ToolsText();
  text.brokers = fmt::format("127.0.0.1:{}", FreePort());
  text.nodes = fmt::format("127.0.0.1:{}", FreePort());
  text.dsn = fmt::format("postgresql://postgres@127.0.0.1:{}/x", FreePort());
  Use(text);
  const Finished explained = Tool({"explain"}, {"--id", "o-7"});
  EXPECT_EQ(explained.exit_code, 1);
  EXPECT_THAT(
      explained.error_output,
      HasSubstr("fencepost: nothing could be reached: neither Kafka, nor a lock node, nor a "
                "ledger\n"));
}

TEST_F(Explain, FindsARecordOfATopicThatAPatternMatches) {
  PipelineText text = ToolsText();
  text.topic = fmt::format("\"^{}\"", name_);
  Use(text);
  Send(0, Orders::Value(1));
  Says(0, HasSubstr("id o-1, checksum "));
  const Finished refused = Tool({"explain"}, {name_ + "-2", "0", "1"});
  EXPECT_EQ(refused.exit_code, 2) << refused.output;
  EXPECT_THAT(refused.error_output,
              HasSubstr(fmt::format("does not read topic {}-2; it reads ^{}", name_, name_)));
}

TEST_F(Explain, RefusesAQuestionThatMakesNoSense) {
  ToolsText(2);
  const auto refuses = [&](const std::vector<std::string>& words, const std::string& why) {
    const Finished refused = Tool({"explain"}, words);
    EXPECT_EQ(refused.exit_code, 2) << refused.output;
    EXPECT_EQ(refused.output, "");
    EXPECT_THAT(refused.error_output, MatchesRegex("fencepost: [^\n]+\n"));
    EXPECT_THAT(refused.error_output, HasSubstr(why));
  };
  refuses({"bills", "0", "1"},
          "pipeline " + name_ + " does not read topic bills; it reads " + name_);
  refuses({dead_, "0", "1"}, "it is its dead letter topic: fencepost dlq show");
  refuses({name_, "2", "1"}, "topic " + name_ + " has no partition 2; it has 2, counted from 0");
  refuses({name_, "x", "1"}, "PARTITION");
  refuses({name_, "0", "-1"}, "");
  refuses({name_, "0"}, "name the record, either as TOPIC PARTITION OFFSET or by --id");
  refuses({}, "name the record");
  refuses({name_, "0", "1", "--id", "o-1"}, "name the record");
}

}  // namespace
}  // namespace fencepost::testing
