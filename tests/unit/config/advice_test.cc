// What works, and will hurt: warnings that a choice in the file silences.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/loader.h"

namespace fencepost::config {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string Pipeline(const std::string& nodes, const std::string& more) {
  return "version: 1\nname: orders\nguarantee: at-least-once\n"
         "kafka: {brokers: [k:9092], topics: [orders]}\n"
         "lock: {redis: {nodes: [" +
         nodes + "]}}\n" + more;
}

constexpr const char* kThree = "a:6379, b:6379, c:6379";
constexpr const char* kStop = "on_bad_record: stop\n";
const std::string kSqlite =
    std::string(kStop) + "output: {sqlite: {path: e.db, table: t, columns: {a: key}}}\n";
constexpr const char* kFile = "output: {stdout: {}}\n";

std::vector<std::string> AdviceOf(const std::string& text, const Environment& environment = {}) {
  const LoadResult loaded = LoadText(text, "p.yaml", environment);
  EXPECT_THAT(loaded.findings, IsEmpty());
  std::vector<std::string> lines;
  for (const Finding& finding : loaded.advice) lines.push_back(FormatFinding(finding));
  return lines;
}

std::vector<std::string> AdviceWith(const std::string& text) {
  Environment environment;
  environment.variable = [](const std::string&) { return "1"; };
  environment.read_file = [](const std::string&) { return "1"; };
  return AdviceOf(text, environment);
}

TEST(Advice, IsToGiveADeadLetterTopicOrToSayStop) {
  EXPECT_THAT(
      AdviceOf(Pipeline(kThree, kFile)),
      ElementsAre(HasSubstr("p.yaml:1:1: warning: there is no dead_letter: the first record "
                            "without an id, or that the output refuses, ends the pipeline")));
  EXPECT_THAT(AdviceOf(Pipeline(kThree, std::string(kFile) + kStop)), IsEmpty());
  EXPECT_THAT(AdviceOf(Pipeline(kThree, std::string(kFile) + "dead_letter: {topic: dead}\n")),
              IsEmpty());
}

TEST(Advice, IsToSayHowLongTheLedgerKeepsIds) {
  EXPECT_THAT(
      AdviceOf(Pipeline(kThree, kSqlite + "record_id: json:/id\n")),
      ElementsAre(HasSubstr(
          "p.yaml:7:1: warning: there is no ledger.keep: the ledger grows by a row for each id")));
  for (const char* choice : {"record_id: json:/id\nledger: {keep: 30d}\n",
                             "record_id: json:/id\nledger: {keep: forever}\n"}) {
    EXPECT_THAT(AdviceOf(Pipeline(kThree, kSqlite + choice)), IsEmpty()) << choice;
  }
}

TEST(Advice, IsToSayWhatIdentifiesARecordWhereEffectsAreExactlyOnce) {
  EXPECT_THAT(AdviceOf(Pipeline(kThree, kSqlite)),
              ElementsAre(HasSubstr(
                  "p.yaml:1:1: warning: there is no record_id: a record is identified by its "
                  "position in the topic, and what a producer sends again is a new record")));
  EXPECT_THAT(AdviceOf(Pipeline(kThree, kSqlite + "record_id: position\n")), IsEmpty());
}

TEST(Advice, NamesATimeoutThatOutlivesTheLease) {
  const std::string http = std::string(kStop) + kFile + "handler: {http: {url: \"http://s/\"}}\n";
  EXPECT_THAT(
      AdviceOf(Pipeline(kThree, http + "processing: {timeout: 12s, revoke_drain: 20s}\n")),
      ElementsAre(HasSubstr(
          "p.yaml:9:23: warning: processing.timeout (12s) is above lock.ttl (10s): a call of a "
          "worker that was killed or frozen may still run when another worker makes it again")));
  EXPECT_THAT(AdviceOf(Pipeline(kThree, http)), IsEmpty());
}

TEST(TheLock, IsSaidToCountWhereTheLedgerDoesNotDecideAlone) {
  const std::string tokens =
      std::string(kStop) +
      "output: {sqlite: {path: e.db, table: t, columns: {a: key, b: token}}}\n";
  const struct {
    std::string more;
    const char* said;
  } rows[] = {
      {kSqlite, ""},
      {kSqlite + "handler: {jq: \".\"}\n", ""},
      {kSqlite + "handler: {take: json:/a}\n", ""},
      {kSqlite + "handler: {exec: {command: [cat], idempotent: true}}\n", ""},
      {kSqlite + "handler: {exec: {command: [cat]}}\n", "handler.exec is not idempotent"},
      {kSqlite + "handler: {http: {url: \"http://s/\"}}\n", "handler.http is not idempotent"},
      {tokens, "the output writes fencing tokens"},
      {std::string(kStop) + kFile, "the output has no ledger"},
      {std::string(kStop) + "output: {kafka: {topic: out}}\n", "the output has no ledger"},
  };
  for (const auto& [more, said] : rows) {
    const bool decides = *said == 0;
    const LoadResult loaded = LoadText(Pipeline("a:6379", more), "p.yaml", {});
    ASSERT_TRUE(loaded.options) << more;
    EXPECT_EQ(loaded.options->lock.lock.quarantine, !decides) << more;
    ASSERT_THAT(loaded.remarks, SizeIs(1)) << more;
    EXPECT_THAT(FormatFinding(loaded.remarks.front()),
                AllOf(HasSubstr("p.yaml:5:8: info: the "),
                      HasSubstr(decides ? "one Redis is enough" : said), HasSubstr(" [lock]")));
    const auto alone = [](const Finding& advice) {
      return advice.message.find("one node is no quorum") != std::string::npos;
    };
    EXPECT_EQ(std::ranges::any_of(loaded.advice, alone), !decides) << more;
  }
}

TEST(Advice, NamesOneNodeAloneAndNodesThatFailTogether) {
  const std::string rest = std::string(kStop) + kFile;
  EXPECT_THAT(
      AdviceOf(Pipeline("a:6379", rest)),
      ElementsAre(HasSubstr("p.yaml:5:24: warning: lock.redis.nodes: one node is no quorum")));
  EXPECT_THAT(
      AdviceOf(Pipeline("a:6379, b:6379, a:6380", rest)),
      ElementsAre(HasSubstr("\"a:6379\" and \"a:6380\" are on one host: they fail together")));
  EXPECT_THAT(AdviceOf(Pipeline("127.0.0.1:7001, 127.0.0.1:7002, 127.0.0.1:7003", rest)),
              IsEmpty());
  EXPECT_THAT(AdviceOf(Pipeline("127.0.0.1:7001, localhost:7001, 127.0.0.1:7003", rest)),
              ElementsAre(HasSubstr("\"127.0.0.1:7001\" and \"localhost:7001\" are one server")));
}

TEST(Advice, NamesVariablesThatAnAddressWouldReadAsItsOwn) {
  const std::string record = "record_id: position\n";
  const auto postgres = [&](const std::string& dsn) {
    return AdviceWith(Pipeline(kThree, kStop + record + "output: {postgres: {dsn: \"" + dsn +
                                           "\", table: t, columns: {a: key}}}\n"));
  };
  for (const auto& [dsn, key] :
       {std::pair("postgresql://${V}@db/shop", "user"),
        std::pair("postgresql://app@${V}:1/shop", "host"),
        std::pair("postgresql://app@db:${V}/shop", "port"),
        std::pair("postgresql://app@db/${V}", "database"),
        std::pair("host=db dbname='${V}'", "database"), std::pair("host=${file:/v}", "host")}) {
    EXPECT_THAT(postgres(dsn), ElementsAre(HasSubstr(fmt::format("give output.postgres.{}, and "
                                                                 "output.postgres.password",
                                                                 key))))
        << dsn;
  }
  EXPECT_THAT(postgres("postgresql://app@db/shop?application_name=${V}"), IsEmpty());
  const std::string rest = std::string(kStop) + kFile;
  EXPECT_THAT(
      AdviceWith(Pipeline("\"redis://u:${V}@a:1\", \"redis://${V}:1\", \"c:${V:-1}\"", rest)),
      ElementsAre(AllOf(HasSubstr("lock.redis.nodes: its user or password is a ${…}"),
                        HasSubstr("give lock.redis.username and lock.redis.password"))));
  EXPECT_THAT(
      AdviceWith(Pipeline(kThree, rest + "handler: {http: {url: \"https://u:${V}@s/?a=b\"}}\n")),
      ElementsAre(HasSubstr("handler.http.url: its user or password is a ${…}")));
  EXPECT_THAT(AdviceWith(Pipeline(kThree, rest + "handler: {http: {url: \"https://${V}/x\"}}\n")),
              IsEmpty());
}

TEST(Advice, NamesLoginsThatCrossANetworkWithoutTls) {
  const auto kafka = [](const std::string& brokers, const std::string& more) {
    std::string text = Pipeline(kThree, std::string(kStop) + kFile);
    text.replace(text.find("[k:9092]"), 8,
                 brokers + ", sasl: {mechanism: PLAIN, username: u, password: p}" + more);
    return AdviceOf(text);
  };
  EXPECT_THAT(kafka("[k:9092, l:9092]", ""),
              ElementsAre(HasSubstr("kafka.sasl without kafka.tls: login and records cross")));
  EXPECT_THAT(kafka("[\"SASL_PLAINTEXT://k:9092\"]", ""), SizeIs(1));
  EXPECT_THAT(kafka("[k:9092]", ", tls: {}"), IsEmpty());
  EXPECT_THAT(kafka("[\"SASL_SSL://k:9092\"]", ""), IsEmpty());
  EXPECT_THAT(kafka("[localhost:9092, 127.0.0.1:9093]", ""), IsEmpty());
  EXPECT_THAT(AdviceOf(Pipeline(kThree, std::string(kStop) +
                                            "output: {kafka: {topic: t, brokers: [b:1], sasl: "
                                            "{mechanism: PLAIN, username: u, password: p}}}\n")),
              ElementsAre(HasSubstr("output.kafka.sasl without output.kafka.tls")));
  const auto mysql = [](const std::string& host, const std::string& more) {
    return AdviceOf(Pipeline(
        kThree, std::string(kStop) + "record_id: position\noutput: {mysql: {host: \"" + host +
                    "\", user: u, database: d, table: t, columns: {a: key}" + more + "}}\n"));
  };
  EXPECT_THAT(mysql("db", ""), ElementsAre(HasSubstr("output.mysql without tls")));
  EXPECT_THAT(mysql("db", ", tls: {}"), IsEmpty());
  EXPECT_THAT(mysql("127.0.0.1", ""), IsEmpty());
  EXPECT_THAT(mysql("/run/mysqld.sock", ""), IsEmpty());
  const auto http = [](const std::string& url) {
    return AdviceOf(Pipeline(kThree, std::string(kStop) + kFile + "handler: {http: {url: \"" + url +
                                         "\", auth: {bearer: t}}}\n"));
  };
  EXPECT_THAT(http("http://s:80/{key}"), ElementsAre(HasSubstr("handler.http.auth without TLS")));
  for (const char* url :
       {"https://s/", "http://localhost/", "http://127.0.0.1:80", "http://[::1]/"}) {
    EXPECT_THAT(http(url), IsEmpty()) << url;
  }
  const auto port = [](const std::string& address, const std::string& more) {
    return AdviceOf(Pipeline(kThree, std::string(kStop) + kFile + "observe: {http: \"" + address +
                                         "\", auth: {bearer: t}" + more + "}\n"));
  };
  EXPECT_THAT(port("0.0.0.0:1", ""), ElementsAre(HasSubstr("observe.auth without observe.tls")));
  EXPECT_THAT(port("127.0.0.1:1", ""), IsEmpty());
  EXPECT_THAT(port("0.0.0.0:1", ", tls: {certificate: a, key: b}"), IsEmpty());
}

TEST(Keep, ForeverIsTheDefaultAndMayBeSaid) {
  for (const char* keep : {"", "ledger: {keep: forever}\n"}) {
    EXPECT_EQ(LoadText(Pipeline(kThree, kSqlite + keep), "p.yaml", {}).options->ledger_keep,
              std::nullopt);
  }
}

}  // namespace
}  // namespace fencepost::config
