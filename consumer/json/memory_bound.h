// About what one record of this size may take while it is decoded, read, handled or encoded: a few
// bytes must not take a lot of memory.
#pragma once

#include <cstddef>

namespace fencepost::consumer {

constexpr std::size_t MaxMemoryOf(std::size_t bytes) {
  return (std::size_t{64} << 20) + 16 * bytes;
}

}  // namespace fencepost::consumer
