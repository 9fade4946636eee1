// The words of the lock protocol: instants, tokens, nonces, ids. Plain values; any thread.
#pragma once

#include <array>
#include <bit>
#include <chrono>
#include <compare>
#include <cstdint>
#include <string>

namespace fencepost::locking {

using Nanos = std::chrono::nanoseconds;
using Millis = std::chrono::milliseconds;

// CLOCK_BOOTTIME: goes on while the machine sleeps, never steps. All validity is reckoned on it
// (PROTOCOL.md, invariant 4). The core never calls now(); drivers do.
struct BootClock {
  using duration = Nanos;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept;
};
using Instant = BootClock::time_point;

// The wall clock, milliseconds since the Unix epoch. Only tokens and stored deadlines use it.
using WallTime = std::chrono::time_point<std::chrono::system_clock, Millis>;

// Both clocks, read together by the driver and passed into every step of a sans-IO machine.
struct Now {
  Instant boot;
  WallTime wall;
};
Now ReadClocks() noexcept;  // driver side only

inline constexpr int kMaxNodes = 7;
using NodeIndex = int;  // the place in the configured list, 0-based
// What people read instead, in metrics, logs and commands: a to g.
constexpr char NodeLetter(NodeIndex node) { return static_cast<char>('a' + node); }

// A quorum of n nodes, counted from the configured number, never from the reachable ones.
constexpr int Quorum(int nodes) { return nodes / 2 + 1; }

// The fencing token: the order between leases of one name. A hybrid logical clock value below 2^63:
// milliseconds since 2024-01-01 UTC << 20, plus counter and worker bits. 0 is "no token".
class Token {
 public:
  static constexpr int kShift = 20;
  static constexpr std::int64_t kEpochUnixMillis = 1704067200000;  // 2024-01-01T00:00:00Z

  constexpr Token() = default;
  constexpr explicit Token(std::uint64_t value) : value_(value) {}
  static constexpr Token AtWall(WallTime wall) {
    const std::int64_t since = wall.time_since_epoch().count() - kEpochUnixMillis;
    return Token(since <= 0 ? 0 : static_cast<std::uint64_t>(since) << kShift);
  }

  [[nodiscard]] constexpr std::uint64_t value() const { return value_; }
  [[nodiscard]] constexpr WallTime wall() const {
    return WallTime(Millis(static_cast<std::int64_t>(value_ >> kShift) + kEpochUnixMillis));
  }
  constexpr explicit operator bool() const { return value_ != 0; }
  constexpr auto operator<=>(const Token&) const = default;

 private:
  std::uint64_t value_ = 0;
};

// 128 random bits, drawn again for each attempt: who holds. The token says in which order.
struct Nonce {
  static constexpr int kBytes = 16;
  std::array<std::uint64_t, 2> bits{};
  constexpr auto operator<=>(const Nonce&) const = default;
};

// A lock in one LockCore. The generation makes a reused slot a different lock; 0 is never issued.
struct LockId {
  static constexpr std::uint32_t kLastGeneration = UINT32_MAX;
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;
  constexpr explicit operator bool() const { return generation != 0; }
  constexpr auto operator<=>(const LockId&) const = default;
};

// A checksum of what was done under a name, stored with its DONE mark; 0 where the user of the
// library gives none. The low 32 bits are the checksum, the high 32 bits say of what it was taken:
// checksums of other things say nothing of each other, and so make no conflict.
using ContentCrc = std::uint64_t;
constexpr bool IsOtherContent(ContentCrc a, ContentCrc b) { return a != b && a >> 32 == b >> 32; }

// --- sets of nodes, one bit each ---
using NodeSet = std::uint8_t;
constexpr NodeSet Bit(NodeIndex node) { return static_cast<NodeSet>(1u << node); }
constexpr NodeSet AllNodes(int nodes) { return static_cast<NodeSet>((1u << nodes) - 1); }
constexpr NodeSet Without(NodeSet set, NodeSet less) { return static_cast<NodeSet>(set & ~less); }
constexpr int Count(NodeSet set) { return std::popcount(set); }

// Whether `set` is a majority of the configured nodes.
constexpr bool IsMajority(NodeSet set, int nodes) { return Count(set) >= Quorum(nodes); }

}  // namespace fencepost::locking
