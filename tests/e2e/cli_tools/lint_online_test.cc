// fencepost lint --online on real servers.
#include <regex>

#include "tests/e2e/cli_tools/tools_test.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

class LintOnline : public ToolsTest {
 protected:
  // Exit code, and what it found: without the line on what the lock is for.
  [[nodiscard]] std::string Lint(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{"--online", "--timeout", "5"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished done = Tool({"lint"}, words);
    static const std::regex kInfo("[^\n]*: info: [^\n]*\n");
    return fmt::format("{}\n{}{}", done.exit_code, std::regex_replace(done.output, kInfo, ""),
                       done.error_output);
  }
};

TEST_F(LintOnline, IsSilentWhereAWorkerCanStartAndCreatesNothing) {
  ToolsText(1, "ledger: {keep: forever}\n");
  const std::string before = Lint();
  EXPECT_THAT(before, HasSubstr("0\n"));
  EXPECT_THAT(before, HasSubstr(": warning: 127.0.0.1:"));
  EXPECT_THAT(before, HasSubstr("there is no ledger fencepost_ledger yet; a worker makes it when "
                                "it starts"));
  EXPECT_EQ(table_->Value("SELECT count(*) FROM pg_tables WHERE tablename = 'fencepost_ledger'"),
            "0");
  Send(0, Orders::Value(1));
  RunWorker();
  EXPECT_EQ(Lint(), "0\n");
}

TEST_F(LintOnline, WarnsOfADeadLetterTopicThatDeletesTheLettersOfOldRecords) {
  PipelineText text = ToolsText(1, "ledger: {keep: forever}\n");
  Send(0, Orders::Value(1));  // without it the worker may be stopped before it has made the ledger
  RunWorker();
  EXPECT_EQ(Lint(), "0\n");
  const std::string old = name_ + ".old";
  Kafka().admin().CreateTopic(old, 1, {{"retention.ms", "86400000"}});
  text.more = fmt::format("dead_letter: {{topic: {}}}\nledger: {{keep: forever}}\n", old);
  Use(text);
  EXPECT_THAT(Lint(), AllOf(HasSubstr("0\n"), HasSubstr("warning: topic '" + old +
                                                        "' keeps records for 1d (retention.ms)")));
}

TEST_F(LintOnline, WarnsOfWhatADeadLetterOrOutputTopicDoesToTimesAndKeys) {
  struct Row {
    std::string name;
    KafkaConfig source, target;
    std::vector<std::string> told;  // of an output
    std::string letters = "";       // of dead letters
    std::int64_t time = 0;          // of the record; 0: now
  };
  const std::string keeps =
      "keeps records for 7d (retention.ms) from the time of the record, which ";
  const std::string week = "604800000";
  const Row rows[] = {
      {"as-it-is", {}, {}, {}},
      {"less",
       {{"retention.ms", "-1"}},
       {{"retention.ms", week}},
       {keeps + "its output"},
       keeps + "its dead letter"},
      {"as-long", {{"retention.ms", week}}, {{"retention.ms", week}}, {}, keeps},
      {"older",
       {{"retention.ms", week}},
       {{"retention.ms", week}},
       {keeps + "its output"},
       keeps,
       1'700'000'000'000},
      {"own-time", {}, {{"retention.ms", week}, {"message.timestamp.type", "LogAppendTime"}}, {}},
      {"before",
       {},
       {{"message.timestamp.before.max.ms", "3600000"}},
       {"takes no record whose time is more than 1h ago (message.timestamp.before.max.ms)"}},
      {"after",
       {},
       {{"message.timestamp.after.max.ms", "60000"}},
       {"takes no record whose time is more than 1m ahead (message.timestamp.after.max.ms)"}},
      {"compacted",
       {},
       {{"cleanup.policy", "compact"}},
       {"is compacted (cleanup.policy) and takes no record without a key"},
       "is compacted (cleanup.policy): it takes no dead letter without a key"},
  };
  PipelineText text = ToolsText();
  const std::string letters = text.more;
  for (const Row& row : rows) {
    const std::string to = fmt::format("{}-{}", name_, row.name);
    text.topic = to + ".in";
    Kafka().admin().CreateTopic(text.topic, 1, row.source);
    Kafka().admin().CreateTopic(to, 1, row.target);
    TestProducer producer(Kafka().bootstrap());
    producer.Send({.topic = text.topic, .value = Orders::Value(1), .timestamp_ms = row.time});
    producer.Flush();
    text.more = letters;
    text.output = fmt::format("output: {{kafka: {{topic: {}}}}}\n", to);
    Use(text);
    const std::string found = Lint();
    for (const std::string& told : row.told) {
      EXPECT_THAT(found, HasSubstr(fmt::format("warning: topic '{}' {}", to, told))) << row.name;
    }
    EXPECT_EQ(found.find("topic '") != found.npos, !row.told.empty()) << row.name << found;
    text.output.clear();
    text.more = fmt::format("dead_letter: {{topic: {}}}\n", to);
    Use(text);
    const std::string dead = Lint();
    const std::string told = fmt::format("warning: topic '{}' {}", to, row.letters);
    EXPECT_EQ(dead.find("topic '") != dead.npos, !row.letters.empty()) << row.name << dead;
    EXPECT_EQ(dead.find(told) != dead.npos, !row.letters.empty()) << row.name << dead;
  }
}

TEST_F(LintOnline, NamesEachThingThatIsMissingAtItsKey) {
  PipelineText text = ToolsText();
  text.topic = "orders-nowhere";
  text.dsn = Postgres().dsn(name_, "nobody_at_all");
  text.more = "dead_letter: {topic: dead-nowhere}\n";
  Use(text);
  const std::string found = Lint();
  EXPECT_THAT(found, HasSubstr("1\n"));
  EXPECT_THAT(found, HasSubstr("tool.yaml:6:12: error: topic 'orders-nowhere' does not exist; "
                               "create it, or correct the name [online]"));
  EXPECT_THAT(found, HasSubstr("error: topic 'dead-nowhere' does not exist; create it, workers do "
                               "not [online]"));
  EXPECT_THAT(found, HasSubstr("role \"nobody_at_all\" does not exist"));
}

TEST_F(LintOnline, AsksForTheFirstTenTopicsThatPatternsMatch) {
  PipelineText text = ToolsText();
  const std::string to = name_ + ".out";
  const std::string week = "604800000";
  Kafka().admin().CreateTopic(to, 1, {{"retention.ms", week}});
  text.topic = fmt::format("\"^{}-[0-9]+\"", name_);
  text.output = fmt::format("output: {{kafka: {{topic: {}}}}}\n", to);
  Use(text);
  const std::string none = "warning: no topic is there yet that a pattern of kafka.topics matches";
  EXPECT_THAT(Lint(), HasSubstr(none));
  const auto make = [&](int number, const std::string& retention) {
    Kafka().admin().CreateTopic(fmt::format("{}-{}", name_, number), 1,
                                {{"retention.ms", retention}});
  };
  for (int number = 10; number < 20; ++number) make(number, week);
  make(20, "-1");
  const std::string deletes = fmt::format("topic '{}' keeps records for 7d", to);
  EXPECT_THAT(Lint(), Not(AnyOf(HasSubstr(none), HasSubstr(deletes)))) << "of the eleventh";
  make(0, "-1");
  EXPECT_THAT(Lint(), HasSubstr(deletes)) << "it is the first one by name";
}

TEST_F(LintOnline, ChecksColumnsTypesAndRightsAsAWorkerWould) {
  PipelineText text = ToolsText();
  table_->Exec("CREATE ROLE reader LOGIN");
  table_->Exec("ALTER TABLE effects RENAME COLUMN amount TO sum");
  EXPECT_THAT(Lint(), HasSubstr("effects has no column amount"));
  table_->Exec("ALTER TABLE effects RENAME COLUMN sum TO amount");
  text.dsn = Postgres().dsn(name_, "reader");
  Use(text);
  EXPECT_THAT(Lint(), AllOf(HasSubstr("1\n"), HasSubstr("error: "), HasSubstr("effects"),
                            HasSubstr("GRANT"), HasSubstr("[online]")));
}

TEST_F(LintOnline, TellsLockNodesThatAreAwayOrEvictLocks) {
  RedisServers nodes(3);
  PipelineText text = ToolsText();
  text.nodes = nodes.list();
  Use(text);
  EXPECT_THAT(Lint(), AllOf(HasSubstr("0\n"), HasSubstr("warning: the lock nodes have no lock "
                                                        "store yet: make it by `fencepost locks "
                                                        "init`")));
  InitLocks(nodes);
  nodes[1].Command({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
  EXPECT_THAT(Lint(), AllOf(HasSubstr("0\n"), HasSubstr("warning: lock node b ("),
                            HasSubstr("maxmemory-policy is 'allkeys-lru', which evicts live "
                                      "locks; CONFIG SET maxmemory-policy noeviction")));
  nodes[1].Command({"CONFIG", "SET", "maxmemory-policy", "noeviction"});
  nodes[0].Kill();
  EXPECT_THAT(Lint(), AllOf(HasSubstr("0\n"), HasSubstr("warning: lock node a (")));
  nodes[2].Kill();
  EXPECT_THAT(Lint(), AllOf(HasSubstr("1\n"), HasSubstr("error: lock node a ("),
                            HasSubstr("error: lock node c ("), Not(HasSubstr("lock node b ("))));
  nodes[1].Command({"CONFIG", "SET", "requirepass", "secret"});
  EXPECT_THAT(Lint(), AllOf(HasSubstr("1\n"), HasSubstr("error: lock node b ("),
                            HasSubstr("the node says: NOAUTH")));
}

TEST_F(LintOnline, WarnsOfOneRedisThatEvictsAndOfNoMissingStoreWhereTheLedgerDecides) {
  const RedisServers nodes(1, {.maxmemory_policy = "volatile-lru"});
  PipelineText text = ToolsText();
  text.nodes = nodes.list();
  text.tokens = false;
  Use(text);
  EXPECT_THAT(Lint(), AllOf(HasSubstr("0\n"), HasSubstr("warning: lock node a ("),
                            HasSubstr("volatile-lru"), Not(HasSubstr("store"))));
}

TEST_F(LintOnline, SaysThatNoBrokerAnswersAndWhy) {
  PipelineText text = ToolsText();
  text.brokers = "127.0.0.1:1";
  Use(text);
  EXPECT_THAT(Lint(), AllOf(HasSubstr("1\n"), HasSubstr("tool.yaml:5:13: error: "),
                            HasSubstr("Connection refused"),
                            HasSubstr("no broker of 127.0.0.1:1 answers; check the addresses")));
}

TEST_F(LintOnline, AsksTheSchemaRegistry) {
  PipelineText text = ToolsText();
  text.start_from = "earliest\n  decode: {value: avro, registry: {url: \"http://127.0.0.1:1\"}}";
  Use(text);
  EXPECT_THAT(Lint(), AllOf(HasSubstr("1\n"), HasSubstr("error: the schema registry gives no "
                                                        "schemas: /schemas/ids/1: ")));
}

TEST_F(LintOnline, OfAFileThatIsWrongAsksNobody) {
  PipelineText text = ToolsText();
  text.brokers = "127.0.0.1:1";
  text.more = "unknown: 1\n";
  Use(text);
  EXPECT_THAT(Lint(),
              AllOf(HasSubstr("2\n"), HasSubstr("[unknown-key]"), Not(HasSubstr("[online]"))));
}

}  // namespace
}  // namespace fencepost::testing
