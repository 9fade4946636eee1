// fencepost dlq on a real broker: listing, showing, and sending back.
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/e2e/cli_tools/tools_test.h"

namespace fencepost::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::StartsWith;

class Dlq : public ToolsTest {
 protected:
  [[nodiscard]] Finished Call(const std::string& command,
                              const std::vector<std::string>& more = {}) const {
    return Tool({"dlq", command}, more);
  }
  [[nodiscard]] Finished Replay(std::vector<std::string> more = {}) const {
    more.push_back("--execute");
    return Call("replay", more);
  }
};

TEST_F(Dlq, ListsALineEachAndATotal) {
  ToolsText();
  Bury(
      {{.id = "o-1", .offset = 4}, {.id = "o-2", .pipeline = "bills"}, {.error_class = "timeout"}});
  TestProducer producer(Kafka().bootstrap());
  producer.Send(dead_, 0, "k", "not of fencepost");
  producer.Flush();
  const Finished list = Call("list");
  EXPECT_EQ(list.exit_code, 0) << list.error_output;
  EXPECT_EQ(list.output,
            fmt::format("{0}/0/0  2026-11-03T10:00:00.000Z  404  attempts 5  id o-1  from {1}/0/4  "
                        "HTTP 404 from the service\n"
                        "{0}/0/2  2026-11-03T10:00:00.000Z  timeout  attempts 5  id (none)  from "
                        "{1}/0/0  HTTP 404 from the service\n"
                        "2 dead letters in {0}, 1 of other pipelines left out, 1 record in the "
                        "topic is no dead letter of fencepost\n",
                        dead_, name_));
}

TEST_F(Dlq, ReplaysForWhoMayControlAWorker) {
  ToolsText(1, "observe: {control: loopback}\n");
  Bury({{.id = "o-1", .offset = 4}, {.id = "o-2", .error_class = "id_conflict", .offset = 5}});
  WorkerProcess worker({.files = {file_}, .name = "worker-1"});
  const auto post = [&](const char* word, const std::string& which) {
    return HttpPost("127.0.0.1", worker.port(), fmt::format("/pipelines/{}/{}", name_, word),
                    which);
  };
  const HttpResponse tried = post("try-replay", "id=o-1");
  EXPECT_EQ(tried.status, 200) << tried.body;
  EXPECT_THAT(tried.body, AllOf(HasSubstr("would replay  " + dead_ + "/0/0"),
                                HasSubstr("1 would be replayed, 0 refused")));
  const HttpResponse replayed = post("replay", name_ + "/0/4");
  EXPECT_EQ(replayed.status, 200) << replayed.body;
  EXPECT_THAT(replayed.body, StartsWith("1 replayed, 0 refused\n"));
  EXPECT_TRUE(WaitUntil(std::chrono::seconds(60), "the effect", [&] {
    return post("try-replay", "id=o-1").body.find("0 would be replayed, 1 refused") !=
           std::string::npos;
  }));
  const HttpResponse refused = post("replay", "id=o-2");
  EXPECT_EQ(refused.status, 409);
  EXPECT_THAT(refused.body,
              AllOf(HasSubstr("0 replayed, 1 refused"), EndsWith("it ended with exit code 1\n")));
  for (const char* wrong : {"", "id=", "nonsense"}) EXPECT_EQ(post("replay", wrong).status, 400);
  EXPECT_THAT(worker.Log(), HasSubstr("POST /pipelines/" + name_ + "/replay from 127.0.0.1"));
}

TEST_F(Dlq, ListsByTheTimesAtWhichTheyFailed) {
  ToolsText();
  Bury({{.id = "o-1", .failed_at = "2026-11-05T10:00:00.000Z"},
        {.id = "o-2", .failed_at = "2026-11-03T10:00:00.000Z"}});
  EXPECT_THAT(Call("list").output, ::testing::ContainsRegex("id o-2 .*\n.*id o-1 "));
}

TEST_F(Dlq, ChoosesByItsFilters) {
  ToolsText();
  Bury({{.id = "o-1", .offset = 1, .failed_at = "2026-11-03T10:00:00.000Z"},
        {.id = "o-2",
         .value = Orders::Value(2),
         .error_class = "timeout",
         .offset = 2,
         .failed_at = "2026-11-04T10:00:00Z"},
        {.id = "o-3",
         .value = Orders::Value(3),
         .offset = 3,
         .failed_at = "2026-11-05T10:00:00.000Z"}});
  const auto ids = [&](const std::vector<std::string>& filters) {
    std::vector<std::string> more = filters;
    more.push_back("--json");
    const Finished list = Call("list", more);
    EXPECT_EQ(list.exit_code, 0) << list.error_output;
    std::vector<std::string> found;
    std::istringstream lines(list.output);
    for (std::string line; std::getline(lines, line);) {
      found.push_back(nlohmann::json::parse(line)["record_id"]);
    }
    return found;
  };
  EXPECT_THAT(ids({}), ElementsAre("o-1", "o-2", "o-3"));
  EXPECT_THAT(ids({"--class", "404"}), ElementsAre("o-1", "o-3"));
  EXPECT_THAT(ids({"--id", "o-2"}), ElementsAre("o-2"));
  EXPECT_THAT(ids({"--topic", name_, "--partition", "0", "--offset", "3"}), ElementsAre("o-3"));
  EXPECT_THAT(ids({"--topic", "bills"}), IsEmpty());
  EXPECT_THAT(ids({"--since", "2026-11-04T10:00:00Z"}), ElementsAre("o-2", "o-3"));
  EXPECT_THAT(ids({"--until", "2026-11-04T11:00:00+01:00"}), ElementsAre("o-1"));
  EXPECT_THAT(ids({"--limit", "2"}), ElementsAre("o-1", "o-2"));
  EXPECT_THAT(Call("list", {"--limit", "2"}).output,
              HasSubstr("2 dead letters in " + dead_ + " (there may be more: --limit)"));
  EXPECT_EQ(Replay({"--limit", "2"}).exit_code, 0);
  EXPECT_THAT(Records(), SizeIs(2));
}

TEST_F(Dlq, ShowsEverythingOfEach) {
  ToolsText();
  Bury({{.id = "o-1", .value = std::string("\x00\xff", 2)}});
  const Finished show = Call("show");
  EXPECT_EQ(show.exit_code, 0) << show.error_output;
  EXPECT_THAT(show.output, AllOf(HasSubstr("key         \"customer-1\""),
                                 HasSubstr("header      source: \"shop\""),
                                 HasSubstr("value       2 bytes, base64: AP8="),
                                 HasSubstr("error       HTTP 404 from the service"),
                                 EndsWith("1 dead letter in " + dead_ + "\n")));
  const nlohmann::json json = nlohmann::json::parse(Call("show", {"--json"}).output);
  EXPECT_EQ(json["value"]["base64"], "AP8=");
  EXPECT_EQ(json["headers"][0]["name"], "source");
}

TEST_F(Dlq, MarksWhatHasTakenEffectSince) {
  ToolsText();
  Bury({{.id = "o-1"}, {.id = "o-2"}});
  Send(0, Orders::Value(1));  // o-1
  RunWorker();
  const std::string lines = Call("list").output;
  EXPECT_THAT(
      lines, HasSubstr("HTTP 404 from the service  [has taken effect since]\n" + dead_ + "/0/1  "));
  EXPECT_THAT(lines, HasSubstr("HTTP 404 from the service\n2 dead letters in "));
  EXPECT_THAT(Call("show", {"--id", "o-1"}).output, HasSubstr("  effect      taken since\n"));
  std::istringstream json(Call("list", {"--json"}).output);
  std::vector<bool> took;
  for (std::string line; std::getline(json, line);) {
    took.push_back(nlohmann::json::parse(line)["took_effect"]);
  }
  EXPECT_THAT(took, ElementsAre(true, false));
}

TEST_F(Dlq, ListsThemWithoutALedgerToAskToo) {
  PipelineText text = ToolsText();
  Bury({{.id = "o-1"}});
  text.dsn = Postgres().dsn(name_, "nobody_at_all");
  Use(text);
  const Finished list = Call("list", {"--json"});
  EXPECT_EQ(list.exit_code, 0);
  EXPECT_TRUE(nlohmann::json::parse(list.output)["took_effect"].is_null());
  EXPECT_THAT(list.error_output, HasSubstr("the ledger cannot be asked which of them have taken "
                                           "effect since: "));
}

TEST_F(Dlq, PurgeDeletesWhatHasTakenEffectUpToTheFirstThatHasNot) {
  ToolsText();
  Bury({{.id = "o-1"}, {.id = "o-2"}, {.id = "o-3"}});
  Send(0, Orders::Value(1));
  Send(0, Orders::Value(3));
  RunWorker();
  const std::string plan = fmt::format(
      "{0}/0: 1 dead letter before offset 1; offset 1 stays: id o-2 has not taken "
      "effect; 1 behind it stays, too, since Kafka deletes only from the beginning\n",
      dead_);
  const Finished dry = Call("purge");
  EXPECT_EQ(dry.exit_code, 0) << dry.error_output;
  EXPECT_EQ(dry.output, "would delete " + plan +
                            "1 dead letter would be deleted\n"
                            "nothing was deleted: --execute does it\n");
  EXPECT_THAT(Call("list").output, HasSubstr("3 dead letters in "));
  const Finished purge = Call("purge", {"--execute"});
  EXPECT_EQ(purge.exit_code, 0) << purge.error_output;
  EXPECT_EQ(purge.output, "deleting " + plan + "1 dead letter deleted\n");
  EXPECT_THAT(Call("list").output,
              AllOf(StartsWith(dead_ + "/0/1  "), HasSubstr("2 dead letters in ")));

  Send(0, Orders::Value(2));
  RunWorker();
  EXPECT_THAT(Call("purge", {"--execute"}).output,
              HasSubstr("2 dead letters before offset 3\n2 dead letters deleted\n"));
  EXPECT_THAT(Call("list").output, StartsWith("0 dead letters in "));
  EXPECT_THAT(Call("purge", {"--execute"}).output, "0 dead letters deleted\n");
}

TEST_F(Dlq, PurgeKeepsWhatIsNotAskedForAndWhatIsOfOthers) {
  ToolsText();
  Bury(
      {{.id = "o-1", .error_class = "timeout"}, {.id = "o-2", .pipeline = "bills"}, {.id = "o-3"}});
  EXPECT_THAT(Call("purge", {"--all", "--class", "404", "--execute"}).output,
              AllOf(HasSubstr("nothing to delete in " + dead_ +
                              "/0; offset 0 stays: it is not "
                              "among those that were asked for"),
                    EndsWith("0 dead letters deleted\n")));
  EXPECT_THAT(Call("purge", {"--all", "--execute"}).output,
              HasSubstr("1 dead letter before offset 1; offset 1 stays: it is of pipeline bills"));
  EXPECT_THAT(Call("list").output, HasSubstr("1 dead letter in "));
}

TEST_F(Dlq, PurgeWithoutALedgerWantsToBeToldAll) {
  PipelineText text = ToolsText();
  text.guarantee = "at-least-once";
  text.output = "output: {stdout: {}}\n";
  Use(text);
  Bury({{.id = "o-1"}});
  const Finished purge = Call("purge", {"--execute"});
  EXPECT_EQ(purge.exit_code, 2);
  EXPECT_THAT(purge.error_output, HasSubstr("nothing tells which dead letters have taken effect "
                                            "since; --all deletes them all the same"));
  EXPECT_THAT(Call("list").output, HasSubstr("1 dead letter in "));
}

// The letter is of the record at offset 0; a later one of its row has been written.
TEST_F(Dlq, ReplayRefusesALetterWhoseRowHasANewerChange) {
  PipelineText text = ToolsText();
  table_->Exec("CREATE UNIQUE INDEX ON effects (order_id)");
  text.record_id = "[json:/order_id, json:/amount]";
  std::string yaml = text.Yaml() + "    on_conflict: update\n    key: [order_id]\n";
  Use(yaml);
  const auto order = [](const char* id, int amount) {
    return fmt::format(R"({{"order_id":"{}","amount":{}}})", id, amount);
  };
  Send(0, order("o-1", -1));  // the table refuses it
  RunWorker();
  Send(0, order("o-1", 2));
  RunWorker();
  Bury({{.id = "o-2/5", .value = order("o-2", 5), .offset = 7}});
  const std::string why = "a newer change of the key was written: " + name_ + "/0/1; --over-newer";
  const Finished dry = Call("replay");
  EXPECT_EQ(dry.exit_code, 1);
  EXPECT_THAT(dry.output, AllOf(HasSubstr("refused       " + dead_ + "/0/0: " + why),
                                HasSubstr("1 would be replayed, 1 refused")));
  EXPECT_THAT(Call("replay", {"--as-new-id"}).output, HasSubstr(why));
  EXPECT_THAT(Call("replay", {"--over-newer"}).output, HasSubstr("2 would be replayed, 0 refused"));
  const Finished replay = Replay();
  EXPECT_EQ(replay.exit_code, 1);
  EXPECT_THAT(replay.output, AllOf(HasSubstr(why), HasSubstr("1 replayed, 1 refused")));
  RunWorker();
  EXPECT_EQ(table_->Value("SELECT amount FROM effects WHERE order_id = 'o-1'"), "2");
}

TEST_F(Dlq, ReplayIsADryRunUntilItIsToldToExecuteAndSendsTheRecordAsItWas) {
  ToolsText();
  Bury({{.id = "o-1"}});
  const Finished dry = Call("replay");
  EXPECT_EQ(dry.exit_code, 0) << dry.error_output;
  EXPECT_THAT(dry.output,
              AllOf(HasSubstr("would replay  " + dead_ + "/0/0 to " + name_ + ", id o-1"),
                    HasSubstr("1 would be replayed, 0 refused\nnothing was published: "
                              "--execute does it\n"),
                    HasSubstr("the producer chooses the partition by the key")));
  EXPECT_THAT(Records(), IsEmpty());
  const Finished replay = Replay();
  EXPECT_EQ(replay.exit_code, 0) << replay.error_output;
  EXPECT_THAT(replay.output, StartsWith("1 replayed, 0 refused\n"));
  const auto records = Records();
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_EQ(records[0].key, "customer-1");
  EXPECT_EQ(records[0].value, R"({"order_id":"o-1","amount":1})");
  EXPECT_EQ(records[0].timestamp_ms, 1793690000000);
  EXPECT_THAT(records[0].headers,
              ElementsAre(Pair("source", "shop"), Pair("fencepost-record-id", "o-1")));
}

TEST_F(Dlq, AReplayWhoseTimeItsTopicRefusesGoesWithoutItAndHasItInAHeader) {
  ToolsText();
  Kafka().admin().SetTopicConfig(name_, "message.timestamp.before.max.ms", "3600000");
  TestRecord untimed = Dead({.id = "o-2"});
  untimed.timestamp_ms = 0;  // it went without its time before
  untimed.headers.emplace_back("fencepost-timestamp", "1700000000000");
  {
    TestProducer producer(Kafka().bootstrap());
    producer.Send(untimed);
    producer.Flush();
  }
  Bury({{.id = "o-1"}});
  EXPECT_THAT(Call("show").output, AllOf(HasSubstr("timestamp   2023-11-14T22:13:20.000Z"),
                                         HasSubstr("timestamp   2026-11-03T07:13:20.000Z")));
  const Finished replay = Replay();
  EXPECT_EQ(replay.exit_code, 0) << replay.error_output;
  EXPECT_THAT(replay.output, AllOf(HasSubstr("note          " + dead_ + "/0/1: " + name_ +
                                             " does not take its time, which is in the header "
                                             "fencepost-timestamp\n"),
                                   HasSubstr("2 replayed, 0 refused\n")));
  const auto records = Records();
  ASSERT_THAT(records, SizeIs(2));
  for (const auto& [at, time] : {std::pair(0U, "1700000000000"), std::pair(1U, "1793690000000")}) {
    EXPECT_GT(records[at].timestamp_ms, 1793690000000);
    EXPECT_EQ(records[at].Header("fencepost-timestamp"), time);
  }
}

TEST_F(Dlq, ARecordThatDiedIsFixedReplayedAndTakesEffectOnce) {
  ToolsText();
  Send(0, R"({"order_id":"o-1","amount":-5})");  // the table's rule refuses it
  Send(0, Orders::Value(2));
  RunWorker();
  EXPECT_EQ(table_->Count(), 1);
  EXPECT_THAT(Call("list").output, AllOf(HasSubstr("id o-1"), HasSubstr("effects_amount_check")));
  table_->Exec("ALTER TABLE effects DROP CONSTRAINT effects_amount_check");
  EXPECT_EQ(Replay().exit_code, 0);
  RunWorker();
  EXPECT_EQ(table_->Value("SELECT count(*) FROM effects WHERE order_id = 'o-1'"), "1");

  const Finished again = Replay();
  EXPECT_EQ(again.exit_code, 0) << "nothing is left to do";
  EXPECT_THAT(
      again.output,
      AllOf(HasSubstr("refused       " + dead_ + "/0/0: id o-1 has taken effect: completed"),
            HasSubstr("by worker-1 from " + name_ + "/0/2"), HasSubstr("0 replayed, 1 refused\n")));
  EXPECT_THAT(Records(), SizeIs(3));
}

TEST_F(Dlq, ALetterOfATopicThatWasMadeAgainHasTheIdOfAnotherRecord) {
  PipelineText text = ToolsText();
  text.record_id = "position";
  std::string yaml = text.Yaml();
  yaml.insert(yaml.find("  start_from:"), "  accept_replay_ids: true\n");
  Use(yaml);
  Send(0, Orders::Value(1));
  Send(0, R"({"order_id":"o-2","amount":-5})");  // the table refuses it
  RunWorker();
  EXPECT_THAT(Call("replay").output, HasSubstr("1 would be replayed, 0 refused"));

  Kafka().admin().DeleteTopic(name_);
  Kafka().CreateTopic(name_, 1);
  EXPECT_THAT(Call("replay").output,
              HasSubstr("/0/0: its topic was made again: the log of " + name_ +
                        "/0 ends before it; --as-new-id replays it as a new record\n"));
  Send(0, Orders::Value(1));
  Send(0, Orders::Value(2));
  EXPECT_THAT(Call("list").output, HasSubstr("  [its topic was made again]\n"));
  EXPECT_THAT(Call("replay").output,
              AllOf(HasSubstr("its topic was made again: " + name_ + "/0/1 is another record"),
                    HasSubstr("0 would be replayed, 1 refused")));
  EXPECT_THAT(Call("purge").output, HasSubstr("offset 0 stays: the topic was made again"));
  EXPECT_THAT(Call("replay", {"--as-new-id"}).output, HasSubstr("1 would be replayed"));
}

TEST_F(Dlq, AnIdConflictIsReplayedOnlyAsANewId) {
  std::string yaml = ToolsText().Yaml();
  yaml.insert(yaml.find("  start_from:"), "  accept_replay_ids: true\n");
  Use(yaml);
  Send(0, Orders::Value(1));
  Send(0, R"({"order_id":"o-1","amount":999})");
  RunWorker();
  EXPECT_EQ(table_->Count(), 1);
  EXPECT_THAT(Call("show").output,
              AllOf(HasSubstr("difference  value /amount: "), HasSubstr(" there, 999 here")));
  const Finished refused = Replay();
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.output, AllOf(HasSubstr("id o-1 was processed with other content"),
                                    HasSubstr("--as-new-id replays it all the same")));
  for (int time = 0; time < 2; ++time) {  // the new id is recognised when it comes again
    EXPECT_EQ(Replay({"--as-new-id"}).exit_code, 0);
    RunWorker();
    EXPECT_EQ(table_->Value("SELECT count(*) FROM effects WHERE amount = 999"), "1");
  }
}

TEST_F(Dlq, OnlyTheFirstLetterOfAnIdIsInOneReplay) {
  ToolsText();
  Bury({{.id = "o-1", .offset = 1}, {.id = "o-1", .offset = 2}});
  const Finished replay = Replay();
  EXPECT_EQ(replay.exit_code, 0) << replay.output;
  EXPECT_THAT(replay.output,
              AllOf(HasSubstr("left out      " + dead_ +
                              "/0/1: an earlier dead letter of id o-1 is in this replay"),
                    HasSubstr("1 replayed, 0 refused, 1 left out")));
  EXPECT_THAT(Records(), SizeIs(1));
}

TEST_F(Dlq, AReplayTellsHowFarItIs) {
  ToolsText();
  std::vector<Letter> letters;
  for (int i = 0; i < 2500; ++i) letters.push_back({.id = Orders::Id(i)});
  Bury(letters);
  const Finished replay = Replay();
  EXPECT_EQ(replay.exit_code, 0) << replay.error_output;
  EXPECT_THAT(replay.error_output, HasSubstr("2000 sent, "));
  EXPECT_THAT(replay.output, HasSubstr("2500 replayed, 0 refused\n"));
  EXPECT_THAT(Records(), SizeIs(2500));
}

TEST_F(Dlq, NothingIsReplayedWithoutTheLedgersWord) {
  PipelineText text = ToolsText();
  text.dsn = fmt::format("postgresql://postgres@127.0.0.1:{}/x", FreePort());
  Use(text);
  Bury({{.id = "o-1"}});
  const Finished replay = Replay();
  EXPECT_EQ(replay.exit_code, 1);
  EXPECT_THAT(replay.error_output,
              HasSubstr("what took effect cannot be asked, and nothing is replayed blindly: "));
  EXPECT_THAT(Records(), IsEmpty());
}

TEST_F(Dlq, AReplayThatTheBrokerRefusesFailsAndSaysWhich) {
  ToolsText();
  Bury({{.id = "o-1"}});
  Kafka().admin().DeleteTopic(name_);
  const Finished replay =
      RunFencepost({"dlq", "replay", file_, "--execute"}, {}, std::chrono::seconds(60));
  EXPECT_EQ(replay.exit_code, 1);
  EXPECT_THAT(replay.error_output, HasSubstr(dead_ + "/0/0 was not replayed: "));
  EXPECT_THAT(replay.output, HasSubstr("0 replayed, 0 refused, 1 failed"));
}

TEST_F(Dlq, ALetterWhoseTopicIsGoneHoldsUpNoOther) {
  const PipelineText text = ToolsText();
  table_->Exec("CREATE UNIQUE INDEX ON effects (order_id)");
  Use(text.Yaml() + "    on_conflict: update\n    key: [order_id]\n");
  Bury({{.id = "o-1", .topic = name_ + ".gone"}, {.id = "o-2", .offset = 1}});
  const Finished replay =
      RunFencepost({"dlq", "replay", file_, "--execute"}, {}, std::chrono::seconds(60));
  EXPECT_EQ(replay.exit_code, 1);
  EXPECT_THAT(replay.output, AllOf(HasSubstr("which the pipeline does not read"),
                                   HasSubstr("1 replayed, 1 refused")));
}

TEST_F(Dlq, SaysWhatIsWrongWithTheCommandOrTheFile) {
  PipelineText text = ToolsText();
  EXPECT_THAT(Call("list", {"--since", "yesterday"}).error_output,
              HasSubstr("fencepost: --since: \"yesterday\" is neither a time"));
  EXPECT_EQ(Call("list", {"--until", "yesterday"}).exit_code, 2);
  EXPECT_EQ(Call("list", {"--limit", "0"}).exit_code, 2);
  EXPECT_EQ(Call("bury").exit_code, 2);
  text.more = "";
  Use(text);
  for (const char* command : {"list", "show", "replay", "purge"}) {
    const Finished none = Call(command);
    EXPECT_EQ(none.exit_code, 2);
    EXPECT_THAT(none.error_output, HasSubstr("there is no dead_letter section"));
  }
}

TEST_F(Dlq, SaysWhatIsWrongWithTheTopicOrTheBroker) {
  PipelineText text = ToolsText();
  text.more = "dead_letter: {topic: nowhere}\n";
  Use(text);
  const Finished nowhere = Call("list");
  EXPECT_EQ(nowhere.exit_code, 1);
  EXPECT_THAT(nowhere.error_output,
              AllOf(HasSubstr("nowhere: there is no such topic"), HasSubstr("dead_letter.topic")));
  text.brokers = fmt::format("127.0.0.1:{}", FreePort());
  Use(text);
  const Finished away = Call("list");
  EXPECT_EQ(away.exit_code, 1);
  EXPECT_THAT(away.error_output, HasSubstr("no broker of " + text.brokers + " answers"));
}

}  // namespace
}  // namespace fencepost::testing
