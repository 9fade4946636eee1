#include "consumer/outputs/ledger/position_ranges.h"

#include <random>
#include <set>

#include <gtest/gtest.h>

namespace fencepost::consumer {
namespace {

// One offset at a time: what PositionRanges is judged by.
class OneByOne {
 public:
  void Add(Offset begin, Offset end) {
    for (Offset o = begin; o < end; ++o) offsets_.insert(o);
  }
  void Remove(Offset begin, Offset end) {
    for (Offset o = begin; o < end; ++o) offsets_.erase(o);
  }
  [[nodiscard]] bool Contains(Offset offset) const { return offsets_.contains(offset); }
  [[nodiscard]] std::size_t size() const { return offsets_.size(); }
  [[nodiscard]] std::string Text() const {
    std::string text = "{";
    for (auto at = offsets_.begin(); at != offsets_.end();) {
      const Offset begin = *at;
      Offset end = begin;
      while (at != offsets_.end() && *at == end) ++at, ++end;
      text +=
          (text.size() > 1 ? ",[" : "[") + std::to_string(begin) + "," + std::to_string(end) + ")";
    }
    return text + "}";
  }

 private:
  std::set<Offset> offsets_;
};

TEST(PositionRanges, AreTheSameSetAsTheirOffsetsOneByOne) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    PositionRanges ranges, others;
    OneByOne naive, naive_others;
    for (int step = 0; step < 60; ++step) {
      const auto begin = static_cast<Offset>(random() % 80);
      const auto end = begin + static_cast<Offset>(random() % 12);
      switch (random() % 4) {
        case 0:
          ranges.Remove(begin, end);
          naive.Remove(begin, end);
          break;
        case 1:
          others.Add(begin, end);
          naive_others.Add(begin, end);
          break;
        default:
          ranges.Add(begin, end);
          naive.Add(begin, end);
      }
      ASSERT_EQ(ranges.Text(), naive.Text());
      ASSERT_EQ(ranges.CountOffsets(), naive.size());
      ASSERT_EQ(PositionRanges::Parse(ranges.Text()), ranges);
    }
    const PositionRanges minus = ranges.Minus(others);
    PositionRanges both = ranges;
    both.Add(others);
    for (Offset o = -1; o < 100; ++o) {
      ASSERT_EQ(ranges.Contains(o), naive.Contains(o)) << o;
      ASSERT_EQ(minus.Contains(o), naive.Contains(o) && !naive_others.Contains(o)) << o;
      ASSERT_EQ(both.Contains(o), naive.Contains(o) || naive_others.Contains(o)) << o;
    }
  }
}

TEST(PositionRanges, WorkThatIsDoneOutOfOrderMergesIntoOneRange) {
  PositionRanges ranges;
  for (Offset o = 999; o > 0; o -= 2) ranges.Add(o, o + 1);
  EXPECT_EQ(ranges.size(), 500u);
  for (Offset o = 0; o < 1000; o += 2) ranges.Add(o, o + 1);
  EXPECT_EQ(ranges.Text(), "{[0,1000)}");
}

TEST(PositionRanges, ReadNothingButTheirOwnText) {
  for (const char* text : {"", "{", "}", "{[1,2)", "{[1,2]}", "{(1,2)}", "{[2,1)}", "{[1,1)}",
                           "{[1,2),}", "{[1,2)[3,4)}", "{[1,2),[2,3)}", "{[5,6),[1,2)}", "{[1,2)} ",
                           "{[a,2)}", "{[1,99999999999999999999)}", "{,[1,2)}"}) {
    EXPECT_FALSE(PositionRanges::Parse(text)) << text;
  }
  EXPECT_EQ(PositionRanges::Parse("{}"), PositionRanges());
}

}  // namespace
}  // namespace fencepost::consumer
