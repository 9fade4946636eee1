// What works, and will hurt: warnings that a choice in the file silences.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/loader.h"

namespace fencepost::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

std::vector<std::string> AdviceOf(const std::string& text) {
  const LoadResult loaded = LoadText(text, "p.yaml", {});
  EXPECT_THAT(loaded.findings, IsEmpty());
  std::vector<std::string> lines;
  for (const Finding& finding : loaded.advice) lines.push_back(FormatFinding(finding));
  return lines;
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

TEST(Keep, ForeverIsTheDefaultAndMayBeSaid) {
  EXPECT_EQ(LoadText(Pipeline(kThree, kSqlite), "p.yaml", {}).options->ledger_keep, std::nullopt);
  EXPECT_EQ(LoadText(Pipeline(kThree, kSqlite + "ledger: {keep: forever}\n"), "p.yaml", {})
                .options->ledger_keep,
            std::nullopt);
  EXPECT_EQ(LoadText(Pipeline(kThree, kSqlite + "ledger: {keep: 30d}\n"), "p.yaml", {})
                .options->ledger_keep,
            std::chrono::hours(24 * 30));
}

}  // namespace
}  // namespace fencepost::config
