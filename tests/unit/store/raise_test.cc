// What a client does about empty nodes that it never saw: the whole table.
#include "locking/core/store/raise.h"

#include <gtest/gtest.h>

#include <array>

#include <fmt/format.h>

namespace fencepost::locking {
namespace {

using Seen = RaiseSeen;
using Move = RaiseMove;

// By level, idle and waited, in this order: 000, 001, … 111.
struct Row {
  Seen seen;
  std::array<Move, 8> moves;
};

TEST(Raise, IsDecidedByThisTable) {
  constexpr Move kW = Move::kWait, kB = Move::kBegin, kA = Move::kAdmit, kF = Move::kFinish,
                 kT = Move::kTakeOver;
  const Row rows[] = {{Seen::kNone, {kW, kW, kW, kW, kW, kB, kW, kB}},
                      {Seen::kOurs, {kF, kF, kF, kF, kA, kA, kA, kA}},
                      {Seen::kOfOurList, {kW, kW, kT, kT, kA, kA, kA, kA}},
                      {Seen::kOfAnotherList, {kW, kW, kB, kB, kW, kW, kB, kB}}};
  for (const Row& row : rows) {
    for (unsigned i = 0; i < row.moves.size(); ++i) {
      const RaiseFacts facts{row.seen, (i & 4U) != 0, (i & 2U) != 0, (i & 1U) != 0};
      EXPECT_EQ(MoveFor(facts), row.moves[i])
          << fmt::format("seen {}, facts {:03b}", static_cast<int>(row.seen), i);
    }
  }
}

}  // namespace
}  // namespace fencepost::locking
