// The command line of the program itself: exit codes, and what it says.
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/support/paths.h"
#include "tests/support/pipeline_servers.h"
#include "tests/support/worker_process.h"

namespace fencepost::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

Finished Fencepost(std::vector<std::string> words) { return RunFencepost(std::move(words)); }

std::string GoodText(const std::string& name = "orders") {
  PipelineText text;
  text.name = name;
  text.topic = "orders";
  text.brokers = "127.0.0.1:9092";
  text.nodes = "127.0.0.1:7001,127.0.0.1:7002,127.0.0.1:7003";
  text.dsn = "postgresql://app@127.0.0.1/shop";
  return text.Yaml();
}

constexpr const char* kBadText = "version: 1\nname: orders\nguarante: exactly-once\n";

TEST(Lint, SaysOfTheExampleOnlyWhatItsLockIsFor) {
  const std::string file = testing::SourcePath("config/examples/orders.yaml");
  const Finished lint = Fencepost({"lint", file});
  EXPECT_EQ(lint.exit_code, 0);
  EXPECT_THAT(lint.output + lint.error_output,
              MatchesRegex(file + ":7:8: info: the ledger decides,[^\n]* \\[lock\\]\n"));
  EXPECT_THAT(Fencepost({"lint", "--format", "github", file}).output, HasSubstr("::notice file="));
}

TEST(Lint, SaysFileLineAndColumnOfEachErrorInOneLine) {
  const TempDir folder;
  const std::string file = folder.Write("bad.yaml", GoodText() + "ledgr: {keep: 30d}\n");
  const Finished lint = Fencepost({"lint", file});
  EXPECT_EQ(lint.exit_code, 2);
  EXPECT_THAT(lint.output, MatchesRegex(file + ":[0-9]+:1: error: .*ledger.*\\[[a-z0-9-]+\\]\n"));
}

TEST(Lint, WritesJsonWhenAsked) {
  const TempDir folder;
  const Finished lint = Fencepost({"lint", folder.Write("bad.yaml", kBadText), "--format", "json"});
  EXPECT_EQ(lint.exit_code, 2);
  EXPECT_FALSE(nlohmann::json::parse(lint.output).empty());
}

TEST(Lint, ReadsStandardInput) {
  const Finished lint = RunToEnd({.argv = {FencepostBinary(), "lint", "-"},
                                  .stdin_text = "version: 2\n",
                                  .separate_stderr = true});
  EXPECT_EQ(lint.exit_code, 2);
  EXPECT_THAT(lint.output, ::testing::HasSubstr("\n-:1:10: error: version: "));
}

TEST(Lint, RefusesTwoFilesThatNameOnePipeline) {
  const TempDir folder;
  const std::string one = folder.Write("one.yaml", GoodText());
  const std::string two = folder.Write("two.yaml", GoodText());
  const std::string other = folder.Write("other.yaml", GoodText("bills"));
  for (const char* command : {"lint", "run"}) {
    const Finished refused = Fencepost({command, one, two});
    EXPECT_EQ(refused.exit_code, 2) << command;
    EXPECT_THAT(refused.output + refused.error_output, AllOf(HasSubstr(two), HasSubstr("orders")))
        << command;
  }
  EXPECT_EQ(Fencepost({"lint", one, other}).exit_code, 0);
}

TEST(Lint, AndRunAndTestCompileTheProgramOfJq) {
  const TempDir folder;
  const std::string good =
      folder.Write("good.yaml", GoodText() + "on_bad_record: stop\nledger: {keep: forever}\n");
  const std::string text = GoodText("bills") + "handler:\n  jq: |\n    .a\n    | nothing\n";
  const std::string bad = folder.Write("bad.yaml", text);
  const auto line = std::count(text.begin(), text.end(), '\n') - 2;
  for (const char* command : {"lint", "test", "run"}) {
    const Finished refused = Fencepost({command, good, bad});
    EXPECT_EQ(refused.exit_code, 2) << command;
    EXPECT_THAT(refused.output + refused.error_output,
                MatchesRegex(fmt::format("{}:{}:[0-9]+: error: handler.jq: the jq program does not "
                                         "compile: nothing/0 is not defined at <top-level>, line "
                                         "2: [^\n]+ \\[jq\\]\n",
                                         bad, line)))
        << command;
  }
}

TEST(Lint, NamesTheProgramOfAnHttpHandlerThatDoesNotCompile) {
  const TempDir folder;
  for (const char* key : {"body", "result"}) {
    const std::string text =
        GoodText() + fmt::format(
                         "handler:\n  http:\n    url: http://a\n    idempotent: true\n"
                         "    {}: {{jq: nothing}}\n",
                         key);
    const std::string bad = folder.Write("bad.yaml", text);
    const Finished refused = Fencepost({"lint", bad});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(
        refused.output + refused.error_output,
        HasSubstr(fmt::format("{}:{}:{}: error: handler.http.{}.jq: the jq program does not "
                              "compile: nothing/0 is not defined",
                              bad, std::count(text.begin(), text.end(), '\n'),
                              std::string_view(key).size() + 12, key)));
  }
}

TEST(RunCommand, RefusesAWorkersNameThatNoLedgerTakes) {
  const TempDir folder;
  const std::string file = folder.Write("one.yaml", GoodText());
  for (const auto& [name, why] : std::initializer_list<std::pair<std::string, const char*>>{
           {"h\xf4te-1", "is not valid UTF-8"},
           {"host\n1", "holds control characters"},
           {"host\x7f", "holds control characters"},
           {"a/b", "holds a /"},
           {std::string(256, 'x'), "is longer than 255 bytes"}}) {
    const std::string line = fmt::format(
        "fencepost: the worker's name, given by --worker or FENCEPOST_WORKER, {}: give another\n",
        why);
    const Finished by_option = Fencepost({"run", file, "--worker", name});
    EXPECT_EQ(by_option.exit_code, 2);
    EXPECT_EQ(by_option.error_output, line);
    const Finished by_environment = RunFencepost({"run", file}, {{"FENCEPOST_WORKER", name}});
    EXPECT_EQ(by_environment.exit_code, 2);
    EXPECT_EQ(by_environment.error_output, line);
    const Finished empty_option =
        RunFencepost({"run", file, "--worker", ""}, {{"FENCEPOST_WORKER", name}});
    EXPECT_EQ(empty_option.error_output, line) << "an empty option is as none";
  }
}

TEST(Lint, NamesTheKeyAndThePathOfATlsFileThatCannotBeUsed) {
  const TempDir folder;
  const std::string no_pem = folder.Write("no.pem", "hello");
  const std::string ca = folder.Write("ca.pem", "-----BEGIN CERTIFICATE-----\n");
  const auto lint = [&](const std::string& tls) {
    std::string text = GoodText();
    text.insert(text.find("kafka:\n") + 7, fmt::format("  tls: {{{}}}\n", tls));
    const Finished done = Fencepost({"lint", folder.Write("p.yaml", text)});
    return fmt::format("{} {}", done.exit_code, done.output);
  };
  for (const std::string& good : {std::string(), "ca: " + ca, "ca: " + folder.path().string()}) {
    EXPECT_THAT(lint(good), AllOf(StartsWith("0 "), Not(HasSubstr("kafka.tls"))));
  }
  EXPECT_THAT(lint("ca: /nowhere.pem"),
              AllOf(HasSubstr("2 "), HasSubstr("error: kafka.tls.ca: /nowhere.pem cannot be read: "
                                               "No such file or directory [tls]")));
  EXPECT_THAT(lint(fmt::format("ca: {}, certificate: {}, key: {}", ca, ca, no_pem)),
              HasSubstr("error: kafka.tls.key: " + no_pem + " is no PEM file"));
}

TEST(RunCommand, TakesTheLongestNameAndOneWithLettersOfAnyScript) {
  const TempDir folder;
  const std::string file = folder.Write("bad.yaml", kBadText);
  for (const std::string& name : {std::string(255, 'x'), std::string("h\u00f4te-\u03b1")}) {
    const Finished run = Fencepost({"run", file, "--worker", name});
    EXPECT_THAT(run.error_output, AllOf(HasSubstr("guarante"), Not(HasSubstr("worker's name"))));
  }
}

TEST(RunCommand, RefusesWhatIsWrongBeforeAnythingStarts) {
  const TempDir folder;
  const std::string good = folder.Write("good.yaml", GoodText());
  const std::string bad = folder.Write("bad.yaml", kBadText);
  const std::string handler = folder.Write(
      "handler.yaml",
      GoodText("bills") + "handler: {exec: {command: [/nowhere/at/all], idempotent: true}}\n");
  for (const auto& [words, why] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{bad, "--http", "127.0.0.1:0"}, ".*bad.yaml:3:1: error:.*"},
           {{good, handler, "--http", "127.0.0.1:0"},
            "fencepost: bills: handler.exec: cannot run /nowhere/at/all: [^\n]+\n"},
           {{good, "--http", "9471"}, "fencepost: 9471: the HTTP server needs HOST:PORT[^\n]+\n"},
           {{"/nowhere/orders.yaml"}, "[^\n]*/nowhere/orders.yaml.*"}}) {
    std::vector<std::string> run{"run"};
    run.insert(run.end(), words.begin(), words.end());
    const Finished refused = Fencepost(run);
    EXPECT_EQ(refused.exit_code, 2) << why;
    EXPECT_EQ(refused.output, "") << why;
    EXPECT_THAT(refused.error_output, MatchesRegex(why));
  }
}

TEST(CommandLine, AnUnknownCommandIsToldWithTheOneThatIsNear) {
  const Finished near = Fencepost({"lnt", "x.yaml"});
  EXPECT_EQ(near.exit_code, 2);
  EXPECT_EQ(near.error_output,
            "fencepost: unknown command \"lnt\"; did you mean lint?; see `fencepost --help`\n");
  EXPECT_THAT(Fencepost({"frobnicate"}).error_output,
              HasSubstr("unknown command \"frobnicate\"; see `fencepost --help`"));
}

TEST(CommandLine, HelpIsACommandToo) {
  EXPECT_EQ(Fencepost({"help"}).output, Fencepost({"--help"}).output);
  const Finished lint = Fencepost({"help", "lint"});
  EXPECT_EQ(lint.exit_code, 0);
  EXPECT_EQ(lint.output, Fencepost({"lint", "--help"}).output);
}

TEST(CommandLine, AWrongOptionPointsToTheHelpOfItsCommand) {
  const Finished run = Fencepost({"run", "--htpp", "x", "orders.yaml"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.error_output, HasSubstr("see `fencepost run --help`"));
  EXPECT_THAT(Fencepost({"locks", "init", "--nods", "x"}).error_output,
              HasSubstr("see `fencepost locks init --help`"));
}

// A file with a warning, and servers of which none is there.
std::string WarnedText() {
  return "version: 1\nname: orders\nguarantee: at-least-once\n"
         "kafka: {brokers: [\"127.0.0.1:1\"], topics: [orders]}\nrecord_id: key\n"
         "lock: {redis: {nodes: [\"127.0.0.1:1\"]}}\noutput: {stdout: {}}\n"
         "on_bad_record: stop\n";
}

TEST(RunCommand, WritesTheWarningsOfTheFileAndWhereItListensAsEvents) {
  const TempDir folder;
  WorkerProcess worker({.files = {folder.Write("one.yaml", WarnedText())}});
  EXPECT_THAT(worker.ErrorLines(), ::testing::IsEmpty());
  EXPECT_THAT(worker.Log(), AllOf(HasSubstr("\"event\":\"file_warning\""),
                                  HasSubstr("one.yaml:5:12: warning: record_id: key takes every"),
                                  HasSubstr("\"event\":\"http_listening\"")));
  EXPECT_THAT(worker.Log(), Not(HasSubstr("no_static_member"))) << "its name is another each time";
}

TEST(RunCommand, SaysWhatTheCrashOfAWorkerThatKeepsItsNameCostsTheGroup) {
  const TempDir folder;
  const std::string file = folder.Write("one.yaml", WarnedText());
  const WorkerProcess named({.files = {file}, .name = "host-orders"});
  EXPECT_THAT(named.Log(),
              AllOf(HasSubstr("\"event\":\"no_static_member\",\"pipeline\":\"orders\""),
                    HasSubstr("kafka.static_members: true")));
  std::string text = WarnedText();
  text.replace(text.find("topics:"), 7, "static_members: true, topics:");
  const WorkerProcess member({.files = {folder.Write("two.yaml", text)}, .name = "host-orders"});
  EXPECT_THAT(member.Log(), Not(HasSubstr("no_static_member")));
}

TEST(CommandLine, WarnsOfTheFileOnlyWhereItIsCheckedOrRun) {
  const TempDir folder;
  const std::string file = folder.Write("one.yaml", WarnedText());
  EXPECT_THAT(Fencepost({"lint", file}).output, HasSubstr("warning: record_id: key"));
  EXPECT_THAT(Fencepost({"explain", file, "bills", "0", "1"}).error_output,
              MatchesRegex("fencepost: pipeline orders does not read topic bills[^\n]*\n"));
}

TEST(CommandLine, AnIdThatIsNoPositionIsRefusedWhereIdsArePositions) {
  const TempDir folder;
  std::string text = WarnedText();
  text.replace(text.find("record_id: key"), 14, "record_id: position");
  const std::string file = folder.Write("one.yaml", text);
  for (const auto& [command, how] :
       {std::pair("explain", "TOPIC PARTITION OFFSET"),
        std::pair("forget", "--topic T --partition P --from O --to O")}) {
    const Finished refused = Fencepost({command, file, "--id", "g-1"});
    EXPECT_EQ(refused.exit_code, 2) << command;
    EXPECT_EQ(refused.output, "");
    EXPECT_EQ(refused.error_output,
              fmt::format("fencepost: {}: g-1 is no id of pipeline orders: its ids are positions "
                          "(record_id: position), written CLUSTERID/TOPIC/PARTITION/OFFSET; name "
                          "the record by {}\n",
                          command, how));
  }
}

TEST(Lint, WarnsOfAProgramsFileThatIsNotThere) {
  const TempDir folder;
  const auto with = [&](const std::string& script) {
    return Fencepost({"lint", folder.Write("one.yaml", WarnedText() +
                                                           "handler: {exec: {command: [python3, " +
                                                           script + "]}}\n")})
        .output;
  };
  EXPECT_THAT(with("nowhere/transform.py"),
              ContainsRegex("one.yaml:9:[0-9]+: warning: handler.exec.command: there is no "
                            "nowhere/transform.py in /[^\n]* \\[advice\\]\n"));
  for (const char* script :
       {"/opt/of/another/host.py", "transform.py", "--url=http://a/b", "-a/b"}) {
    EXPECT_THAT(with(script), Not(HasSubstr("there is no"))) << script;
  }
}

TEST(CommandLine, EndsWithTwoWhereItIsWrong) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"run"},
           {"run", "--nonsense", "x.yaml"},
           {"nonsense"},
           {},
           {"locks"},
           {"locks", "status"},
           {"lint", "--format", "xml", "x.yaml"},
           {"locks", "init", "--redis", "127.0.0.1:1,127.0.0.1:2"}}) {
    const Finished wrong = Fencepost(words);
    EXPECT_EQ(wrong.exit_code, 2) << ::testing::PrintToString(words);
    EXPECT_THAT(wrong.error_output, MatchesRegex("fencepost: [^\n]+\n"))
        << ::testing::PrintToString(words);
  }
}

TEST(Lint, TakesAVariableThatIsNotSetForAWarningWhereThatIsAskedFor) {
  TempDir folder;
  const std::string file = folder.Write(
      "secret.yaml",
      "version: 1\nname: orders\nkafka: {brokers: [\"${BROKER_OF_NOBODY}\"], topics: [orders]}\n"
      "record_id: json:/order_id\nlock: {redis: {nodes: [\"127.0.0.1:7001\"]}}\n"
      "output: {stdout: {}}\nguarantee: at-least-once\n");
  const Finished strict = Fencepost({"lint", file});
  EXPECT_EQ(strict.exit_code, 2) << strict.output;
  EXPECT_THAT(strict.output, HasSubstr("error: kafka.brokers: the variable BROKER_OF_NOBODY is "
                                       "not set"));
  const Finished lax = Fencepost({"lint", "--env-optional", file});
  EXPECT_EQ(lax.exit_code, 0) << lax.output;
  EXPECT_THAT(lax.output, HasSubstr("warning: kafka.brokers: the variable BROKER_OF_NOBODY is"));
}

TEST(Lint, WritesWhatGithubShowsBesideTheLine) {
  TempDir folder;
  const std::string file = folder.Write("bad,1.yaml", kBadText);
  const Finished lint = Fencepost({"lint", "--format", "github", file});
  EXPECT_EQ(lint.exit_code, 2);
  EXPECT_THAT(lint.output, HasSubstr("::error file="));
  EXPECT_THAT(lint.output, HasSubstr("bad%2C1.yaml,line=3,col=1,title=unknown-key::unknown key "
                                     "\"guarante\"; did you mean \"guarantee\"?"));
}

TEST(CommandLine, TellsItsVersion) {
  const Finished version = Fencepost({"version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.output, ContainsRegex("^fencepost [0-9]+\\.[0-9]+\\.[0-9]+"));
  for (const char* library : {"librdkafka", "libpq", "libmariadb", "sqlite", "libcurl"}) {
    EXPECT_THAT(version.output, ContainsRegex(std::string("\n  ") + library + " [0-9]+\\.[0-9]+"));
  }
}

TEST(Locks, InitWithForceWritesANewStoreAndSaysWhatItBreaks) {
  RedisServers nodes(3);
  InitLocks(nodes);
  const Finished forced = Fencepost({"locks", "init", "--force", "--redis", nodes.list()});
  EXPECT_EQ(forced.exit_code, 0) << forced.error_output;
  EXPECT_THAT(forced.error_output, HasSubstr("granted again"));
}

TEST(Locks, StatusFailsWithoutAQuorum) {
  RedisServers nodes(3);
  InitLocks(nodes);
  nodes[0].Kill();
  EXPECT_EQ(Fencepost({"locks", "status", "--redis", nodes.list()}).exit_code, 0);
  nodes[1].Kill();
  const Finished status = Fencepost({"locks", "status", "--redis", nodes.list()});
  EXPECT_EQ(status.exit_code, 1);
  EXPECT_THAT(status.output, HasSubstr("quorum: not available"));
}

TEST(Locks, InitCreatesNothingWhileANodeIsDown) {
  RedisServers nodes(3);
  nodes[2].Kill();
  EXPECT_EQ(Fencepost({"locks", "init", "--timeout", "1", "--redis", nodes.list()}).exit_code, 1);
  EXPECT_EQ(nodes[0].Command({"EXISTS", "fencepost::sentinel"}), "0");
}

TEST(BenchLocks, TellsItsNumbersAsJson) {
  RedisServers nodes(3);
  InitLocks(nodes, "30s");
  for (const bool done : {false, true}) {
    std::vector<std::string> words = {"bench", "locks",     "--redis", nodes.list(), "--in-flight",
                                      "64",    "--seconds", "0.5",     "--json"};
    if (done) words.emplace_back("--done");
    const Finished bench = Fencepost(words);
    EXPECT_EQ(bench.exit_code, 0) << bench.error_output;
    const auto json = nlohmann::json::parse(bench.output);
    EXPECT_GT(json.at("cycles_per_s"), 100);
    EXPECT_GT(json.at("p50_ms"), 0);
    EXPECT_GE(json.at("p99_ms"), json.at("p50_ms"));
    EXPECT_EQ(json.at("errors"), 0);
  }
}

}  // namespace
}  // namespace fencepost::testing
