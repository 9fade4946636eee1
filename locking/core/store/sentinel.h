// The sentinel: what each node remembers of the lock store, at key fencepost::sentinel, so that a
// node that lost its memory is noticed (PROTOCOL.md, invariant 12). A fixed-width line, so that
// Lua can read it by position:
//
// clang-format off
//   | field            | at  | characters                 |
//   |------------------|-----|----------------------------|
//   | state            |   0 | F or C                     |
//   | store id         |   2 | 32, hexadecimal            |
//   | index            |  35 | 1 digit                    |
//   | N                |  37 | 1 digit                    |
//   | epoch            |  39 | 8 digits                   |
//   | accepted run_id  |  48 | 40                         |
//   | quarantine_until |  89 | 13 digits, ms of the node  |
//   | max_ttl          | 103 | 8 digits, ms               |
// clang-format on
// with '|' between the fields.
//
// F is forming: the beginnings of a store, to be outbid at epoch 0, locked in at epoch 1. C is
// complete; its epoch is odd, even only while a node is being replaced (store.h, generations).
//
// Pure functions and values; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "locking/base/types.h"

namespace fencepost::locking {

inline constexpr std::string_view kSentinelKey = "fencepost::sentinel";
// 0-based offset of the 13 digits of quarantine_until; scripts rewrite them in place.
inline constexpr int kSentinelQuarantineAt = 1 + 1 + 32 + 1 + 1 + 1 + 1 + 1 + 8 + 1 + 40 + 1;
inline constexpr int kSentinelSize = kSentinelQuarantineAt + 13 + 1 + 8;

inline constexpr std::size_t kStoreIdSize = 32;
inline constexpr std::size_t kRunIdSize = 40;

bool IsRunId(std::string_view text);  // as INFO shows one

inline constexpr std::uint32_t kMaxEpoch = 99'999'999;

// Of the nodes that make a quorum together (store.h).
constexpr std::uint32_t Generation(std::uint32_t epoch) { return epoch | 1U; }

struct Sentinel {
  bool complete = false;  // else forming
  std::string store_id;   // 32 hex digits
  int index = 0;          // the node's rank by run_id when the store was created
  int nodes = 0;          // N
  std::uint32_t epoch = 1;
  std::string run_id;           // of the server process that was last accepted, 40 characters
  WallTime quarantine_until{};  // by the node's own clock
  Millis max_ttl{0};

  // Every field must fit its width (CHECK).
  [[nodiscard]] std::string Encode() const;
  // Nothing when the text is not a sentinel, to the letter.
  static std::optional<Sentinel> Decode(std::string_view text);
  bool operator==(const Sentinel&) const = default;
};

}  // namespace fencepost::locking
