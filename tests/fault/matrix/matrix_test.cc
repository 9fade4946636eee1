// The receivers log what the audit asks for, growth is told from flatness, and a few cells of the
// matrix run.
#include "tests/fault/matrix/matrix.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fault/matrix/soak.h"

namespace fencepost::matrix {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// What the receivers log of calls with these tokens for one order.
void ExpectOneTokenBack(const testing::Receiver& receiver) {
  testing::History history;
  history.sent = {{{3, {1, 7}}, "k"}};
  history.calls = receiver.Calls("orders");
  EXPECT_EQ(history.calls.size(), 3U);
  testing::Audit audit(history);
  EXPECT_EQ(audit.TokensGoUp().CallsAreGenuine().text(), "");
  EXPECT_EQ(audit.counts().at("tokens back"), 1);
}
constexpr int kTokens[] = {7, 5, 7};

TEST(Receivers, LogACallThatTheyRefuseSinceItsTokenWentBack) {
  const auto http = testing::MakeHttpReceiver();
  for (const int token : kTokens) {
    const auto said = testing::RunToEnd(
        {.argv = {"curl", "-s", "-H", fmt::format("Fencing-Token: {}", token), "-H", "X-Life: 0",
                  "-H", "Idempotency-Key: o-3", "-H", "X-Fencepost-Source: topic/1/7", "-d",
                  testing::Orders::Value(3), "http://" + http->proxy()->address() + "/orders"}});
    EXPECT_EQ(said.exit_code, 0);
  }
  ExpectOneTokenBack(*http);

  const testing::TempDir folder;
  const auto exec = testing::MakeExecReceiver(folder);
  std::string lines;
  for (const int token : kTokens) {
    lines +=
        fmt::format(R"({{"record_id": "o-3", "source": "topic/1/7", "token": {}, "attempt": 1,)"
                    R"( "value": {}}})",
                    token, testing::Orders::Value(3)) +
        "\n";
  }
  const auto said = testing::RunToEnd({.argv = {"python3", folder.File("handle.py")},
                                       .env = {{"LIFE", "0"}, {"FENCEPOST_PIPELINE", "orders"}},
                                       .stdin_text = lines});
  EXPECT_EQ(said.exit_code, 0) << said.output;
  ExpectOneTokenBack(*exec);
}

// A hundred samples of one value.
std::vector<Sample> Curve(const std::string& what, const std::function<double(int)>& value) {
  std::vector<Sample> samples;
  for (int at = 0; at < 100; ++at) samples.push_back({{what, value(at)}});
  return samples;
}

TEST(Growth, IsNoneWhereAValueGoesUpAndDownOrStaysAfterWarmingUp) {
  EXPECT_EQ(Growth(Curve("MiB", [](int at) { return 50 + 3 * std::min(at, 15) + at % 7; })), "");
  EXPECT_EQ(Growth(Curve("threads", [](int) { return 23; })), "");
  EXPECT_EQ(Growth(Curve("threads", [](int at) { return at < 60 ? 23 : 25; })), "");
  EXPECT_EQ(Growth(Curve("descriptors", [](int at) { return 40 + 5 * (at % 3); })), "");
  EXPECT_EQ(Growth(Curve("keys", [](int at) { return at % 10 == 0 ? 0 : 2000 + at; })), "");
}

TEST(Growth, IsNoneWhereWhatABacklogNeededIsGivenBack) {
  EXPECT_EQ(Growth(Curve("MiB", [](int at) { return at < 75 || at >= 90 ? 38 : 55; })), "");
  EXPECT_EQ(Growth(Curve("MiB", [](int at) { return at < 75 ? 38 : 55; })),
            "MiB grew from 38 to 55\n");
}

TEST(Growth, IsSeenOverWhatElseMovesTheValue) {
  const auto memory = Curve("MiB", [](int at) { return 30 + 0.1 * at + at % 2; });
  EXPECT_EQ(Growth(memory), "MiB grew from 33 to 38\n");
  EXPECT_EQ(Growth(Curve("threads", [](int at) { return 23 + at / 15; })),
            "threads grew from 24 to 28\n");
  EXPECT_EQ(Growth(Curve("descriptors", [](int at) { return 40 + at / 5 + at % 3; })),
            "descriptors grew from 46 to 56\n");
  EXPECT_EQ(Growth(Curve("keys", [](int at) { return 2000 + 50 * at; })),
            "keys grew from 3300 to 6000\n");
}

TEST(Growth, IsNotDeniedWhereTooLittleWasSeen) {
  auto samples = Curve("MiB", [](int) { return 30; });
  samples.resize(18);
  EXPECT_EQ(Growth(samples), "");
  for (std::size_t at = 0; at < 10; ++at) samples[at]["threads"] = 5;
  EXPECT_THAT(Growth(samples), AllOf(HasSubstr("threads was seen 7 times"), Not(HasSubstr("MiB"))));
  samples.resize(17);
  EXPECT_THAT(Growth(samples), HasSubstr("MiB was seen 14 times"));
  EXPECT_NE(Growth({}), "");
}

TEST(Faults, AreManyAndHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const Fault& fault : AllFaults()) names.insert(fault.name);
  EXPECT_EQ(names.size(), AllFaults().size());
  EXPECT_GE(names.size(), 30U);
}

TEST(Faults, HappenToEachKindOfDatabaseAlike) {
  std::map<DatabaseKind, std::set<std::string>> kinds;
  for (const Fault& fault : AllFaults()) {
    for (const DatabaseKind kind : {DatabaseKind::kPostgres, DatabaseKind::kMariadb}) {
      const std::string prefix = fmt::format("{}-", NameOf(kind));
      if (!fault.name.starts_with(prefix)) continue;
      EXPECT_EQ(fault.database, kind) << fault.name;
      kinds[kind].insert(fault.name.substr(prefix.size()));
    }
  }
  EXPECT_EQ(kinds[DatabaseKind::kPostgres], kinds[DatabaseKind::kMariadb]);
  EXPECT_GE(kinds[DatabaseKind::kMariadb].size(), 17U);
}

TEST(Plan, HasEachFaultInEachPhaseOnceARoundEachWithASeedOfItsOwn) {
  const auto cells = Plan({.rounds = 2, .seed = 7});
  const auto by_id_alone =
      std::count_if(AllFaults().begin(), AllFaults().end(),
                    [](const Fault& fault) { return !fault.Suits(Pipeline::kPosition); });
  const std::size_t all = AllFaults().size() * kPhaseNames.size();
  ASSERT_EQ(cells.size(), 2 * (all - static_cast<std::size_t>(by_id_alone)))
      << "by id no lease is given back";
  for (std::size_t i = 0; i < cells.size(); ++i) EXPECT_EQ(cells[i].seed, 7 + i);
  const auto alone = Plan({.kind = "worker-kill", .phase = "writing", .seed = 3});
  ASSERT_EQ(alone.size(), 1U);  // not worker-kill-all
  EXPECT_EQ(alone[0].name, "worker-kill/writing");
  EXPECT_EQ(alone[0].seed, 3U);
  EXPECT_GE(Plan({.once = true}).size(), AllFaults().size() - 2);
}

TEST(Plan, WritesToTheDatabaseOfTheFaultOrToTheOneThatIsAskedFor) {
  const auto databases = [](const MatrixOptions& options) {
    std::map<std::string, DatabaseKind> of;
    for (const Cell& cell : Plan(options)) of[cell.faults.front()->name] = cell.database;
    return of;
  };
  auto any = databases({});
  EXPECT_EQ(any.at("worker-kill"), DatabaseKind::kPostgres);
  EXPECT_EQ(any.at("mariadb-killed"), DatabaseKind::kMariadb);
  auto one = databases({.database = DatabaseKind::kMariadb});
  EXPECT_EQ(one.at("worker-kill"), DatabaseKind::kMariadb);
  EXPECT_EQ(one.at("mariadb-killed"), DatabaseKind::kMariadb);
  EXPECT_FALSE(one.contains("postgres-killed"));
}

TEST(Plan, GivesEachPipelineTheFaultsAfterWhichAllMustHold) {
  const auto names = [](const MatrixOptions& options) {
    std::set<std::string> faults;
    for (const Cell& cell : Plan(options)) faults.insert(cell.faults.front()->name);
    return faults;
  };
  for (const Cell& cell : Plan({})) {
    const bool again =
        cell.name.starts_with("kafka-topic-made-again") || cell.phase == Phase::kReleasing;
    EXPECT_EQ(cell.pipeline, again ? Pipeline::kPosition : Pipeline::kId) << cell.name;
  }
  const auto by_position = names({.pipeline = Pipeline::kPosition});
  EXPECT_TRUE(by_position.contains("kafka-topic-made-again"));
  EXPECT_FALSE(by_position.contains("postgres-ledger-rows-dropped"));
  const auto kafka = names({.pipeline = Pipeline::kKafka});
  EXPECT_TRUE(kafka.contains("worker-kill"));
  EXPECT_FALSE(kafka.contains("postgres-killed"));
  EXPECT_FALSE(kafka.contains("kafka-offsets-set-back")) << "it has no ledger";
}

TEST(Plan, DrawsAStormFromFaultsThatMayFollowEachOther) {
  const auto storms = Plan({.rounds = 9, .storm = 5, .seed = 1});
  ASSERT_EQ(storms.size(), 9U);
  std::set<std::pair<DatabaseKind, Pipeline>> kinds;
  for (const Cell& storm : storms) {
    kinds.insert({storm.database, storm.pipeline});
    EXPECT_EQ(storm.storm, 5);
    EXPECT_GT(storm.faults.size(), 20U);
    for (const Fault* fault : storm.faults) {
      EXPECT_TRUE(fault->Suits(storm.pipeline)) << fault->name;
      EXPECT_EQ(fault->database.value_or(storm.database), storm.database) << fault->name;
      EXPECT_FALSE(fault->exec || fault->replica || fault->small_disk) << fault->name;
    }
  }
  EXPECT_EQ(kinds.size(), 9U);
}

TEST(Plan, HasTheSameSeedsWhereItBeginsLater) {
  for (const bool once : {false, true}) {
    MatrixOptions options{.rounds = 3, .kind = "postgres", .once = once, .seed = 40};
    const auto whole = Plan(options);
    const std::size_t at = whole.size() / 4;
    options.from = whole[at].name;
    const auto rest = Plan(options);
    ASSERT_EQ(rest.size(), whole.size() - at);
    EXPECT_EQ(rest.front().seed, whole[at].seed);
    EXPECT_EQ(rest.back().seed, whole.back().seed);
  }
}

TEST(Plan, RefusesWhatChoosesNothingAndSaysWhatToDo) {
  const auto refusal = [](const MatrixOptions& options) -> std::string {
    try {
      return fmt::format("{} cells", Plan(options).size());
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
  };
  const auto list = HasSubstr("./dev torture faults list");
  EXPECT_THAT(refusal({.kind = "postgras"}), AllOf(HasSubstr("--kind postgras"), list));
  EXPECT_THAT(refusal({.phase = "write"}), AllOf(HasSubstr("--phase write "), list));
  EXPECT_THAT(refusal({.from = "node-killed"}), AllOf(HasSubstr("--from node-killed "), list));
  EXPECT_THAT(refusal({.kind = "http", .from = "node-killed/writing"}), HasSubstr("--from"));
}

TEST(Undo, UndoesTheLastStepFirstWhenItIsToldToOrWhenItGoes) {
  std::string done;
  {
    Undo undo;
    undo.Add([&] { done += "a"; });
    undo.Add([&] { done += "b"; });
    undo.Now();
    EXPECT_EQ(done, "ba");
    undo.Add([&] { done += "c"; });
    undo.Add([&] { done += "d"; });
  }
  EXPECT_EQ(done, "badc");
}

TEST(Undo, UndoesTheRestWhereAStepFails) {
  std::string done;
  {
    Undo undo;
    undo.Add([&] { done += "a"; });
    undo.Add([] { throw std::runtime_error("planted"); });
    undo.Add([&] { done += "b"; });
    undo.Add([] { throw std::runtime_error("planted"); });
    EXPECT_THROW(undo.Now(), std::runtime_error);
    EXPECT_EQ(done, "");
  }
  EXPECT_EQ(done, "ba");
}

// On real servers.
class Matrix : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { system_ = new System; }
  static void TearDownTestSuite() { delete system_; }
  static System* system_;
};
System* Matrix::system_ = nullptr;

TEST_F(Matrix, ReadsEffectsInTheOrderInWhichTheirTransactionsWereCommitted) {
  for (const DatabaseKind kind : {DatabaseKind::kPostgres, DatabaseKind::kMariadb}) {
    SCOPED_TRACE(NameOf(kind));
    Database& database = system_->database(kind);
    const testing::EffectsTable table(database, "overlap");
    database.MakeEffects(table);
    const auto insert = [](const std::string& rows) {
      return fmt::format("INSERT INTO effects ({}) VALUES {}", kEffectColumns, rows);
    };
    const auto first = table.Open(database.worker());
    const auto second = table.Open(database.worker());
    first->Exec("BEGIN");
    first->Exec(insert("('o-0', 0, 0, 0, 10)"));
    second->Exec("BEGIN");
    second->Exec(insert("('o-2', 28, 0, 2, 30), ('o-1', 14, 0, 1, 20)"));
    second->Exec("COMMIT");
    first->Exec("COMMIT");
    std::vector<int> orders;
    for (const testing::Effect& effect : database.ReadEffects(table)) {
      orders.push_back(effect.record.order);
    }
    EXPECT_THAT(orders, ElementsAre(1, 2, 0));
    EXPECT_THROW(table.Open(database.worker())->Exec("DELETE FROM effects"), std::runtime_error);
  }
}

TEST_F(Matrix, UndoesWhatAFaultBeganThatFailsHalfway) {
  Fault fault = *std::find_if(AllFaults().begin(), AllFaults().end(),
                              [](const Fault& one) { return one.name == "postgres-frozen"; });
  fault.begin = [freeze = fault.begin](Scene& scene) {
    freeze(scene);
    throw std::runtime_error("planted");
  };
  const CellResult result =
      RunCell(*system_, {.faults = {&fault}, .phase = Phase::kHandling, .name = "planted"});
  EXPECT_THAT(result.trouble, HasSubstr("planted"));
  EXPECT_EQ(system_->database(DatabaseKind::kPostgres).Value("SELECT 1", "postgres"), "1");
}

// One cell of each kind of server and of pipeline; ./dev torture faults runs all of them.
TEST_F(Matrix, LosesAndDoublesNothingInAFewOfItsCells) {
  std::uint64_t seed = 1;
  for (MatrixOptions options : std::vector<MatrixOptions>{
           {.kind = "worker-kill", .phase = "handling"},
           {.kind = "worker-rolling-stop", .phase = "handling"},
           {.kind = "postgres-sessions-ended", .phase = "writing"},
           {.kind = "postgres-killed", .phase = "writing"},
           {.kind = "postgres-failed-over", .phase = "writing"},
           {.kind = "mariadb-killed", .phase = "writing"},
           {.kind = "mariadb-failed-over", .phase = "writing"},
           {.kind = "node-restarted-empty", .phase = "acquiring"},
           {.kind = "nodes-all-flushed", .phase = "handling"},
           {.kind = "kafka-killed", .phase = "committing"},
           {.kind = "worker-kill", .phase = "writing", .database = DatabaseKind::kSqlite},
           {.kind = "kafka-offsets-set-back",
           .phase = "acquiring",
           .database = DatabaseKind::kMariadb,
           .pipeline = Pipeline::kPosition},
           {.kind = "kafka-topic-made-again", .phase = "acquiring"},
           {.kind = "worker-kill-another-name",
           .phase = "writing",
           .pipeline = Pipeline::kKafka}}) {
    options.seed = seed++;
    for (const Cell& cell : Plan(options)) {
      const CellResult result = RunCell(*system_, cell);
      EXPECT_EQ(result.trouble, "") << result.Line();
      EXPECT_GT(result.effects, 150);
      std::printf("%s\n", result.Line().c_str());
      std::fflush(stdout);
    }
  }
}

// ./dev torture faults N --storm FAULTS runs longer ones.
TEST_F(Matrix, LosesAndDoublesNothingInStorms) {
  std::uint64_t seed = 1;
  for (MatrixOptions options : std::vector<MatrixOptions>{
           {.kind = "worker-", .pipeline = Pipeline::kId, .storm = 8},
           {.database = DatabaseKind::kPostgres, .pipeline = Pipeline::kPosition, .storm = 4},
           {.database = DatabaseKind::kMariadb, .pipeline = Pipeline::kPosition, .storm = 4},
           {.database = DatabaseKind::kSqlite, .pipeline = Pipeline::kPosition, .storm = 4},
           {.kind = "worker-kill", .pipeline = Pipeline::kKafka, .storm = 20},
           {.kind = "worker-kill-another-name", .pipeline = Pipeline::kKafka, .storm = 8}}) {
    options.seed = seed++;
    const CellResult result = RunCell(*system_, Plan(options).at(0));
    EXPECT_EQ(result.trouble, "") << result.Line();
    std::printf("%s\n", result.Line().c_str());
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace fencepost::matrix
