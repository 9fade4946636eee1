// Randomness for nonces and jitter: what drivers give to LockCore. Any thread.
#pragma once

#include <cstdint>

namespace fencepost::locking {

// 64 bits of the kernel's generator (getrandom), read in bulk for each thread: a lock takes two
// draws.
std::uint64_t RandomBits();

}  // namespace fencepost::locking
