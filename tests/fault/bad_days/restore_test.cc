// The commands of deploy/operations/restore.md as they stand there.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>

#include <fmt/chrono.h>

#include "tests/support/paths.h"
#include "tests/support/pipeline_test.h"
#include "tests/support/sqlite_file.h"

namespace fencepost::testing {
namespace {

using std::chrono::seconds;

// The n-th block of commands of that page.
std::string Block(std::size_t number) {
  const std::string text = ReadFile(testing::SourcePath("deploy/operations/restore.md"));
  for (std::size_t at = 0;; --number) {
    at = text.find("\n```sh\n", at);
    if (at == std::string::npos) throw std::runtime_error("restore.md lacks a block of commands");
    at += 7;
    const std::size_t close = text.find("```\n", at);
    if (number == 0) return text.substr(at, close - at);
    at = close;
  }
}

std::string Replaced(std::string text, const std::string& old, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(old, at)) != std::string::npos; at += with.size()) {
    text.replace(at, old.size(), with);
  }
  return text;
}

// Its lines but those that contain `word`; there is at least one of these.
std::string Without(const std::string& text, const std::string& word) {
  std::string kept;
  int left_out = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t next = text.find('\n', at) + 1;
    const std::string line = text.substr(at, next - at);
    line.find(word) == std::string::npos ? kept += line : (++left_out, kept);
    at = next;
  }
  if (left_out == 0) throw std::runtime_error("restore.md: no '" + word + "' in " + text);
  return kept;
}

struct Case {
  const char* name;
  bool sqlite;
  bool keep;
};

class Restore : public PipelineTest, public ::testing::WithParamInterface<Case> {
 protected:
  Restore() {
    const Finished jars = RunToEnd(
        {.argv = {testing::SourcePath("tests/support/fetch-kafka"), "4.2.0", "kafka-tools"},
         .separate_stderr = true},
        std::chrono::minutes(5));
    if (jars.exit_code != 0) throw std::runtime_error(jars.error_output);
    const std::string libs = jars.output.substr(0, jars.output.find('\n'));
    const std::string groups = folder_.Write(
        "kafka-consumer-groups.sh",
        fmt::format("#!/bin/sh\nexec java -XX:TieredStopAtLevel=1 -cp '{}/*' "
                    "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand \"$@\"\n",
                    libs));
    chmod(groups.c_str(), 0755);
    if (GetParam().sqlite) table_ = std::make_unique<EffectsTable>(files_, "effects");
  }

  PipelineText StoreText() {
    PipelineText text = Text(4);
    if (GetParam().keep) text.more = "ledger: {keep: 6m}\n";
    return text;
  }
  // Commands of the document, for this test's servers.
  void Run(std::string commands) const {
    commands = Replaced(commands, "kafka-1:9092", Kafka().bootstrap());
    commands = Replaced(commands, "orders", name_);
    const Finished done = RunToEnd(
        {.argv = {"bash", "-euo", "pipefail", "-c", commands},
         .env = {{"PATH", folder_.path().string() + ":" + std::string(std::getenv("PATH"))},
                 {"OWNER_DSN", table_->dsn()},
                 {"EFFECTS_DB", table_->sqlite_path()}},
         .directory = folder_.path().string()},
        std::chrono::minutes(2));
    ASSERT_EQ(done.exit_code, 0) << commands << done.output;
  }
  // Of either database.
  int Ask(const std::string& sql) { return std::stoi("0" + table_->Value(sql)); }
  int Effects() { return Ask("SELECT count(*) FROM effects"); }

  SqliteFiles files_{folder_.path().string()};
};

// Amid work: some effects of the backup are of records above the saved offsets, some records below
// its moment have no effect in it, and more is done after it.
TEST_P(Restore, OfTheDocumentLeavesEachEffectOnce) {
  const bool sqlite = GetParam().sqlite;
  const std::string backup = Block(0);
  const std::string of_sqlite = Block(2);
  const std::size_t dump = backup.find("pg_dump");
  const std::size_t copy = of_sqlite.find("rm ");
  WorkerTeam team(Worker(StoreText()));
  team.Start(2);
  Orders orders(Kafka().bootstrap(), name_, 4, 11, 0.05);
  orders.Produce(1000);
  ASSERT_TRUE(AllCommitted()) << team.Tails();
  Run(backup.substr(0, dump));
  const auto saved = Committed();
  const int before = Effects();
  orders.Produce(20'000);
  ASSERT_TRUE(WaitUntil(seconds(60), "more effects", [&] { return Effects() > before + 500; }))
      << team.Tails();
  Run(sqlite ? of_sqlite.substr(0, copy) : backup.substr(dump));
  orders.Produce(1000);
  ASSERT_TRUE(AllCommitted()) << team.Tails();
  ASSERT_EQ(Effects(), orders.unique());

  const std::string restore = Without(Block(1), "systemctl");
  ASSERT_EQ(team.StopAll(), "");
  if (sqlite) {
    Run(of_sqlite.substr(copy) + Without(restore, "pg_restore"));
  } else {
    Run(restore);
  }
  EXPECT_EQ(Committed(), saved);
  if (!sqlite && !GetParam().keep) {  // as where there is no such file: by time, with a margin
    const auto now = fmt::gmtime(std::chrono::system_clock::now());
    Run(Replaced(Block(3), "2026-11-22T02:33:55Z", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", now)));
    EXPECT_THAT(Committed(), ::testing::Each(0));
  }
  const int restored = Effects();
  EXPECT_GT(restored, before) << "the backup has effects above the saved offsets";
  EXPECT_LT(restored, orders.unique()) << "the backup lacks effects";
  if (GetParam().keep) {  // an old backup
    Ask(sqlite ? "UPDATE fencepost_ledger SET completed_at = '2020-01-01T00:00:00.000Z'"
               : "UPDATE fencepost_ledger SET completed_at = '2020-01-01'");
  }
  team.Start(2);
  EXPECT_TRUE(AllCommitted()) << team.Tails();
  EXPECT_EQ(Effects(), orders.unique());
  EXPECT_EQ(Ask("SELECT count(DISTINCT order_id) FROM effects"), orders.unique());
  EXPECT_EQ(team.StopAll(), "");
}

INSTANTIATE_TEST_SUITE_P(Stores, Restore,
                         ::testing::Values(Case{"Postgres", false, false},
                                           Case{"PostgresThatPrunes", false, true},
                                           Case{"Sqlite", true, false},
                                           Case{"SqliteThatPrunes", true, true}),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace fencepost::testing
