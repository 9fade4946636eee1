// Draws fencing tokens: a hybrid logical clock (Kulkarni et al., "Logical Physical Clocks", 2014)
// on the wall clock, one a process. Layout: 43 bits milliseconds since 2024, 10 bits counter, 10
// bits worker. Tokens of one clock strictly rise, unless the wall steps back so far
// that the last one is more than max_skew ahead of it. One thread.
#pragma once

#include <algorithm>

#include "locking/base/types.h"

namespace fencepost::locking {

class TokenClock {
 public:
  static constexpr std::uint64_t kWorkerMask = 0x3ff;
  static constexpr std::uint64_t kStep = kWorkerMask + 1;

  explicit TokenClock(std::uint64_t worker_bits) : worker_(worker_bits & kWorkerMask) {}

  // Restarts from the wall clock if it ran ahead by more than max_skew: the wall clock was wrong
  // then, or is now, and nodes refuse such tokens. The nodes' floors keep tokens monotonic.
  Token Next(WallTime wall, Millis max_skew) {
    if (last_ > Token::AtWall(wall + max_skew).value()) last_ = 0;
    const std::uint64_t from_wall = Token::AtWall(wall).value();
    const std::uint64_t after_last = (last_ & ~kWorkerMask) + kStep;
    last_ = std::max(from_wall, after_last) | worker_;
    return Token(last_);
  }

  // Makes later tokens exceed `seen`, if `seen` is believable: at most wall + max_skew. A value
  // from a broken clock must not drag ours along (PROTOCOL.md, invariant 9).
  void AdvancePast(Token seen, WallTime wall, Millis max_skew) {
    if (seen <= Token::AtWall(wall + max_skew)) last_ = std::max(last_, seen.value());
  }

  // Whether `token` runs ahead of the wall because of AdvancePast rather than because of the wall
  // itself.
  static bool Lifted(Token token, WallTime wall) { return token.wall() > wall + Millis(1); }

 private:
  std::uint64_t worker_;
  std::uint64_t last_ = 0;
};

}  // namespace fencepost::locking
