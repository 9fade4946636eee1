// A hash of text that is the same in every process, on every host and in every version: what is
// stored somewhere, or agreed on between processes, may hang on it. Not against attackers. Pure
// functions; any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace fencepost::locking {

// FNV-1a, 64 bits.
constexpr std::uint64_t HashOf(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

// The finalizer of SplitMix64: every bit of `x` in every bit of the result.
constexpr std::uint64_t Mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace fencepost::locking
