// Values of locks, as the scripts leave them at a name (locking/core/scripts).
#pragma once

#include <string>

#include <fmt/format.h>

#include "locking/base/types.h"

namespace fencepost::testing {

// Of a holder that no test has.
inline std::string HeldValue(locking::Token token, locking::WallTime deadline) {
  return fmt::format("H{:011x}{:016x}{}", deadline.time_since_epoch().count(), token.value(),
                     std::string(locking::Nonce::kBytes, '7'));
}
inline std::string FreeValue(locking::Token floor) {
  return fmt::format("F{:016x}", floor.value());
}

}  // namespace fencepost::testing
