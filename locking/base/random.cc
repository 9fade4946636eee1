#include "locking/base/random.h"

#include <sys/random.h>

#include <array>

#include "locking/base/check.h"

namespace fencepost::locking {

std::uint64_t RandomBits() {
  thread_local std::array<std::uint64_t, 32> bits;
  thread_local std::size_t left = 0;
  if (left == 0) {
    const ssize_t got = getrandom(bits.data(), sizeof bits, 0);
    FENCEPOST_CHECK(got == static_cast<ssize_t>(sizeof bits), "getrandom");
    left = bits.size();
  }
  return bits[--left];
}

}  // namespace fencepost::locking
