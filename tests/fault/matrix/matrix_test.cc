// The audit sees each kind of trouble in histories that were made for it, growth is told from
// flatness, and a few cells of the matrix run.
#include "tests/fault/matrix/matrix.h"

#include <libpq-fe.h>

#include <algorithm>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fault/matrix/soak.h"

namespace fencepost::matrix {
namespace {

using ::testing::HasSubstr;

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

TEST(MatrixAudit, SeesATokenThatGoesBack) {
  History history = Good();
  history.calls.push_back({.order = 2, .token = 29, .accepted = true, .life = 1});
  EXPECT_EQ(Judge(history).token_back, 1);
  history.calls.back().accepted = false;  // the receiver has refused it
  EXPECT_EQ(Judge(history).text, "");
}

TEST(MatrixAudit, SeesEffectAndDeadLetterOfOneRecordAndDeadLettersWithoutAReason) {
  History history = Good();
  history.dead = {{{1, 0}, 3}};
  EXPECT_EQ(Judge(history).both, 1);
  EXPECT_THAT(Judge(history).text, HasSubstr("effect and dead letter: 1, the first is o-3"));
  history.effects.pop_back();
  EXPECT_EQ(Judge(history).both, 0);
  EXPECT_EQ(Judge(history).unexpected_dead, 1);
  history.may_be_dead = true;
  EXPECT_EQ(Judge(history).text, "");
  history = Good();  // the first record of o-1 is dead, and its repeat took effect
  history.may_be_dead = true;
  history.dead = {{{1, 1}, 1}};
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

TEST(Growth, IsWhatTheLastThirdHasMoreThanTheFirstOneAfterWarmingUp) {
  std::vector<Sample> flat;
  std::vector<Sample> growing;
  for (int minute = 0; minute < 100; ++minute) {
    const double warming = std::min(minute, 15);
    flat.push_back({{"MiB", 50 + 3 * warming + minute % 7}});
    growing.push_back({{"MiB", 50 + 3 * warming + minute}});
  }
  EXPECT_EQ(Growth(flat), "");
  EXPECT_THAT(Growth(growing), HasSubstr("MiB grew from 128 to 182"));
}

TEST(Faults, AreManyAndHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const Fault& fault : AllFaults()) names.insert(fault.name);
  EXPECT_EQ(names.size(), AllFaults().size());
  EXPECT_GE(names.size(), 30U);
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

TEST_F(Matrix, UndoesWhatAFaultBeganThatFailsHalfway) {
  Fault fault = *std::find_if(AllFaults().begin(), AllFaults().end(),
                              [](const Fault& one) { return one.name == "postgres-frozen"; });
  fault.begin = [freeze = fault.begin](Scene& scene) {
    freeze(scene);
    throw std::runtime_error("planted");
  };
  const CellResult result = RunCell(*system_, fault, Phase::kHandling, 1);
  EXPECT_THAT(result.trouble, HasSubstr("planted"));
  EXPECT_EQ(PQping((system_->postgres().dsn() + "?connect_timeout=5").c_str()), PQPING_OK);
}

// One cell of each kind of server; ./dev torture faults runs all of them.
TEST_F(Matrix, LosesAndDoublesNothingInAFewOfItsCells) {
  const std::vector<std::pair<std::string, Phase>> cells = {
      {"worker-kill", Phase::kHandling},
      {"postgres-backends-terminated", Phase::kWriting},
      {"node-restarted-empty", Phase::kAcquiring}};
  std::uint64_t seed = 1;
  for (const auto& [name, phase] : cells) {
    const auto& all = AllFaults();
    const auto fault =
        std::find_if(all.begin(), all.end(), [&](const Fault& one) { return one.name == name; });
    ASSERT_NE(fault, all.end()) << name;
    const CellResult result = RunCell(*system_, *fault, phase, seed++);
    EXPECT_EQ(result.trouble, "") << result.Line();
    EXPECT_GT(result.effects, 150);
    std::printf("%s\n", result.Line().c_str());
  }
}

}  // namespace
}  // namespace fencepost::matrix
