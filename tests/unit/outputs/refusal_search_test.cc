#include "consumer/outputs/ledger/refusal_search.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Records = RefusalSearch::Records;
const RefusalSearch::Start kRefused{};
const RefusalSearch::Start kFine{.refused = false};

// A table that refuses some records, and what a transaction leaves in it.
struct Table {
  std::set<std::size_t> refused;
  bool guesses = false;   // its words name the first that it refuses
  std::size_t guess = 0;  // or the one so many behind it
  std::vector<std::size_t> taken;
  std::set<std::size_t> bad;
  int parts = 0;
  int goes = 0;
  std::ptrdiff_t written = 0;  // records, those of refused parts up to the first that is refused

  void Write(RefusalSearch& search) {
    for (auto next = search.Next(); !next.empty(); next = search.Next()) {
      ++goes;
      for (std::size_t place = 0; place < next.size(); ++place) {
        const Records& part = next[place];
        ++parts;
        const auto first = std::ranges::find_if(
            part, [&](std::size_t record) { return refused.contains(record); });
        written += first - part.begin();
        if (first == part.end()) {
          taken.insert(taken.end(), part.begin(), part.end());
          search.OnTaken(place);
          continue;
        }
        if (part.size() == 1) bad.insert(part.front());
        const bool named = guesses && first + static_cast<std::ptrdiff_t>(guess) < part.end();
        search.OnRefused(
            place, named ? Records{*(first + static_cast<std::ptrdiff_t>(guess))} : Records{});
      }
    }
  }
};

Records All(std::size_t count) {
  Records all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(RefusalSearch, FindsFiveOfFiveHundredInAFewGoesAndParts) {
  for (const bool guesses : {false, true}) {
    RefusalSearch search(All(500), std::vector<std::uint64_t>(500), kRefused);
    Table table{.refused = {7, 107, 207, 307, 407}, .guesses = guesses};
    table.Write(search);
    EXPECT_EQ(table.bad, table.refused);
    EXPECT_EQ(table.taken.size(), 495u);
    EXPECT_LE(table.goes, 6);
    EXPECT_LE(table.parts, guesses ? 36 : 75);
    EXPECT_THAT(search.left(), IsEmpty());
  }
}

TEST(RefusalSearch, FindsTheOneThatIsNamedOfFiveHundredInOneGo) {
  RefusalSearch search(All(500), std::vector<std::uint64_t>(500), {.suspects = {137}});
  Table table{.refused = {137}, .guesses = true};
  table.Write(search);
  EXPECT_EQ(table.bad, table.refused);
  EXPECT_EQ(table.taken.size(), 499u);
  EXPECT_EQ(table.goes, 1);
}

TEST(RefusalSearch, FindsFiftyOfFiveHundredInAFewGoesWhereSoManyAreExpected) {
  std::mt19937 random(1);
  Table table{.guesses = true};
  while (table.refused.size() < 50) table.refused.insert(random() % 500);
  RefusalSearch search(All(500), std::vector<std::uint64_t>(500),
                       {.refused = false, .expected = 50});
  table.Write(search);
  EXPECT_EQ(table.bad, table.refused);
  EXPECT_EQ(table.taken.size(), 450u);
  EXPECT_LE(table.goes, 6);
  EXPECT_LE(table.parts, 170);
}

// Half of the batches have one, as where one record in a thousand is refused.
TEST(RefusalSearch, WritesLittleTwiceWhereOneRecordIsExpected) {
  Table table{.refused = {137}, .guesses = true};
  RefusalSearch search(All(500), std::vector<std::uint64_t>(500),
                       {.refused = false, .expected = 1});
  table.Write(search);
  EXPECT_EQ(table.bad, table.refused);
  EXPECT_LE(table.written, 520);
  EXPECT_LE(table.parts, 8);
}

// A text that another record has, too.
TEST(RefusalSearch, EndsSoonWhereTheGuessesAreWrong) {
  Table table{.refused = {300}, .guesses = true, .guess = 1};
  RefusalSearch search(All(500), std::vector<std::uint64_t>(500), kRefused);
  table.Write(search);
  EXPECT_EQ(table.bad, table.refused);
  EXPECT_LE(table.goes, 10);
}

TEST(RefusalSearch, WhatIsGoodIsOnePart) {
  RefusalSearch search(All(500), std::vector<std::uint64_t>(500), kFine);
  Table table;
  table.Write(search);
  EXPECT_EQ(table.parts, 1);
}

TEST(RefusalSearch, EndsSoonWhereATableTakesNothingAndOnlyThere) {
  RefusalSearch search(All(500), std::vector<std::uint64_t>(500), kRefused);
  Table table;
  for (std::size_t record = 0; record < 500; ++record) table.refused.insert(record);
  table.Write(search);
  EXPECT_GE(table.bad.size(), RefusalSearch::kMostRefused);
  EXPECT_LE(table.parts, 100);
  EXPECT_EQ(search.left().size(), 500 - table.bad.size());
  RefusalSearch other(All(500), std::vector<std::uint64_t>(500), kRefused);
  Table mostly{.refused = table.refused};
  mostly.refused.erase(3);
  mostly.Write(other);
  EXPECT_EQ(mostly.bad, mostly.refused);
}

TEST(RefusalSearch, GoesThroughAllWhereTheTableHasJustTakenOthers) {
  Table table;
  for (const std::size_t record : All(40)) table.refused.insert(record);
  RefusalSearch search(All(40), std::vector<std::uint64_t>(40), {.taken = true});
  table.Write(search);
  EXPECT_EQ(table.bad.size(), 40u);
  EXPECT_THAT(search.left(), IsEmpty());
}

TEST(RefusalSearch, LeavesWhatIsBehindARefusedRecordOfItsChain) {
  RefusalSearch search(All(6), {7, 7, 7, 8, 0, 0}, kRefused);
  Table table{.refused = {1, 4}};
  table.Write(search);
  std::ranges::sort(table.taken);
  EXPECT_THAT(table.taken, ElementsAre(0, 3, 5));
  EXPECT_THAT(search.left(), ElementsAre(2));
}

TEST(RefusalSearch, KeepsTheOrderOfRecordsWithoutAChainWhereItMatters) {
  for (const bool guesses : {false, true}) {
    RefusalSearch search(All(100), std::vector<std::uint64_t>(100, RefusalSearch::kInOrder),
                         kRefused);
    Table table{.refused = {7, 50, 99}, .guesses = guesses};
    table.Write(search);
    EXPECT_EQ(table.bad, table.refused);
    EXPECT_EQ(table.taken.size(), 97u);
    EXPECT_TRUE(std::ranges::is_sorted(table.taken));
  }
}

// By the way that writes one record after the other.
TEST(RefusalSearch, WhateverTheGuessesLeavesWhatOneAfterTheOtherWouldInTheOrderOfTheChains) {
  std::mt19937 random(1);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (int round = 0; round < 2000; ++round) {
    const std::size_t count = 1 + below(120);
    const std::size_t most_chains = std::vector<std::size_t>{1, 3, 20, 1000}[below(4)];
    std::vector<std::uint64_t> chains(count);
    Table table{.guesses = below(2) == 0};
    const std::size_t share = std::vector<std::size_t>{1, 5, 30, 80}[below(4)];
    for (std::size_t record = 0; record < count; ++record) {
      chains[record] = below(3) == 0 ? 0 : 1 + below(most_chains);
      if (below(100) < share) table.refused.insert(record);
    }
    Records order = All(count);
    if (below(2) == 0) std::ranges::shuffle(order, random);
    RefusalSearch search(order, chains,
                         {.refused = below(2) == 0,
                          .suspects = below(2) == 0 ? Records() : Records{below(count)},
                          .expected = below(20)});
    table.Write(search);
    if (table.taken.empty() && table.bad.size() >= RefusalSearch::kMostRefused) continue;
    std::set<std::uint64_t> held;
    std::map<std::uint64_t, std::vector<std::ptrdiff_t>> in_order;
    std::set<std::size_t> bad, taken(table.taken.begin(), table.taken.end());
    std::size_t good = 0;
    for (const std::size_t record : order) {
      const std::uint64_t chain = chains[record];
      if (chain != 0 && held.contains(chain)) continue;
      if (table.refused.contains(record)) {
        bad.insert(record);
        held.insert(chain);
        continue;
      }
      ++good;
      ASSERT_TRUE(taken.contains(record)) << "round " << round;
    }
    ASSERT_EQ(table.bad, bad) << "round " << round;
    ASSERT_EQ(table.taken.size(), good) << "round " << round;
    for (const std::size_t record : table.taken) {
      const auto place = std::ranges::find(order, record) - order.begin();
      if (chains[record] != 0) in_order[chains[record]].push_back(place);
    }
    for (const auto& [chain, records] : in_order) {
      ASSERT_TRUE(std::ranges::is_sorted(records)) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace fencepost::consumer
