// The value that a node stores at a lock's key, taken apart: the one place besides the scripts that
// knows its format (locking/redis/wire.h). For `locks inspect`, which reads raw values.
//
// Pure values; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "locking/base/types.h"

namespace fencepost::locking {

struct UnitValue {
  enum class State : std::uint8_t { kHeld, kFree, kDone };
  State state = State::kFree;
  Token token;         // held, done
  Nonce nonce;         // held
  WallTime deadline;   // held; by the node's own clock
  Token floor;         // held, free
  ContentCrc crc = 0;  // done

  [[nodiscard]] std::string Encode() const;
  // Nothing when the text is not a lock's value, to the letter.
  static std::optional<UnitValue> Decode(std::string_view text);
  bool operator==(const UnitValue&) const = default;
};

}  // namespace fencepost::locking
