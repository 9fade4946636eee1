// The audit sees each kind of trouble in histories that were made for it, growth is told from
// flatness, and a few cells of the matrix run.
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

// Four orders, 0 and 2 of one key; o-1 was sent twice.
History Good() {
  History history;
  history.orders = 4;
  history.sent = {
      {0, {0, 0}, "a"}, {1, {0, 1}, "b"}, {2, {0, 2}, "a"}, {3, {1, 0}, "c"}, {1, {1, 1}, "b"}};
  const std::int64_t tokens[] = {10, 20, 30, 40};
  for (int order = 0; order < 4; ++order) {
    const Sent& sent = history.sent[static_cast<std::size_t>(order)];
    const std::int64_t token = tokens[order];
    history.effects.push_back({order, AmountOf(order), sent.place, token});
    history.calls.push_back({.order = order, .token = token, .accepted = true, .life = 0});
  }
  history.ends = history.committed = {3, 2};
  return history;
}

TEST(MatrixAudit, IsContentWithOneEffectOfEachInOrder) {
  EXPECT_EQ(Judge(Good()).text, "");
  History again = Good();  // handled twice, with a later token, and written once with the first
  again.calls.push_back({.order = 2, .token = 35, .accepted = true, .life = 1});
  EXPECT_EQ(Judge(again).text, "");
}

TEST(MatrixAudit, SeesWhatIsLost) {
  History history = Good();
  history.effects.pop_back();
  EXPECT_EQ(Judge(history).lost, 1);
  EXPECT_EQ(Judge(history).text, "lost: 1, the first is o-3\n");
}

TEST(MatrixAudit, SeesWhatIsDoubledFromThatRecordOrFromItsRepeat) {
  History history = Good();
  history.effects.push_back(history.effects[3]);
  EXPECT_EQ(Judge(history).doubled, 1);
  history = Good();
  history.effects.push_back({1, AmountOf(1), {1, 1}, 20});
  EXPECT_EQ(Judge(history).doubled, 1);
}

TEST(MatrixAudit, SeesAnEffectBeforeThatOfAnEarlierRecordOfItsKey) {
  History history = Good();
  std::swap(history.effects[0], history.effects[2]);
  EXPECT_EQ(Judge(history).out_of_order, 1);
  EXPECT_THAT(Judge(history).text, HasSubstr("o-0 of 0/0 with token 10 after offset 2"));
  history = Good();
  std::swap(history.effects[0], history.effects[1]);  // another key
  EXPECT_EQ(Judge(history).text, "");
}

TEST(MatrixAudit, CountsTokensThatGoBackAndCallsThoseTroubleThatWereAccepted) {
  History history = Good();
  history.calls.push_back({.order = 2, .token = 29, .accepted = false, .life = 1});
  history.calls.push_back({.order = 2, .token = 28, .accepted = false, .life = 1});
  EXPECT_EQ(Judge(history).token_back, 2);
  EXPECT_EQ(Judge(history).text, "");
  history.calls.back().accepted = true;
  EXPECT_EQ(Judge(history).token_back, 2);
  EXPECT_THAT(Judge(history).text, HasSubstr("accepted: 1, the first is o-2: 28 after 30"));
}

TEST(MatrixAudit, SeesAnEffectOfACallThatWasRefused) {
  History history = Good();
  // Another worker has called with 35 since; the late one is refused, and takes effect all the
  // same.
  history.calls[2].token = 25;
  history.calls.push_back({.order = 2, .token = 35, .accepted = true, .life = 1});
  EXPECT_EQ(Judge(history).text, "");  // what the call with 25 made, under a later lease
  history.calls.push_back({.order = 2, .token = 30, .accepted = false, .life = 0});
  EXPECT_EQ(Judge(history).wrong, 1);
  EXPECT_THAT(Judge(history).text, HasSubstr("o-2 of 0/2 with token 30: its calls were refused"));
  history.calls.push_back({.order = 2, .token = 30, .accepted = true, .life = 0});
  EXPECT_EQ(Judge(history).wrong, 0);
}

TEST(MatrixAudit, SeesADeadLetterOfARecordWhoseAnswersWereAllGood) {
  History history = Good();
  history.effects.pop_back();
  history.dead = {{{1, 0}, 3}};
  EXPECT_EQ(Judge(history).unexpected_dead, 1);
  history.calls[0].unusable = true;  // of another record
  EXPECT_EQ(Judge(history).unexpected_dead, 1);
  history.calls[3].unusable = true;
  EXPECT_EQ(Judge(history).text, "");
  history = Good();  // the first record of o-1 is dead, and its repeat took effect
  history.calls[1].unusable = true;
  history.effects[1].place = {1, 1};
  history.dead = {{{0, 1}, 1}};
  EXPECT_EQ(Judge(history).text, "");
}

TEST(MatrixAudit, SeesEffectAndDeadLetterOfOneRecordThatNobodyCouldFindAgain) {
  History history = Good();
  history.calls[3].unusable = true;
  history.dead = {{{1, 0}, 3}};
  EXPECT_EQ(Judge(history).both, 1);
  EXPECT_THAT(Judge(history).text, HasSubstr("effect and dead letter: 1, the first is o-3"));
  history.moved_from = {0, 1};  // what was given away had been committed beyond it
  EXPECT_EQ(Judge(history).both, 1);
  history.moved_from = {3, 0};  // not yet committed
  EXPECT_EQ(Judge(history).both, 0);
  EXPECT_EQ(Judge(history).moved, 1);
  EXPECT_EQ(Judge(history).text, "");
}

TEST(MatrixAudit, SeesEffectsThatNothingExplains) {
  for (const auto& spoil : std::vector<void (*)(Effect&)>{
           [](Effect& effect) { effect.amount += 1; }, [](Effect& effect) { effect.token -= 1; },
           [](Effect& effect) { effect.place.offset = 7; },
           [](Effect& effect) {
             effect.place = {0, 1};
           }}) {
    History history = Good();
    spoil(history.effects[3]);
    EXPECT_EQ(Judge(history).wrong, 1);
  }
}

TEST(MatrixAudit, SeesAPartitionThatIsNotCommittedToItsEnd) {
  History history = Good();
  history.committed[1] = 1;
  EXPECT_EQ(Judge(history).uncommitted, 1);
  history.committed.pop_back();
  EXPECT_EQ(Judge(history).uncommitted, 1);
}

// What the receivers log of calls with these tokens for one order.
void ExpectOneTokenBack(const Receiver& receiver) {
  History history;
  history.calls = receiver.Calls();
  EXPECT_EQ(history.calls.size(), 3U);
  EXPECT_EQ(Judge(history).token_back, 1);
  EXPECT_EQ(Judge(history).text, "");
}
constexpr int kTokens[] = {7, 5, 7};

TEST(Receiver, LogsACallThatItRefusesSinceItsTokenWentBack) {
  const auto http = MakeHttpReceiver();
  for (const int token : kTokens) {
    const auto said = testing::RunToEnd(
        {.argv = {"curl", "-s", "-H", fmt::format("Fencing-Token: {}", token), "-H", "X-Life: 0",
                  "-d", testing::Orders::Value(3), "http://" + http->proxy()->address() + "/"}});
    EXPECT_EQ(said.exit_code, 0);
  }
  ExpectOneTokenBack(*http);

  const testing::TempDir folder;
  const auto exec = MakeExecReceiver(folder);
  std::string lines;
  for (const int token : kTokens) {
    lines += fmt::format(R"({{"record_id": "o-3", "token": {}, "value": {}}})", token,
                         testing::Orders::Value(3)) +
             "\n";
  }
  const auto said = testing::RunToEnd(
      {.argv = {"python3", folder.File("handle.py")}, .env = {{"LIFE", "0"}}, .stdin_text = lines});
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
  ASSERT_EQ(cells.size(), 2 * AllFaults().size() * kPhaseNames.size());
  for (std::size_t i = 0; i < cells.size(); ++i) EXPECT_EQ(cells[i].seed, 7 + i);
  const auto alone = Plan({.kind = "worker-kill", .phase = "writing", .seed = 3});
  ASSERT_EQ(alone.size(), 1U);  // not worker-kill-all
  EXPECT_EQ(alone[0].name, "worker-kill/writing");
  EXPECT_EQ(alone[0].seed, 3U);
  EXPECT_EQ(Plan({.once = true}).size(), AllFaults().size());
}

TEST(Plan, WritesToTheDatabaseOfTheFaultOrToTheOneThatIsAskedFor) {
  const auto databases = [](const MatrixOptions& options) {
    std::map<std::string, DatabaseKind> of;
    for (const Cell& cell : Plan(options)) of[cell.fault->name] = cell.database;
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
    for (const Effect& effect : database.ReadEffects(table)) orders.push_back(effect.order);
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
      RunCell(*system_, {.fault = &fault, .phase = Phase::kHandling, .name = "planted", .seed = 1});
  EXPECT_THAT(result.trouble, HasSubstr("planted"));
  EXPECT_EQ(system_->database(DatabaseKind::kPostgres).Value("SELECT 1", "postgres"), "1");
}

// One cell of each kind of server; ./dev torture faults runs all of them.
TEST_F(Matrix, LosesAndDoublesNothingInAFewOfItsCells) {
  std::uint64_t seed = 1;
  for (const auto& [kind, phase] :
       std::vector<std::pair<std::string, std::string>>{{"worker-kill", "handling"},
                                                        {"postgres-sessions-ended", "writing"},
                                                        {"mariadb-killed", "writing"},
                                                        {"mariadb-failed-over", "writing"},
                                                        {"node-restarted-empty", "acquiring"}}) {
    for (const Cell& cell : Plan({.kind = kind, .phase = phase, .seed = seed++})) {
      const CellResult result = RunCell(*system_, cell);
      EXPECT_EQ(result.trouble, "") << result.Line();
      EXPECT_GT(result.effects, 150);
      std::printf("%s\n", result.Line().c_str());
    }
  }
}

}  // namespace
}  // namespace fencepost::matrix
